//! The link itself: a queue, one packet in the serialiser, and packets in flight.
//!
//! Events that are late are worked off at the times when they were due, so a slow driver changes no transmission. The
//! serialiser counts octets since it was last idle, so the rate is exact over any busy period.

use alloc::collections::VecDeque;
use core::fmt;

use lowmesh_machine::{Machine, Outbox, Rejected, earliest};
use lowmesh_units::{Duration, Instant, Rng};

use crate::loss::Process;
use crate::{Config, ConfigError, History};

/// What can happen to a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input<P> {
    /// A packet is to be sent.
    Packet {
        /// Whatever the driver carries.
        packet: P,
        /// Its length on the link, headers included.
        octets: u32,
    },
    /// The deadline has come.
    Deadline,
}

/// How a packet ends; each has exactly one of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output<P> {
    /// The packet arrives at the other end.
    Arrived(P),
    /// The link lost the packet after it was sent.
    Lost(P),
    /// The queue was full.
    Dropped(P),
}

/// What a link has carried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Packets that came to be sent.
    pub offered: u64,
    /// Packets that arrived.
    pub arrived: u64,
    /// Packets that were sent and lost.
    pub lost: u64,
    /// Packets that found the queue full.
    pub dropped: u64,
    /// Octets that left the serialiser, with those of lost packets.
    pub octets_sent: u64,
}

/// One direction of a link.
pub struct Link<P> {
    config: Config,
    rng: Rng,
    loss: Process,
    /// Bounded by `Config::queue_octets_max`.
    queue: VecDeque<(P, u32)>,
    queued_octets: u64,
    serialiser: Serialiser<P>,
    /// In order of arrival; bounded by what the serialiser sends within delay and jitter.
    on_the_way: VecDeque<(Instant, P)>,
    last_arrival: Instant,
    outputs: Outbox<Output<P>>,
    counters: Counters,
    history: History,
}

enum Serialiser<P> {
    Idle,
    Busy { packet: P, octets: u32, since: Instant, sent_octets: u64, until: Instant },
}

impl<P: 'static> Link<P> {
    /// A link that is idle; `rng` is for it alone.
    pub fn new(config: Config, rng: Rng) -> Result<Self, ConfigError> {
        config.check()?;
        Ok(Self {
            config,
            rng,
            loss: Process::new(config.loss),
            queue: VecDeque::new(),
            queued_octets: 0,
            serialiser: Serialiser::Idle,
            on_the_way: VecDeque::new(),
            last_arrival: Instant::ZERO,
            outputs: Outbox::default(),
            counters: Counters::default(),
            history: History::new(config.samples_max),
        })
    }
    /// What it has carried.
    pub const fn counters(&self) -> Counters {
        self.counters
    }
    /// The length of its queue over time.
    pub const fn history(&self) -> &History {
        &self.history
    }
    /// Octets that wait for the serialiser.
    pub const fn queued_octets(&self) -> u64 {
        self.queued_octets
    }
    /// Packets that wait, are being sent or are in flight.
    pub fn packets(&self) -> usize {
        let sending = usize::from(matches!(self.serialiser, Serialiser::Busy { .. }));
        self.queue.len() + sending + self.on_the_way.len()
    }
    /// The packets that wait, are being sent or are in flight.
    pub fn contents(&self) -> impl Iterator<Item = &P> {
        let waiting = self.queue.iter().map(|(packet, _)| packet);
        let sending = match &self.serialiser {
            Serialiser::Idle => None,
            Serialiser::Busy { packet, .. } => Some(packet),
        };
        waiting.chain(sending).chain(self.on_the_way.iter().map(|(_, packet)| packet))
    }
    fn offer(&mut self, now: Instant, packet: P, octets: u32) {
        self.counters.offered += 1;
        if let Serialiser::Idle = self.serialiser {
            self.start(packet, octets, now, 0);
        } else if self.queued_octets + u64::from(octets) > self.config.queue_octets_max {
            self.counters.dropped += 1;
            self.outputs.push(Output::Dropped(packet));
        } else {
            self.queue.push_back((packet, octets));
            self.queued_octets += u64::from(octets);
            self.history.record(now, self.queued_octets);
        }
    }
    /// Starts to send; the busy period began at `since` and has sent `sent_octets`.
    fn start(&mut self, packet: P, octets: u32, since: Instant, sent_octets: u64) {
        let sent_octets = sent_octets + u64::from(octets);
        let until = since + self.time_of(sent_octets);
        self.serialiser = Serialiser::Busy { packet, octets, since, sent_octets, until };
    }
    /// How long the serialiser needs for `octets`, rounded up to the nanosecond.
    fn time_of(&self, octets: u64) -> Duration {
        let bits = u128::from(octets) * 8;
        let nanoseconds =
            (bits * 1_000_000_000).div_ceil(u128::from(self.config.rate_bits_per_second));
        Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or(u64::MAX))
    }
    /// Everything that was due by `now`, in the order of time.
    fn work_off(&mut self, now: Instant) {
        while let Some(due) = self.next_deadline().filter(|due| *due <= now) {
            while self.on_the_way.front().is_some_and(|(at, _)| *at <= due) {
                let Some((_, packet)) = self.on_the_way.pop_front() else { break };
                self.counters.arrived += 1;
                self.outputs.push(Output::Arrived(packet));
            }
            if matches!(&self.serialiser, Serialiser::Busy { until, .. } if *until <= due) {
                self.finish();
            }
        }
    }
    /// The packet in the serialiser has left; the next one starts.
    fn finish(&mut self) {
        let serialiser = core::mem::replace(&mut self.serialiser, Serialiser::Idle);
        let Serialiser::Busy { packet, octets, since, sent_octets, until } = serialiser else {
            return;
        };
        self.counters.octets_sent += u64::from(octets);
        if self.loss.loses(until, &mut self.rng) {
            self.counters.lost += 1;
            self.outputs.push(Output::Lost(packet));
        } else {
            let jitter = self.rng.duration(self.config.jitter.0, self.config.jitter.1);
            self.last_arrival = self.last_arrival.max(until + self.config.delay + jitter);
            self.on_the_way.push_back((self.last_arrival, packet));
        }
        if let Some((packet, octets)) = self.queue.pop_front() {
            self.queued_octets -= u64::from(octets);
            self.history.record(until, self.queued_octets);
            self.start(packet, octets, since, sent_octets);
        }
    }
}

impl<P: 'static> Machine for Link<P> {
    type Input<'a> = Input<P>;
    type Output = Output<P>;

    fn handle(&mut self, now: Instant, input: Input<P>) -> Result<(), Rejected> {
        self.work_off(now);
        if let Input::Packet { packet, octets } = input {
            self.offer(now, packet, octets);
        }
        Ok(())
    }
    fn poll_output(&mut self) -> Option<Output<P>> {
        self.outputs.pop()
    }
    fn next_deadline(&self) -> Option<Instant> {
        let sent = match &self.serialiser {
            Serialiser::Idle => None,
            Serialiser::Busy { until, .. } => Some(*until),
        };
        earliest(sent, self.on_the_way.front().map(|(at, _)| *at))
    }
}

impl<P> fmt::Debug for Link<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link")
            .field("config", &self.config)
            .field("queued_octets", &self.queued_octets)
            .field("counters", &self.counters)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
