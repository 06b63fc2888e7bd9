//! The built-in engines pass, and engines that break a rule do not.

use alloc::boxed::Box;

use lowmesh_machine::Rejected;
use lowmesh_registry::Algorithm;

use super::*;
use crate::engine::{Receiver, Snapshot, Surroundings};

#[test]
fn all_engines_of_the_crate_conform() {
    let breaches: Vec<_> =
        <dyn Engine>::BUILTIN.iter().filter_map(|row| check(row).err()).collect();
    assert_eq!(breaches, []);
}

/// Sends and delivers everything that comes, at once.
#[derive(Debug, Default)]
struct Storm {
    outputs: Vec<Output>,
    lowers: bool,
}

impl Engine for Storm {
    fn handle(
        &mut self,
        _now: Instant,
        event: Event<'_>,
        surroundings: &dyn Surroundings,
    ) -> Result<(), Rejected> {
        let (packet, handle) = match event {
            Event::Originate { packet, handle } => (packet.to_vec(), handle),
            Event::Received { packet, handle, .. } => {
                let mut packet = packet.to_vec();
                if surroundings.is_member(&network::GROUP) {
                    self.outputs.push(Output::Deliver { packet: packet.clone(), handle });
                }
                if self.lowers && !crate::packet::lower_hop_limit(&mut packet) {
                    return Ok(());
                }
                (packet, handle)
            }
            _ => return Ok(()),
        };
        self.outputs.push(Output::Send { packet, to: Receiver::Broadcast, handle });
        Ok(())
    }
    fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop()
    }
    fn next_deadline(&self) -> Option<Instant> {
        None
    }
    fn snapshot(&self) -> Snapshot {
        Snapshot::default()
    }
    fn reach(&self) -> Reach {
        Reach::Mesh
    }
    fn name(&self) -> &'static str {
        "storm"
    }
}

static FLAT: Row<dyn Engine> =
    Row::<dyn Engine>::plain("storm", "Sends everything", |_, _| Box::new(Storm::default()));
static FALLING: Row<dyn Engine> = Row::<dyn Engine>::plain("storm", "Sends everything", |_, _| {
    Box::new(Storm { lowers: true, ..Storm::default() })
});

#[test]
fn an_engine_that_keeps_the_hop_limit_is_found() {
    let breach = check(&FLAT).expect_err("the hop limit stays");
    assert_eq!(breach.what, "on a line, a hop limit of Some(64) becomes 64");
}

#[test]
fn an_engine_that_sends_again_and_again_is_found() {
    let breach = check(&FALLING).expect_err("nothing finds duplicates");
    assert_eq!(breach.what, "on a line, it does not fall silent within 200000 events");
}

#[test]
fn an_engine_that_delivers_twice_is_found() {
    let mut network = Network::new(&FALLING, line(3), &[2], 0.0, 1);
    network.originate(0, 1, 6);
    network.run(Instant::from_secs(1));
    let verdict = network.verdict(false);
    assert_eq!(verdict, Err("node 2 delivers datagram 1 twice".to_string()));
}
