//! Several datagrams with one call of the system, where it has such a call (`sendmmsg` of Linux); else one by one.
//!
//! Which datagrams go together, and what becomes of errors, `crate::udp` says.

use std::io;
use std::net::{IpAddr, SocketAddr};

use crate::params::BATCH;
use crate::registered::Socket;

/// Most datagrams of one call.
pub(crate) const BATCH_SENT: usize =
    if cfg!(any(target_os = "linux", target_os = "android")) { BATCH } else { 1 };

/// Sends datagrams, from one address of ours if it is given, in their order until one cannot be sent; how many that are.
/// An error is of the first.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) fn send(
    socket: &Socket,
    from: Option<IpAddr>,
    datagrams: &[(SocketAddr, &[u8])],
) -> io::Result<usize> {
    use std::io::IoSlice;
    use std::os::fd::AsRawFd as _;

    use nix::cmsg_space;
    use nix::libc::{in_addr, in_pktinfo, in6_addr, in6_pktinfo};
    use nix::sys::socket::{ControlMessage, MsgFlags, MultiHeaders, SockaddrStorage, sendmmsg};

    let slices: Vec<[IoSlice<'_>; 1]> =
        datagrams.iter().map(|(_, bytes)| [IoSlice::new(bytes)]).collect();
    let addresses: Vec<Option<SockaddrStorage>> =
        datagrams.iter().map(|(to, _)| Some(SockaddrStorage::from(*to))).collect();
    let (v4, v6);
    let (control, space) = match from {
        None => (None, None),
        Some(IpAddr::V4(ip)) => {
            let spec = in_addr { s_addr: u32::from_ne_bytes(ip.octets()) };
            v4 = in_pktinfo { ipi_ifindex: 0, ipi_spec_dst: spec, ipi_addr: in_addr { s_addr: 0 } };
            (Some(ControlMessage::Ipv4PacketInfo(&v4)), Some(cmsg_space!(in_pktinfo)))
        }
        Some(IpAddr::V6(ip)) => {
            let address = in6_addr { s6_addr: ip.octets() };
            v6 = in6_pktinfo { ipi6_addr: address, ipi6_ifindex: 0 };
            (Some(ControlMessage::Ipv6PacketInfo(&v6)), Some(cmsg_space!(in6_pktinfo)))
        }
    };
    let mut headers = MultiHeaders::preallocate(datagrams.len(), space);
    let flags = MsgFlags::MSG_DONTWAIT;
    let sent =
        sendmmsg(socket.as_raw_fd(), &mut headers, &slices, addresses, control.as_slice(), flags)?;
    Ok(sent.count())
}

/// There is no such call here.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(crate) fn send(
    _socket: &Socket,
    _from: Option<IpAddr>,
    _datagrams: &[(SocketAddr, &[u8])],
) -> io::Result<usize> {
    Err(io::ErrorKind::Unsupported.into())
}
