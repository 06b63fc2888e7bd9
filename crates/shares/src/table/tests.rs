//! The promises of a table, each as a property of random histories, and the order of who gives way as examples.

use lowmesh_units::{NodeId, Purpose, Rng, Seed};
use proptest::prelude::*;

use super::*;

const BOUND: Bound = Bound { total: 32, share: 8, grace: Some(Duration::from_millis(1500)) };
const LONG: Bound = Bound { total: 4, share: 3, grace: None };

fn v4(octets: [u8; 4]) -> Source {
    Source::V4(octets)
}

fn proven(source: Source) -> Newcomer {
    Newcomer { source, proven: true }
}

/// A source in a /16 of its own.
fn modest(number: u8) -> Source {
    v4([10, number, 0, 1])
}

fn at(ms: u64) -> Instant {
    Instant::from_millis(ms)
}

/// What one machine may have.
#[derive(Clone, Copy, Debug)]
enum Reach {
    Address,
    V4Network,
    V4Networks,
    V4Provider,
    V6Subscriber,
    V6Site,
    V6Sites,
    V6Provider,
}

impl Reach {
    const ALL: [Self; 8] = [
        Self::Address,
        Self::V4Network,
        Self::V4Networks,
        Self::V4Provider,
        Self::V6Subscriber,
        Self::V6Site,
        Self::V6Sites,
        Self::V6Provider,
    ];

    fn source(self, host: u16) -> Source {
        let [high, low] = host.to_be_bytes();
        match self {
            Self::Address => v4([192, 0, 2, 1]),
            Self::V4Network => v4([192, 0, 2, low]),
            Self::V4Networks => v4([192, 0, high % 16, low]),
            Self::V4Provider => v4([192, 0, high, low]),
            Self::V6Subscriber => Source::V6([0x20, 1, 0xd, 0xb8, 0, 0, 0, low]),
            Self::V6Site => Source::V6([0x20, 1, 0xd, 0xb8, 0, 0, high, low]),
            Self::V6Sites => Source::V6([0x20, 1, 0xd, 0xb8, 0, high, low, 0]),
            Self::V6Provider => Source::V6([0x20, 1, 0xd, 0xb8, high, low, 0, 0]),
        }
    }
}

/// One thing that somebody does.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// The greedy one asks for a place.
    Grab {
        host: u16,
        works: bool,
    },
    /// The greedy one gives a place back.
    Return(usize),
    /// A modest source asks for a place, or uses the one that it has.
    Ask {
        number: u8,
        works: bool,
    },
    Wait {
        ms: u64,
    },
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (any::<u16>(), any::<bool>()).prop_map(|(host, works)| Step::Grab { host, works }),
        1 => any::<usize>().prop_map(Step::Return),
        2 => (0..16_u8, any::<bool>()).prop_map(|(number, works)| Step::Ask { number, works }),
        1 => (0..4000_u64).prop_map(|ms| Step::Wait { ms }),
    ]
}

/// What tables count has to be what they hold.
fn check(table: &Table<u32>) -> Result<(), TestCaseError> {
    prop_assert!(table.len() <= table.bound.total);
    for level in 0..LEVELS {
        let mut counts = BTreeMap::<Source, usize>::new();
        for holder in table.holders.values() {
            *counts.entry(holder.source.prefix(level)).or_default() += 1;
        }
        let kept = table.counts[level].iter().map(|(source, count)| (*source, count.all));
        prop_assert_eq!(kept.collect::<BTreeMap<_, _>>(), counts);
    }
    let share = table.bound.share;
    prop_assert!(table.counts[0].values().all(|count| count.all <= share));
    let unproven = table.holders.values().filter(|holder| !holder.proven).count();
    prop_assert_eq!(unproven, table.unproven);
    Ok(())
}

fn lots(seed: u64) -> Rng {
    Rng::stream(Seed(seed), NodeId(0), Purpose::Host)
}

proptest! {
    /// A modest source gets a place at once and keeps it, whatever one machine does with all that one prefix gives it.
    #[test]
    fn a_greedy_source_costs_a_modest_one_neither_its_place_nor_its_time(
        reach in proptest::sample::select(Reach::ALL.to_vec()),
        by_lot in any::<bool>(),
        seed in any::<u64>(),
        steps in proptest::collection::vec(step(), 1..300),
    ) {
        let mut table = Table::new(BOUND);
        if by_lot {
            table = table.by_lot(lots(seed));
        }
        let (mut now, mut next, mut greedy) = (Instant::ZERO, 1000_u32, Vec::new());
        for step in steps {
            match step {
                Step::Grab { host, works } => {
                    next += 1;
                    let entered = table.enter(next, proven(reach.source(host)), now);
                    if let Ok(victim) = entered {
                        prop_assert!(victim.is_none_or(|victim| victim >= 1000), "{victim:?}");
                        greedy.push(next);
                        if !works {
                            table.rest(&next, now);
                        }
                    }
                }
                Step::Return(which) => {
                    if !greedy.is_empty() {
                        let key = greedy.swap_remove(which % greedy.len());
                        table.leave(&key);
                    }
                }
                Step::Ask { number, works } => {
                    let key = u32::from(number);
                    if !table.contains(&key) {
                        let entered = table.enter(key, proven(modest(number)), now);
                        prop_assert!(entered.is_ok_and(|one| one.is_none_or(|one| one >= 1000)));
                    }
                    table.touch(&key);
                    if works { table.work(&key, now) } else { table.rest(&key, now) }
                }
                Step::Wait { ms } => now += Duration::from_millis(ms),
            }
            check(&table)?;
        }
    }

    /// However many forged addresses ask, those that are proven have the other half, and all if they want it.
    #[test]
    fn an_unproven_one_never_takes_the_place_of_a_proven_one(
        steps in proptest::collection::vec((any::<[u8; 4]>(), any::<bool>(), 0..900_u64), 1..300),
    ) {
        let mut table = Table::new(BOUND);
        let (mut now, mut proven_keys) = (Instant::ZERO, 0);
        for (key, (source, is_proven, ms)) in (0_u32..).zip(steps) {
            now += Duration::from_millis(ms);
            let is_proven = is_proven && proven_keys < BOUND.total;
            let newcomer = Newcomer { source: v4(source), proven: is_proven };
            let proven_before = table.len() - table.unproven;
            let entered = table.enter(key, newcomer, now);
            let proven_after = table.len() - table.unproven;
            prop_assert!(proven_after >= proven_before);
            let own_share = table.of(newcomer.source) >= BOUND.share / 2;
            if is_proven && proven_before < BOUND.total && !own_share {
                prop_assert!(entered.is_ok());
                proven_keys = proven_after;
            }
            prop_assert!(table.unproven <= BOUND.total / 2);
            check(&table)?;
        }
    }

    /// Nobody keeps a place for ever: after the grace a source that holds none gets one.
    #[test]
    fn every_holder_has_a_time_after_which_it_gives_way(
        sources in proptest::collection::vec(any::<[u8; 4]>(), 1..200),
        newcomer in 0..=255_u8,
    ) {
        let mut table = Table::new(BOUND);
        for (key, source) in (0_u32..).zip(sources) {
            // Those that come when all are busy get no place.
            let _full = table.enter(key, proven(v4(source)), Instant::ZERO);
        }
        let later = Instant::ZERO + Duration::from_millis(1500);
        let source = Source::V6([0x20, 1, 0xd, 0xb8, newcomer, 0, 0, 0]);
        prop_assert!(table.enter(10_000, proven(source), later).is_ok());
        check(&table)?;
    }
}

#[test]
fn idle_ones_of_modest_sources_give_way_before_busy_ones_and_the_longest_idle_first() {
    let mut table = Table::new(LONG);
    for number in 0..4 {
        table.enter(number, proven(modest(number as u8)), at(0)).expect("a place is free");
    }
    table.rest(&2, at(1));
    table.rest(&1, at(2));
    table.touch(&1);
    assert_eq!(table.enter(10, proven(modest(10)), at(3)), Ok(Some(2)));
    assert_eq!(table.enter(11, proven(modest(11)), at(3)), Ok(Some(1)));
    assert_eq!(table.enter(12, proven(modest(12)), at(3)), Err(Full::All), "all are busy");
}

#[test]
fn a_grace_is_used_up_by_work_and_comes_back_with_rest_only() {
    let mut table = Table::new(Bound { total: 1, share: 1, ..BOUND });
    table.enter(0, proven(modest(0)), at(0)).expect("a place is free");
    for ms in (0..1400).step_by(100) {
        table.rest(&0, at(ms + 90));
        table.work(&0, at(ms + 91));
    }
    let newcomer = proven(modest(1));
    assert_eq!(
        table.room(newcomer, at(1527)),
        Err(Full::All),
        "14 ms of rest, and 14 ms given back"
    );
    assert_eq!(table.room(newcomer, at(1528)), Ok(Some(0)));
    table.rest(&0, at(2000));
    table.work(&0, at(2600));
    assert_eq!(table.room(newcomer, at(3199)), Err(Full::All), "it has rested for 600 ms");
    assert_eq!(table.room(newcomer, at(3200)), Ok(Some(0)));
    table.rest(&0, at(3200));
    table.work(&0, at(99_000));
    assert_eq!(table.room(newcomer, at(100_499)), Err(Full::All), "no more than the whole grace");
    assert_eq!(table.room(newcomer, at(100_500)), Ok(Some(0)));
}

#[test]
fn of_a_greedy_source_a_busy_one_gives_way_before_an_idle_one_of_a_modest_source() {
    let mut table = Table::new(LONG);
    table.enter(0, proven(modest(0)), at(0)).expect("a place is free");
    table.rest(&0, at(0));
    for key in 1..4 {
        table.enter(key, proven(modest(9)), at(0)).expect("a place is free");
    }
    assert_eq!(table.enter(4, proven(modest(1)), at(1)), Ok(Some(1)), "two fewer");
    assert_eq!(table.enter(5, proven(modest(9)), at(1)), Err(Full::All), "it would hold most");
    table.rest(&3, at(1));
    assert_eq!(table.enter(5, proven(modest(9)), at(1)), Ok(Some(3)), "its own");
}

#[test]
fn a_source_at_its_share_gives_way_to_itself_only() {
    let mut table = Table::new(LONG);
    for key in 0..3 {
        table.enter(key, proven(modest(9)), at(0)).expect("a place is free");
    }
    assert_eq!(table.enter(3, proven(modest(9)), at(0)), Err(Full::Source));
    table.rest(&1, at(0));
    assert_eq!(table.enter(3, proven(modest(9)), at(0)), Ok(Some(1)));
}

#[test]
fn many_busy_networks_of_one_subscriber_are_one_source_when_places_are_short() {
    let mut table = Table::new(BOUND);
    for host in 0..32 {
        let source = Reach::V6Subscriber.source(host);
        table.enter(u32::from(host), proven(source), at(0)).expect("nobody else wants one");
    }
    for number in 0..4 {
        let victim = table.enter(100 + u32::from(number), proven(modest(number)), at(0));
        assert_eq!(victim, Ok(Some(u32::from(number))), "the longest of the subscriber");
    }
}

#[test]
fn many_busy_networks_of_one_provider_give_way_to_modest_sources() {
    // Each in another /48 of one /32, or in another /24 of one /16.
    let sites = |host: u8| Reach::V6Provider.source(u16::from_be_bytes([host, host]));
    let networks = |host: u8| Reach::V4Provider.source(u16::from_be_bytes([host, 1]));
    let is_of_provider = |victim: Option<u32>| victim.is_some_and(|victim| victim < 100);
    for of in [&sites as &dyn Fn(u8) -> Source, &networks] {
        let mut table = Table::new(BOUND);
        for host in 0..32 {
            table.enter(u32::from(host), proven(of(host)), at(0)).expect("nobody else wants one");
        }
        for number in 0..16 {
            let entered = table.enter(100 + u32::from(number), proven(modest(number)), at(0));
            assert!(entered.is_ok_and(is_of_provider), "{entered:?}");
            table.rest(&(100 + u32::from(number)), at(0));
        }
        for host in 50..90 {
            let entered = table.enter(u32::from(host), proven(of(host)), at(9000));
            assert!(entered.map_or(true, is_of_provider), "none of the modest: {entered:?}");
        }
    }
}

#[test]
fn unproven_ones_have_half_and_give_way_to_proven_ones_at_once() {
    let mut table = Table::new(BOUND);
    let unproven = |number| Newcomer { source: modest(number), proven: false };
    for number in 0..16 {
        table.enter(u32::from(number), unproven(number), at(0)).expect("their half");
    }
    assert_eq!(table.enter(16, unproven(16), at(1499)), Err(Full::Unproven));
    assert_eq!(table.enter(16, unproven(16), at(1500)), Ok(Some(0)), "past its grace");
    table.prove(&1);
    assert_eq!(table.enter(17, unproven(17), at(1500)), Ok(None), "one of the half is proven");
    for key in 100..115 {
        table.enter(key, proven(v4([172, 16, key as u8, 1])), at(1500)).expect("the other half");
    }
    assert_eq!(table.enter(200, proven(modest(200)), at(1500)), Ok(Some(2)));
}

#[test]
fn by_lot_the_oldest_often_survives_a_flood_of_as_many_newcomers_as_places() {
    let survives = |seed| {
        let mut table = Table::new(Bound { grace: Some(Duration::ZERO), ..BOUND });
        table = table.by_lot(lots(seed));
        table.enter(0, proven(modest(0)), at(0)).expect("a place is free");
        for number in 1..64 {
            table.enter(number, proven(modest(number as u8)), at(0)).expect("somebody yields");
        }
        table.contains(&0)
    };
    let survivors = (0..200).filter(|seed| survives(*seed)).count();
    // (31/32)^32 is 0.36.
    assert!((40..110).contains(&survivors), "{survivors} of 200");
    assert_eq!(survives(7), survives(7), "one seed, one course");
}

#[test]
fn a_newcomer_that_needs_a_place_beyond_the_table_waits_for_the_grace_of_proven_holders() {
    let mut table = Table::new(BOUND);
    for key in 0..4 {
        table.admit(key, proven(modest(1)), at(0));
    }
    table.admit(4, Newcomer { source: modest(2), proven: false }, at(0));
    let (newcomer, unproven) = (proven(modest(3)), Newcomer { source: modest(3), proven: false });
    assert_eq!(table.in_the_way(unproven, false, at(0)), None);
    assert_eq!(table.in_the_way(newcomer, false, at(0)), Some(4));
    table.leave(&4);
    assert_eq!(table.in_the_way(newcomer, false, at(0)), None, "although it has less");
    assert_eq!(table.in_the_way(newcomer, false, at(1500)), Some(0));
    assert_eq!(table.in_the_way(newcomer, true, at(1500)), None, "none of them is its own");
    assert_eq!(table.in_the_way(proven(modest(1)), true, at(1500)), Some(0));
}
