//! Nodes in real time over ZEP on loopback: two that do not hear each other, and a third between them.
//!
//! With `LOWMESH_ZEP_PCAP=FILE` all that was on the air is left in FILE, for other dissectors to read.

mod air;
mod attacker;
mod bars;
mod capture;
mod line;
mod relay;

use std::time::Duration;

use lowmesh_stack::event::{Input, Output, Transaction};
use lowmesh_stack::{COAP_PORT, DATAGRAM_PORT, ECHO_PORT};

use line::Line;
use lowmesh_coap::RequestTemplate;
use lowmesh_lowpan::FragmentMode;
use lowmesh_machine::Handle;

/// Long enough for a machine that builds something else at the same time.
const PATIENCE: Duration = Duration::from_secs(60);

/// A request and datagrams small and large, there and back; what was on the air.
fn converse(mode: FragmentMode) -> Vec<Vec<u8>> {
    let line = Line::start(mode);
    let far = line.address(2);
    let get = Input::Request {
        peer: (far, COAP_PORT),
        request: RequestTemplate::get("/clock"),
        handle: Handle(5),
    };
    line.tell(0, get);
    let ended = line.wait(PATIENCE, |output| match output {
        Output::Transaction(Transaction::Acknowledged(Handle(5), ..)) => Some(true),
        Output::Transaction(Transaction::Failed(Handle(5), _)) => Some(false),
        _ => None,
    });
    assert_eq!(ended, Some(true), "a CoAP request over two hops");

    for octets in [20, 600] {
        let payload: Vec<u8> = (0..octets).map(|i| i as u8).collect();
        let peer = (far, ECHO_PORT);
        // A datagram may be lost; an echo that never comes is a fault.
        let echoed = (0..6).find_map(|_| {
            let source_port = DATAGRAM_PORT;
            line.tell(0, Input::Datagram { source_port, peer, payload: payload.clone() });
            line.wait(PATIENCE / 6, |output| match output {
                Output::Datagram { from, payload } if from == peer => Some(payload),
                _ => None,
            })
        });
        assert_eq!(echoed.as_ref(), Some(&payload), "{octets} octets there and back");
    }
    let air = line.stop();
    assert!(!air.heard_directly(0, 2), "the ends never heard each other");
    air.datagrams
}

#[test]
fn requests_and_datagrams_go_over_a_forwarder_and_come_back_in_three_ways() {
    // IPv6 fragments are cut for a compression that needs a context which all share; here there is none.
    let modes = [FragmentMode::HopWise, FragmentMode::Forwarded, FragmentMode::Recovered];
    let conversations: Vec<Vec<u8>> = modes.into_iter().flat_map(converse).collect();
    if let Some(file) = std::env::var_os("LOWMESH_ZEP_PCAP") {
        capture::write(file.as_ref(), &conversations).expect("the file can be written");
    }
}
