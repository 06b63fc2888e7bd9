//! `/mc`: other nodes make this one join and leave groups (Ishaq et al. 2016, Table 4).

use alloc::collections::VecDeque;
use alloc::vec;

use lowmesh_coap::membership::{Change, Memberships, PATH, Step};
use lowmesh_machine::Rejected;
use lowmesh_stack::application::{Application, Claims, Exchange, HostHandle, Input, Snapshot};
use lowmesh_stack::peer::Peer;
use lowmesh_units::Instant;
use lowmesh_wire::ipv6::Address;

/// An application with the resource `/mc`. Its node joins what clients ask for, and with routes for groups the node
/// schedules a DAO.
#[derive(Debug, Default)]
pub struct Membership {
    memberships: Memberships<Peer>,
    /// Changes that the node is making, each with the request for it.
    changing: VecDeque<(Exchange, Change<Peer>)>,
    now: Option<Instant>,
    joined: u64,
    left: u64,
    refused: u64,
}

impl Membership {
    /// The node has refused to join a group: the request for it is answered with the reason.
    fn refuse(&mut self, group: Address, refusal: Rejected, host: &mut HostHandle<'_>) {
        let wanted = |(_, change): &(Exchange, Change<Peer>)| matches!(change, Change::Join { group: one, .. } if *one == group);
        let Some(place) = self.changing.iter().position(wanted) else { return };
        if let Some((exchange, change)) = self.changing.remove(place) {
            self.refused += 1;
            host.respond(exchange, self.memberships.settle(change, Err(refusal.why())));
        }
    }
}

impl Application for Membership {
    fn claims(&self) -> Claims {
        Claims { paths: vec![PATH.trim_start_matches('/').into()], ..Claims::default() }
    }
    fn handle(&mut self, now: Instant, input: Input, host: &mut HostHandle<'_>) {
        match input {
            // A group does not join groups.
            Input::Request { exchange, multicast: true, .. } => host.decline(exchange),
            Input::Request { exchange, from, message, .. } => {
                match self.memberships.step(from, &message) {
                    Step::Answer(response) => host.respond(exchange, response),
                    Step::Change(change) => {
                        match change {
                            Change::Join { group, .. } => host.join(group),
                            Change::Leave(group) if self.memberships.contains(group) => {
                                host.leave(group);
                            }
                            // What the node has joined by itself stays.
                            Change::Leave(_) => {}
                        }
                        // A refusal comes before the deadline, at the same time.
                        self.changing.push_back((exchange, change));
                        self.now = Some(now);
                    }
                }
            }
            Input::NotJoined { group, refusal } => self.refuse(group, refusal, host),
            Input::Deadline => {
                self.now = None;
                while let Some((exchange, change)) = self.changing.pop_front() {
                    match change {
                        Change::Join { .. } => self.joined += 1,
                        Change::Leave(_) => self.left += 1,
                    }
                    host.respond(exchange, self.memberships.settle(change, Ok(())));
                }
            }
            _ => {}
        }
    }
    fn next_deadline(&self) -> Option<Instant> {
        self.now
    }
    fn snapshot(&self) -> Snapshot {
        let counters =
            vec![("joined", self.joined), ("left", self.left), ("refused", self.refused)];
        Snapshot { name: "membership", counters }
    }
}
