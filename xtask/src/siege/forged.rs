//! Datagrams from any address of 127.0.0.0/8: one socket that is bound to all of them and says for each datagram where
//! it comes from.
//!
//! An attacker who forges addresses sends and never reads. Since the socket stays open, the system answers nothing in
//! its place: no ICMP message says that a port is closed.

use std::io::{IoSlice, IoSliceMut};
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::os::fd::AsRawFd as _;
use std::time::Duration;

use anyhow::{Context, Result};
use nix::cmsg_space;
use nix::errno::Errno;
use nix::libc::{in_addr, in_pktinfo};
use nix::sys::socket::sockopt::Ipv4PacketInfo;
use nix::sys::socket::{
    ControlMessage, ControlMessageOwned, MsgFlags, SockaddrIn, recvmsg, sendmsg, setsockopt,
};

/// The longest datagram that is read.
const LEN_MAX: usize = 2048;
/// Octets that wait to be read: what the system allows at most counts.
const RECEIVE_BUFFER: usize = 4 << 20;

/// A socket with all addresses of 127.0.0.0/8 and one port.
#[derive(Debug)]
pub struct Sources {
    socket: UdpSocket,
}

impl Sources {
    /// Opens one at a free port.
    pub fn open() -> Result<Self> {
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).context("no free UDP port")?;
        setsockopt(&socket, Ipv4PacketInfo, &true).context("IP_PKTINFO")?;
        socket2::SockRef::from(&socket).set_recv_buffer_size(RECEIVE_BUFFER)?;
        Ok(Self { socket })
    }
    /// The port that all its addresses have.
    pub fn port(&self) -> Result<u16> {
        Ok(self.socket.local_addr()?.port())
    }
    /// Sends one datagram from an address.
    pub fn send(&self, from: Ipv4Addr, to: SocketAddrV4, bytes: &[u8]) -> Result<()> {
        let source = in_addr { s_addr: u32::from_ne_bytes(from.octets()) };
        let source =
            in_pktinfo { ipi_ifindex: 0, ipi_spec_dst: source, ipi_addr: in_addr { s_addr: 0 } };
        let control = [ControlMessage::Ipv4PacketInfo(&source)];
        let to = SockaddrIn::from(to);
        let fd = self.socket.as_raw_fd();
        match sendmsg(fd, &[IoSlice::new(bytes)], &control, MsgFlags::empty(), Some(&to)) {
            // A victim that is gone says so by ICMP; its exit is noticed elsewhere.
            Ok(_) | Err(Errno::ECONNREFUSED | Errno::ENOBUFS) => Ok(()),
            Err(error) => Err(error).with_context(|| format!("cannot send from {from}")),
        }
    }
    /// The next datagram and the address of ours that it is for, if one comes in time.
    pub fn receive(&self, wait: Duration) -> Result<Option<(Ipv4Addr, Vec<u8>)>> {
        self.socket.set_read_timeout(Some(wait.max(Duration::from_millis(1))))?;
        let mut buffer = [0; LEN_MAX];
        let mut slices = [IoSliceMut::new(&mut buffer)];
        let mut control = cmsg_space!(in_pktinfo);
        let fd = self.socket.as_raw_fd();
        let received =
            recvmsg::<SockaddrIn>(fd, &mut slices, Some(&mut control), MsgFlags::empty());
        let (len, to) = match received {
            Ok(message) => {
                let to = message.cmsgs()?.find_map(|one| match one {
                    ControlMessageOwned::Ipv4PacketInfo(info) => {
                        Some(Ipv4Addr::from(info.ipi_addr.s_addr.to_ne_bytes()))
                    }
                    _ => None,
                });
                (message.bytes, to.context("a datagram without destination")?)
            }
            Err(Errno::EAGAIN | Errno::EINTR | Errno::ECONNREFUSED) => return Ok(None),
            Err(error) => return Err(error).context("cannot receive"),
        };
        Ok(Some((to, buffer[..len].to_vec())))
    }
}

/// The address with this number inside 127.`net`.0.0/16; neither the first nor the last of any 256.
pub const fn address(net: u8, number: u64) -> Ipv4Addr {
    Ipv4Addr::new(127, net, (number / 254 % 256) as u8, (1 + number % 254) as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_datagram_comes_from_the_address_that_is_said_and_answers_find_it() {
        let sources = Sources::open().expect("a socket");
        let peer = UdpSocket::bind("127.0.0.1:0").expect("a socket");
        peer.set_read_timeout(Some(Duration::from_secs(10))).expect("possible");
        let std::net::SocketAddr::V4(to) = peer.local_addr().expect("bound") else {
            panic!("bound to IPv4")
        };
        let (mut buffer, from) = ([0; 8], address(9, 1000));
        sources.send(from, to, b"hello").expect("sent");
        let (len, seen) = peer.recv_from(&mut buffer).expect("it arrives");
        assert_eq!((&buffer[..len], seen.ip()), (&b"hello"[..], from.into()));
        peer.send_to(b"back", seen).expect("sent");
        let back = sources.receive(Duration::from_secs(10)).expect("readable");
        assert_eq!(back, Some((from, b"back".to_vec())));
        assert_eq!(sources.receive(Duration::from_millis(1)).expect("readable"), None);
    }

    #[test]
    fn addresses_differ_and_stay_inside() {
        assert_eq!(address(9, 0), Ipv4Addr::new(127, 9, 0, 1));
        assert_eq!(address(9, 254), Ipv4Addr::new(127, 9, 1, 1));
        let all: std::collections::BTreeSet<_> = (0..20_000).map(|n| address(9, n)).collect();
        assert_eq!(all.len(), 20_000);
    }
}
