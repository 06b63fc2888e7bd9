//! The air between two nodes and an attacker, all on loopback: everyone hears everyone, but for frames that a seeded draw
//! takes away.

use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use lowmesh_realtime::zep::{Content, DATAGRAM_OCTETS_MAX, Datagram};
use lowmesh_units::{NodeId, Purpose, Rng, Seed};
use lowmesh_wire::ieee802154::{Frame, FrameType};
use lowmesh_wire::lowpan::Dispatch;

/// Which frames do not arrive.
#[derive(Clone, Copy, Debug)]
pub enum Loss {
    /// This part of the fragments, each with all its copies.
    Fragments(f64),
    /// This part of all frames, acknowledgements and copies included.
    Frames(f64),
}

/// A relay that runs.
pub struct Relay {
    pub address: SocketAddr,
    ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

struct Speaker {
    address: SocketAddr,
    /// Its last fragment, and whether that is lost.
    last: (Vec<u8>, bool),
}

impl Relay {
    pub fn start(loss: Loss, seed: u64) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("loopback has a free port");
        socket.set_read_timeout(Some(Duration::from_millis(20))).expect("it is not zero");
        let address = socket.local_addr().expect("it is bound");
        let ended = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&ended);
        let rng = Rng::stream(Seed(seed), NodeId(0), Purpose::Lowpan);
        let thread = thread::spawn(move || run(&socket, &flag, loss, rng));
        Self { address, ended, thread: Some(thread) }
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn run(socket: &UdpSocket, ended: &AtomicBool, loss: Loss, mut rng: Rng) {
    let mut speakers: Vec<Speaker> = Vec::new();
    let mut buffer = [0; DATAGRAM_OCTETS_MAX];
    while !ended.load(Ordering::Relaxed) {
        let (octets, from) = match socket.recv_from(&mut buffer) {
            Ok(received) => received,
            Err(error) if error.kind() == ErrorKind::Other => panic!("{error}"),
            Err(_) => continue,
        };
        let at = speakers.iter().position(|speaker| speaker.address == from);
        let at = at.unwrap_or_else(|| {
            speakers.push(Speaker { address: from, last: (Vec::new(), false) });
            speakers.len() - 1
        });
        let Ok(datagram) = Datagram::parse(&buffer[..octets]) else { continue };
        let Content::Data { frame, .. } = datagram.content else { continue };
        if is_lost(loss, frame, &mut speakers[at], &mut rng) {
            continue;
        }
        for speaker in speakers.iter().filter(|speaker| speaker.address != from) {
            // A listener that is gone hears nothing.
            let _ = socket.send_to(&buffer[..octets], speaker.address);
        }
    }
}

fn is_lost(loss: Loss, frame: &[u8], speaker: &mut Speaker, rng: &mut Rng) -> bool {
    match loss {
        Loss::Frames(part) => rng.unit() < part,
        Loss::Fragments(part) => {
            if !is_fragment(frame) {
                return false;
            }
            if speaker.last.0 != frame {
                speaker.last = (frame.to_vec(), rng.unit() < part);
            }
            speaker.last.1
        }
    }
}

fn is_fragment(frame: &[u8]) -> bool {
    let Ok(frame) = Frame::parse(frame) else { return false };
    let dispatch = frame.payload.first().map(|octet| Dispatch::of(*octet));
    frame.header.frame_type == FrameType::Data
        && matches!(dispatch, Some(Dispatch::First | Dispatch::Next | Dispatch::Rfrag))
}
