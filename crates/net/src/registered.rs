//! A UDP socket in the runtime's list of what to wait for.
//!
//! It is registered for what it reads. A socket that is registered for both directions wakes its task each time a
//! datagram has left the system's buffer, which costs a server one more wake-up for each response. So a task that has
//! to wait for room in that buffer registers for it then.

pub(crate) use system::{Registered, Socket};

#[cfg(unix)]
mod system {
    use std::io;

    use tokio::io::Interest;
    use tokio::io::unix::AsyncFd;

    /// The socket itself.
    pub(crate) type Socket = std::net::UdpSocket;

    /// A socket that does not block.
    #[derive(Debug)]
    pub(crate) struct Registered(AsyncFd<Socket>);

    /// A socket of the standard library owns one descriptor for as long as it lives, which is what its successor, an
    /// unsafe function, has the caller promise.
    #[expect(
        deprecated,
        reason = "its successor is unsafe, for types that may change their descriptor"
    )]
    fn register(socket: Socket, interest: Interest) -> io::Result<AsyncFd<Socket>> {
        AsyncFd::with_interest(socket, interest)
    }

    impl Registered {
        /// Registers a socket. It has to be set to not block.
        pub(crate) fn new(socket: Socket) -> io::Result<Self> {
            register(socket, Interest::READABLE).map(Self)
        }
        pub(crate) fn get(&self) -> &Socket {
            self.0.get_ref()
        }
        /// Waits until datagrams can be read, or errors.
        pub(crate) async fn readable(&self) -> io::Result<()> {
            self.0.ready(Interest::READABLE | Interest::ERROR).await.map(drop)
        }
        /// Waits until a datagram can be sent.
        pub(crate) async fn writable(&self) -> io::Result<()> {
            let writer = register(self.get().try_clone()?, Interest::WRITABLE)?;
            writer.writable().await.map(drop)
        }
        /// Calls `read` unless the runtime knows that there is nothing; its `WouldBlock` tells the runtime so.
        pub(crate) fn try_read<R>(&self, read: impl FnOnce() -> io::Result<R>) -> io::Result<R> {
            self.0.try_io(Interest::READABLE, |_| read())
        }
        /// The same for the socket's queue of errors.
        pub(crate) fn try_read_error<R>(
            &self,
            read: impl FnOnce() -> io::Result<R>,
        ) -> io::Result<R> {
            self.0.try_io(Interest::ERROR, |_| read())
        }
        /// Calls `write`.
        pub(crate) fn try_write<R>(
            &self,
            write: impl FnOnce(&Socket) -> io::Result<R>,
        ) -> io::Result<R> {
            write(self.get())
        }
    }
}

#[cfg(not(unix))]
mod system {
    use std::io;

    use tokio::io::Interest;

    /// The socket itself.
    pub(crate) type Socket = tokio::net::UdpSocket;

    /// A socket that does not block; here registered for both directions.
    #[derive(Debug)]
    pub(crate) struct Registered(Socket);

    impl Registered {
        /// Registers a socket. It has to be set to not block.
        pub(crate) fn new(socket: std::net::UdpSocket) -> io::Result<Self> {
            Socket::from_std(socket).map(Self)
        }
        pub(crate) fn get(&self) -> &Socket {
            &self.0
        }
        /// Waits until datagrams can be read, or errors.
        pub(crate) async fn readable(&self) -> io::Result<()> {
            self.0.ready(Interest::READABLE | Interest::ERROR).await.map(drop)
        }
        /// Waits until a datagram can be sent.
        pub(crate) async fn writable(&self) -> io::Result<()> {
            self.0.writable().await
        }
        /// Calls `read` unless the runtime knows that there is nothing; its `WouldBlock` tells the runtime so.
        pub(crate) fn try_read<R>(&self, read: impl FnOnce() -> io::Result<R>) -> io::Result<R> {
            self.0.try_io(Interest::READABLE, read)
        }
        /// The same for the socket's queue of errors.
        pub(crate) fn try_read_error<R>(
            &self,
            read: impl FnOnce() -> io::Result<R>,
        ) -> io::Result<R> {
            self.0.try_io(Interest::ERROR, read)
        }
        /// Calls `write` unless the runtime knows that there is no room; its `WouldBlock` tells the runtime so.
        pub(crate) fn try_write<R>(
            &self,
            write: impl FnOnce(&Socket) -> io::Result<R>,
        ) -> io::Result<R> {
            self.0.try_io(Interest::WRITABLE, || write(&self.0))
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::net::UdpSocket;
    use std::time::Duration;

    use super::*;

    fn socket() -> UdpSocket {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("loopback");
        socket.set_nonblocking(true).expect("it can be set");
        socket
    }

    /// Waits until it has an answer, or for some time.
    async fn soon<F: Future>(future: F) -> Option<F::Output> {
        tokio::time::timeout(Duration::from_millis(200), future).await.ok()
    }

    #[tokio::test]
    async fn it_is_readable_when_a_datagram_has_come_and_until_all_are_read() {
        let (ours, peer) = (Registered::new(socket()).expect("a runtime"), socket());
        assert!(soon(ours.readable()).await.is_none(), "nothing has come");
        let address = ours.get().local_addr().expect("bound");
        peer.send_to(b"one", address).expect("loopback");
        assert!(soon(ours.readable()).await.is_some());
        let mut buffer = [0; 8];
        let mut read = || ours.try_read(|| ours.get().recv(&mut buffer));
        assert_eq!(read().expect("it has come"), 3);
        assert_eq!(read().expect_err("no more").kind(), std::io::ErrorKind::WouldBlock);
        assert!(soon(ours.readable()).await.is_none(), "all is read");
    }

    #[tokio::test]
    async fn it_is_writable_again_when_its_peer_has_made_room() {
        use std::os::unix::net::UnixDatagram;

        // A datagram socket with an end that does not read: of UDP the system drops what finds no room.
        let (full, peer) = UnixDatagram::pair().expect("a pair");
        full.set_nonblocking(true).expect("it can be set");
        let full = UdpSocket::from(std::os::fd::OwnedFd::from(full));
        let full = Registered::new(full).expect("a runtime");
        let write = || full.try_write(|socket| socket.send(&[0; 1024]));
        while write().is_ok() {}
        assert!(soon(full.writable()).await.is_none(), "it is full");
        let mut buffer = [0; 1024];
        while peer.set_nonblocking(true).is_ok() && peer.recv(&mut buffer).is_ok() {}
        assert!(soon(full.writable()).await.is_some());
        assert!(write().is_ok());
    }
}
