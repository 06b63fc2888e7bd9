//! What a host stands on: exchanges with peers, over datagrams or byte streams.

use lowmesh_machine::Machine;

use crate::Endpoint;
use crate::blockwise::Exponent;
use crate::event::{Input, Output};
use crate::params::MESSAGE_OVERHEAD;

/// Exchanges of requests and responses with peers of address `P`.
pub trait Transport<P>: for<'a> Machine<Input<'a> = Input<'a, P>, Output = Output<P>> {
    /// The largest blocks that a message to `peer` takes, and how many octets of payload it holds.
    fn block_limits(&self, peer: P) -> (Exponent, usize);
    /// Whether the transport itself shows that a peer is at its address, as a connection does.
    fn proves_addresses(&self) -> bool;
}

impl<P: Ord + Copy> Transport<P> for Endpoint<P> {
    fn block_limits(&self, _peer: P) -> (Exponent, usize) {
        let room = self.message_len_max().saturating_sub(MESSAGE_OVERHEAD);
        (Exponent::fitting(room), room)
    }
    fn proves_addresses(&self) -> bool {
        false
    }
}
