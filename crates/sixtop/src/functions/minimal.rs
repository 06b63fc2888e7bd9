//! The minimal schedule: one shared cell for everything (RFC 8180 s4.1).

use alloc::boxed::Box;

use lowmesh_mac::tsch::cell::{CellKind, CellOptions, CellSpec, Placement};
use lowmesh_registry::Row;

use super::{Context, Event, SECTION, SchedulingFunction, is_advertised, slots};
use crate::params::{MINIMAL_CHANNEL_OFFSET, MINIMAL_SLOTFRAME_LENGTH, SLOTFRAME_MINIMAL};

/// The row of [`Minimal`].
pub static ROW: Row<dyn SchedulingFunction> = Row {
    name: "minimal",
    summary: "One shared cell (RFC 8180)",
    section: SECTION,
    parameters: &[slots(
        "slotframe_length",
        MINIMAL_SLOTFRAME_LENGTH,
        1,
        "Length of the slotframe",
    )
    .source("Contiki-NG: TSCH_SCHEDULE_DEFAULT_LENGTH; RFC 8180 s4.1 leaves it to the beacons")],
    make: |choice, _| Box::new(Minimal { slotframe_length: choice.whole("slotframe_length") }),
};

/// Sends and listens in slot 0 of each slotframe, like every other node.
#[derive(Clone, Debug)]
pub struct Minimal {
    slotframe_length: u16,
}

/// Puts the shared cell of RFC 8180 at the start of slotframe `handle`, but with a channel offset of the caller's.
pub(crate) fn install(context: &mut Context<'_>, handle: u8, length: u16, channel_offset: u16) {
    context.slotframe(handle, length);
    // RFC 8180 s4.5.2: what the beacon said is the schedule of a node that has joined.
    if context.schedule.cells_in(handle).any(is_advertised) {
        return;
    }
    // RFC 8180 s4.1: slotOffset 0, TX=1 RX=1 shared=1 timekeeping=1.
    context.cell(CellSpec {
        slotframe: handle,
        placement: Placement::Fixed { slot: 0, channel_offset },
        options: CellOptions::TX
            .with(CellOptions::RX)
            .with(CellOptions::SHARED)
            .with(CellOptions::TIMEKEEPING),
        kind: CellKind::Minimal,
        peer: None,
    });
}

impl SchedulingFunction for Minimal {
    fn name(&self) -> &'static str {
        ROW.name
    }
    fn handle(&mut self, context: &mut Context<'_>, event: &Event) {
        match event {
            Event::Started { root: true } | Event::Synchronised => {
                context.restart();
                let length = self.slotframe_length;
                install(context, SLOTFRAME_MINIMAL, length, MINIMAL_CHANNEL_OFFSET);
            }
            Event::Desynchronised => context.schedule.clear(),
            _ => {}
        }
    }
}
