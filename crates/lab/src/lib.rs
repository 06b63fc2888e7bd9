//! Scenarios, runs, statistics and reports.
