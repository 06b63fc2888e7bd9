//! The air between nodes on sockets, as a dispatcher makes it: the neighbours in a line hear each sender.

use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use lowmesh_realtime::zep::{Content, DATAGRAM_OCTETS_MAX, Datagram};
use lowmesh_units::Eui64;

/// What was on the air.
pub struct Air {
    nodes: Vec<Eui64>,
    known: Vec<Option<SocketAddr>>,
    /// Every datagram of a node, in order.
    pub datagrams: Vec<Vec<u8>>,
    /// The frames that were heard, with sender and receiver.
    hearings: Vec<(usize, usize)>,
}

/// An air that runs.
pub struct Running {
    pub address: SocketAddr,
    ended: Arc<AtomicBool>,
    thread: JoinHandle<Air>,
}

impl Air {
    /// An air in which each of `nodes` hears the one before and the one after.
    pub fn start(nodes: &[Eui64]) -> Running {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("loopback has a free port");
        socket.set_read_timeout(Some(Duration::from_millis(20))).expect("it is not zero");
        let address = socket.local_addr().expect("it is bound");
        let (ended, nodes) = (Arc::new(AtomicBool::new(false)), nodes.to_vec());
        let flag = Arc::clone(&ended);
        let thread = thread::spawn(move || {
            let known = vec![None; nodes.len()];
            let mut air = Self { nodes, known, datagrams: Vec::new(), hearings: Vec::new() };
            air.run(&socket, &flag);
            air
        });
        Running { address, ended, thread }
    }

    pub fn heard_directly(&self, from: usize, to: usize) -> bool {
        self.hearings.contains(&(from, to))
    }

    fn run(&mut self, socket: &UdpSocket, ended: &AtomicBool) {
        let mut buffer = [0; DATAGRAM_OCTETS_MAX];
        while !ended.load(Ordering::Relaxed) {
            match socket.recv_from(&mut buffer) {
                Ok((octets, from)) => self.pass_on(socket, &buffer[..octets], from),
                Err(error) => {
                    let nothing = matches!(
                        error.kind(),
                        ErrorKind::WouldBlock
                            | ErrorKind::TimedOut
                            | ErrorKind::Interrupted
                            | ErrorKind::ConnectionRefused
                    );
                    assert!(nothing, "{error}");
                }
            }
        }
    }

    fn pass_on(&mut self, socket: &UdpSocket, bytes: &[u8], from: SocketAddr) {
        let datagram = Datagram::parse(bytes).expect("nodes send what they can read");
        if let Content::Hello(node) = datagram.content {
            let place = self.nodes.iter().position(|known| *known == node).expect("a known node");
            self.known[place] = Some(from);
            return;
        }
        self.datagrams.push(bytes.to_vec());
        let sender =
            self.known.iter().position(|known| *known == Some(from)).expect("it said hello");
        for (listener, address) in self.known.iter().enumerate() {
            if let (1, Some(address)) = (listener.abs_diff(sender), address) {
                // A listener that is gone hears nothing.
                let _ = socket.send_to(bytes, address);
                self.hearings.push((sender, listener));
            }
        }
    }
}

impl Running {
    pub fn stop(self) -> Air {
        self.ended.store(true, Ordering::Relaxed);
        self.thread.join().expect("the air does not panic")
    }
}
