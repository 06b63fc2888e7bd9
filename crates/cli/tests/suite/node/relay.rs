//! An air between two nodes that loses what a test wants.

use std::io::ErrorKind;
use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use lowmesh_realtime::zep::{Content, Datagram};

use super::nodes::ports;

/// Passes frames between two ports.
pub struct Relay {
    /// Its own port, and those of node 0 and node 1.
    pub ports: [u16; 3],
    ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Relay {
    /// A relay that loses the frames without FCS of node 1 that `loses` takes.
    pub fn start(mut loses: impl FnMut(&[u8]) -> bool + Send + 'static) -> Self {
        let ports = ports();
        let [own, zero, one] = ports;
        let socket = UdpSocket::bind(("127.0.0.1", own)).expect("it was free");
        socket.set_read_timeout(Some(Duration::from_millis(20))).expect("it is not zero");
        let ended = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&ended);
        let thread = thread::spawn(move || {
            let mut buffer = [0; 512];
            while !flag.load(Ordering::Relaxed) {
                let (octets, from) = match socket.recv_from(&mut buffer) {
                    Ok(received) => received,
                    Err(error) => {
                        let passing = [ErrorKind::WouldBlock, ErrorKind::TimedOut];
                        let passing = passing.contains(&error.kind())
                            || error.kind() == ErrorKind::ConnectionRefused;
                        assert!(passing, "{error}");
                        continue;
                    }
                };
                let bytes = &buffer[..octets];
                let datagram = Datagram::parse(bytes).expect("nodes send what they can read");
                if let (true, Content::Data { frame, .. }) = (from.port() == one, datagram.content)
                    && loses(frame)
                {
                    continue;
                }
                let to = if from.port() == one { zero } else { one };
                // A node that is gone hears nothing.
                let _ = socket.send_to(bytes, ("127.0.0.1", to));
            }
        });
        Self { ports, ended, thread: Some(thread) }
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.join().expect("the relay does not panic");
        }
    }
}
