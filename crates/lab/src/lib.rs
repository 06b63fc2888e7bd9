//! Scenarios, runs, statistics and reports.
//!
//! - [`scenario`]: everything a run depends on besides its seed, read from TOML with precise errors.
//! - [`simulate`]: one scenario and one seed become one outcome; the only door to the simulator.
//! - [`runner`]: many seeds in parallel, failures counted, results independent of the number of threads.
//! - [`metrics`]: one outcome becomes numbers; [`statistics`]: the numbers of many runs become means with
//!   confidence intervals.
//! - [`report`]: JSON, CSV and the folder of results.

pub mod metrics;
pub mod report;
pub mod runner;
pub mod scenario;
pub mod simulate;
pub mod statistics;
