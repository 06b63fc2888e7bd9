//! The built command as users run it: one file for each verb or topic.
//!
//! `folder` and `served` start it: `folder` gives a test a folder and a small scenario, `served` a server.

mod artefact;
mod builds;
mod coap;
mod exit_codes;
#[cfg(unix)]
mod files;
mod folder;
mod group_oscore;
mod groups;
#[cfg(unix)]
mod groups_end;
mod interrupt;
mod keygen;
mod links;
#[cfg(unix)]
mod log;
mod manual;
mod node;
mod printed;
mod refusals;
mod reports;
mod runs;
mod serve;
mod served;
mod sweeps;
