//! Builds, models, transfers and the trace of Grenoble, from outside.

mod grenoble;
mod locked;
mod model;
mod sources;
mod transfers;
