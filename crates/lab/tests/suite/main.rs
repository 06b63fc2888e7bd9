//! Builds, models, transfers and the trace of Grenoble, from outside.

mod grenoble;
mod model;
mod sources;
mod transfers;
