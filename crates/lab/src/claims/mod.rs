//! Claims of publications, and whether this software confirms them.
//!
//! ```text
//!   crates/lab/papers/NAME/paper.toml    the runs: sweeps over scenarios, full and quick
//!   crates/lab/papers/NAME/claims.toml   the claims and their tests, with the thresholds of the publication
//!   crates/lab/papers/NAME/record.toml   the verdicts of the last full reproduction
//!
//!   paper ── sweeps ──> plans ──> Results ──┐
//!   claim ── tests ─────────────────────────┴── judge ──> answer: reproduced | not reproduced | undecided
//!         └─ probes of the code itself ─────────┘
//! ```
//! One model judges all claims: [`judge`]. A probe drives the code to check a claim about the numbers and rules of an
//! algorithm ([`probe`]). Simulations check a claim about results, and may compare it with measured data instead of a
//! number ([`mod@reference`]). The repository records the verdicts of full reproductions ([`Record`]).

mod answer;
mod chance;
mod claim;
mod compare;
pub mod judge;
mod ledger;
mod level;
mod measured;
mod paper;
pub mod probe;
mod record;
pub mod reference;
mod select;
mod sensitivity;
mod value;

pub use answer::{Answer, Counts, Measured, Power, Summary, Verdict};
pub use claim::{Basis, Claim, Grade, Kind, Op, Settings, Statistic, Test, Wanted};
pub use compare::Outcome;
pub use ledger::{publications, totals, verdicts};
pub use level::Level;
pub use measured::Measured as MeasuredTable;
pub use paper::{Extent, PAPERS, Paper, PaperError, Part, Scope, Sweep};
pub use record::{Entry, Record, RecordError, Tally};
pub use reference::Table;
pub use sensitivity::Sensitivity;
