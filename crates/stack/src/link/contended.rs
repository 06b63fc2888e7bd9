//! The link layer with carrier sense: what its MAC says, in the node's terms.

use lowmesh_mac::csma::{self, Csma};
use lowmesh_mac::params::ETX_FRESH;

use super::event::LinkEvent;
use crate::event::{Output, RadioOrder};

/// What the MAC said, for the node or through it for the driver of the radio.
pub(crate) fn event(mac: &Csma, output: csma::Output) -> LinkEvent {
    let order = |order| LinkEvent::Driver(Output::Radio(order));
    match output {
        csma::Output::Sense { at } => order(RadioOrder::Sense { at }),
        csma::Output::Transmit { at, octets, destination, handle } => {
            order(RadioOrder::Transmit { at, octets, destination, handle })
        }
        csma::Output::Acknowledge { at, octets, destination } => {
            order(RadioOrder::Acknowledge { at, octets, destination })
        }
        csma::Output::Sent { handle, destination, .. } => {
            LinkEvent::Done { handle, acked: destination.is_some(), dropped: None }
        }
        csma::Output::Dropped { dropped, .. } => {
            LinkEvent::Done { handle: dropped.handle, acked: false, dropped: Some(dropped) }
        }
        csma::Output::Received { source, broadcast, payload, handle } => {
            LinkEvent::Received { source, broadcast, payload, handle }
        }
        csma::Output::NeighbourGone(peer) => LinkEvent::Gone(peer),
        csma::Output::NeighbourBack(peer) => LinkEvent::Back(peer),
        csma::Output::LinkEtx { peer, etx } => {
            let fresh = mac.links().get(peer).is_some_and(|link| link.samples >= ETX_FRESH);
            LinkEvent::Etx { peer, etx, fresh }
        }
    }
}
