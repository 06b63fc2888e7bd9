//! The seed set and the buffered message set of one MPL domain (RFC 7731 s7.3, s7.4).
//!
//! Seeds: `seeds` in total, each of which is one entry; a message of the next seed is dropped until an entry has expired,
//! for RFC 7731 s7.3 does not allow to free one earlier. Messages: `messages` in total; a seed that is alone may have all.
//! The next message takes the place of the oldest one of the seed with the most messages (s9.3), and is dropped if every
//! seed has one at most.

use alloc::vec::Vec;

use lowmesh_machine::{DropReason, Handle};
use lowmesh_trickle::Trickle;
use lowmesh_units::{Duration, Instant};
use lowmesh_wire::mpl::SeedId;

/// `a > b` in the serial number arithmetic of RFC 1982 with 8 bits.
pub(super) const fn is_after(a: u8, b: u8) -> bool {
    let distance = a.wrapping_sub(b);
    distance != 0 && distance < 128
}

/// What is known of a seed: SeedID, MinSequence and Lifetime of RFC 7731 s7.3.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seed {
    pub id: SeedId,
    pub min_sequence: u8,
    /// The largest sequence number that came, for the flag M.
    pub largest: u8,
    pub until: Instant,
}

/// A data message (RFC 7731 s7.4) with its Trickle timer (s9.2).
#[derive(Debug)]
pub(super) struct Message {
    pub seed: SeedId,
    pub sequence: u8,
    /// As it goes on.
    pub packet: Vec<u8>,
    /// Where in the packet the flags of the MPL option are.
    pub flags_at: usize,
    pub handle: Handle,
    pub timer: Trickle,
    /// e: moments of the timer since it was last reset.
    pub expirations: u64,
    /// The hop limit does not allow another hop.
    pub is_spent: bool,
    pub was_sent: bool,
    pub since: Instant,
}

/// Both sets.
#[derive(Debug)]
pub(super) struct Sets {
    pub seeds: Vec<Seed>,
    pub messages: Vec<Message>,
    pub seeds_max: usize,
    pub messages_max: usize,
    pub lifetime: Duration,
}

impl Sets {
    pub fn seed(&self, id: SeedId) -> Option<&Seed> {
        self.seeds.iter().find(|seed| seed.id == id)
    }
    pub fn holds(&self, id: SeedId, sequence: u8) -> bool {
        self.messages.iter().any(|message| (message.seed, message.sequence) == (id, sequence))
    }
    fn count(&self, id: SeedId) -> usize {
        self.messages.iter().filter(|message| message.seed == id).count()
    }
    /// The index of the message with the smallest sequence number of a seed.
    fn oldest(&self, id: SeedId) -> Option<usize> {
        let of_seed = self.messages.iter().enumerate().filter(|(_, message)| message.seed == id);
        let older = |a: u8, b: u8| is_after(b, a);
        of_seed
            .reduce(|best, next| if older(next.1.sequence, best.1.sequence) { next } else { best })
            .map(|(index, _)| index)
    }

    /// Checks whether a message is new, and makes room for it; returns the message that had to go. On an error nothing has
    /// changed.
    pub fn admit(
        &mut self,
        now: Instant,
        id: SeedId,
        sequence: u8,
    ) -> Result<Option<Message>, DropReason> {
        match self.seed(id) {
            // RFC 7731 s9.3: a message below MinSequence, or one that is buffered, MUST be discarded.
            Some(seed)
                if sequence != seed.min_sequence && !is_after(sequence, seed.min_sequence) =>
            {
                return Err(DropReason::Duplicate);
            }
            Some(_) if self.holds(id, sequence) => return Err(DropReason::Duplicate),
            None if self.seeds.len() >= self.seeds_max => return Err(DropReason::BufferFull),
            _ => {}
        }
        let evicted = if self.messages.len() < self.messages_max {
            None
        } else {
            Some(self.reclaim(id, sequence)?)
        };
        let until = now + self.lifetime;
        match self.seeds.iter_mut().find(|seed| seed.id == id) {
            Some(seed) => {
                seed.until = until;
                if is_after(sequence, seed.largest) {
                    seed.largest = sequence;
                }
            }
            None => {
                self.seeds.push(Seed { id, min_sequence: sequence, largest: sequence, until });
            }
        }
        Ok(evicted)
    }

    /// Removes the oldest message of the seed with the most messages.
    fn reclaim(&mut self, id: SeedId, sequence: u8) -> Result<Message, DropReason> {
        let own = self.count(id);
        let counts = self.seeds.iter().map(|seed| (self.count(seed.id), seed.id));
        let (most, holder) =
            counts.max_by_key(|(count, _)| *count).ok_or(DropReason::BufferFull)?;
        let holder = if own == most { id } else { holder };
        let oldest = self.oldest(holder).ok_or(DropReason::BufferFull)?;
        let is_older = holder == id && !is_after(sequence, self.messages[oldest].sequence);
        if is_older || (holder != id && most <= own + 1) {
            return Err(DropReason::BufferFull);
        }
        Ok(self.delete(oldest))
    }

    /// Removes the oldest message of its seed, and lifts MinSequence above it (RFC 7731 s7.4, s9.2).
    fn delete(&mut self, index: usize) -> Message {
        let message = self.messages.remove(index);
        if let Some(seed) = self.seeds.iter_mut().find(|seed| seed.id == message.seed) {
            seed.min_sequence = message.sequence.wrapping_add(1);
        }
        message
    }

    /// When a message may be deleted that has no running timer: RFC 7731 s9.2 leaves the time open. Half of the lifetime of
    /// a seed, so that no neighbour has forgotten the seed while this node still offers the message.
    fn end_of(&self, message: &Message) -> Instant {
        message.since + self.lifetime / 2
    }

    /// Removes the messages whose time is over, and the seeds that have expired with their messages; adds the messages to
    /// `ended`. True if a MinSequence rose.
    pub fn expire(&mut self, now: Instant, ended: &mut Vec<Message>) -> bool {
        let mut rose = false;
        for at in 0..self.seeds.len() {
            let id = self.seeds[at].id;
            while let Some(oldest) = self.oldest(id) {
                let message = &self.messages[oldest];
                if message.timer.is_running() || self.end_of(message) > now {
                    break;
                }
                ended.push(self.delete(oldest));
                rose = true;
            }
        }
        let expired: Vec<SeedId> =
            self.seeds.iter().filter(|seed| seed.until <= now).map(|seed| seed.id).collect();
        self.seeds.retain(|seed| seed.until > now);
        let (gone, kept) =
            self.messages.drain(..).partition(|message| expired.contains(&message.seed));
        self.messages = kept;
        let gone: Vec<Message> = gone;
        ended.extend(gone);
        rose
    }

    /// When [`Sets::expire`] or a timer is next due.
    pub fn next_deadline(&self) -> Option<Instant> {
        let seeds = self.seeds.iter().map(|seed| seed.until);
        let timers = self.messages.iter().filter_map(|message| message.timer.next_deadline());
        let oldest = self.seeds.iter().filter_map(|seed| self.oldest(seed.id));
        let idle = oldest
            .map(|index| &self.messages[index])
            .filter(|message| !message.timer.is_running())
            .map(|message| self.end_of(message));
        seeds.chain(timers).chain(idle).min()
    }
}
