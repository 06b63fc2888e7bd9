//! What became of the copies in an engine during one call: those that it dropped, and those that it no longer holds.

use alloc::vec::Vec;

use lowmesh_machine::Handle;

use crate::engine::{Engine, Event};

/// The copies of an engine, over one call of [`Engine::handle`].
///
/// ```
/// use lowmesh_machine::Handle;
/// use lowmesh_multicast::{Account, Engine, Event, Output, make};
/// use lowmesh_registry::Registry;
/// use lowmesh_units::{Instant, NodeId, Purpose, Rng, Seed};
/// # use lowmesh_multicast::example::{PACKET, Root};
/// let choice = Registry::<dyn Engine>::builtin().choose("flood")?;
/// let mut engine = make(&choice, Rng::stream(Seed(1), NodeId(0), Purpose::Multicast));
/// let event = Event::Originate { packet: &PACKET, handle: Handle(7) };
/// let account = Account::open(engine.as_ref(), &event);
/// engine.handle(Instant::ZERO, event, &Root)?;
/// assert!(matches!(engine.poll_output(), Some(Output::Send { .. })));
/// assert_eq!(account.close(engine.as_ref()), [Handle(7)]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Account {
    copies: Vec<Handle>,
}

impl Account {
    /// Notes the copies that `engine` holds, and the one that `event` brings.
    pub fn open(engine: &dyn Engine, event: &Event<'_>) -> Self {
        let mut copies = engine.handles();
        let brought = match event {
            Event::Originate { handle, .. }
            | Event::Received { handle, .. }
            | Event::Control { handle, .. } => Some(*handle),
            Event::Deadline => None,
        };
        copies.extend(brought.filter(|handle| *handle != Handle::NONE));
        Self { copies }
    }
    /// The engine drops a copy; false if it has none of that name.
    pub fn drop(&mut self, handle: Handle) -> bool {
        let place = self.copies.iter().position(|copy| *copy == handle);
        place.map(|place| self.copies.swap_remove(place)).is_some()
    }
    /// The copies that the engine holds no longer and has not dropped: it has delivered them or sent them on.
    pub fn close(mut self, engine: &dyn Engine) -> Vec<Handle> {
        for handle in engine.handles() {
            self.drop(handle);
        }
        self.copies
    }
}
