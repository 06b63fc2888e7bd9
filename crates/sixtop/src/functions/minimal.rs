//! The minimal schedule: one shared cell for everything (RFC 8180 s4.1).

use lowmesh_mac::tsch::cell::{CellKind, CellOptions, CellSpec, Placement};

use super::{Context, Event, SchedulingFunction};
use crate::params::{MINIMAL_CHANNEL_OFFSET, MinimalParams, SLOTFRAME_MINIMAL};

/// Sends and listens in slot 0 of each slotframe, like every other node.
#[derive(Clone, Debug)]
pub struct Minimal {
    params: MinimalParams,
}

impl Minimal {
    /// The function with these parameters.
    pub const fn new(params: MinimalParams) -> Self {
        Self { params }
    }
}

/// Puts the shared cell of RFC 8180 at the start of slotframe `handle`, but with a channel offset of the caller's.
pub(crate) fn install(context: &mut Context<'_>, handle: u8, length: u16, channel_offset: u16) {
    context.slotframe(handle, length);
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
        "minimal"
    }
    fn handle(&mut self, context: &mut Context<'_>, event: &Event) {
        match event {
            Event::Started { root: true } | Event::Synchronised => {
                context.schedule.clear();
                let length = self.params.slotframe_length;
                install(context, SLOTFRAME_MINIMAL, length, MINIMAL_CHANNEL_OFFSET);
            }
            Event::Desynchronised => context.schedule.clear(),
            _ => {}
        }
    }
}
