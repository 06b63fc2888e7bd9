//! The one place where events take effect, planned or at run time.

use lowmesh_mac::tsch::hopping::HoppingSequence;
use lowmesh_stack::event::Input;
use lowmesh_units::{Channel, Dbm, Duration, Instant, NodeId};

use crate::air::error::BuildError;
use crate::air::{Interference, Position};
use crate::event::{Event, EventError, Memory};
use crate::mesh::Mesh;
use crate::moving::UNMOVABLE;
use crate::trace::Fact;
use crate::world::World;

/// The node of a fact about all nodes: no node has the last number.
pub(crate) const ALL_NODES: NodeId = NodeId(u16::MAX);

impl World {
    /// Whether an event is possible in the present state of the mesh; its values have been checked.
    pub(crate) fn check_event(&self, event: &Event) -> Result<(), EventError> {
        if matches!(event, Event::Move { .. }) && self.site.is_none() {
            return Err(EventError::new("event", &"move", UNMOVABLE));
        }
        let (Event::Off { node, .. } | Event::Reboot { node, .. } | Event::BatteryEmpty { node }) =
            event
        else {
            return Ok(());
        };
        if self.blueprint.losses[node.index()] >= crate::params::LOSSES_MAX {
            let allowed =
                format!("a node loses its state at most {} times", crate::params::LOSSES_MAX);
            return Err(EventError::new("node", &node, allowed));
        }
        Ok(())
    }

    /// Moves a node to another position.
    pub(crate) fn move_node(
        &mut self,
        now: Instant,
        node: NodeId,
        position: Position,
    ) -> Result<(), BuildError> {
        let Some(site) = &mut self.site else { return Ok(()) };
        site.positions[node.index()] = position;
        self.medium = (site.rebuild.0)(&site.positions)?;
        if self.medium.next_change().is_some_and(|due| due <= now) {
            self.medium.advance(now);
        }
        self.overlay.apply(self.medium.links());
        let count = site.positions.len();
        let interference =
            Interference::new(&site.interferers, count, Some(&site.positions), self.seed)?;
        self.interference = interference.with_ambient_of(std::mem::take(&mut self.interference));
        Ok(())
    }
}

impl Mesh {
    /// Lets an event happen that has been checked.
    pub(crate) fn happen(&mut self, now: Instant, event: Event) {
        self.world.change_air(now);
        let about = event.node().unwrap_or(ALL_NODES);
        self.world.books.trace.note(now, about, Fact::Happened(&event));
        self.take_effect(now, &event);
        self.world.note_event(now, event);
    }

    fn take_effect(&mut self, now: Instant, event: &Event) {
        let (world, driver) = (&mut self.world, &mut self.driver);
        match *event {
            Event::Off { node, memory } => self.switch_off(now, node, memory),
            Event::BatteryEmpty { node } => self.switch_off(now, node, Memory::Lost),
            Event::Reboot { node, dark } => {
                self.switch_off(now, node, Memory::Lost);
                let at = now + dark;
                let place = self.plan.partition_point(|(other, _)| *other <= at);
                self.plan.insert(place, (at, Event::On { node }));
            }
            Event::On { node } => match world.switch_on(now, node) {
                Some(Memory::Kept) => driver.resume(world, now, node),
                Some(Memory::Lost) | None => {}
            },
            Event::Cut { node, peer } => {
                world.overlay.cut(node, peer, world.medium.links());
                driver.change_links(world, now);
            }
            Event::Restore { node, peer } => {
                world.overlay.restore(node, peer, world.medium.links());
                driver.change_links(world, now);
            }
            Event::Link { node, peer, quality } => {
                world.overlay.change(node, peer, quality, world.medium.links());
                driver.change_links(world, now);
            }
            Event::Move { node, position } => match world.move_node(now, node, position) {
                Ok(()) => driver.change_links(world, now),
                Err(error) => _ = self.fault.get_or_insert(error),
            },
            Event::Load { node, period } => self.pace(now, node, period),
            Event::Noise { node, ref channels, power } => {
                let power_mw = power.map_or(0.0, Dbm::milliwatts);
                let all: Vec<Channel> = (11..=26).filter_map(Channel::new).collect();
                let channels = if channels.is_empty() { &all } else { channels };
                let nodes = world.nodes.len();
                world.interference.set_ambient(nodes, node, channels, power_mw);
            }
            Event::Channels { node, ref channels } => self.change_channels(now, node, channels),
        }
    }

    /// Changes the period of the readings of a node, or of all.
    fn pace(&mut self, now: Instant, node: Option<NodeId>, period: Duration) {
        let (world, driver) = (&mut self.world, &mut self.driver);
        let traffic = &mut world.blueprint.traffic;
        match node {
            None => {
                traffic.period = period;
                traffic.periods.clear();
            }
            Some(node) => {
                traffic.periods.retain(|(other, _)| *other != node);
                traffic.periods.push((node, period));
            }
        }
        world.unsent.pace(now, node, period);
        let address = node.map(|node| world.blueprint.addresses[node.index()]);
        for id in (0..world.nodes.len()).map(|index| NodeId(index as u16)) {
            world.tell(now, id, Input::Paced { node: address, period });
            driver.settle(world, now, id);
        }
    }

    /// Changes the channels of a node, or of all.
    fn change_channels(&mut self, now: Instant, node: Option<NodeId>, channels: &[Channel]) {
        let (world, driver) = (&mut self.world, &mut self.driver);
        let Some(hopping) = HoppingSequence::new(channels.to_vec()) else { return };
        let all = (0..world.nodes.len()).map(|index| NodeId(index as u16));
        for id in all.filter(|id| node.is_none_or(|node| node == *id)) {
            world.blueprint.stacks[id.index()].mac.hopping = hopping.clone();
            world.nodes[id.index()].set_hopping(now, hopping.clone());
            driver.tune(id, channels[0]);
            driver.settle(world, now, id);
        }
        driver.change_links(world, now);
    }

    fn switch_off(&mut self, now: Instant, node: NodeId, memory: Memory) {
        let (world, driver) = (&mut self.world, &mut self.driver);
        // The frame on the air breaks off before what sent it is forgotten.
        if !world.is_off(node) {
            driver.stop(world, now, node, memory == Memory::Kept);
        }
        world.switch_off(now, node, memory);
        driver.plan(world, node);
    }
}
