//! The parts of which one node of a mesh consists.

use lowmesh_mac::frame::{PAYLOAD_OCTETS_MAX, SHORT_GAIN_OCTETS};
use lowmesh_mac::tsch::hopping::HoppingSequence;
use lowmesh_multicast::Engine;
use lowmesh_registry::Choice;
use lowmesh_rpl::ObjectiveFunction;
use lowmesh_sixtop::SchedulingFunction;
use lowmesh_stack::{Config as Stack, LinkLayer, Routes};
use lowmesh_units::{Channel, Dbm, Duration, NodeId, PanId};

use crate::air::params::CCA_ENERGY_DBM;
use crate::air::{Cca, CcaMode};
use crate::energy::Currents;

/// Largest drift of a clock unless the parts say otherwise, parts per million: no standard, the crystal of a sensor node.
const DRIFT_MAX_PPM: f64 = 20.0;

/// State of a node outside its machines.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part {
    /// The border router of its PAN.
    pub(crate) root: NodeId,
    /// The node that takes its readings.
    pub(crate) collector: NodeId,
    /// Half the time for which it listens for a frame to start, in timeslots.
    pub(crate) guard: Duration,
    /// Its transmit power.
    pub(crate) tx_power: Dbm,
    /// The currents of its radio.
    pub(crate) energy: Currents,
    /// Whether it reports readings.
    pub(crate) is_client: bool,
    /// Whether it forwards nothing and runs no RPL.
    pub(crate) is_leaf: bool,
}

/// The parts of one node; [`Builder::node`](crate::Builder::node) takes them.
///
/// ```
/// use lowmesh_sim::NodeParts;
/// use lowmesh_sixtop::functions::alice;
/// use lowmesh_units::PanId;
///
/// let parts = NodeParts::router(PanId(0xabcd))
///     .scheduling(&alice::ROW)
///     .drift(10.0);
/// assert_eq!(parts.pan(), PanId(0xabcd));
/// ```
#[derive(Clone, Debug)]
pub struct NodeParts {
    /// The settings of its layers: link, scheduling, routes and all that is in them.
    pub stack: Stack,
    /// Whether it is the border router of its PAN: the root of the DODAG, and the collector of readings.
    pub is_border_router: bool,
    /// The radio settings under carrier sense.
    pub carrier: Carrier,
    /// Transmit power, as captures show it. The medium decides the received power.
    pub tx_power: Dbm,
    /// Largest drift of its clock, parts per million. The drift is drawn uniformly from minus to plus this value. The clocks
    /// of border routers are the time of the mesh and do not drift.
    pub drift_max_ppm: f64,
    /// The node is switched on at a time drawn from zero to this; a border router at zero.
    pub boot_spread: Duration,
    /// The currents of its radio.
    pub energy: Currents,
    /// When it is switched off permanently, by a defect or an empty battery; `None` for never.
    pub fails_after: Option<Duration>,
}

impl NodeParts {
    /// A router with these settings, in their PAN.
    pub fn new(stack: Stack) -> Self {
        Self {
            stack,
            is_border_router: false,
            carrier: Carrier::default(),
            tx_power: Dbm(0.0),
            drift_max_ppm: DRIFT_MAX_PPM,
            boot_spread: Duration::from_secs(1),
            energy: Currents::default(),
            fails_after: None,
        }
    }

    /// A router of `pan`: TSCH, MSF and RPL with their defaults.
    pub fn router(pan: PanId) -> Self {
        let mut stack = Stack::default();
        stack.lowpan.frame_payload = PAYLOAD_OCTETS_MAX;
        Self::new(stack).in_pan(pan)
    }

    /// The border router of `pan`, with the same defaults.
    pub fn border_router(pan: PanId) -> Self {
        Self { is_border_router: true, ..Self::router(pan) }
    }

    /// A leaf of `pan`, which runs no RPL and registers with a router (RFC 9010), with the same defaults.
    pub fn leaf(pan: PanId) -> Self {
        Self::router(pan).without_rpl()
    }

    /// Makes the node a leaf, which runs no RPL and registers with a router (RFC 9010).
    #[must_use]
    pub const fn without_rpl(mut self) -> Self {
        self.stack.is_leaf = true;
        self
    }

    /// The PAN that the node belongs to.
    pub const fn pan(&self) -> PanId {
        match &self.stack.link {
            LinkLayer::Tsch => self.stack.mac.pan,
            LinkLayer::Csma(csma) => csma.pan,
        }
    }

    /// Sets the PAN, and the prefix that [`prefix_of`] gives it.
    #[must_use]
    pub fn in_pan(mut self, pan: PanId) -> Self {
        self.stack.mac.pan = pan;
        if let LinkLayer::Csma(csma) = &mut self.stack.link {
            csma.pan = pan;
        }
        self.stack.prefix = prefix_of(pan);
        self
    }

    /// Sets the MAC; the PAN stays, and the frame size becomes that of the MAC.
    #[must_use]
    pub fn link(mut self, link: LinkLayer) -> Self {
        let pan = self.pan();
        let gain = if self.stack.addressing.is_short() { 2 * SHORT_GAIN_OCTETS } else { 0 };
        self.stack.lowpan.frame_payload = gain
            + match &link {
                LinkLayer::Tsch => PAYLOAD_OCTETS_MAX,
                LinkLayer::Csma(csma) => csma.payload_octets_max,
            };
        self.stack.link = link;
        self.in_pan(pan)
    }

    /// Sets the scheduling function: a row, or a choice with values that replace its defaults.
    #[must_use]
    pub fn scheduling(mut self, scheduling: impl Into<Choice<dyn SchedulingFunction>>) -> Self {
        self.stack.scheduling = scheduling.into();
        self
    }

    /// Sets the objective function: a row, or a choice with values that replace its defaults.
    #[must_use]
    pub fn objective(mut self, objective: impl Into<Choice<dyn ObjectiveFunction>>) -> Self {
        self.stack.rpl = self.stack.rpl.with_objective(objective);
        self
    }

    /// Sets the multicast engine: a row, or a choice with values that replace its defaults.
    #[must_use]
    pub fn multicast(mut self, engine: impl Into<Choice<dyn Engine>>) -> Self {
        self.stack.multicast = engine.into();
        self
    }

    /// Sets the source of routes.
    #[must_use]
    pub fn routes(mut self, routes: Routes) -> Self {
        self.stack.routes = routes;
        self
    }

    /// Sets the hopping sequence of TSCH; carrier sense uses its first channel.
    #[must_use]
    pub fn channels(mut self, hopping: HoppingSequence) -> Self {
        if let Some(first) = hopping.channels().first() {
            self.carrier.channel = *first;
        }
        self.stack.mac.hopping = hopping;
        self
    }

    /// Sets the largest drift of the clock.
    #[must_use]
    pub const fn drift(mut self, max_ppm: f64) -> Self {
        self.drift_max_ppm = max_ppm;
        self
    }

    /// Switches the node on at a random time within `spread` of the start.
    #[must_use]
    pub const fn boot_within(mut self, spread: Duration) -> Self {
        self.boot_spread = spread;
        self
    }

    /// Switches the node off permanently at a time of the run.
    #[must_use]
    pub const fn fails_after(mut self, time: Duration) -> Self {
        self.fails_after = Some(time);
        self
    }

    /// Sets the currents of the radio.
    #[must_use]
    pub const fn energy(mut self, currents: Currents) -> Self {
        self.energy = currents;
        self
    }
}

/// The PAN of a mesh that names none.
pub const PAN: PanId = PanId(0xabcd);

/// The prefix of a PAN: `fd00::/64` for [`PAN`], and another subnet of `fd00::/48` for each other one.
pub fn prefix_of(pan: PanId) -> [u8; 8] {
    let mut prefix = lowmesh_ipv6::params::PREFIX;
    prefix[6..].copy_from_slice(&pan.0.wrapping_sub(PAN.0).to_be_bytes());
    prefix
}

/// The settings of a radio under a MAC with carrier sense.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Carrier {
    /// The one channel of its network.
    pub channel: Channel,
    /// Clear channel assessment mode.
    pub mode: CcaMode,
    /// Energy threshold of the modes that measure energy.
    pub energy: Dbm,
}

impl Carrier {
    /// The clear channel assessment.
    pub fn cca(&self) -> Cca {
        Cca { mode: self.mode, energy_mw: self.energy.milliwatts() }
    }
}

impl Default for Carrier {
    fn default() -> Self {
        let channel = Channel::new(26).expect("a channel of the band");
        Self { channel, mode: CcaMode::Either, energy: Dbm(CCA_ENERGY_DBM) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_pan_has_a_prefix_of_its_own_and_the_usual_one_the_usual_prefix() {
        assert_eq!(prefix_of(PAN), lowmesh_ipv6::params::PREFIX);
        assert_eq!(prefix_of(PanId(0xabce)), [0xfd, 0, 0, 0, 0, 0, 0, 1]);
        assert_eq!(prefix_of(PanId(0xabcc)), [0xfd, 0, 0, 0, 0, 0, 0xff, 0xff]);
    }

    #[test]
    fn another_mac_stays_in_the_pan() {
        let parts = NodeParts::router(PanId(7));
        let parts = parts.link(LinkLayer::Csma(lowmesh_mac::csma::Config::default()));
        assert_eq!((parts.pan(), parts.stack.mac.pan), (PanId(7), PanId(7)));
        assert_eq!(parts.stack.prefix, prefix_of(PanId(7)));
    }
}
