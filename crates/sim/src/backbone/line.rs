//! A line between two ends of the backbone: a constrained link, or a serial line to a border router.

use std::collections::VecDeque;

use lowmesh_machine::{DropReason, Handle, Machine as _, debug_assert_accepted};
use lowmesh_units::{Instant, NodeId, Purpose, Rng, Seed};
use lowmesh_wired::{
    Config, ConfigError, Counters, Input, Link, Output, Serial, SerialConfig, SerialInput,
    SerialOutput,
};

use super::QueueRecord;

/// The parts of a line.
#[derive(Clone, Debug, PartialEq)]
pub enum LineParts {
    /// A link with a rate, delay, queue and loss of its own in each direction.
    Link {
        /// From the near end to the far one.
        out: Config,
        /// From the far end to the near one.
        back: Config,
        /// Octets that a packet is shorter on the link than its IPv6 packet, by a shorter IP header.
        saved_octets: u32,
    },
    /// A serial line from a host, the near end, to a border router that sends by radio.
    Serial(SerialConfig),
}

/// A packet between two ends of the backbone.
#[derive(Debug)]
pub(super) struct Transit {
    /// The end that the packet is for.
    pub to: NodeId,
    pub handle: Handle,
    pub packet: Vec<u8>,
}

/// What became of a packet on a line.
#[derive(Debug)]
pub(super) enum Step {
    /// The packet is at this end of the line.
    Arrived(NodeId, Transit),
    /// It was lost on its path from this end.
    Lost(NodeId, Handle, DropReason),
}

/// A line and its two ends.
#[derive(Debug)]
pub(super) struct Line {
    near: NodeId,
    far: NodeId,
    medium: Medium,
    /// What has happened and is not yet taken.
    steps: VecDeque<Step>,
}

#[derive(Debug)]
enum Medium {
    Link { links: Box<[Link<Transit>; 2]>, saved_octets: u32 },
    Serial(Box<Serial<(NodeId, Transit)>>),
}

impl Line {
    pub fn new(
        near: NodeId,
        far: NodeId,
        parts: &LineParts,
        seed: Seed,
    ) -> Result<Self, ConfigError> {
        let medium = match *parts {
            LineParts::Link { out, back, saved_octets } => {
                // The far end names the line, since it has one alone.
                let mut rng = Rng::stream(seed, far, Purpose::Wired);
                let back_rng = rng.fork();
                let links = Box::new([Link::new(out, rng)?, Link::new(back, back_rng)?]);
                Medium::Link { links, saved_octets }
            }
            LineParts::Serial(config) => Medium::Serial(Box::new(Serial::new(config)?)),
        };
        Ok(Self { near, far, medium, steps: VecDeque::new() })
    }

    pub const fn ends(&self) -> [NodeId; 2] {
        [self.near, self.far]
    }

    /// The node whose deadline is that of the line: of a serial line the one whose processor reads it.
    pub const fn owner(&self) -> NodeId {
        match self.medium {
            Medium::Link { .. } => self.near,
            Medium::Serial(_) => self.far,
        }
    }

    /// A packet begins at the end `from`.
    pub fn send(&mut self, now: Instant, from: NodeId, transit: Transit) {
        let octets = u32::try_from(transit.packet.len()).unwrap_or(u32::MAX);
        match &mut self.medium {
            Medium::Link { links, saved_octets } => {
                let octets = octets.saturating_sub(*saved_octets);
                let link = &mut links[usize::from(from != self.near)];
                debug_assert_accepted(link.handle(now, Input::Packet { packet: transit, octets }));
            }
            Medium::Serial(serial) => {
                let packet = (from, transit);
                let input = if from == self.near {
                    SerialInput::FromHost { packet, octets }
                } else {
                    SerialInput::FromNode { packet, octets }
                };
                debug_assert_accepted(serial.handle(now, input));
            }
        }
        self.collect();
    }

    /// The radio of the far end begins to send, or has finished.
    pub fn note_radio(&mut self, now: Instant, is_sending: bool) {
        if let Medium::Serial(serial) = &mut self.medium {
            debug_assert_accepted(serial.handle(now, SerialInput::Radio { is_sending }));
            self.collect();
        }
    }

    /// Does what is due.
    pub fn advance(&mut self, now: Instant) {
        if !self.steps.is_empty() || self.next_deadline().is_none_or(|due| due > now) {
            return;
        }
        match &mut self.medium {
            Medium::Link { links, .. } => {
                for link in links.iter_mut() {
                    debug_assert_accepted(link.handle(now, Input::Deadline));
                }
            }
            Medium::Serial(serial) => {
                debug_assert_accepted(serial.handle(now, SerialInput::Deadline));
            }
        }
        self.collect();
    }

    /// [`Instant::ZERO`], which is always due, where something has happened already.
    pub fn next_deadline(&self) -> Option<Instant> {
        if !self.steps.is_empty() {
            return Some(Instant::ZERO);
        }
        match &self.medium {
            Medium::Link { links, .. } => links.iter().filter_map(Link::next_deadline).min(),
            Medium::Serial(serial) => serial.next_deadline(),
        }
    }

    /// The next thing that happened to a packet.
    pub fn poll(&mut self) -> Option<Step> {
        self.steps.pop_front()
    }

    fn collect(&mut self) {
        match &mut self.medium {
            Medium::Link { links, .. } => {
                let ends = [self.near, self.far];
                for (from, link) in links.iter_mut().enumerate() {
                    let lost =
                        |transit: Transit, reason| Step::Lost(ends[from], transit.handle, reason);
                    while let Some(output) = link.poll_output() {
                        self.steps.push_back(match output {
                            Output::Arrived(transit) => Step::Arrived(ends[1 - from], transit),
                            Output::Lost(transit) => lost(transit, DropReason::LineLoss),
                            Output::Dropped(transit) => lost(transit, DropReason::QueueFull),
                        });
                    }
                }
            }
            Medium::Serial(serial) => {
                while let Some(output) = serial.poll_output() {
                    self.steps.push_back(match output {
                        SerialOutput::ToNode((_, transit)) => Step::Arrived(self.far, transit),
                        SerialOutput::ToHost((_, transit)) => Step::Arrived(self.near, transit),
                        SerialOutput::Dropped((from, transit)) => {
                            Step::Lost(from, transit.handle, DropReason::QueueFull)
                        }
                    });
                }
            }
        }
    }

    /// What the link has carried out and back; `None` for a serial line.
    pub fn counters(&self) -> Option<[Counters; 2]> {
        match &self.medium {
            Medium::Link { links, .. } => Some([links[0].counters(), links[1].counters()]),
            Medium::Serial(_) => None,
        }
    }

    /// The queues of the link out and back from the start to `end`; `None` for a serial line.
    pub fn queues(&self, end: Instant) -> Option<[QueueRecord; 2]> {
        let Medium::Link { links, .. } = &self.medium else { return None };
        let record = |link: &Link<Transit>| QueueRecord {
            samples: link.history().samples().to_vec(),
            mean_octets: link.history().mean(end),
            most_octets: link.history().largest(),
        };
        Some([record(&links[0]), record(&links[1])])
    }

    /// The packets on the line.
    pub fn handles(&self) -> Vec<Handle> {
        match &self.medium {
            Medium::Link { links, .. } => {
                links.iter().flat_map(Link::contents).map(|transit| transit.handle).collect()
            }
            Medium::Serial(serial) => serial.packets().map(|(_, transit)| transit.handle).collect(),
        }
    }
}

/// The link of Pesola 2020, section 5.1, in one direction: 60 or 30 kbit/s, 200 to 400 ms.
#[cfg(test)]
pub(super) fn slow(rate_bits_per_second: u64) -> Config {
    Config {
        rate_bits_per_second,
        delay: lowmesh_units::Duration::from_millis(200),
        jitter: (lowmesh_units::Duration::ZERO, lowmesh_units::Duration::ZERO),
        queue_octets_max: 2_500,
        loss: lowmesh_wired::Loss::None,
        samples_max: 0,
    }
}
