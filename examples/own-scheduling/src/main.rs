//! A scheduling function of one's own: one file and one row.
//!
//! Each node listens in a slot that its address gives. A node with frames for a neighbour sends in the slot of that
//! neighbour, in a shared cell. Its row gives the function a name and a key in the scenario section `[schedule]`, with
//! bounds, unit and errors.

use std::error::Error;

use lowmesh_lab::scenario::Rows;
use lowmesh_lab::simulate::{Sinks, simulate};
use lowmesh_mac::tsch::cell::{Cell, CellKind, CellOptions, CellSpec, Placement};
use lowmesh_registry::{Parameter, Registry, Row};
use lowmesh_sixtop::functions::{Context, SECTION, conformance};
use lowmesh_sixtop::{Event, SchedulingFunction};
use lowmesh_units::Eui64;

static OWN_SLOT: Row<dyn SchedulingFunction> = Row {
    name: "own-slot",
    summary: "Each node listens in the slot of its address",
    section: SECTION,
    parameters: &[Parameter::whole("own_length", 17, 1, 1000, "Length of the nodes' slotframe")
        .unit("slots")
        .source("ours, as Orchestra's")],
    make: |choice, _| Box::new(OwnSlot { length: choice.whole("own_length"), is_on: false }),
};

/// The slotframe of the cell for beacons and broadcasts, and its length in slots.
const SHARED: (u8, u16) = (0, 31);
/// The slotframe of the nodes' own cells.
const OWN: u8 = 1;

#[derive(Debug)]
struct OwnSlot {
    length: u16,
    is_on: bool,
}

impl OwnSlot {
    /// A cell in the slot of `owner`.
    fn cell(&self, owner: Eui64, options: CellOptions, peer: Option<Eui64>) -> CellSpec {
        let hash = u16::from_be_bytes([owner.0[6], owner.0[7]]);
        let (slot, channel_offset) = (hash % self.length, 1 + hash % 15);
        let placement = Placement::Fixed { slot, channel_offset };
        CellSpec { slotframe: OWN, placement, options, kind: CellKind::Autonomous, peer }
    }
    fn install(&mut self, context: &mut Context<'_>) {
        let (slotframe, length) = SHARED;
        self.is_on = true;
        context.schedule.clear();
        context.slotframe(slotframe, length);
        let both = CellOptions::TX.with(CellOptions::RX);
        let options = both.with(CellOptions::SHARED).with(CellOptions::TIMEKEEPING);
        let placement = Placement::Fixed { slot: 0, channel_offset: 0 };
        let kind = CellKind::Minimal;
        context.cell(CellSpec { slotframe, placement, options, kind, peer: None });
        context.slotframe(OWN, self.length);
        context.cell(self.cell(context.me, CellOptions::RX, None));
    }
}

impl SchedulingFunction for OwnSlot {
    fn name(&self) -> &'static str {
        OWN_SLOT.name
    }
    fn handle(&mut self, context: &mut Context<'_>, event: &Event) {
        let to = |peer| move |cell: &Cell| cell.peer == Some(peer);
        match *event {
            Event::Started { root: true } | Event::Synchronised => self.install(context),
            Event::Desynchronised => {
                self.is_on = false;
                context.schedule.clear();
            }
            Event::QueueBusy(peer) if self.is_on => {
                context.remove_where(to(peer));
                let options = CellOptions::TX.with(CellOptions::SHARED);
                context.cell(self.cell(peer, options, Some(peer)));
            }
            Event::QueueEmpty(peer) => context.remove_where(to(peer)),
            _ => {}
        }
    }
}

const SCENARIO: &str = r#"
name = "corridor"
duration = "30min"
topology = { kind = "line", nodes = 4 }
sweep = { "schedule.function" = ["minimal", "own-slot"] }
"#;

fn main() -> Result<(), Box<dyn Error>> {
    // What every scheduling function must keep; call it in a test of yours.
    conformance::check(&OWN_SLOT)?;

    let rows = || Rows { functions: Registry::builtin().with(&OWN_SLOT), ..Rows::default() };
    for (settings, scenario) in rows().read("corridor.toml", SCENARIO, &[])?.points {
        let seed = scenario.seeds().next().ok_or("a scenario has a seed")?;
        let outcome = simulate(&scenario, seed, Sinks::default(), &|_| ())?;
        let all = outcome.transactions.len();
        let answered = outcome.transactions.iter().filter(|one| one.delay().is_some()).count();
        println!("{}: {answered} of {all} requests were answered", settings[0].1);
        assert!(settings[0].1 == "minimal" || (all > 0 && 10 * answered > 9 * all));
    }

    // Errors know the row too.
    let flags = ["schedule.own_length=0".to_owned()];
    let errors = rows().read("corridor.toml", SCENARIO, &flags).expect_err("no slots");
    println!("{errors}");
    assert!(errors.to_string().contains("own_length = 0: must be a whole number from 1 to 1000"));
    Ok(())
}
