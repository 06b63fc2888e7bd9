//! A serial line (SLIP, RFC 1055) between a host and a node that reads it with little memory.
//!
//! ```text
//!   host ─> [ queue ] ─> line ─> [ ring: few octets, few packets ] ─> processor ─> node
//!   host <────────────── line <──────────────────────────────────── processor <─ node
//! ```
//! The node has one processor. It reads no packet from the ring while it writes one to the host, octet by octet, or
//! while its radio sends. A packet that begins while the ring holds its number of packets, or that fills its octets, is
//! lost. This is the border router of Contiki in 2014 (`core/dev/slip.c`), whose ring holds 156 octets and two packets.
//!
//! | bound | total | share | the next one |
//! |---|---|---|---|
//! | octets that wait at the host | [`SerialConfig::host_octets_max`] | none: one sender | is dropped |
//! | ring of the node | [`SerialConfig::ring_octets_max`], [`SerialConfig::ring_packets_max`] | none: one sender | is dropped |
//! | packets that the node writes | as many as the node hands over while one is written | none: one sender | waits |

use alloc::collections::VecDeque;
use core::fmt;

use lowmesh_machine::{Machine, Outbox, Rejected, earliest};
use lowmesh_units::{Duration, Instant};

use crate::error::ConfigError;

/// Bits of an octet on the line: start, eight data bits, stop.
const BITS_PER_OCTET: u64 = 10;
/// The END octets before and after a packet (RFC 1055).
const FRAMING_OCTETS: u32 = 2;

/// The properties of a serial line and of the node that reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SerialConfig {
    /// Bits that the line sends in a second, start and stop bits included; at least 10.
    pub baud: u64,
    /// The longest packet that the node takes.
    pub packet_octets_max: u32,
    /// Octets of the node's ring.
    pub ring_octets_max: u32,
    /// Packets in the node's ring.
    pub ring_packets_max: usize,
    /// Octets that wait at the host for the line.
    pub host_octets_max: u64,
}

impl SerialConfig {
    /// `rpl-border-router` of Contiki in 2014: 115200 baud, packets of 140 octets (`UIP_CONF_BUFFER_SIZE`), a ring of
    /// 16 octets more (`core/dev/slip.c`) that holds two packets. The host's buffer is that of a Linux terminal, 4 kB.
    pub const fn contiki2014() -> Self {
        Self {
            baud: 115_200,
            packet_octets_max: 140,
            ring_octets_max: 156,
            ring_packets_max: 2,
            host_octets_max: 4_096,
        }
    }

    fn check(&self) -> Result<(), ConfigError> {
        if self.baud < BITS_PER_OCTET {
            let allowed = "a line sends at least 10 bits per second";
            return Err(ConfigError { key: "baud", value: self.baud as f64, allowed });
        }
        if self.ring_packets_max == 0 {
            let allowed = "a ring holds at least 1 packet";
            return Err(ConfigError { key: "ring_packets_max", value: 0.0, allowed });
        }
        Ok(())
    }
}

/// What can happen to a serial line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SerialInput<P> {
    /// The host sends a packet to the node.
    FromHost {
        /// Whatever the driver carries.
        packet: P,
        /// Its length.
        octets: u32,
    },
    /// The node sends a packet to the host.
    FromNode {
        /// Whatever the driver carries.
        packet: P,
        /// Its length.
        octets: u32,
    },
    /// The node's radio begins to send, or has finished.
    Radio {
        /// It sends.
        is_sending: bool,
    },
    /// The deadline has come.
    Deadline,
}

/// How a packet ends; each has exactly one of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SerialOutput<P> {
    /// The node read it.
    ToNode(P),
    /// The host has it.
    ToHost(P),
    /// It was too long, or found a queue or the ring full.
    Dropped(P),
}

/// Both directions of a serial line.
pub struct Serial<P> {
    config: SerialConfig,
    host_queue: VecDeque<(P, u32)>,
    /// The packet on the line to the node.
    receiving: Option<Receiving<P>>,
    ring: VecDeque<(P, u32)>,
    /// The packet on the line to the host, and when it is there.
    writing: Option<(P, Instant)>,
    to_write: VecDeque<(P, u32)>,
    radio_sends: bool,
    outputs: Outbox<SerialOutput<P>>,
}

struct Receiving<P> {
    packet: P,
    octets: u32,
    until: Instant,
    /// The ring held its number of packets at the start, so every octet is thrown away.
    is_refused: bool,
}

impl<P: 'static> Serial<P> {
    /// A line that is idle.
    pub fn new(config: SerialConfig) -> Result<Self, ConfigError> {
        config.check()?;
        Ok(Self {
            config,
            host_queue: VecDeque::new(),
            receiving: None,
            ring: VecDeque::new(),
            writing: None,
            to_write: VecDeque::new(),
            radio_sends: false,
            outputs: Outbox::default(),
        })
    }

    /// Every packet that waits or is on the line.
    pub fn packets(&self) -> impl Iterator<Item = &P> {
        let lines = [&self.host_queue, &self.ring, &self.to_write];
        let waiting = lines.into_iter().flatten().map(|(packet, _)| packet);
        let receiving = self.receiving.iter().map(|receiving| &receiving.packet);
        waiting.chain(receiving).chain(self.writing.iter().map(|(packet, _)| packet))
    }

    fn time_of(&self, octets: u32) -> Duration {
        let bits = (u64::from(octets) + u64::from(FRAMING_OCTETS)) * BITS_PER_OCTET;
        Duration::from_nanos((bits * 1_000_000_000).div_ceil(self.config.baud))
    }

    fn take_from_host(&mut self, now: Instant, packet: P, octets: u32) {
        let waiting: u64 = self.host_queue.iter().map(|(_, octets)| u64::from(*octets)).sum();
        let is_full = waiting + u64::from(octets) > self.config.host_octets_max;
        if octets > self.config.packet_octets_max || is_full {
            self.outputs.push(SerialOutput::Dropped(packet));
            return;
        }
        self.host_queue.push_back((packet, octets));
        self.receive_next(now);
    }

    /// The next packet of the host begins on the line.
    fn receive_next(&mut self, now: Instant) {
        if self.receiving.is_some() {
            return;
        }
        let Some((packet, octets)) = self.host_queue.pop_front() else { return };
        let is_refused = self.ring.len() >= self.config.ring_packets_max;
        let until = now + self.time_of(octets);
        self.receiving = Some(Receiving { packet, octets, until, is_refused });
    }

    fn end_receiving(&mut self) {
        let Some(Receiving { packet, octets, until, is_refused }) = self.receiving.take() else {
            return;
        };
        let held: u32 = self.ring.iter().map(|(_, octets)| *octets).sum();
        if is_refused || held + octets > self.config.ring_octets_max {
            self.outputs.push(SerialOutput::Dropped(packet));
        } else {
            self.ring.push_back((packet, octets));
        }
        self.receive_next(until);
    }

    fn write_next(&mut self, now: Instant) {
        if self.writing.is_none()
            && let Some((packet, octets)) = self.to_write.pop_front()
        {
            self.writing = Some((packet, now + self.time_of(octets)));
        }
    }

    fn end_writing(&mut self) {
        let Some((packet, until)) = self.writing.take() else { return };
        self.outputs.push(SerialOutput::ToHost(packet));
        self.write_next(until);
    }

    /// Whether the processor has a packet to read and time for it.
    fn can_read(&self) -> bool {
        !self.ring.is_empty() && self.writing.is_none() && !self.radio_sends
    }

    /// All that was due by `now`, in the order of time.
    fn work_off(&mut self, now: Instant) {
        let received = |line: &Self| line.receiving.as_ref().map(|receiving| receiving.until);
        let written = |line: &Self| line.writing.as_ref().map(|(_, until)| *until);
        while let Some(due) = earliest(received(self), written(self)).filter(|due| *due <= now) {
            if written(self).is_some_and(|until| until <= due) {
                self.end_writing();
            } else {
                self.end_receiving();
            }
        }
    }
}

impl<P: 'static> Machine for Serial<P> {
    type Input<'a> = SerialInput<P>;
    type Output = SerialOutput<P>;

    fn handle(&mut self, now: Instant, input: SerialInput<P>) -> Result<(), Rejected> {
        self.work_off(now);
        match input {
            SerialInput::FromHost { packet, octets } => self.take_from_host(now, packet, octets),
            SerialInput::FromNode { packet, octets } => {
                self.to_write.push_back((packet, octets));
                self.write_next(now);
            }
            SerialInput::Radio { is_sending } => self.radio_sends = is_sending,
            // One packet a call: the driver says what it does to the radio before the next.
            SerialInput::Deadline if self.can_read() => {
                if let Some((packet, _)) = self.ring.pop_front() {
                    self.outputs.push(SerialOutput::ToNode(packet));
                }
            }
            SerialInput::Deadline => {}
        }
        Ok(())
    }

    fn poll_output(&mut self) -> Option<SerialOutput<P>> {
        self.outputs.pop()
    }

    /// [`Instant::ZERO`], which is always due, while the node can read a packet.
    fn next_deadline(&self) -> Option<Instant> {
        if self.can_read() {
            return Some(Instant::ZERO);
        }
        let received = self.receiving.as_ref().map(|receiving| receiving.until);
        earliest(received, self.writing.as_ref().map(|(_, until)| *until))
    }
}

impl<P> fmt::Debug for Serial<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Serial")
            .field("config", &self.config)
            .field("in_ring", &self.ring.len())
            .field("radio_sends", &self.radio_sends)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    /// 73 octets and the framing take 6.51 ms at 115200 baud.
    const OCTETS: u32 = 73;

    struct Bench {
        now: Instant,
        line: Serial<u32>,
        seen: Vec<(u64, SerialOutput<u32>)>,
    }

    impl Bench {
        fn new() -> Self {
            let line = Serial::new(SerialConfig::contiki2014()).expect("a line");
            Self { now: Instant::ZERO, line, seen: Vec::new() }
        }
        fn tell(&mut self, input: SerialInput<u32>) {
            self.line.handle(self.now, input).expect("it takes everything");
            let outputs = core::iter::from_fn(|| self.line.poll_output());
            self.seen.extend(outputs.map(|output| (self.now.as_nanos() / 1_000_000, output)));
        }
        fn take_from_host(&mut self, packet: u32) {
            self.tell(SerialInput::FromHost { packet, octets: OCTETS });
        }
        fn run_to(&mut self, ms: u64) {
            let until = Instant::from_millis(ms);
            while let Some(due) = self.line.next_deadline().filter(|due| *due <= until) {
                self.now = self.now.max(due);
                self.tell(SerialInput::Deadline);
            }
            self.now = until;
        }
    }

    #[test]
    fn a_packet_takes_the_time_of_its_octets() {
        let mut bench = Bench::new();
        bench.take_from_host(1);
        bench.tell(SerialInput::FromNode { packet: 2, octets: OCTETS });
        bench.run_to(100);
        assert_eq!(bench.seen, [(6, SerialOutput::ToHost(2)), (6, SerialOutput::ToNode(1))]);
    }

    #[test]
    fn two_packets_wait_while_the_radio_sends_and_the_third_is_lost() {
        let mut bench = Bench::new();
        bench.tell(SerialInput::Radio { is_sending: true });
        for packet in 1..=3 {
            bench.take_from_host(packet);
        }
        bench.run_to(50);
        assert_eq!(bench.seen, [(19, SerialOutput::Dropped(3))]);
        assert_eq!(bench.line.packets().count(), 2);
        bench.tell(SerialInput::Radio { is_sending: false });
        bench.run_to(60);
        assert_eq!(bench.seen[1..], [1, 2].map(|packet| (50, SerialOutput::ToNode(packet))));
    }

    #[test]
    fn what_the_node_writes_keeps_it_from_reading() {
        let mut bench = Bench::new();
        bench.take_from_host(1);
        bench.run_to(6);
        for packet in 10..=12 {
            bench.tell(SerialInput::FromNode { packet, octets: OCTETS });
        }
        bench.run_to(100);
        let order: Vec<_> = bench.seen.iter().map(|(_, output)| *output).collect();
        let host = [10, 11, 12].map(SerialOutput::ToHost);
        assert_eq!(order, [&host[..], &[SerialOutput::ToNode(1)]].concat());
        assert_eq!(bench.seen[3].0, 25);
    }

    #[test]
    fn a_ring_of_156_octets_has_no_room_for_two_packets_of_100() {
        let mut bench = Bench::new();
        bench.tell(SerialInput::Radio { is_sending: true });
        for packet in 1..=2 {
            bench.tell(SerialInput::FromHost { packet, octets: 100 });
        }
        bench.tell(SerialInput::FromHost { packet: 3, octets: 141 });
        bench.run_to(100);
        assert_eq!(bench.seen, [(0, SerialOutput::Dropped(3)), (17, SerialOutput::Dropped(2))]);
    }

    #[test]
    fn the_host_holds_as_many_octets_as_it_is_set_to() {
        let mut bench = Bench::new();
        for packet in 0..100 {
            bench.take_from_host(packet);
        }
        // One on the line and 56 x 73 = 4088 octets behind it.
        assert_eq!(bench.seen.len(), 100 - 57);
        bench.run_to(1_000);
        assert_eq!((bench.seen.len(), bench.line.packets().count()), (100, 0));
    }

    #[test]
    fn each_value_that_makes_no_line_is_named() {
        let key = |config| Serial::<u32>::new(config).map(|_| ()).map_err(|error| error.key);
        let good = SerialConfig::contiki2014();
        assert_eq!(key(SerialConfig { baud: 9, ..good }), Err("baud"));
        assert_eq!(key(SerialConfig { ring_packets_max: 0, ..good }), Err("ring_packets_max"));
    }
}
