//! What happens to a mesh from outside: power is lost and comes back, links fade, nodes move, settings change.
//!
//! One type describes an event of a scenario, of a trace and of a running mesh. [`Builder::events`](crate::Builder::events)
//! plans events, and [`Mesh::apply`](crate::Mesh::apply) lets one happen at once. Events of a moment come before all that
//! nodes do in it, in the order in which they were given.

use core::fmt::Write as _;

use lowmesh_units::{Channel, Dbm, Duration, Instant, NodeId};

use crate::air::Position;
use crate::params::{LOSSES_MAX, REBOOT_MIN};

/// Something that happens to a mesh.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// A node is switched off.
    Off {
        /// The node.
        node: NodeId,
        /// What becomes of its state.
        memory: Memory,
    },
    /// A node is switched on. A node whose first event this is has been off from the start.
    On {
        /// The node.
        node: NodeId,
    },
    /// A node restarts: its state is lost, and it is off for a while.
    Reboot {
        /// The node.
        node: NodeId,
        /// How long it is off.
        dark: Duration,
    },
    /// The battery of a node is empty: the node is switched off for good.
    BatteryEmpty {
        /// The node.
        node: NodeId,
    },
    /// Two nodes hear each other no longer, and do not disturb each other either.
    Cut {
        /// One end.
        node: NodeId,
        /// The other end.
        peer: NodeId,
    },
    /// The links between two nodes are those of the medium again.
    Restore {
        /// One end.
        node: NodeId,
        /// The other end.
        peer: NodeId,
    },
    /// The link from a node to another one changes.
    Link {
        /// The sender.
        node: NodeId,
        /// The receiver.
        peer: NodeId,
        /// How good the link is from now on.
        quality: Quality,
    },
    /// The position of a node changes.
    Move {
        /// The node.
        node: NodeId,
        /// Its new position.
        position: Position,
    },
    /// The time between two readings changes.
    Load {
        /// The node whose readings they are; all nodes if unset.
        node: Option<NodeId>,
        /// The new mean time between two of them.
        period: Duration,
    },
    /// Noise begins, changes or ends, in addition to that of the medium.
    Noise {
        /// The node that receives it; all nodes if unset.
        node: Option<NodeId>,
        /// The channels that it is on; all channels if empty.
        channels: Vec<Channel>,
        /// Its power within each of these channels; unset for none.
        power: Option<Dbm>,
    },
    /// Nodes use other channels: a hopping sequence under TSCH, and its first channel under carrier sense.
    Channels {
        /// The node; all nodes if unset.
        node: Option<NodeId>,
        /// The channels in hopping order.
        channels: Vec<Channel>,
    },
}

/// What becomes of the state of a node that is switched off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Memory {
    /// It is lost, packets included: the node starts as at its first boot. A root keeps what it needs to continue its
    /// network ([`RootMemory`](lowmesh_stack::memory::RootMemory)).
    #[default]
    Lost,
    /// It is kept: the node goes on where it was, as after a deep sleep.
    Kept,
}

/// How a link differs from that of the medium.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub struct Quality {
    /// The share of undisturbed frames that arrive; unset for what the power gives.
    pub pdr: Option<f64>,
    /// Attenuation in addition to that of the medium, dB.
    pub loss_db: f64,
}

/// Why an event is not possible.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{key} = {value}: {allowed}")]
pub struct EventError {
    /// Which part of the event.
    pub key: &'static str,
    /// Its value.
    pub value: String,
    /// What is allowed.
    pub allowed: String,
}

impl EventError {
    pub(crate) fn new(
        key: &'static str,
        value: &impl ToString,
        allowed: impl Into<String>,
    ) -> Self {
        Self { key, value: value.to_string(), allowed: allowed.into() }
    }
}

impl Event {
    /// The node that it happens to, or the first of two; `None` for all nodes.
    pub const fn node(&self) -> Option<NodeId> {
        match self {
            Self::Off { node, .. }
            | Self::On { node }
            | Self::Reboot { node, .. }
            | Self::BatteryEmpty { node }
            | Self::Cut { node, .. }
            | Self::Restore { node, .. }
            | Self::Link { node, .. }
            | Self::Move { node, .. } => Some(*node),
            Self::Load { node, .. } | Self::Noise { node, .. } | Self::Channels { node, .. } => {
                *node
            }
        }
    }

    /// The other node of an event about two.
    pub const fn peer(&self) -> Option<NodeId> {
        match self {
            Self::Cut { peer, .. } | Self::Restore { peer, .. } | Self::Link { peer, .. } => {
                Some(*peer)
            }
            _ => None,
        }
    }

    /// Its name in traces and reports.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Off { .. } => "off",
            Self::On { .. } => "on",
            Self::Reboot { .. } => "reboot",
            Self::BatteryEmpty { .. } => "battery_empty",
            Self::Cut { .. } => "cut",
            Self::Restore { .. } => "restore",
            Self::Link { .. } => "link",
            Self::Move { .. } => "move",
            Self::Load { .. } => "load",
            Self::Noise { .. } => "noise",
            Self::Channels { .. } => "channels",
        }
    }

    /// Its number in the hash of a trace.
    pub(crate) const fn number(&self) -> u8 {
        match self {
            Self::Off { .. } => 0,
            Self::On { .. } => 1,
            Self::Reboot { .. } => 2,
            Self::BatteryEmpty { .. } => 3,
            Self::Cut { .. } => 4,
            Self::Restore { .. } => 5,
            Self::Link { .. } => 6,
            Self::Move { .. } => 7,
            Self::Load { .. } => 8,
            Self::Noise { .. } => 9,
            Self::Channels { .. } => 10,
        }
    }

    /// Its further fields in a trace, as JSON behind the first ones.
    pub(crate) fn write_fields(&self, line: &mut String) {
        if let Some(peer) = self.peer() {
            // Writing to a String cannot fail, here and below.
            _ = write!(line, ",\"peer\":{peer}");
        }
        _ = match self {
            Self::Off { memory: Memory::Lost, .. } => write!(line, ",\"memory\":\"lost\""),
            Self::Off { memory: Memory::Kept, .. } => write!(line, ",\"memory\":\"kept\""),
            Self::Reboot { dark, .. } => write!(line, ",\"dark_s\":{}", dark.as_secs_f64()),
            Self::Link { quality: Quality { pdr, loss_db }, .. } => {
                let pdr = pdr.map_or("null".to_owned(), |pdr| pdr.to_string());
                write!(line, ",\"pdr\":{pdr},\"loss_db\":{loss_db}")
            }
            Self::Move { position, .. } => {
                let Position { x_m, y_m, z_m } = position;
                write!(line, ",\"x_m\":{x_m},\"y_m\":{y_m},\"z_m\":{z_m}")
            }
            Self::Load { period, .. } => write!(line, ",\"period_s\":{}", period.as_secs_f64()),
            Self::Noise { channels, power, .. } => {
                let power = power.map_or("null".to_owned(), |power| power.0.to_string());
                write!(line, ",\"channels\":{},\"power_dbm\":{power}", listed(channels))
            }
            Self::Channels { channels, .. } => {
                write!(line, ",\"channels\":{}", listed(channels))
            }
            Self::On { .. }
            | Self::BatteryEmpty { .. }
            | Self::Cut { .. }
            | Self::Restore { .. } => Ok(()),
        };
    }

    /// Whether its values are possible in a mesh of so many nodes.
    pub fn check(&self, nodes: usize) -> Result<(), EventError> {
        for (key, node) in [("node", self.node()), ("peer", self.peer())] {
            if let Some(node) = node.filter(|node| node.index() >= nodes) {
                let allowed =
                    format!("there is no such node; write a node from 0 to {}", nodes - 1);
                return Err(EventError::new(key, &node, allowed));
            }
        }
        if self.peer().is_some() && self.peer() == self.node() {
            let allowed = "a node has no link to itself; write another node";
            return Err(EventError::new("peer", &self.peer().unwrap_or_default(), allowed));
        }
        let outside = |number: f64, low: f64, high: f64| !(low..=high).contains(&number);
        match self {
            Self::Reboot { dark, .. } if *dark < REBOOT_MIN => {
                let allowed = format!("a restart takes {REBOOT_MIN} or more");
                Err(EventError::new("dark", &dark, allowed))
            }
            Self::Link { quality: Quality { pdr: Some(pdr), .. }, .. }
                if outside(*pdr, 0.0, 1.0) =>
            {
                Err(EventError::new("pdr", &pdr, "0 to 1 is allowed"))
            }
            Self::Link { quality, .. } if outside(quality.loss_db, -200.0, 200.0) => {
                Err(EventError::new("loss_db", &quality.loss_db, "-200 to 200 is allowed"))
            }
            Self::Load { period, .. } if period.is_zero() => {
                Err(EventError::new("period", &period, "a period above 0s is allowed"))
            }
            Self::Channels { channels, .. } if channels.is_empty() => {
                Err(EventError::new("channels", &"[]", "write one channel or more"))
            }
            _ => Ok(()),
        }
    }
}

fn listed(channels: &[Channel]) -> String {
    let numbers: Vec<String> = channels.iter().map(ToString::to_string).collect();
    format!("[{}]", numbers.join(","))
}

/// Checks a plan of events as a whole, in the order in which they happen: each on its own, and what one makes impossible
/// for those after it. Returns the nodes that are off from the start. An error names the index of the event.
pub(crate) fn check_plan(
    plan: &[(Instant, Event)],
    nodes: usize,
) -> Result<Vec<NodeId>, (usize, EventError)> {
    let (mut seen, mut late) = (vec![false; nodes], Vec::new());
    let (mut empty, mut losses) = (vec![false; nodes], vec![0; nodes]);
    for (index, (_, event)) in plan.iter().enumerate() {
        event.check(nodes).map_err(|error| (index, error))?;
        let (Event::Off { node, .. }
        | Event::On { node }
        | Event::Reboot { node, .. }
        | Event::BatteryEmpty { node }) = event
        else {
            continue;
        };
        if empty[node.index()] {
            let allowed =
                "its battery is empty, which ends it; write `off` instead of the earlier event";
            return Err((index, EventError::new("node", &node, allowed)));
        }
        if matches!(event, Event::On { .. }) && !seen[node.index()] {
            late.push(*node);
        }
        seen[node.index()] = true;
        empty[node.index()] = matches!(event, Event::BatteryEmpty { .. });
        losses[node.index()] += u16::from(!matches!(event, Event::On { .. }));
        if losses[node.index()] > LOSSES_MAX {
            let allowed = format!("a node loses its state at most {LOSSES_MAX} times");
            return Err((index, EventError::new("node", &node, allowed)));
        }
    }
    Ok(late)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NODE: NodeId = NodeId(1);

    fn told(event: &Event) -> String {
        event.check(3).expect_err("not possible").to_string()
    }

    #[test]
    fn what_cannot_happen_is_told_with_what_can() {
        let (quality, peer) = (Quality { pdr: Some(1.5), loss_db: 0.0 }, NodeId(2));
        assert_eq!(
            told(&Event::On { node: NodeId(3) }),
            "node = 3: there is no such node; write a node from 0 to 2"
        );
        assert!(told(&Event::Cut { node: NODE, peer: NODE }).contains("no link to itself"));
        assert!(told(&Event::Link { node: NODE, peer, quality }).contains("pdr = 1.5: 0 to 1"));
        let none = Event::Channels { node: None, channels: Vec::new() };
        assert_eq!(told(&none), "channels = []: write one channel or more");
        let dark = Duration::ZERO;
        assert!(told(&Event::Reboot { node: NODE, dark }).starts_with("dark = 0s: a restart"));
    }

    #[test]
    fn a_node_whose_first_event_is_on_starts_late_and_an_empty_battery_ends_it() {
        let at = Instant::from_secs;
        let off = Event::Off { node: NodeId(2), memory: Memory::Lost };
        let plan = vec![
            (at(1), Event::On { node: NODE }),
            (at(2), off),
            (at(3), Event::On { node: NodeId(2) }),
            (at(4), Event::BatteryEmpty { node: NODE }),
        ];
        assert_eq!(check_plan(&plan, 3), Ok(vec![NODE]));
        let again = [&plan[..], &[(at(5), Event::On { node: NODE })]].concat();
        let (index, error) = check_plan(&again, 3).expect_err("it is empty");
        assert_eq!(index, 4);
        assert!(error.to_string().contains("its battery is empty"), "{error}");
    }
}
