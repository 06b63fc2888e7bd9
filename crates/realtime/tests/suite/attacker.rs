//! A node beside two others that sends them what they have to answer, and hears nothing.

use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use lowmesh_realtime::zep::{Content, Datagram};
use lowmesh_units::{Channel, Eui64, NodeId, PanId};
use lowmesh_wire::icmpv6::{Echo, Icmpv6};
use lowmesh_wire::ipv6::{Address, Header, next_header};
use lowmesh_wire::lowpan::rfrag::{Part, Rfrag};
use lowmesh_wire::neighbour::Solicitation;

use crate::relay::Relay;

/// The network.
pub const PAN: PanId = PanId(0x23);
/// The dispatch of an uncompressed IPv6 packet: RFC 4944 s5.1.
const UNCOMPRESSED: u8 = 0x41;

/// The node with this number.
pub const fn node(index: u16) -> Eui64 {
    NodeId(index).eui64()
}

/// What an attacker sends to both nodes, 40 times a second each. It acknowledges nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attack {
    /// First fragments of datagrams that never end, in both ways.
    HalfDatagrams,
    /// The same in recoverable fragments, each of which asks for an acknowledgement.
    AskingHalves,
    /// Pings.
    Pings,
    /// Solicitations of the node's own address.
    Solicitations,
}

impl Attack {
    fn payloads(self, count: u32, from: Eui64, to: Eui64) -> Vec<Vec<u8>> {
        match self {
            Self::HalfDatagrams => {
                vec![half_datagram(count as u16), half_recoverable(count as u8, false)]
            }
            Self::AskingHalves => vec![half_recoverable(count as u8, true)],
            Self::Pings => {
                let echo = Echo { identifier: 1, sequence: count as u16, data: vec![0; 40] };
                vec![packet(from, to, 64, &Icmpv6::EchoRequest(echo))]
            }
            Self::Solicitations => {
                let target = Address::link_local(to);
                let (source_node, registration) = (Some(from), None);
                let question = Solicitation { target, source_node, registration };
                vec![packet(from, to, 255, &Icmpv6::NeighbourSolicitation(question))]
            }
        }
    }
}

/// An uncompressed packet in one frame.
fn packet(from: Eui64, to: Eui64, hop_limit: u8, message: &Icmpv6) -> Vec<u8> {
    let (source, destination) = (Address::link_local(from), Address::link_local(to));
    let mut body = Vec::new();
    message.emit(&source.0, &destination.0, &mut body);
    let payload_length = body.len() as u16;
    let (traffic_class, flow_label, next_header) = (0, 0, next_header::ICMPV6);
    let header = Header {
        traffic_class,
        flow_label,
        payload_length,
        next_header,
        hop_limit,
        source,
        destination,
    };
    let mut frame = vec![UNCOMPRESSED];
    header.emit(&mut frame);
    frame.extend_from_slice(&body);
    frame
}

pub struct Attacker {
    ended: Arc<AtomicBool>,
    thread: JoinHandle<u32>,
}

impl Attacker {
    /// An attacker with so many addresses.
    pub fn start(air: &Relay, attack: Attack, addresses: u32) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("loopback has a free port");
        socket.connect(air.address).expect("it is there");
        let ended = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&ended);
        let thread = thread::spawn(move || {
            let (mut sent, mut sequence) = (0, 0_u8);
            while !flag.load(Ordering::Relaxed) {
                let from = node(66 + (sent % addresses) as u16);
                for to in 0..2 {
                    for payload in attack.payloads(sent, from, node(to)) {
                        // One that is used twice in a row is a duplicate.
                        sequence = sequence.wrapping_add(1);
                        say(&socket, &data_frame(from, node(to), sequence, &payload));
                    }
                }
                sent += 1;
                thread::sleep(Duration::from_millis(25));
            }
            sent
        });
        Self { ended, thread }
    }
    pub fn stop(self) {
        self.ended.store(true, Ordering::Relaxed);
        assert!(self.thread.join().expect("it does not panic") > 20, "it was there");
    }
}

fn say(socket: &UdpSocket, frame: &[u8]) {
    let mut datagram = Vec::new();
    let content = Content::Data { lqi: 255, frame };
    Datagram { channel: Channel::new(26), content }.emit(0, 0, &mut datagram);
    let _ = socket.send(&datagram);
}

/// A data frame of the 2006 edition between two EUI-64s of one PAN, which asks for no acknowledgement.
pub fn data_frame(from: Eui64, to: Eui64, sequence: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![0x41, 0xdc, sequence];
    frame.extend_from_slice(&PAN.0.to_le_bytes());
    frame.extend(to.0.iter().rev());
    frame.extend(from.0.iter().rev());
    frame.extend_from_slice(payload);
    frame
}

/// The first fragment of a datagram of 1280 octets that never ends: 40 octets of IPv6 and 8 behind them.
pub fn half_datagram(tag: u16) -> Vec<u8> {
    let mut fragment = vec![0xc0 | 5, 0];
    fragment.extend_from_slice(&tag.to_be_bytes());
    fragment.extend_from_slice(&[0x41, 0x60, 0, 0, 0, 0x04, 0xd8, 17, 64]);
    fragment.extend_from_slice(&Address::link_local(node(66)).0);
    fragment.extend_from_slice(&Address::link_local(node(1)).0);
    fragment.extend_from_slice(&[0; 8]);
    fragment
}

/// The same as a recoverable fragment.
pub fn half_recoverable(datagram_tag: u8, ack_request: bool) -> Vec<u8> {
    let mut fragment = Vec::new();
    let part = Part::First { datagram_size: 1200 };
    Rfrag { congestion: false, datagram_tag, ack_request, fragment_size: 48, part }
        .emit(&mut fragment);
    fragment.extend_from_slice(&half_datagram(0)[4..52]);
    fragment
}
