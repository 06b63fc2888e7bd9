//! A UDP socket that reads many datagrams with one call and knows to which address each was sent.

use std::io::{self, IoSliceMut};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};

use quinn_udp::{RecvMeta, Transmit, UdpSocketState};
use socket2::{Domain, Protocol, SockRef, Socket, Type};

use crate::batch::{self, BATCH_SENT};
use crate::icmp::next_undelivered;
use crate::params::{BATCH, BATCH_QUIET, BUFFER_LEN, SERVED_RECEIVE_BUFFER};
use crate::peer::{Peer, canonical};
use crate::registered::Registered;

/// A received datagram.
#[derive(Clone, Copy, Debug)]
pub struct Arrival<'a> {
    /// The sender, and the address of ours that it sent to; none if it sent to a group.
    pub peer: Peer,
    /// It came to a group (RFC 7252 s8).
    pub to_group: bool,
    /// Its payload.
    pub bytes: &'a [u8],
}

/// A socket that cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// Somebody else has the port.
    #[error("port {} is in use at {}", .0.port(), .0.ip())]
    InUse(SocketAddr),
    /// The system does not let us have it.
    #[error("no permission for port {} at {}", .0.port(), .0.ip())]
    Denied(SocketAddr),
    /// The address is not ours.
    #[error("{} is not an address of this machine", .0.ip())]
    NotOurs(SocketAddr),
    /// Anything else.
    #[error("cannot open a UDP socket at {address}: {error}")]
    Other {
        /// The address.
        address: SocketAddr,
        /// What the system says.
        error: io::Error,
    },
}

impl BindError {
    pub(crate) fn new(address: SocketAddr, error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::AddrInUse => Self::InUse(address),
            io::ErrorKind::PermissionDenied => Self::Denied(address),
            io::ErrorKind::AddrNotAvailable => Self::NotOurs(address),
            _ => Self::Other { address, error },
        }
    }
}

/// A bound socket.
#[derive(Debug)]
pub struct Udp {
    socket: Registered,
    state: UdpSocketState,
    local: SocketAddr,
    buffers: Vec<Vec<u8>>,
    /// The last read gave at least [`BATCH_QUIET`] datagrams, so more may wait.
    busy: bool,
}

impl Udp {
    /// Opens a socket. At `[::]` it takes IPv4 too, where the system can.
    pub fn bind(address: SocketAddr) -> Result<Self, BindError> {
        open(address).map_err(|error| BindError::new(address, error))
    }
    /// The same socket of a server, in which more datagrams may wait: a flood costs clients fewer of theirs.
    pub(crate) fn serving(self) -> Self {
        let _as_it_was = self.socket().set_recv_buffer_size(SERVED_RECEIVE_BUFFER);
        self
    }
    /// Opens a socket for requests of our own: at a free port, for IPv6 and IPv4.
    pub fn ephemeral() -> Result<Self, BindError> {
        let any = SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0));
        // A machine without IPv6 still has IPv4.
        Self::bind(any).or_else(|_| Self::bind(SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0))))
    }
    /// Its own address.
    pub const fn local_addr(&self) -> SocketAddr {
        self.local
    }
    /// The peer at an address, or the group: with the address of ours from which the system reaches
    /// it. An error of the kind `NetworkUnreachable` means that there is no route.
    pub fn peer(&self, address: SocketAddr) -> io::Result<Peer> {
        let group = Peer::new(address, None);
        if group.is_group() {
            return Ok(group);
        }
        let ours = match (self.local.ip(), group.address) {
            (IpAddr::V6(Ipv6Addr::UNSPECIFIED), SocketAddr::V4(_)) => Ipv4Addr::UNSPECIFIED.into(),
            (ours, _) => ours,
        };
        // Connecting a datagram socket sends nothing; it asks the routing table.
        let probe = std::net::UdpSocket::bind((ours, 0))?;
        probe.connect(group.address)?;
        Ok(Peer { local: Some(probe.local_addr()?.ip()), ..group })
    }
    /// What options can be set on.
    pub(crate) fn socket(&self) -> SockRef<'_> {
        SockRef::from(self.socket.get())
    }
    /// Waits until datagrams can be read, or errors.
    pub async fn readable(&self) -> io::Result<()> {
        self.socket.readable().await
    }
    /// Waits until a datagram can be sent.
    pub async fn writable(&self) -> io::Result<()> {
        self.socket.writable().await
    }
    /// Reads what has come, up to a batch; `each` is called for every datagram. An error of the
    /// kind `WouldBlock` means that nothing has.
    pub fn receive(&mut self, each: impl FnMut(Arrival<'_>)) -> io::Result<()> {
        // Each call prepares a place for each datagram that it asks for. A lone client would pay for a whole batch with
        // each of its requests.
        let count = if self.busy {
            self.receive_up_to::<BATCH>(each)
        } else {
            self.receive_up_to::<BATCH_QUIET>(each)
        };
        self.busy = count.as_ref().is_ok_and(|count| *count >= BATCH_QUIET);
        count.map(drop)
    }
    fn receive_up_to<const N: usize>(
        &mut self,
        mut each: impl FnMut(Arrival<'_>),
    ) -> io::Result<usize> {
        let mut metas = [RecvMeta::default(); N];
        let (socket, state) = (self.socket.get(), &self.state);
        let mut buffers = self.buffers.iter_mut();
        let mut slices: [IoSliceMut<'_>; N] = std::array::from_fn(|_| {
            IoSliceMut::new(buffers.next().expect("there are as many as a batch has"))
        });
        let count = self.socket.try_read(|| state.recv(socket.into(), &mut slices, &mut metas))?;
        for (buffer, meta) in self.buffers.iter().zip(&metas).take(count) {
            let to = meta.dst_ip.map(|ip| ip.to_canonical());
            let to_group = to.is_some_and(|ip| ip.is_multicast());
            let local = to.filter(|_| !to_group);
            let peer = Peer { address: canonical(meta.addr), local };
            // An empty datagram has no chunk and is dropped: it is no message (RFC 7252 s3).
            for bytes in buffer[..meta.len].chunks(meta.stride.max(1)) {
                each(Arrival { peer, to_group, bytes });
            }
        }
        Ok(count)
    }
    /// Sends the first of some datagrams, and where the system can do that with one call, those behind it that leave from
    /// the same address of ours; how many were sent. An error is of the first, or of a datagram that was sent before:
    /// what [`Udp::unreachable_now`] tells comes here too. One of the kind `WouldBlock` means that there is no room now.
    pub fn send<'a>(
        &self,
        datagrams: impl IntoIterator<Item = (Peer, &'a [u8])>,
    ) -> io::Result<usize> {
        let mut datagrams = datagrams.into_iter();
        let Some((first, bytes)) = datagrams.next() else { return Ok(0) };
        let from = self.source(first);
        let alike = datagrams.take_while(|(to, _)| self.source(*to) == from);
        let mut alike = alike.take(BATCH_SENT - 1).peekable();
        if alike.peek().is_none() {
            return self.send_one(from, first, bytes).map(|()| 1);
        }
        let batch: Vec<(SocketAddr, &[u8])> = std::iter::once((first, bytes))
            .chain(alike)
            .map(|(to, bytes)| (self.reachable(to.address), bytes))
            .collect();
        self.socket.try_write(|socket| batch::send(socket, from, &batch))
    }
    fn send_one(&self, from: Option<IpAddr>, to: Peer, bytes: &[u8]) -> io::Result<()> {
        let transmit = Transmit {
            destination: self.reachable(to.address),
            ecn: None,
            contents: bytes,
            segment_size: None,
            src_ip: from,
        };
        self.socket.try_write(|socket| self.state.try_send(socket.into(), &transmit))
    }
    /// The source address that the system is given for a datagram. A socket that is bound to one address sends from it
    /// anyway, and a given address costs the system a search.
    fn source(&self, to: Peer) -> Option<IpAddr> {
        let everywhere = self.local.ip().is_unspecified();
        let from = to.local.filter(|ip| everywhere && !ip.is_unspecified());
        from.map(|ip| self.mapped(ip))
    }
    /// The addresses of peers that ICMP messages say cannot be reached, as far as the runtime knows of such messages, up to
    /// a batch.
    pub fn unreachable(&self) -> Vec<SocketAddr> {
        let next = || next_undelivered(self.socket.get());
        let undelivered = std::iter::from_fn(|| self.socket.try_read_error(next).ok());
        undelivered.take(BATCH).map(canonical).collect()
    }
    /// The same, after asking the system.
    pub fn unreachable_now(&self) -> Vec<SocketAddr> {
        std::iter::from_fn(|| next_undelivered(self.socket.get()).ok()).map(canonical).collect()
    }
    /// The form in which an IPv6 socket has an IPv4 address.
    fn reachable(&self, to: SocketAddr) -> SocketAddr {
        match (self.local, to) {
            (SocketAddr::V6(_), SocketAddr::V4(v4)) => {
                SocketAddrV6::new(v4.ip().to_ipv6_mapped(), v4.port(), 0, 0).into()
            }
            _ => to,
        }
    }
    /// IPv4 control messages carry IPv4 addresses, on IPv6 sockets too.
    fn mapped(&self, ip: IpAddr) -> IpAddr {
        match (self.local, ip) {
            (SocketAddr::V6(_), IpAddr::V4(v4)) => IpAddr::V6(v4.to_ipv6_mapped()),
            _ => ip,
        }
    }
}

fn open(address: SocketAddr) -> io::Result<Udp> {
    let socket = Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
    if address.is_ipv6() {
        socket.set_only_v6(!address.ip().is_unspecified())?;
    }
    socket.bind(&address.into())?;
    socket.set_nonblocking(true)?;
    let socket = Registered::new(socket.into())?;
    let state = UdpSocketState::new(socket.get().into())?;
    // Without the errors a peer that is gone is found by timeouts alone.
    let _without_errors = state.enable_transport_errors(socket.get().into());
    #[cfg(any(target_os = "linux", target_os = "android"))]
    {
        // Nobody here looks at the time stamps that `quinn-udp` asks for with each datagram.
        let stamps = nix::sys::socket::sockopt::ReceiveTimestampns;
        let _with_them = nix::sys::socket::setsockopt(socket.get(), stamps, &false);
    }
    let local = socket.get().local_addr()?;
    let buffers = (0..BATCH).map(|_| vec![0; BUFFER_LEN]).collect();
    Ok(Udp { socket, state, local, buffers, busy: false })
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_read_takes_two_datagrams_and_a_batch_after_them() {
        let mut ours = Udp::bind("127.0.0.1:0".parse().expect("an address")).expect("a free port");
        let peer = std::net::UdpSocket::bind("127.0.0.1:0").expect("loopback");
        let datagrams: Vec<[u8; 1]> = (0..BATCH as u8).map(|n| [n]).collect();
        for bytes in &datagrams {
            peer.send_to(bytes, ours.local_addr()).expect("loopback");
        }
        ours.readable().await.expect("they have come");
        let mut read = || {
            let mut bytes = Vec::new();
            ours.receive(|arrival| bytes.extend_from_slice(arrival.bytes)).map(|()| bytes)
        };
        let all = datagrams.concat();
        assert_eq!(read().expect("they have come"), all[..BATCH_QUIET]);
        assert_eq!(read().expect("more have come"), all[BATCH_QUIET..]);
        assert_eq!(read().expect_err("no more").kind(), io::ErrorKind::WouldBlock);
    }
}
