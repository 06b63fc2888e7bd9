//! A seed of a corpus, changed in a few places.

use lowmesh_units::rng::draw;
use lowmesh_units::{NodeId, Purpose, Rng, Seed};

/// Longest case, octets: longer ones find nothing that shorter ones do not.
const LEN_MAX: usize = 2048;
/// Most changes of a case.
const CHANGES_MAX: u32 = 8;
/// Octets at which lengths, counts and flags turn.
const TURNING: [u8; 12] = [0, 1, 2, 0x0d, 0x0e, 0x0f, 0x3f, 0x7f, 0x80, 0xf0, 0xfe, 0xff];

/// Case `case` of a corpus that is not empty.
pub fn mutated(corpus: &[Vec<u8>], seed: u64, case: u64) -> Vec<u8> {
    let key = draw(Seed(seed), Purpose::Swarm, case, corpus.len() as u64);
    let mut rng = Rng::stream(Seed(key), NodeId(0), Purpose::Swarm);
    let mut octets = pick(corpus, &mut rng).clone();
    for _ in 0..rng.below(CHANGES_MAX) {
        change(&mut octets, corpus, &mut rng);
    }
    octets.truncate(LEN_MAX);
    octets
}

fn pick<'a>(corpus: &'a [Vec<u8>], rng: &mut Rng) -> &'a Vec<u8> {
    &corpus[rng.below(corpus.len() as u32) as usize]
}

fn change(octets: &mut Vec<u8>, corpus: &[Vec<u8>], rng: &mut Rng) {
    let at = rng.below(octets.len() as u32 + 1) as usize;
    let len = rng.below(9) as usize;
    let end = (at + len).min(octets.len());
    match rng.below(9) {
        0 => with(octets, at, |octet| *octet ^= 1 << rng.below(8)),
        1 => with(octets, at, |octet| *octet = TURNING[rng.below(12) as usize]),
        2 => with(octets, at, |octet| *octet = octet.wrapping_add(1)),
        3 => with(octets, at, |octet| *octet = octet.wrapping_sub(1)),
        4 => drop(octets.drain(at..end)),
        5 => {
            let copy = octets[at..end].to_vec();
            octets.splice(at..at, copy);
        }
        6 => {
            let random: Vec<u8> = (0..len).map(|_| rng.next_u32() as u8).collect();
            octets.splice(at..at, random);
        }
        7 => octets.truncate(at),
        _ => {
            let other = pick(corpus, rng);
            let from = rng.below(other.len() as u32 + 1) as usize;
            octets.truncate(at);
            octets.extend_from_slice(&other[from..]);
        }
    }
}

fn with(octets: &mut [u8], at: usize, change: impl FnOnce(&mut u8)) {
    if let Some(octet) = octets.get_mut(at) {
        change(octet);
    }
}
