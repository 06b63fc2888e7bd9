//! The algorithms that scenarios can name.

use lowmesh_congestion::{Timer, Window};
use lowmesh_group::gate::Gate;
use lowmesh_multicast::Engine;
use lowmesh_registry::{Algorithm, Kind, Registry};
use lowmesh_rpl::ObjectiveFunction;
use lowmesh_sim::air::Medium;
use lowmesh_sixtop::SchedulingFunction;

/// The algorithms that scenarios can name: by default the built-in ones.
///
/// A program with an algorithm of its own adds its row, and names it in a scenario:
///
/// ```
/// # use lowmesh_congestion::timer::fixed::ROW as MINE;
/// use lowmesh_lab::scenario::Rows;
/// use lowmesh_registry::Registry;
/// let rows = Rows { timers: Registry::builtin().with(&MINE), ..Rows::default() };
/// let swept = rows.read("mine", "name = \"mine\"\ncoap.congestion = \"fixed\"", &[])?;
/// assert_eq!(swept.points[0].1.coap.congestion.name(), "fixed");
/// # Ok::<(), lowmesh_lab::scenario::ConfigErrors>(())
/// ```
#[derive(Clone, Debug)]
pub struct Rows {
    /// Congestion controls: `coap.congestion`.
    pub timers: Registry<dyn Timer>,
    /// Congestion windows: `fragments.window`.
    pub windows: Registry<dyn Window>,
    /// Scheduling functions: `schedule.function`.
    pub functions: Registry<dyn SchedulingFunction>,
    /// Objective functions: `rpl.objective`.
    pub objectives: Registry<dyn ObjectiveFunction>,
    /// Media: `radio.medium`.
    pub media: Registry<dyn Medium>,
    /// Multicast engines: `multicast.engine`.
    pub engines: Registry<dyn Engine>,
    /// Gates of the Entity Manager: `groups.gate`.
    pub gates: Registry<dyn Gate>,
}

impl Default for Rows {
    fn default() -> Self {
        Self {
            timers: Registry::builtin(),
            windows: Registry::builtin(),
            functions: Registry::builtin(),
            objectives: Registry::builtin(),
            media: Registry::builtin(),
            engines: Registry::builtin(),
            gates: Registry::builtin(),
        }
    }
}

impl Rows {
    /// The kinds of algorithms, without their types.
    pub fn kinds(&self) -> Vec<Kind> {
        let Self { timers, windows, functions, objectives, media, engines, gates } = self;
        vec![
            timers.kind(),
            windows.kind(),
            functions.kind(),
            objectives.kind(),
            media.kind(),
            engines.kind(),
            gates.kind(),
        ]
    }
}

/// An algorithm that scenarios can name.
pub trait Listed: Algorithm {
    /// Its rows.
    fn registry(rows: &Rows) -> &Registry<Self>;
}

impl Listed for dyn Timer {
    fn registry(rows: &Rows) -> &Registry<Self> {
        &rows.timers
    }
}

impl Listed for dyn Window {
    fn registry(rows: &Rows) -> &Registry<Self> {
        &rows.windows
    }
}

impl Listed for dyn SchedulingFunction {
    fn registry(rows: &Rows) -> &Registry<Self> {
        &rows.functions
    }
}

impl Listed for dyn ObjectiveFunction {
    fn registry(rows: &Rows) -> &Registry<Self> {
        &rows.objectives
    }
}

impl Listed for dyn Engine {
    fn registry(rows: &Rows) -> &Registry<Self> {
        &rows.engines
    }
}

impl Listed for dyn Medium {
    fn registry(rows: &Rows) -> &Registry<Self> {
        &rows.media
    }
}

impl Listed for dyn Gate {
    fn registry(rows: &Rows) -> &Registry<Self> {
        &rows.gates
    }
}
