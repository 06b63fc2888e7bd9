//! A leaf driven alone: what it hears in, what it asks out.

use lowmesh_units::{NodeId, Purpose, Seed};
use lowmesh_wire::router::PrefixInformation;

use super::*;

const PREFIX: [u8; 8] = [0xfd, 0, 0, 0, 0, 0, 0, 0];
/// The leaf under test.
const ME: Eui64 = NodeId(9).eui64();

fn eui(node: u16) -> Eui64 {
    NodeId(node).eui64()
}
fn own_address() -> Address {
    Address::global(PREFIX, ME)
}

struct Host {
    now: Instant,
    leaf: Leaf,
}

impl Host {
    fn started() -> Self {
        let rng = Rng::stream(Seed(1), NodeId(9), Purpose::Rpl);
        let mut host = Self { now: Instant::ZERO, leaf: Leaf::new(ME, own_address(), rng) };
        host.leaf.start(host.now);
        host
    }
    /// A leaf that is registered with node 1, and knows node 2.
    fn registered() -> Self {
        let mut host = Self::started();
        host.pass();
        host.hear(1, 128);
        host.hear(2, 256);
        host.pass();
        host.answer(1, 0, Registration::ROUTED);
        host.outputs();
        host
    }
    fn outputs(&mut self) -> Vec<Output> {
        core::iter::from_fn(|| self.leaf.poll_output()).collect()
    }
    /// Goes on to the next deadline.
    fn pass(&mut self) -> Vec<Output> {
        self.now = self.leaf.next_deadline().expect("it waits for something");
        self.leaf.on_deadline(self.now);
        self.outputs()
    }
    fn hear_with(&mut self, router: u16, etx: u16, change: impl Fn(&mut RouterAdvertisement)) {
        let prefix = PrefixInformation {
            bits: 64,
            on_link: false,
            autonomous: true,
            valid: 9,
            preferred: 9,
            prefix: Address::global(PREFIX, Eui64([0; 8])),
        };
        let mut said = RouterAdvertisement {
            hop_limit: 64,
            lifetime: 1800,
            source_node: Some(eui(router)),
            prefixes: Vec::from([prefix]),
            contexts: Vec::new(),
            capabilities: None,
        };
        change(&mut said);
        self.leaf.on_router(eui(router), (etx, -60.0), &said);
    }
    fn hear(&mut self, router: u16, etx: u16) {
        self.hear_with(router, etx, |_| ());
    }
    /// An answer to the latest registration.
    fn said(&self, status: u8, flags: u8) -> Advertisement {
        let registration = Registration {
            status,
            opaque: 0,
            flags: flags | Registration::COUNTS,
            transaction_id: self.leaf.number.0,
            lifetime_minutes: params::LEAF_LIFETIME_MINUTES,
            node: ME,
        };
        Advertisement {
            router: true,
            solicited: true,
            overriding: false,
            target: own_address(),
            target_node: None,
            registration: Some(registration),
        }
    }
    /// A router answers the latest registration.
    fn answer(&mut self, router: u16, status: u8, flags: u8) {
        let said = self.said(status, flags);
        self.leaf.on_answer(self.now, eui(router), &said);
    }
}

/// The router that is asked for a registration, and its number.
fn asked(outputs: &[Output]) -> Option<(Eui64, u8)> {
    outputs.iter().find_map(|output| match output {
        Output::Discover { to, message: Icmpv6::NeighbourSolicitation(said) } => {
            let option = said.registration.expect("it registers");
            assert_eq!((option.node, said.target, option.flags), (ME, own_address(), 3));
            Some((to.eui64(), option.transaction_id))
        }
        _ => None,
    })
}
fn solicits(outputs: &[Output]) -> bool {
    let is_one = |output: &Output| {
        matches!(
            output,
            Output::Discover { to: Address::ALL_ROUTERS, message: Icmpv6::RouterSolicitation(_) }
        )
    };
    outputs.iter().any(is_one)
}
/// The old router and the new one.
fn parents(outputs: &[Output]) -> Vec<(Option<Eui64>, Option<Eui64>)> {
    let one = |output: &Output| match output {
        Output::Parent { old, new, .. } => Some((*old, *new)),
        _ => None,
    };
    outputs.iter().filter_map(one).collect()
}

#[test]
fn it_registers_with_the_router_of_the_best_link_and_that_is_its_parent() {
    let mut host = Host::started();
    assert!(solicits(&host.pass()));
    host.hear(1, 256);
    host.hear(2, 128);
    host.hear(3, 512);
    let outputs = host.pass();
    assert_eq!(asked(&outputs), Some((eui(2), 241)));
    assert_eq!(parents(&outputs), [(None, Some(eui(2)))], "its cells are there for the answer");
    assert_eq!(host.leaf.registered(), None, "it is not registered yet");
    host.answer(2, 0, Registration::ROUTED);
    assert_eq!(host.leaf.registered(), Some(eui(2)));
}

#[test]
fn who_is_no_default_router_of_its_prefix_is_not_asked() {
    let mut host = Host::started();
    host.pass();
    host.hear_with(1, 128, |said| said.lifetime = 0);
    host.hear_with(2, 128, |said| said.prefixes.clear());
    host.hear_with(3, 128, |said| said.prefixes[0].prefix = Address::global([0x20; 8], ME));
    let outputs = host.pass();
    assert_eq!((asked(&outputs), solicits(&outputs)), (None, true));
    // A router that has left its DODAG says so.
    host.hear(4, 128);
    host.hear_with(4, 128, |said| said.lifetime = 0);
    assert_eq!(asked(&host.pass()), None);
}

#[test]
fn it_asks_for_routers_at_longer_and_longer_intervals() {
    let mut host = Host::started();
    host.pass();
    let mut spans = Vec::new();
    for _ in 0..7 {
        let before = host.now;
        assert!(solicits(&host.pass()));
        spans.push(host.now.since(before).as_secs());
    }
    assert_eq!(spans, [10, 10, 10, 20, 40, 60, 60]);
}

#[test]
fn it_renews_its_registration_before_the_lifetime_ends() {
    let mut host = Host::registered();
    let before = host.now;
    let (router, number) = asked(&host.pass()).expect("it renews");
    assert_eq!((router, number), (eui(1), 242));
    let lifetime = u64::from(params::LEAF_LIFETIME_MINUTES) * 60;
    assert!(host.now.since(before).as_secs() <= lifetime / 2);
    assert_eq!(host.leaf.registered(), Some(eui(1)), "it stays registered meanwhile");
    host.answer(1, 0, Registration::ROUTED);
    assert_eq!(parents(&host.outputs()), []);
}

#[test]
fn a_router_that_does_not_answer_gives_way_to_another() {
    let mut host = Host::registered();
    let numbers: Vec<_> = (0..params::LEAF_TRIES).map(|_| asked(&host.pass())).collect();
    assert_eq!(numbers, vec![Some((eui(1), 242)); 3], "a repetition keeps its number");
    let outputs = host.pass();
    assert_eq!(parents(&outputs), [(Some(eui(1)), None)]);
    assert!(solicits(&host.pass()));
    host.hear(1, 128);
    host.hear(2, 256);
    assert_eq!(asked(&host.pass()), Some((eui(2), 243)), "the first comes last for a while");
}

#[test]
fn a_router_that_the_link_layer_gives_up_is_left_at_once_and_another_neighbour_is_not() {
    let mut host = Host::registered();
    host.leaf.on_gone(host.now, eui(2));
    assert_eq!(parents(&host.outputs()), []);
    host.leaf.on_gone(host.now, eui(1));
    assert_eq!(parents(&host.outputs()), [(Some(eui(1)), None)]);
    assert!(solicits(&host.pass()));
}

#[test]
fn the_only_router_is_asked_again_though_it_failed() {
    let mut host = Host::registered();
    host.leaf.on_gone(host.now, eui(1));
    host.pass();
    host.hear(1, 128);
    assert_eq!(asked(&host.pass()).map(|(router, _)| router), Some(eui(1)));
}

#[test]
fn without_a_route_a_registration_is_worth_nothing() {
    for (status, flags) in [(0, 0), (2, Registration::ROUTED), (1, 0)] {
        let mut host = Host::started();
        host.pass();
        host.hear(1, 128);
        host.pass();
        host.answer(1, status, flags);
        assert_eq!(host.leaf.registered(), None, "status {status}");
        assert!(solicits(&host.pass()));
    }
}

#[test]
fn a_leaf_that_lost_its_memory_counts_past_its_old_numbers() {
    for old in [241, 250, 255, 0, 5, 100] {
        let mut host = Host::started();
        host.pass();
        host.hear(1, 128);
        let (_, mut number) = asked(&host.pass()).expect("it asks");
        let mut answers = 0;
        while Sequence(number).order(Sequence(old)) == lowmesh_units::Order::Older {
            host.answer(1, MOVED, 0);
            (_, number) = asked(&host.outputs()).expect("it asks again");
            answers += 1;
        }
        assert!(answers <= 2, "{old}: {answers}");
        host.answer(1, 0, Registration::ROUTED);
        assert_eq!(host.leaf.registered(), Some(eui(1)));
    }
}

#[test]
fn an_answer_of_another_router_or_to_an_earlier_question_is_none() {
    let mut host = Host::started();
    host.pass();
    host.hear(1, 128);
    host.pass();
    host.answer(2, 0, Registration::ROUTED);
    assert_eq!(host.leaf.registered(), None);
    // The answer to the question with the number before.
    let number = host.leaf.number;
    host.leaf.number = Sequence::START;
    let said = host.said(0, Registration::ROUTED);
    host.leaf.number = number;
    host.leaf.on_answer(host.now, eui(1), &said);
    assert_eq!(host.leaf.registered(), None);
    host.answer(1, 0, Registration::ROUTED);
    assert_eq!(host.leaf.registered(), Some(eui(1)));
}

#[test]
fn without_a_link_layer_it_has_no_router_and_waits_for_nothing() {
    let mut host = Host::registered();
    host.leaf.stop();
    assert_eq!(parents(&host.outputs()), [(Some(eui(1)), None)]);
    assert_eq!((host.leaf.router(), host.leaf.next_deadline()), (None, None));
}
