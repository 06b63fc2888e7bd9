//! Scenarios, runs, statistics and reports.
//!
//! - [`scenario`]: everything a run depends on besides its seed, read from TOML with precise errors.
//! - [`air`]: the scenario's topology and radio in the simulator's types.
//! - [`simulate`]: one scenario and one seed become one outcome; the only door to the simulator.
//! - [`runner`]: many seeds in parallel, failures counted, results independent of the number of threads.
//! - [`metrics`]: one outcome becomes numbers; [`statistics`]: the numbers of many runs become means with
//!   confidence intervals.
//! - [`detail`]: data of one run for figures, beyond its metrics.
//! - [`plan`]: the points of a sweep and their runs; [`identity`]: the name of a run; [`store`]: runs that are kept.
//! - [`build`]: the build of the program that made a run.
//! - [`batch`]: the runs of a plan that are not stored yet.
//! - [`compare`]: two points, run by run.
//! - [`transfer`]: the metrics of a run that are about transfers.
//! - [`results`]: the runs of every point of a sweep.
//! - [`command`]: command lines that repeat points and runs.
//! - [`claims`]: claims of publications, judged by runs and by driving the code.
//! - [`tune`]: searches the parameters of a retransmission timer.
//! - [`validate`]: compares the simulator with measurements of real networks.
//! - [`figures`]: the figures of results as SVG; [`html`]: a page with all of them.
//! - [`manual`]: the parts of the manual that rows make.
//! - [`report`]: JSON, CSV and the folder of results; [`digits`]: the digits of a mean in tables.
//!
//! ```
//! use lowmesh_lab::scenario::Scenario;
//!
//! let overrides = ["traffic.period=2s".to_owned()];
//! let scenario = Scenario::load("grid-25", &overrides)?;
//! assert_eq!(scenario.traffic.period.as_secs(), 2);
//!
//! let errors = Scenario::parse("mine", "name = \"x\"\n[rpl]\nmode = \"soring\"", &[]).unwrap_err();
//! assert_eq!(
//!     errors.to_string(),
//!     "mine:3:8: rpl.mode = \"soring\": must be one of storing, non-storing, storing-multicast; did you mean `storing`?"
//! );
//! # Ok::<(), lowmesh_lab::scenario::LoadError>(())
//! ```

pub mod air;
pub mod batch;
pub mod build;
pub mod claims;
pub mod command;
pub mod compare;
pub mod detail;
pub mod digits;
pub mod figures;
pub mod html;
pub mod identity;
pub mod manual;
mod mechanism;
pub mod medians;
pub mod metrics;
pub mod plan;
mod probe;
pub mod report;
pub mod results;
pub mod runner;
pub mod scenario;
mod settings;
pub mod simulate;
pub mod statistics;
pub mod store;
pub mod transfer;
pub mod tune;
pub mod unreached;
pub mod validate;
