//! `/mc` of nodes in a mesh: the root makes its members join and leave a group.

use lowmesh_applications::Membership;
use lowmesh_coap::RequestTemplate;
use lowmesh_sim::air::{build, unit_disk};
use lowmesh_sim::topology::TopologySpec;
use lowmesh_sim::{Mesh, NodeParts, PAN, prefix_of};
use lowmesh_stack::COAP_PORT;
use lowmesh_stack::application::{Application, HostHandle, Input, Report, Snapshot};
use lowmesh_units::{Duration, Instant, NodeId, Seed};
use lowmesh_wire::coap::{Code, OptionNumber};
use lowmesh_wire::ipv6::Address;

/// A group of the size that clients name.
const fn group(number: u8) -> Address {
    Address([0xff, 0x1e, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x89, 0, number])
}

/// Asks a member for changes, one after the other, and counts the answers by class.
#[derive(Debug)]
struct Manager {
    member: Address,
    changes: Vec<(&'static str, Address)>,
    next: Option<Instant>,
    made: u64,
    refused: u64,
}

impl Application for Manager {
    fn handle(&mut self, now: Instant, input: Input, host: &mut HostHandle<'_>) {
        match input {
            Input::Deadline if self.next.is_some_and(|next| next <= now) => {
                self.next = None;
                let Some((query, group)) = self.changes.pop() else { return };
                let mut message =
                    RequestTemplate::new(Code::POST, "mc").with_payload(group.0.into());
                message.options.insert(OptionNumber::URI_QUERY, query.as_bytes());
                host.request((self.member, COAP_PORT), message);
            }
            Input::Response { message, .. } => {
                let made = message.code == Code::CHANGED;
                (self.made, self.refused) =
                    (self.made + u64::from(made), self.refused + u64::from(!made));
                self.next = Some(now + Duration::from_secs(5));
                host.report(Report::Executed);
            }
            _ => {}
        }
    }
    fn next_deadline(&self) -> Option<Instant> {
        self.next
    }
    fn snapshot(&self) -> Snapshot {
        let counters = vec![("made", self.made), ("refused", self.refused)];
        Snapshot { name: "manager", counters }
    }
}

/// The second node of a line of three, after the root has asked for these changes.
fn after(changes: &[(&'static str, Address)], check: impl Fn(&Mesh, &dyn Fn(&Address) -> bool)) {
    let seed = Seed(3);
    let line =
        TopologySpec::Grid { rows: 1, cols: 3, spacing_m: 30.0 }.place(seed).expect("a line");
    let addressing = NodeParts::router(PAN).stack.addressing;
    let member = Address::global(prefix_of(PAN), addressing.eui64(seed, NodeId(2)));
    let changes = changes.iter().rev().copied().collect();
    let next = Some(Instant::from_secs(1800));
    let mut mesh = Mesh::builder(seed)
        .medium(build(&unit_disk::ROW, &line, seed).expect("possible"))
        .node(NodeId(0), NodeParts::border_router(PAN))
        .nodes(1..3, |_| NodeParts::router(PAN))
        .application(NodeId(0), Manager { member, changes, next, made: 0, refused: 0 })
        .application(NodeId(2), Membership::default())
        .build()
        .expect("possible");
    mesh.run_for(Duration::from_secs(2400));
    check(&mesh, &|group| mesh.nodes()[2].is_member(group));
}

/// The counters of all applications of a name.
fn counters(mesh: &Mesh, name: &str) -> Vec<(&'static str, u64)> {
    let mut all = mesh.nodes().iter().flat_map(lowmesh_stack::Node::snapshots);
    all.find(|one| one.name == name).expect("it is installed").counters
}

#[test]
fn a_client_makes_a_node_join_and_leave_groups() {
    let changes = [("act=add", group(1)), ("act=add", group(2)), ("act=del", group(1))];
    after(&changes, |mesh, is_member| {
        assert_eq!(counters(mesh, "manager"), [("made", 3), ("refused", 0)]);
        assert!(is_member(&group(2)) && !is_member(&group(1)));
    });
}

#[test]
fn a_group_that_the_node_cannot_join_is_refused_and_not_listed() {
    let changes: Vec<_> = (1..=9).map(|number| ("act=add", group(number))).collect();
    after(&changes, |mesh, is_member| {
        let made = (1..=9).filter(|number| is_member(&group(*number))).count() as u64;
        assert!(made < 9, "the table of a node is bounded");
        assert_eq!(counters(mesh, "manager"), [("made", made), ("refused", 9 - made)]);
    });
}
