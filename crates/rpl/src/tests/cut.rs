//! Neighbours that are not there any more, and what a node believes of those that are.

use lowmesh_wire::rpl::{Dis, Message};

use super::network::link_local;
use super::script::{Script, dio, sent};
use crate::{Destination, Input};

#[test]
fn a_neighbour_that_was_given_up_is_asked_when_it_is_heard() {
    let mut script = Script::joined();
    script.etx(0, 1.0);
    script.hear(5, &Message::Dio(dio(128)));
    let neighbour = link_local(5);
    assert_eq!(script.give(Input::NeighbourReachable { neighbour }), [], "its rank is known");
    script.give(Input::NeighbourUnreachable { neighbour });
    let outputs = script.give(Input::NeighbourReachable { neighbour });
    let question = Message::Dis(Dis::default());
    assert_eq!(sent(&outputs), [(Destination::Unicast(neighbour), &question)]);
    let stranger = Input::NeighbourReachable { neighbour: link_local(9) };
    assert_eq!(script.give(stranger), []);
}
