//! The rules by which media judge frames that overlap at a receiver; [`resolve`](super::resolve) applies them.

/// The probability, in [0, 1], that `octets` consecutive octets arrive at a linear SINR.
///
/// A frame is judged in pieces of constant disturbance whose chances are multiplied, so `octets` has a fraction, and a
/// curve that is no power of `octets` gives a frame in several pieces another chance than the same frame in one.
pub type Curve = fn(sinr: f64, octets: f64) -> f64;

/// How frames that overlap at a receiver are judged.
#[derive(Clone, Copy, Debug)]
pub enum Overlap {
    /// The receiver locks on the strongest of the first frames; it succeeds by its SINR, less the co-channel loss.
    Sinr,
    /// As before, and success is by a curve of the medium's own. The SINR that it gets is that of the powers alone,
    /// without the co-channel loss.
    Curve(Curve),
    /// As the first, and success is the link's PDR, times the PDR of an RSSI that stands as far above the
    /// noise as the SINR when anything interferes (6TiSCH simulator).
    DictatedPdr,
    /// As the first, and success is the link's PDR times what the frames that interfere leave of it by their SINR.
    DictatedSinr,
    /// A frame that fails its own draw is not there; of the others each takes the receiver over unless
    /// it is more than `threshold` (a linear ratio) weaker than the one before (Cooja MRM).
    Capture {
        /// Least ratio of the new power to the old.
        threshold: f64,
    },
    /// Two frames destroy each other (unit disk).
    Collision,
}
