//! The sliding windows of seeds and the packets in them.
//!
//! Windows: `windows` in total, one for each seed and set of parameters; a packet of the next seed is dropped until a window
//! has ended. Packets: `buffers` in total; a seed that is alone may have all. The next packet takes the place of the oldest
//! one of the window with the most packets, and is dropped if every window has one at most.

use alloc::vec::Vec;

use lowmesh_machine::{DropReason, Handle};
use lowmesh_units::{Duration, Instant};
use lowmesh_wire::trickle_multicast::{Parameters, Seed, SequenceList};

/// A seed with the set of parameters that its packet uses.
pub(super) type Key = (Seed, Parameters);

/// `a > b` in serial number arithmetic with 15 bits.
pub(super) const fn is_after(a: u16, b: u16) -> bool {
    let distance = a.wrapping_sub(b) & 0x7fff;
    distance != 0 && distance < 0x4000
}

/// The sequence numbers that a node has seen of a seed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    pub key: Key,
    /// Packets below it are old.
    pub lower: u16,
    pub upper: u16,
    /// When the window ends, if no packet comes.
    pub until: Instant,
}

/// A packet in a window.
#[derive(Debug)]
pub(super) struct Held {
    pub key: Key,
    pub sequence: u16,
    /// As it goes on.
    pub packet: Vec<u8>,
    pub handle: Handle,
    pub since: Instant,
    /// To be sent at the next moment of the timer.
    pub must_send: bool,
    /// The hop limit does not allow another hop.
    pub is_spent: bool,
    pub was_sent: bool,
}

/// The windows and the packets in them.
#[derive(Debug)]
pub(super) struct Windows {
    pub open: Vec<Window>,
    pub held: Vec<Held>,
    pub open_max: usize,
    pub held_max: usize,
    /// Tdwell of both sets of parameters.
    pub dwell: [Duration; 2],
}

/// The index of a set of parameters.
pub(super) const fn index(parameters: Parameters) -> usize {
    match parameters {
        Parameters::First => 0,
        Parameters::Second => 1,
    }
}

impl Windows {
    pub fn window(&self, key: Key) -> Option<&Window> {
        self.open.iter().find(|window| window.key == key)
    }
    pub fn holds(&self, key: Key, sequence: u16) -> bool {
        self.held.iter().any(|held| (held.key, held.sequence) == (key, sequence))
    }
    fn count(&self, key: Key) -> usize {
        self.held.iter().filter(|held| held.key == key).count()
    }
    fn oldest(&self, key: Key) -> Option<usize> {
        let of_key = self.held.iter().enumerate().filter(|(_, held)| held.key == key);
        let is_older = |a: &Held, b: &Held| is_after(b.sequence, a.sequence);
        of_key
            .reduce(|best, next| if is_older(next.1, best.1) { next } else { best })
            .map(|one| one.0)
    }
    fn dwell(&self, key: Key) -> Duration {
        self.dwell[index(key.1)]
    }

    /// Takes a packet in if it is new; returns the packet that had to go. On an error nothing has changed.
    pub fn insert(&mut self, now: Instant, new: Held) -> Result<Option<Held>, DropReason> {
        let (key, sequence) = (new.key, new.sequence);
        match self.window(key) {
            Some(window) if is_after(window.lower, sequence) => return Err(DropReason::Duplicate),
            Some(_) if self.holds(key, sequence) => return Err(DropReason::Duplicate),
            None if self.open.len() >= self.open_max => return Err(DropReason::BufferFull),
            _ => {}
        }
        let evicted =
            if self.held.len() < self.held_max { None } else { Some(self.reclaim(key, sequence)?) };
        // An empty window stays for another Tdwell: a neighbour may offer its packets that long.
        let until = now + self.dwell(key) * 2;
        match self.open.iter_mut().find(|window| window.key == key) {
            Some(window) => {
                window.until = until;
                if is_after(sequence, window.upper) {
                    window.upper = sequence;
                }
            }
            None => self.open.push(Window { key, lower: sequence, upper: sequence, until }),
        }
        self.held.push(new);
        Ok(evicted)
    }

    fn reclaim(&mut self, key: Key, sequence: u16) -> Result<Held, DropReason> {
        let own = self.count(key);
        let counts = self.open.iter().map(|window| (self.count(window.key), window.key));
        let (most, holder) =
            counts.max_by_key(|(count, _)| *count).ok_or(DropReason::BufferFull)?;
        let holder = if own == most { key } else { holder };
        let oldest = self.oldest(holder).ok_or(DropReason::BufferFull)?;
        let is_older = holder == key && !is_after(sequence, self.held[oldest].sequence);
        if is_older || (holder != key && most <= own + 1) {
            return Err(DropReason::BufferFull);
        }
        Ok(self.delete(oldest))
    }

    /// Removes the oldest packet of its window, whose lower bound rises above it.
    fn delete(&mut self, index: usize) -> Held {
        let held = self.held.remove(index);
        if let Some(window) = self.open.iter_mut().find(|window| window.key == held.key) {
            window.lower = held.sequence.wrapping_add(1) & 0x7fff;
        }
        held
    }

    /// Removes the packets that are older than Tdwell, and the windows that end.
    pub fn expire(&mut self, now: Instant) -> Vec<Held> {
        let mut ended = Vec::new();
        for at in 0..self.open.len() {
            let key = self.open[at].key;
            while let Some(oldest) = self.oldest(key)
                && self.held[oldest].since + self.dwell(key) <= now
            {
                ended.push(self.delete(oldest));
            }
        }
        let over: Vec<Key> = self
            .open
            .iter()
            .filter(|window| window.until <= now)
            .map(|window| window.key)
            .collect();
        self.open.retain(|window| window.until > now);
        let (gone, kept) = self.held.drain(..).partition(|held| over.contains(&held.key));
        self.held = kept;
        let gone: Vec<Held> = gone;
        ended.extend(gone);
        ended
    }

    /// When [`Windows::expire`] is next due.
    pub fn next_deadline(&self) -> Option<Instant> {
        let ends = self.open.iter().map(|window| window.until);
        let oldest = self.open.iter().filter_map(|window| self.oldest(window.key));
        let dwells = oldest.map(|at| self.held[at].since + self.dwell(self.held[at].key));
        ends.chain(dwells).min()
    }

    /// The sequence numbers of all windows, for a control message.
    pub fn lists(&self) -> Vec<SequenceList> {
        let list = |window: &Window| {
            let held = self.held.iter().filter(|held| held.key == window.key);
            let (seed, parameters) = window.key;
            SequenceList { seed, parameters, sequences: held.map(|held| held.sequence).collect() }
        };
        self.open.iter().map(list).collect()
    }
}
