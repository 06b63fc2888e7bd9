//! Scripts of the rules, and a comparison with the rules as they read.

use super::*;

const BOUNDS: Bounds = Bounds {
    places: 4,
    octets: 2560,
    room: 6144,
    keeps_last: true,
    stale_after: Duration::from_millis(1250),
};

fn held(source: u16, octets: usize, ms: u64) -> Held<u16> {
    Held { source, octets, news: Instant::from_millis(ms), is_proven: false }
}
fn proven(source: u16, octets: usize, ms: u64) -> Held<u16> {
    Held { is_proven: true, ..held(source, octets, ms) }
}
fn victims_of(all: &[Held<u16>], newcomer: Held<u16>) -> Option<Vec<usize>> {
    victims(all.iter().copied(), &newcomer, &BOUNDS)
}

#[test]
fn nothing_is_given_up_while_there_is_room() {
    assert_eq!(victims_of(&[held(1, 500, 0)], held(2, 500, 1)), Some(vec![]));
}

#[test]
fn the_oldest_of_the_neighbour_that_holds_most_gives_up_its_place_at_once() {
    let all = [held(3, 100, 0), held(1, 100, 7), held(1, 100, 5), held(1, 100, 9)];
    assert_eq!(victims_of(&all, held(2, 100, 10)), Some(vec![2]));
    let large = [held(1, 1280, 0), held(1, 1280, 1)];
    assert_eq!(victims_of(&large, held(2, 1000, 2)), Some(vec![0]));
}

#[test]
fn neighbours_that_hold_the_same_keep_what_still_gets_news() {
    let all = [held(1, 100, 0), held(2, 100, 1), held(3, 100, 2), held(4, 100, 3)];
    assert_eq!(victims_of(&all, held(5, 100, 10)), None);
    assert_eq!(victims_of(&all, held(5, 100, 1251)), Some(vec![0]));
}

#[test]
fn a_neighbour_past_its_share_gives_up_its_own_stale_datagram() {
    let all = [held(1, 100, 0), held(1, 100, 1), held(1, 100, 2)];
    assert_eq!(victims_of(&all, held(1, 100, 10)), None, "the last is for another");
    assert_eq!(victims_of(&all, held(1, 100, 1250)), Some(vec![0]));
}

#[test]
fn strangers_give_way_to_a_proven_source_and_never_the_other_way() {
    let all = [proven(1, 100, 0), proven(1, 100, 1), held(2, 100, 2), held(3, 100, 3)];
    assert_eq!(victims_of(&all, proven(1, 100, 4)), Some(vec![2, 3]), "and the last place stays");
    assert_eq!(victims_of(&all, proven(4, 100, 4)), Some(vec![2]));
    assert_eq!(victims_of(&all, held(4, 100, 4)), None, "though the first holds more");
    assert_eq!(victims_of(&all, held(4, 100, 1300)), Some(vec![2]), "though others wait longer");
    assert_eq!(victims_of(&all[..2], proven(4, 2500, 1300)), Some(vec![0, 1]), "stale");
    let greedy = [proven(1, 100, 0), held(2, 100, 2), held(3, 100, 3), held(3, 100, 4)];
    assert_eq!(victims_of(&greedy, proven(4, 100, 5)), Some(vec![2]), "of the greediest");
    let upgraded = [held(1, 100, 0), held(2, 100, 1), held(2, 100, 2), held(1, 100, 3)];
    assert_eq!(victims_of(&upgraded, proven(1, 100, 4)), Some(vec![1, 2]), "one source, one proof");
}

#[test]
fn what_never_fits_costs_nobody_a_place() {
    let all = [held(1, 100, 0), held(1, 100, 1)];
    assert_eq!(victims_of(&all, held(2, 2561, 9000)), None);
    let full = Bounds { room: 0, ..BOUNDS };
    assert_eq!(victims(all.iter().copied(), &held(2, 300, 9000), &full), None);
}

/// The rules word by word: every step looks at every datagram.
fn slow(all: &[Held<u16>], newcomer: &Held<u16>, bounds: &Bounds) -> Option<Vec<usize>> {
    let mut left: Vec<Option<Held<u16>>> = all.iter().copied().map(Some).collect();
    let sum = |left: &[Option<Held<u16>>], source: Option<u16>| {
        let of = left.iter().flatten().filter(|one| source.is_none_or(|s| s == one.source));
        of.fold(Sum::default(), |sum, one| sum.with(one.octets))
    };
    let (mut victims, mut freed) = (vec![], 0);
    loop {
        let own = sum(&left, Some(newcomer.source));
        if bounds.fit(sum(&left, None), own, newcomer.octets, freed) {
            return Some(victims);
        }
        let is_proven = |one: &Held<u16>| {
            let mut alike = all.iter().chain([newcomer]).filter(|other| other.source == one.source);
            alike.any(|other| other.is_proven)
        };
        let newcomers = (!is_proven(newcomer), bounds.load(own.with(newcomer.octets)));
        let wait = |one: &Held<u16>| newcomer.news.since(one.news);
        let load = |one: &Held<u16>| (!is_proven(one), bounds.load(sum(&left, Some(one.source))));
        let (at, gone) = (left.iter().enumerate())
            .filter_map(|(at, one)| Some((at, (*one)?)))
            .filter(|(_, one)| is_proven(newcomer) || !is_proven(one))
            .filter(|(_, one)| wait(one) >= bounds.stale_after || load(one) > newcomers)
            .max_by_key(|(at, one)| (load(one), wait(one), !at))?;
        left[at] = None;
        freed += gone.octets;
        victims.push(at);
    }
}

proptest::proptest! {
    #[test]
    fn the_heap_chooses_what_the_rules_say(
        all in proptest::collection::vec((0u16..5, 1usize..800, 0u64..3000, 0u8..8), 0..14),
        (source, octets, is_proven) in (0u16..6, 1usize..2600, proptest::bool::ANY),
        (places, room, keeps_last) in (1usize..8, 0usize..4000, proptest::bool::ANY),
    ) {
        let one = |(s, octets, ms, proof)| Held { is_proven: proof == 0, ..held(s, octets, ms) };
        let all: Vec<_> = all.into_iter().map(one).collect();
        let newcomer = Held { is_proven, ..held(source, octets, 3000) };
        let bounds = Bounds { places, room, keeps_last, ..BOUNDS };
        let fast = victims(all.iter().copied(), &newcomer, &bounds);
        proptest::prop_assert_eq!(fast, slow(&all, &newcomer, &bounds));
    }
}
