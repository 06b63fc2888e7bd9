//! The air: who hears whom, how loud, and which of several frames a receiver gets.
//!
//! A [`Medium`] answers how well a frame of one node arrives at another, as a table of [`Links`] that
//! is ready before the frame goes out. [`reception`] decides at one receiver, from the powers of all
//! frames that overlap, the noise and the [`interference`], which frame is received. Both are free of
//! state that a protocol could disturb: the same seed gives the same air to every protocol compared.
//!
//! When nodes transmit and listen is left to the world, moving bytes to it as well.
//!
//! One frame from the root of a line, at everyone who may hear it:
//!
//! ```
//! use lowmesh_sim::air::{Noise, Signal, build, reception_draw, resolve, unit_disk};
//! use lowmesh_sim::topology::TopologySpec;
//! use lowmesh_units::{Channel, Instant, NodeId, Seed};
//!
//! let seed = Seed(1);
//! let line = TopologySpec::Line { nodes: 3, spacing_m: 40.0 }.place(seed)?;
//! let medium = build(&unit_disk::ROW, &line, seed)?;
//!
//! let noise = Noise { floor_mw: medium.noise().milliwatts(), extra_mw: 0.0 };
//! let (tx, start, channel) = (NodeId(0), Instant::ZERO, Channel::new(11).expect("in the band"));
//! let mut receivers = Vec::new();
//! for (rx, link) in medium.links().heard(tx, channel) {
//!     let signals = [Signal::over(link, start)];
//!     let draw = |_| reception_draw(seed, tx, rx, start);
//!     if resolve(medium.overlap(), &signals, noise, |_| noise.whole(60), draw).received == Some(0) {
//!         receivers.push(rx);
//!     }
//! }
//! assert_eq!(receivers, [NodeId(1)]);
//! # Ok::<(), lowmesh_sim::air::error::BuildError>(())
//! ```

mod builtin;
mod bursts;
pub mod cca;
pub mod conformance;
pub mod error;
mod fields;
pub mod interference;
pub mod k7;
pub mod link_table;
pub mod links;
pub mod modulation;
pub mod mrm;
mod overlap;
pub(crate) mod overlay;
pub mod params;
pub mod pathloss;
pub mod pister_hack;
pub mod playback;
pub mod position;
pub mod receiver;
pub mod reception;
mod row;
pub mod site;
pub mod tree_links;
pub mod unit_disk;

use core::fmt::Debug;

use lowmesh_units::{Channel, Dbm, Instant, NodeId};

pub use cca::{Cca, CcaMode};
pub(crate) use fields::{Fields, data_lines, without_mark};
pub use interference::{Interference, Interferer};
pub use links::{Link, Links};
pub use overlap::{Curve, Overlap};
pub use position::Position;
pub use receiver::{Arrival, Fate, FrameId, Receiver};
pub use reception::{Noise, Piece, Resolution, Signal, reception_draw, resolve};
pub use row::{BuildMedium, MakeMedium, NOISE, Needs, SECTION, TX_POWER, build, nodes_of, places};

/// A radio medium: the source of received powers, and of PDRs where it dictates them.
///
/// A medium of one's own answers four questions; the mesh does the rest:
///
/// | question | answer | default |
/// |---|---|---|
/// | who hears whom, on which channel, and how loud | [`Medium::links`] | |
/// | when that changes | [`Medium::next_change`], [`Medium::advance`] | never |
/// | what noise there is | [`Medium::noise`] | |
/// | which of several frames a receiver gets, and with which chance | [`Medium::overlap`] | |
///
/// # Determinism
///
/// The same seed gives the same air to every protocol, on every machine and thread. Hence a medium
/// - takes all randomness when it is made, from the run's seed ([`Rng::stream`](lowmesh_units::Rng::stream) with
///   [`Purpose::Shadowing`](lowmesh_units::Purpose::Shadowing)): the mesh draws for each frame and receiver
///   ([`reception_draw`]) and compares with the medium's chance;
/// - draws what changes over time, such as fading, as a pure function of that seed and the time
///   ([`draw_normal`](lowmesh_units::rng::draw_normal)), so that a skipped [`Medium::advance`] changes nothing;
/// - depends on nothing but its parameters, that seed and the time given to [`Medium::advance`]: no clock, no iteration
///   over a hash map, no state that a call of a `&self` method leaves behind;
/// - computes with [`libm`] where the standard library's functions differ between platforms (`exp`, `ln`, `pow`, `sin`).
///
/// [`conformance::check`] tries what of this can be tried.
pub trait Medium: Debug + Send {
    /// Its name, for reports and errors; that of a medium with a row is the name in the row.
    fn name(&self) -> &'static str;
    /// All links as they stand after the last [`Medium::advance`]. A pair that may ever carry a frame is in the table
    /// from the start, silent or not.
    fn links(&self) -> &Links;
    /// How frames that overlap at a receiver are judged; the same for the whole run.
    fn overlap(&self) -> Overlap;
    /// Noise at every receiver; the same for the whole run, so take its milliwatts once.
    fn noise(&self) -> Dbm;
    /// The time of the next change of links; later than the last [`Medium::advance`].
    fn next_change(&self) -> Option<Instant> {
        None
    }
    /// Brings the links to `now`; the mesh calls it when [`Medium::next_change`] is due, or later if nothing happens
    /// until then.
    fn advance(&mut self, _now: Instant) {}

    /// Mean received power at `rx`, or `None` out of reach.
    fn rssi(&self, tx: NodeId, rx: NodeId, channel: Channel) -> Option<Dbm> {
        self.links().get(tx, rx, channel).map(|link| link.rssi)
    }
    /// The chance that a frame of `tx` of `octets` octets reaches `rx` when nothing disturbs it.
    fn reception_probability(
        &self,
        tx: NodeId,
        rx: NodeId,
        channel: Channel,
        octets: usize,
    ) -> f64 {
        self.links().get(tx, rx, channel).map_or(0.0, |link| self.chance_over(link, octets))
    }
    /// The chance that a frame of `octets` octets passes over `link` when nothing disturbs it.
    fn chance_over(&self, link: &Link, octets: usize) -> f64 {
        let noise_mw = self.noise().milliwatts();
        link.pdr.unwrap_or_else(|| {
            if link.power_mw < noise_mw * params::LOCK_SNR {
                return 0.0;
            }
            let ratio = link.power_mw / noise_mw;
            match self.overlap() {
                Overlap::Curve(curve) => curve(ratio, octets as f64),
                _ => modulation::packet_success(ratio, octets),
            }
        })
    }
    /// The nodes that may ever hear `tx`, ascending; the world looks at no others.
    fn neighbours(&self, tx: NodeId) -> &[NodeId] {
        self.links().neighbours(tx)
    }
}

#[cfg(test)]
mod tests;
