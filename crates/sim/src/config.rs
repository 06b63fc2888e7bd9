//! What a run is made of.

use lowmesh_stack::Config as NodeConfig;
use lowmesh_units::{Channel, Dbm, Duration, NodeId};

use crate::air::params::CCA_ENERGY_DBM;
use crate::air::{Cca, CcaMode, Interferer, MediumSpec};
use crate::energy::Currents;
use crate::topology::TopologySpec;
use crate::traffic;

/// Everything about a run but its seed.
#[derive(Clone, Debug)]
pub struct Config {
    /// Simulated time.
    pub duration: Duration,
    /// Where nodes stand.
    pub topology: TopologySpec,
    /// Who hears whom.
    pub medium: MediumSpec,
    /// What else is on the air.
    pub interferers: Vec<Interferer>,
    /// Power that every node sends with.
    pub tx_power: Dbm,
    /// The radio of nodes whose MAC senses the channel.
    pub carrier: Carrier,
    /// Largest drift of a clock, parts per million.
    pub drift_max_ppm: f64,
    /// Nodes boot at random within this time; the root boots first, at once.
    pub boot_spread: Duration,
    /// Every node's settings.
    pub node: NodeConfig,
    /// The application.
    pub traffic: traffic::Config,
    /// The radio's currents.
    pub currents: Currents,
    /// Nodes that are switched off for good, and when.
    pub failures: Vec<(NodeId, Duration)>,
}

/// What a radio under a MAC with carrier sense is set to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Carrier {
    /// The one channel of the network.
    pub channel: Channel,
    /// What makes the channel busy.
    pub mode: CcaMode,
    /// Energy from which on it does, in the modes that look for it.
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
