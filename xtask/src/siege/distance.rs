//! A client far away: a relay on loopback that keeps everything for a while, each way.
//!
//! Without it every honest client answers within a millisecond, and a bound that ends every client with a round trip looks
//! like one that ends attackers only.

use std::collections::VecDeque;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Result, bail};

use super::honest::connection;
use crate::process::Stopwatch;

/// One way.
const AWAY: Duration = Duration::from_millis(100);
/// There and back.
pub const ROUND_TRIP: Duration = AWAY.saturating_mul(2);
/// Between two looks at the sockets.
const LOOK: Duration = Duration::from_millis(2);
/// The longest datagram, and the longest part of a stream.
const LEN_MAX: usize = 4096;

/// The relay of one client; it ends with the value.
#[derive(Debug)]
pub struct Distance {
    /// Where the client finds the server.
    pub server: SocketAddrV4,
    over: Arc<AtomicBool>,
    relay: Option<JoinHandle<()>>,
}

/// What is on its way, and when it arrives.
type Road = VecDeque<(Duration, Vec<u8>)>;

impl Distance {
    /// For a client with datagrams that `to` sees at `from`.
    pub fn datagrams(from: Ipv4Addr, to: SocketAddrV4) -> Result<Self> {
        let near = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
        let far = UdpSocket::bind((from, 0))?;
        far.connect(to)?;
        near.set_nonblocking(true)?;
        far.set_nonblocking(true)?;
        let server = v4(near.local_addr()?)?;
        Ok(Self::start(server, move |over| relay_datagrams(&near, &far, over)))
    }
    /// For a client with one connection that `to` sees at `from`.
    pub fn connection(from: Ipv4Addr, to: SocketAddrV4) -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        listener.set_nonblocking(true)?;
        let server = v4(listener.local_addr()?)?;
        Ok(Self::start(server, move |over| {
            // The client sees its connection end.
            _ = relay_connection(&listener, from, to, over);
        }))
    }
    fn start(server: SocketAddrV4, work: impl FnOnce(&AtomicBool) + Send + 'static) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let seen = over.clone();
        let relay = Some(std::thread::spawn(move || work(&seen)));
        Self { server, over, relay }
    }
}

impl Drop for Distance {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        // A relay that panicked has said so already.
        _ = self.relay.take().map(JoinHandle::join);
    }
}

fn v4(address: SocketAddr) -> Result<SocketAddrV4> {
    match address {
        SocketAddr::V4(address) => Ok(address),
        SocketAddr::V6(_) => bail!("bound to IPv4"),
    }
}

fn relay_datagrams(near: &UdpSocket, far: &UdpSocket, over: &AtomicBool) {
    let (clock, mut buffer, mut client) = (Stopwatch::start(), [0; LEN_MAX], None);
    let (mut there, mut back) = (Road::new(), Road::new());
    while !over.load(Ordering::Relaxed) {
        while let Ok((len, from)) = near.recv_from(&mut buffer) {
            client = Some(from);
            there.push_back((clock.elapsed() + AWAY, buffer[..len].to_vec()));
        }
        while let Ok(len) = far.recv(&mut buffer) {
            back.push_back((clock.elapsed() + AWAY, buffer[..len].to_vec()));
        }
        // What the system does not take is lost, as on any network.
        while let Some(bytes) = arrived(&mut there, &clock) {
            _ = far.send(&bytes);
        }
        while let Some(bytes) = arrived(&mut back, &clock) {
            if let Some(client) = client {
                _ = near.send_to(&bytes, client);
            }
        }
        std::thread::sleep(LOOK);
    }
}

fn arrived(road: &mut Road, clock: &Stopwatch) -> Option<Vec<u8>> {
    let is_due = road.front().is_some_and(|(due, _)| *due <= clock.elapsed());
    if is_due { road.pop_front().map(|(_, bytes)| bytes) } else { None }
}

fn relay_connection(
    listener: &TcpListener,
    from: Ipv4Addr,
    to: SocketAddrV4,
    over: &AtomicBool,
) -> Result<()> {
    let wait = |span: Duration| {
        std::thread::sleep(span);
        !over.load(Ordering::Relaxed)
    };
    let mut near = loop {
        match listener.accept() {
            Ok((near, _)) => break near,
            Err(error) if error.kind() == ErrorKind::WouldBlock && wait(LOOK) => {}
            Err(error) => return Err(error.into()),
        }
    };
    let clock = Stopwatch::start();
    // The SYN is on its way; the client could not send before the answer to it.
    std::thread::sleep(AWAY);
    let mut far = connection(from, to)?;
    near.set_nodelay(true)?;
    near.set_nonblocking(true)?;
    far.set_nonblocking(true)?;
    let (mut there, mut back) = (Road::new(), Road::new());
    while wait(LOOK) {
        let open = [
            take(&mut near, &mut there, clock.elapsed().max(ROUND_TRIP) + AWAY)?,
            take(&mut far, &mut back, clock.elapsed() + AWAY)?,
        ];
        while let Some(bytes) = arrived(&mut there, &clock) {
            far.set_nonblocking(false)?;
            far.write_all(&bytes)?;
            far.set_nonblocking(true)?;
        }
        while let Some(bytes) = arrived(&mut back, &clock) {
            near.set_nonblocking(false)?;
            near.write_all(&bytes)?;
            near.set_nonblocking(true)?;
        }
        if open.contains(&false) && there.is_empty() && back.is_empty() {
            return Ok(());
        }
    }
    Ok(())
}

/// Takes what has come, which arrives at `due`; false once the stream has ended.
fn take(stream: &mut TcpStream, road: &mut Road, due: Duration) -> Result<bool> {
    let mut buffer = [0; LEN_MAX];
    loop {
        match stream.read(&mut buffer) {
            Ok(0) => return Ok(false),
            Ok(len) => road.push_back((due, buffer[..len].to_vec())),
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(true),
            Err(error) => return Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FROM: Ipv4Addr = Ipv4Addr::new(127, 9, 9, 9);

    #[test]
    fn a_datagram_takes_its_time_each_way_and_comes_from_its_address() {
        let server = UdpSocket::bind("127.0.0.1:0").expect("a socket");
        let to = v4(server.local_addr().expect("bound")).expect("IPv4");
        let distance = Distance::datagrams(FROM, to).expect("a relay");
        let client = UdpSocket::bind("127.0.0.1:0").expect("a socket");
        let (clock, mut buffer) = (Stopwatch::start(), [0; 8]);
        client.send_to(b"there", distance.server).expect("sent");
        let (len, from) = server.recv_from(&mut buffer).expect("it arrives");
        assert_eq!((&buffer[..len], from.ip()), (&b"there"[..], FROM.into()));
        assert!(clock.elapsed() >= AWAY);
        server.send_to(b"back", from).expect("sent");
        let len = client.recv(&mut buffer).expect("it arrives");
        assert_eq!(&buffer[..len], b"back");
        assert!(clock.elapsed() >= 2 * AWAY);
    }

    #[test]
    fn the_first_octets_of_a_connection_take_a_round_trip_more() {
        let server = TcpListener::bind("127.0.0.1:0").expect("a port");
        let to = v4(server.local_addr().expect("bound")).expect("IPv4");
        let distance = Distance::connection(FROM, to).expect("a relay");
        let clock = Stopwatch::start();
        let mut client = TcpStream::connect(distance.server).expect("it listens");
        client.write_all(b"there").expect("open");
        let (mut accepted, from) = server.accept().expect("a connection");
        assert_eq!(from.ip(), std::net::IpAddr::from(FROM));
        let mut buffer = [0; 5];
        accepted.read_exact(&mut buffer).expect("they arrive");
        assert!(clock.elapsed() >= 3 * AWAY);
        accepted.write_all(b"back!").expect("open");
        client.read_exact(&mut buffer).expect("they arrive");
        assert_eq!(&buffer, b"back!");
        assert!(clock.elapsed() >= 4 * AWAY);
    }
}
