//! ICMP errors of datagrams that were sent: the addresses that could not be reached.
//!
//! The system keeps such messages in the error queue of a socket, with the address that the datagram was sent to. Where
//! it keeps none, a peer that is gone is found by timeouts alone.

use std::io;
use std::net::SocketAddr;

use crate::registered::Socket;

/// The destination of the next datagram in the error queue that could not be delivered. An error of the kind `WouldBlock`
/// means that there is none.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) fn next_undelivered(socket: &Socket) -> io::Result<SocketAddr> {
    use std::os::fd::AsRawFd as _;

    use nix::errno::Errno;
    use nix::sys::socket::{ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg};

    loop {
        // Of the datagram itself nothing is needed; of what is said about it some 100 octets.
        let (mut payload, mut control) = ([0; 1], [0; 256]);
        let mut payload = [io::IoSliceMut::new(&mut payload)];
        let flags = MsgFlags::MSG_ERRQUEUE | MsgFlags::MSG_DONTWAIT;
        let message = recvmsg::<SockaddrStorage>(
            socket.as_raw_fd(),
            &mut payload,
            Some(&mut control),
            flags,
        )?;
        let errors = message.cmsgs()?.filter_map(|control| match control {
            ControlMessageOwned::Ipv4RecvErr(error, _)
            | ControlMessageOwned::Ipv6RecvErr(error, _) => Some(error.ee_errno),
            _ => None,
        });
        let gone = errors.map(|errno| Errno::from_raw(errno.cast_signed())).any(|errno| {
            matches!(errno, Errno::ECONNREFUSED | Errno::EHOSTUNREACH | Errno::ENETUNREACH)
        });
        let sent_to = message.address.and_then(|address| {
            let v4 = address.as_sockaddr_in().map(|one| SocketAddr::from(*one));
            let v6 =
                || address.as_sockaddr_in6().map(|one| std::net::SocketAddrV6::from(*one).into());
            v4.or_else(v6)
        });
        if let (Some(address), true) = (sent_to, gone) {
            return Ok(address);
        }
    }
}

/// Nothing is known.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(crate) fn next_undelivered(_socket: &Socket) -> io::Result<SocketAddr> {
    Err(io::ErrorKind::WouldBlock.into())
}
