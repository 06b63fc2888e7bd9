//! The built-in engines pass, and engines that break a rule do not.

use alloc::boxed::Box;

use lowmesh_machine::{DropReason, Rejected};
use lowmesh_registry::Registry;

use super::*;
use crate::engine::{NodeContext, Receiver};
use crate::{flood, mpl, smrf, trickle};

#[test]
fn all_engines_of_the_crate_conform() {
    assert_eq!(Registry::<dyn Engine>::builtin().breaches(), []);
}

/// The engine with one parameter that is a name.
fn named(row: &'static Row<dyn Engine>, key: &str, name: &'static str) -> Choice<dyn Engine> {
    Choice::from(row).with(key, name).expect("a name of the parameter")
}

/// The engine with one parameter that is a number.
fn counted(row: &'static Row<dyn Engine>, key: &str, number: u64) -> Choice<dyn Engine> {
    Choice::from(row).with(key, number).expect("within bounds")
}

#[test]
fn engines_conform_with_other_numbers_too() {
    let reactive = Choice::from(&mpl::ROW).with("proactive", false).expect("a flag");
    let choices = [
        named(&smrf::SMRF, "copy", "unicast"),
        named(&smrf::ESMRF, "copy", "auto"),
        counted(&smrf::SMRF, "buffer", 4),
        counted(&trickle::ROW, "k", 0),
        counted(&trickle::ROW, "doublings", 2),
        reactive,
        named(&mpl::ROW, "seed_id", "short"),
        named(&mpl::ROW, "seed_id", "extended"),
        counted(&mpl::ROW, "control_expirations", 0),
        counted(&mpl::ROW, "data_k", 0),
        counted(&mpl::ROW, "messages", 1),
        counted(&flood::ROW, "seen", 8),
    ];
    let breaches: Vec<_> = choices.iter().filter_map(|choice| check_choice(choice).err()).collect();
    assert_eq!(breaches, []);
}

/// The share of datagrams that arrive in the runs with loss, in percent.
fn arrived_under_loss(row: &'static Row<dyn Engine>) -> usize {
    let runs = (0..LOSSY_RUNS).map(|seed| lossy(&row.into(), seed).expect("the engine conforms"));
    let arrived: usize = runs.map(|(deliveries, _)| deliveries.len()).sum();
    // Five datagrams to each member but the root, in each run.
    arrived * 100 / (LOSSY_RUNS as usize * 5 * (members(16).len() - 1))
}

#[test]
fn the_more_an_engine_repairs_the_more_arrives_under_loss() {
    let [smrf, flood, trickle, mpl] =
        [&smrf::SMRF, &flood::ROW, &trickle::ROW, &mpl::ROW].map(arrived_under_loss);
    // A node that hears a later packet of a seed first takes no earlier one, so trickle multicast loses some; MPL asks for
    // them before the next one starts.
    assert!(smrf < flood && flood < trickle && trickle < mpl, "{:?}", (smrf, flood, trickle, mpl));
    assert_eq!(mpl, 100);
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
        context: &dyn NodeContext,
    ) -> Result<(), Rejected> {
        let (packet, handle) = match event {
            Event::Originate { packet, handle } => (packet.to_vec(), handle),
            Event::Received { packet, handle, .. } => {
                let mut packet = packet.to_vec();
                if context.is_member(&network::GROUP) {
                    self.outputs.push(Output::Deliver { packet: packet.clone(), handle });
                }
                if self.lowers && !crate::packet::lower_hop_limit(&mut packet) {
                    self.outputs.push(crate::packet::dropped(handle, DropReason::HopLimit));
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
    let mut network = Network::new(&(&FALLING).into(), line(3), &[2], 0.0, 1);
    network.originate(0, 1, 6);
    network.run(Instant::from_secs(1));
    let verdict = network.verdict(false);
    assert_eq!(verdict, Err("node 2 delivers datagram 1 twice".to_string()));
}
