//! Claims of publications, and whether this software bears them out.
//!
//! ```text
//!   papers/NAME/paper.toml    which runs it takes: sweeps over scenarios, full and quick
//!   papers/NAME/claims.toml   what is claimed, and how that is tested: thresholds are the claim's own
//!
//!   paper ── sweeps ──> plans ──> Results ──┐
//!   claim ── tests ─────────────────────────┴── judge ──> answer: reproduced | not reproduced | undecided
//!         └─ probes of the code itself ─────────┘
//! ```
//! One model judges all claims: [`judge`]. A claim about numbers and rules of an algorithm is decided by
//! driving the code ([`probe`]), a claim about results by simulation, and either may be held against
//! measured data instead of a number ([`reference`]).

mod answer;
mod chance;
mod claim;
mod compare;
pub mod judge;
mod level;
mod paper;
pub mod probe;
pub mod reference;
mod select;
mod sensitivity;

pub use answer::{Answer, Counts, Measured, Power, Summary, Verdict};
pub use claim::{Basis, Claim, Grade, Kind, Op, Settings, Test, Wanted};
pub use compare::Outcome;
pub use level::Level;
pub use paper::{Extent, PAPERS, Paper, PaperError, Part, Scope, Sweep};
pub use reference::Table;
pub use sensitivity::Sensitivity;
