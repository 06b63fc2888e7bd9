//! Random operations among nodes that lose messages, restart and end, with a manager that restarts too.
//!
//! At rest no node is in a group that no entity wants, and every wanted member is in its group; no group address is given
//! out twice; and every request is answered once. `LOWMESH_GROUP_SEQUENCES` sets how many sequences run: 10,000 take
//! about half a minute.

use std::collections::BTreeSet;
use std::net::Ipv6Addr;

use lowmesh_group::RequestId;
use lowmesh_group::store::Memory;
use lowmesh_units::Duration;
use lowmesh_wire::coap::Code;

use crate::world::{World, address, group_of, uri};

const NODES: u16 = 5;
const NAMES: [&str; 4] = ["a", "b", "c", "d"];
const OPERATIONS: usize = 30;
/// Longer than any wait of a membership, with its jitter.
const REST: Duration = Duration::from_secs(3 * 3600);

/// What a sequence remembers of its requests.
struct Sequence {
    world: World,
    created: Vec<RequestId>,
}

impl Sequence {
    fn new(seed: u64) -> Self {
        let mut world = World::new(seed, NODES);
        let gates = ["fixed", "gate-aimd", "gate-climb", "gate-route", "hybrid"];
        world.gate = gates[(seed % gates.len() as u64) as usize];
        world.start();
        Self { world, created: Vec::new() }
    }
    fn below(&mut self, bound: usize) -> usize {
        self.world.rng().below(bound as u32) as usize
    }
    fn name(&mut self) -> &'static str {
        NAMES[self.below(NAMES.len())]
    }
    fn node(&mut self) -> u16 {
        self.below(usize::from(NODES)) as u16 + 1
    }
    fn members(&mut self) -> String {
        let some: BTreeSet<u16> = (0..3).map(|_| self.node()).collect();
        let some: Vec<String> = some.into_iter().map(|node| format!("{:?}", uri(node))).collect();
        some.join(",")
    }
    fn operation(&mut self) {
        let name = self.name();
        let members = self.members();
        match self.below(14) {
            0..3 => {
                let document =
                    format!("{{\"name\":\"{name}\",\"ect\":\"multicast\",\"er\":[{members}]}}");
                self.created.push(self.world.ask(Code::POST, "e", &document));
            }
            3 => {
                let below = self.name();
                let document = format!("{{\"name\":\"{name}\",\"er\":[{members},\"/e/{below}\"]}}");
                self.created.push(self.world.ask(Code::POST, "e", &document));
            }
            4 | 5 => _ = self.world.ask(Code::DELETE, &format!("e/{name}"), ""),
            6 | 7 => _ = self.world.ask(Code::GET, &format!("e/{name}"), ""),
            8 => _ = self.world.ask(Code::GET, &format!("e/{name}?enr=1&eo=avg&deadline=900"), ""),
            9 | 10 => {
                let document = format!("{{\"er\":[{members}]}}");
                self.world.ask(Code::IPATCH, &format!("e/{name}/profile"), &document);
            }
            11 => {
                let node = address(self.node());
                let state = self.world.nodes.get_mut(&node).expect("a node");
                state.reboot();
                state.alive = !state.alive;
            }
            12 => self.world.loss = if self.below(2) == 0 { 0.0 } else { 0.4 },
            _ => self.world.start(),
        }
        let span = self.world.rng().duration(Duration::ZERO, Duration::from_secs(40));
        self.world.run(span);
    }
    /// Mends everything, waits, and checks what must hold at rest.
    fn check_rest(&mut self, seed: u64) {
        self.world.loss = 0.0;
        self.world.nodes.values_mut().for_each(|node| node.alive = true);
        self.world.run(REST);
        if self.world.manager().open_requests() != (0, 0) {
            // A look at a membership may be under way at any time.
            self.world.run(Duration::from_secs(1));
        }
        assert_eq!(self.world.asked.len(), self.world.responses.len(), "seed {seed}: unanswered");
        assert_eq!(self.world.manager().open_requests(), (0, 0), "seed {seed}");
        let wanted = self.world.wanted();
        assert_eq!(self.world.memberships(), wanted, "seed {seed}: memberships and wishes");
        let created = self.created.iter().filter_map(|request| self.world.responses.get(request));
        let created = created.filter(|message| message.code == Code::CREATED);
        let text = |payload: &[u8]| String::from_utf8(payload.to_vec()).expect("text");
        let groups: Vec<Ipv6Addr> =
            created.filter_map(|message| group_of(&text(&message.payload))).collect();
        let different: BTreeSet<&Ipv6Addr> = groups.iter().collect();
        assert_eq!(different.len(), groups.len(), "seed {seed}: an address was given out twice");
    }
}

#[test]
fn random_operations_leave_no_membership_that_nobody_wants() {
    let sequences =
        std::env::var("LOWMESH_GROUP_SEQUENCES").ok().and_then(|text| text.parse().ok());
    for seed in 0..sequences.unwrap_or(150) {
        let mut sequence = Sequence::new(seed);
        for _ in 0..OPERATIONS {
            sequence.operation();
        }
        sequence.check_rest(seed);
    }
}

/// Runs creation, change and deletion, and ends the manager at its commit number `cut`. False if it never came.
fn cut(cut: u64) -> bool {
    let mut world = World::new(cut, NODES);
    let before = world.disk.clone();
    let members = |nodes: &[u16]| {
        let members: Vec<String> = nodes.iter().map(|node| format!("{:?}", uri(*node))).collect();
        members.join(",")
    };
    let create =
        format!("{{\"name\":\"m\",\"ect\":\"multicast\",\"er\":[{}]}}", members(&[1, 2, 3]));
    let change = format!("{{\"er\":[{}]}}", members(&[3, 4]));
    let steps = [
        (Code::POST, "e", create.as_str()),
        (Code::IPATCH, "e/m/profile", change.as_str()),
        (Code::DELETE, "e/m", ""),
    ];
    let mut is_cut = false;
    for (code, path, payload) in steps {
        world.ask(code, path, payload);
        for _ in 0..400 {
            // Everything that the manager sends after the cut is lost with it.
            world.run(Duration::from_millis(1));
            if before.0.lock().expect("one thread").commits >= cut {
                is_cut = true;
                break;
            }
        }
        if is_cut {
            break;
        }
    }
    world.start();
    world.run(REST);
    let wanted = world.wanted();
    assert_eq!(world.memberships(), wanted, "cut at commit {cut}");
    if wanted.is_empty() && world.manager().names().next().is_none() {
        let left = before.0.lock().expect("one thread").memory.clone();
        let numbers_only =
            left == Memory::default() || format!("{left:?}").matches("entity/").count() == 0;
        assert!(numbers_only, "cut at commit {cut}: {left:?}");
    }
    is_cut
}

#[test]
fn a_manager_that_ends_at_any_step_leaves_nothing_half_joined() {
    let steps = (1..1000).take_while(|number| cut(*number)).count();
    assert!(steps >= 6, "{steps} steps");
}
