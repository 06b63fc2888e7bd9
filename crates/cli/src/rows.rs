//! Lists of algorithms for flags: help, completion and errors read the rows.

use clap::builder::{PossibleValue, PossibleValuesParser};
use lowmesh_lab::scenario::Rows;
use lowmesh_registry::{Algorithm, Registry};

/// The names of the retransmission timers.
pub fn timers() -> PossibleValuesParser {
    names(&Rows::default().timers)
}

/// The names of the congestion windows.
pub fn windows() -> PossibleValuesParser {
    names(&Rows::default().windows)
}

fn names<A: Algorithm + ?Sized>(registry: &Registry<A>) -> PossibleValuesParser {
    let values = registry.rows().map(|row| PossibleValue::new(row.name).help(row.summary));
    PossibleValuesParser::new(values)
}
