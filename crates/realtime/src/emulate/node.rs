//! A node of Lowmesh at an end of the link, in place of a namespace: packets cross its uplink, and its radio is idle.

use std::collections::VecDeque;

use lowmesh_machine::{Handle, Machine as _};
use lowmesh_stack::event::{Input, Output};
use lowmesh_stack::{Application, Config, ConfigError, Identity, Node};
use lowmesh_units::{Instant, Seed};
use lowmesh_wire::ipv6::{Address, Header};

use crate::params::EMULATED_NODE;

/// Bits of the prefix of the node's network (RFC 4291 s2.5.1).
const PREFIX_BITS: u8 = 64;

/// A node with one global address.
pub(super) struct EndNode {
    node: Box<Node>,
    address: Address,
    /// Packets that leave it. They go to the link at once, whose queue is bounded.
    leaving: VecDeque<Vec<u8>>,
}

impl EndNode {
    /// A node that was switched on at the start of the clock, with these settings and applications. Its uplink is open.
    pub(super) fn new(
        config: &Config,
        applications: Vec<Box<dyn Application>>,
        seed: Seed,
    ) -> Result<Self, ConfigError> {
        let config = Config { uplink: true, ..config.clone() };
        let address = Address::from(EMULATED_NODE);
        let identity = Identity::new(address.eui64()).with_address(address, PREFIX_BITS);
        let identity = identity.expect("the address is global, and the only one");
        let mut node = Box::new(Node::alone(&config, identity, seed)?);
        for application in applications {
            node.install(application)?;
        }
        let mut end = Self { node, address, leaving: VecDeque::new() };
        end.tell(Instant::ZERO, Input::Boot);
        Ok(end)
    }
    /// A packet has crossed the link. One that is not for the node is dropped, since there is no mesh behind it.
    pub(super) fn receive(&mut self, now: Instant, packet: Vec<u8>) {
        if Header::parse(&packet).is_ok_and(|header| header.destination == self.address) {
            self.tell(now, Input::Uplink { packet, handle: Handle::NONE });
        }
    }
    /// The next packet that leaves it.
    pub(super) fn next_packet(&mut self, now: Instant) -> Option<Vec<u8>> {
        if self.node.next_deadline().is_some_and(|due| due <= now) {
            self.tell(now, Input::Deadline);
        }
        self.leaving.pop_front()
    }
    /// When [`EndNode::next_packet`] has something to do.
    pub(super) fn next_deadline(&self) -> Option<Instant> {
        if self.leaving.is_empty() { self.node.next_deadline() } else { Some(Instant::ZERO) }
    }
    fn tell(&mut self, now: Instant, input: Input) {
        // What the node refuses came too late, such as an answer to a request that is over.
        let _refused = self.node.handle(now, input);
        while let Some(output) = self.node.poll_output() {
            let answer = output.not_found();
            if let Output::Uplink { packet, .. } = output {
                self.leaving.push_back(packet);
            }
            if let Some(answer) = answer {
                let _refused = self.node.handle(now, answer);
            }
        }
    }
}
