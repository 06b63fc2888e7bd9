//! What a host stands on: exchanges with peers, over datagrams or byte streams.

use lowmesh_machine::Machine;
use lowmesh_units::Instant;

use crate::blockwise::Exponent;
use crate::event::{Input, Output};
use crate::params::MESSAGE_OVERHEAD;
use crate::{ConfigError, CongestionControl, Endpoint};

/// Exchanges of requests and responses with peers of address `P`.
pub trait Transport<P>: for<'a> Machine<Input<'a> = Input<'a, P>, Output = Output<P>> {
    /// The largest blocks that a message to `peer` takes, and how many octets of payload it holds.
    fn block_limits(&self, peer: P) -> (Exponent, usize);
    /// Gives a destination a congestion control of its own, or with `None` that of the transport again:
    /// see [`Endpoint::choose_congestion_control`].
    fn choose_congestion_control(
        &mut self,
        peer: P,
        chosen: Option<CongestionControl>,
        now: Instant,
    ) -> Result<(), ConfigError>;
    /// Whether the transport itself shows that a peer is at its address, as a connection does.
    fn proves_addresses(&self) -> bool;
}

impl<P: Ord + Copy> Transport<P> for Endpoint<P> {
    fn block_limits(&self, _peer: P) -> (Exponent, usize) {
        let room = self.message_len_max().saturating_sub(MESSAGE_OVERHEAD);
        (Exponent::fitting(room), room)
    }
    fn choose_congestion_control(
        &mut self,
        peer: P,
        chosen: Option<CongestionControl>,
        now: Instant,
    ) -> Result<(), ConfigError> {
        Self::choose_congestion_control(self, peer, chosen, now)
    }
    fn proves_addresses(&self) -> bool {
        false
    }
}
