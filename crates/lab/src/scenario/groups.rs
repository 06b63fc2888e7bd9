//! `[groups]` and `[[entity]]`: entities of an Entity Manager, and the client that queries one of them.

use lowmesh_group::gate::Gate;
use lowmesh_group::params::{DELAY_MAX, MEMBERS_MAX};
use lowmesh_registry::Choice;
use lowmesh_sim::traffic::{Entities, Entity as Parts, Query};
use lowmesh_units::{Duration, NodeId};

use super::section::section;
use super::topology::NODES_MAX;
use super::value::{Any, NotEmpty, Within, choice};
use super::{Application, Scenario};

const DAY: Duration = Duration::from_secs(86_400);

section! {
    /// The Entity Manager, its client and their queries.
    Groups {
        /// Gate that decides when the manager sends each request to a member.
        gate: Choice<dyn Gate> = Choice::default(), Any;
        /// The border router that manages entities; it needs no mesh.
        manager: u16 = 0, Within(0, NODES_MAX);
        /// The border router that queries entities, other than the manager; it needs no mesh either.
        client: u16 = 1, Within(0, NODES_MAX);
        /// How the manager reaches members, for entities without their own `ect`.
        ect: Ect = Ect::Unicast, Any;
        /// When the first entity is created.
        setup: Duration = Duration::from_secs(120), Within(Duration::ZERO, DAY);
        /// Time that the manager takes to combine the answers into a result.
        service: Duration = Duration::ZERO, Within(Duration::ZERO, Duration::from_secs(60));
        /// The entity that the client queries; if unset, the last one.
        query: Option<String> = None, Any;
        /// Time between two requests to members in a query; replaces `delay` of the profile.
        delay: Option<Duration> = None, Within(Duration::ZERO, DELAY_MAX);
        /// Other arguments of the query, as in a URI: `eo=avg&enr=2`.
        arguments: Option<String> = None, Any;
        /// Text that a query writes to all members; if unset, a query reads.
        write: Option<String> = None, Any;
    }
}

choice! {
    /// Type of the messages to members.
    Emt {
        /// Confirmable messages.
        Con = "con",
        /// Non-confirmable messages.
        Non = "non",
    }
}

choice! {
    /// How the manager reaches members.
    Ect {
        /// One request for each member.
        Unicast = "unicast",
        /// One request for all members, to a group address that they join.
        Multicast = "multicast",
    }
}

choice! {
    /// How the manager combines the answers.
    Eo {
        /// A list.
        List = "lst",
        /// The mean.
        Average = "avg",
        /// The smallest.
        Minimum = "min",
        /// The largest.
        Maximum = "max",
    }
}

section! {
    /// An entity with its profile (Ishaq et al. 2016, section 2.3.1).
    Entity {
        /// Name of the entity.
        name: String = "all".to_owned(), NotEmpty;
        /// Nodes among the members; if `nodes` and `entities` are unset, all nodes except border routers.
        nodes: Vec<u16> = Vec::new(), Any;
        /// Earlier entities among the members.
        entities: Vec<String> = Vec::new(), Any;
        /// Type of the messages to members.
        emt: Emt = Emt::Con, Any;
        /// How the manager reaches the members; by default as in `groups.ect`.
        ect: Option<Ect> = None, Any;
        /// Number of answers that suffice; if unset, those of all members.
        enr: Option<u16> = None, Within(1, MEMBERS_MAX as u16);
        /// How the manager combines the answers.
        eo: Eo = Eo::List, Any;
        /// Time between two requests to members.
        delay: Duration = Duration::ZERO, Within(Duration::ZERO, DELAY_MAX);
    }
}

impl Entity {
    /// How its members are reached. Entities are asked by unicast.
    fn communication(&self, usual: Ect) -> Ect {
        if self.entities.is_empty() { self.ect.unwrap_or(usual) } else { Ect::Unicast }
    }
}

impl Scenario {
    /// The nodes that are no border routers.
    fn ordinary_nodes(&self, nodes: u16) -> Vec<NodeId> {
        let heads: Vec<u16> = self.meshes().iter().map(|mesh| mesh.first).collect();
        (0..nodes).filter(|node| !heads.contains(node)).map(NodeId).collect()
    }

    /// The entities of the scenario, one of all nodes where it lists none.
    fn listed_entities(&self) -> Vec<Entity> {
        if self.entities.is_empty() { vec![Entity::default()] } else { self.entities.clone() }
    }

    /// The entities in the simulator's own type, in a mesh of so many nodes.
    pub fn entities(&self, nodes: u16) -> Entities {
        let Groups { gate, manager, client, ect: usual, setup, service, .. } = &self.groups;
        let Groups { query, delay, arguments, write, .. } = &self.groups;
        let listed = self.listed_entities();
        let last = listed.last().map(|entity| entity.name.clone()).unwrap_or_default();
        let delay = delay.map(|delay| format!("delay={}", delay.as_millis()));
        let others = arguments.iter().flat_map(|text| text.split('&')).map(str::to_owned);
        let all = listed.into_iter().map(|entity| {
            let is_open = entity.nodes.is_empty() && entity.entities.is_empty();
            let given = entity.nodes.iter().map(|node| NodeId(*node)).collect();
            let quoted = |text: &str| format!("{text:?}");
            let ect = entity.communication(*usual);
            let mut profile = vec![
                ("ect", quoted(ect.name())),
                ("eo", quoted(entity.eo.name())),
                ("delay", entity.delay.as_millis().to_string()),
            ];
            if ect == Ect::Unicast {
                profile.push(("emt", quoted(entity.emt.name())));
            }
            profile.extend(entity.enr.map(|enr| ("enr", enr.to_string())));
            Parts {
                name: entity.name,
                nodes: if is_open { self.ordinary_nodes(nodes) } else { given },
                entities: entity.entities,
                profile,
            }
        });
        Entities {
            manager: NodeId(*manager),
            client: NodeId(*client),
            gate: gate.clone(),
            all: all.collect(),
            query: Query {
                entity: query.clone().unwrap_or(last),
                arguments: delay.into_iter().chain(others).collect(),
                write: write.clone(),
            },
            path: self.traffic.path.clone(),
            setup: *setup,
            service: *service,
        }
    }

    /// Whether entities have a manager, a client and members.
    pub(super) fn entity_conflicts(&self, check: &mut impl FnMut(bool, &str, String)) {
        if self.traffic.application != Application::Entities {
            let message =
                "only traffic.application = \"entities\" queries it; write that".to_owned();
            return check(!self.entities.is_empty(), "entity", message);
        }
        let message = "OSCORE protects exchanges with a node's own border router".to_owned();
        check(self.coap.oscore, "coap.oscore", message);
        let meshes = self.meshes();
        let is_head = |node: u16| meshes.iter().any(|mesh| mesh.first == node);
        let Groups { manager, client, query, .. } = &self.groups;
        for (key, node) in [("groups.manager", *manager), ("groups.client", *client)] {
            let message = format!("{node} is not a border router; give it a [[border_router]]");
            check(!is_head(node), key, message);
        }
        let message = format!("{client} is the manager; write another border router");
        check(manager == client, "groups.client", message);
        let nodes = self.topology.nodes().unwrap_or(u32::from(u16::MAX) + 1);
        let listed = self.listed_entities();
        for (index, entity) in listed.iter().enumerate() {
            let key = |name: &str| format!("entity[{index}].{name}");
            let before = |name: &String| listed[..index].iter().any(|other| other.name == *name);
            let message = format!("an earlier entity has the name {:?}", entity.name);
            check(before(&entity.name), &key("name"), message);
            for node in &entity.nodes {
                let message = format!("{node} is a border router, or not in the topology");
                check(is_head(*node) || u32::from(*node) >= nodes, &key("nodes"), message);
            }
            for name in &entity.entities {
                let message = format!("no earlier entity has the name {name:?}");
                check(!before(name), &key("entities"), message);
            }
            let message = "entities among the members need unicast".to_owned();
            let is_group = entity.ect == Some(Ect::Multicast);
            check(is_group && !entity.entities.is_empty(), &key("ect"), message);
        }
        let is_known = |name: &String| listed.iter().any(|entity| entity.name == *name);
        let message = "there is no entity of this name".to_owned();
        check(query.as_ref().is_some_and(|name| !is_known(name)), "groups.query", message);
    }
}

#[cfg(test)]
mod tests {
    use lowmesh_units::Seed;

    use super::*;
    use crate::simulate::{Sinks, simulate};

    /// Two wired hosts and a mesh of five nodes in a star.
    const STAR: &str = "name = \"star\"\nduration = \"6min\"\nwarmup = \"3min\"\n\
        [topology]\nkind = \"places\"\nx_m = [0, 0, 0, 8, -8, 0, 0]\ny_m = [900, 950, 0, 0, 0, 8, -8]\n\
        [radio]\nmedium = \"unit-disk\"\n[mac]\nkind = \"csma\"\nchannel = 11\n\
        [rpl]\nmode = \"storing-multicast\"\n[multicast]\nengine = \"smrf\"\n\
        [traffic]\napplication = \"entities\"\nperiod = \"10s\"\nstart = \"4min\"\npath = \"s/t\"\n\
        [[border_router]]\nnode = 1\nchannel = 12\n[[border_router]]\nnode = 2\nchannel = 26\n";

    fn run(more: &str) -> lowmesh_sim::record::Outcome {
        let scenario = Scenario::parse("star", &format!("{STAR}{more}"), &[]);
        let scenario = scenario.unwrap_or_else(|errors| panic!("{errors}"));
        assert_eq!(Scenario::parse("star", &scenario.to_toml(), &[]), Ok(scenario.clone()));
        simulate(&scenario, Seed(1), Sinks::default(), &|_| ()).expect("it balances")
    }

    #[test]
    fn a_client_behind_the_gateway_has_the_answers_of_all_members() {
        let outcome = run("[groups]\ndelay = \"50ms\"\n");
        assert_eq!(outcome.entity_members, [3, 4, 5, 6].map(NodeId));
        assert!(outcome.queries.len() >= 9, "{}", outcome.queries.len());
        let first = outcome.queries[0];
        assert_eq!((first.answered, first.failed, first.requests), (4, 0, 4), "{first:?}");
        let span = first.ended.expect("an answer").since(first.issued);
        assert!((150..400).contains(&span.as_millis()), "{span}");
    }

    #[test]
    fn a_multicast_entity_costs_one_request_and_its_packets_reach_the_mesh() {
        let outcome = run("[[entity]]\nname = \"lamps\"\nect = \"multicast\"\n");
        let queries = &outcome.queries;
        assert!(queries.iter().all(|one| one.requests == 1), "{queries:?}");
        let answered: u32 = queries.iter().map(|one| u32::from(one.answered)).sum();
        assert!(answered as usize > queries.len() * 3, "{answered} of {}", queries.len() * 4);
    }

    #[test]
    fn entities_of_entities_and_a_serial_line_are_whole() {
        let outcome = run("[[entity]]\nname = \"a\"\nnodes = [3, 4]\n\
             [[entity]]\nname = \"b\"\nnodes = [5, 6]\n\
             [[entity]]\nname = \"floor\"\nentities = [\"a\", \"b\"]\ndelay = \"100ms\"\n\
             [[serial]]\nnear = 0\nfar = 2\n");
        assert_eq!(outcome.entity_members.len(), 4);
        assert!(outcome.queries.iter().any(|one| one.answered == 4), "{:?}", outcome.queries);
    }

    #[test]
    fn entities_that_do_not_fit_are_named_by_their_keys() {
        for (more, expected) in [
            ("[groups]\nclient = 0\n", "groups.client: 0 is the manager"),
            ("[groups]\nmanager = 3\n", "groups.manager: 3 is not a border router"),
            ("[groups]\nquery = \"attic\"\n", "groups.query: there is no entity"),
            ("[[entity]]\nnodes = [2]\n", "entity[0].nodes: 2 is a border router"),
            (
                "[[entity]]\nentities = [\"b\"]\n",
                "entity[0].entities: no earlier entity has the name \"b\"",
            ),
        ] {
            let errors = Scenario::parse("star", &format!("{STAR}{more}"), &[]);
            let text = errors.expect_err(expected).to_string();
            assert!(text.contains(expected), "{text}");
        }
    }
}
