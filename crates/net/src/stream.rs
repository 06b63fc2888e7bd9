//! CoAP messages over a byte stream: TCP and TLS (RFC 8323 s3).
//!
//! A [`Connection`] cuts messages out of what comes and puts them into what goes. What they mean is a machine's, CSM
//! and Abort too.

use std::io;

use lowmesh_wire::DecodeError;
use lowmesh_wire::coap::stream::{Framing, StreamMessage, frame_len};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

use crate::params::{STREAM_BUFFER_KEPT, STREAM_MESSAGE_MAX};

/// Why no more messages arrive.
#[derive(Debug, thiserror::Error)]
pub enum StreamError {
    /// The peer has closed the connection between two messages.
    #[error("the peer has closed the connection")]
    Closed,
    /// It has sent what is no CoAP message; it is to be told with an Abort (RFC 8323 s5.6).
    #[error("the peer sent octets that are not a CoAP message: {0}")]
    Malformed(#[from] DecodeError),
    /// It has begun a message and does not finish it in time.
    #[error("the peer did not finish its message in time")]
    Slow,
    /// The connection is broken.
    #[error("the connection is broken: {0}")]
    Broken(#[from] io::Error),
}

/// A connection that carries messages.
#[derive(Debug)]
pub struct Connection<S> {
    stream: S,
    /// What has come and is not taken, from `start` on.
    buffer: Vec<u8>,
    start: usize,
    outgoing: Vec<u8>,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Connection<S> {
    /// A connection over an open stream.
    pub const fn new(stream: S) -> Self {
        Self { stream, buffer: Vec::new(), start: 0, outgoing: Vec::new() }
    }
    /// The stream itself.
    pub const fn stream(&self) -> &S {
        &self.stream
    }
    /// The next message. May be dropped and called again at any time: nothing is lost.
    pub async fn receive(&mut self) -> Result<StreamMessage, StreamError> {
        loop {
            if let Some(message) = self.take()? {
                return Ok(message);
            }
            if self.start > 0 {
                self.buffer.drain(..self.start);
                self.start = 0;
            }
            if self.buffer.is_empty() {
                self.buffer.shrink_to(STREAM_BUFFER_KEPT);
            }
            // `read_buf` takes nothing from the stream unless it puts it into the buffer.
            if self.stream.read_buf(&mut self.buffer).await? == 0 {
                return Err(if self.buffer.is_empty() {
                    StreamError::Closed
                } else {
                    StreamError::Broken(io::ErrorKind::UnexpectedEof.into())
                });
            }
        }
    }
    fn take(&mut self) -> Result<Option<StreamMessage>, DecodeError> {
        let waiting = &self.buffer[self.start..];
        // The length is refused before it is waited for, so the buffer is bounded.
        let Some(len) = frame_len(waiting, STREAM_MESSAGE_MAX)? else { return Ok(None) };
        let Some(frame) = waiting.get(..len) else { return Ok(None) };
        let message = StreamMessage::parse(frame, Framing::Stream)?;
        self.start += len;
        Ok(Some(message))
    }
    /// Sends a message. Dropped before it is done, it goes on with the next.
    pub async fn send(&mut self, message: &StreamMessage) -> io::Result<()> {
        self.queue(message);
        self.flush().await
    }
    /// Queues a message for [`Connection::flush`].
    pub fn queue(&mut self, message: &StreamMessage) {
        message.emit(Framing::Stream, &mut self.outgoing);
    }
    /// Octets that are queued and not sent.
    pub const fn waiting(&self) -> usize {
        self.outgoing.len()
    }
    /// Sends what is queued. May be dropped and called again at any time.
    pub async fn flush(&mut self) -> io::Result<()> {
        while !self.outgoing.is_empty() {
            let sent = self.stream.write(&self.outgoing).await?;
            if sent == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            self.outgoing.drain(..sent);
        }
        self.outgoing.shrink_to(STREAM_BUFFER_KEPT);
        self.stream.flush().await
    }
    /// Closes the sending direction.
    pub async fn close(mut self) -> io::Result<()> {
        self.stream.shutdown().await
    }
}

#[cfg(test)]
mod tests {
    use lowmesh_wire::coap::{Code, Token};

    use super::*;

    fn message(len: usize) -> StreamMessage {
        let mut message = StreamMessage::new(Code::PUT);
        message.token = Token::from_number(len as u64, 2);
        message.options.insert_path("/a");
        message.payload = vec![7; len];
        message
    }

    #[tokio::test]
    async fn messages_come_out_as_they_went_in_however_small_the_pipe() {
        let (here, there) = tokio::io::duplex(37);
        let (mut here, mut there) = (Connection::new(here), Connection::new(there));
        let sent: Vec<_> = [0, 1, 300, 20_000, 3].map(message).to_vec();
        let copies = sent.clone();
        let sender = tokio::spawn(async move {
            for one in &copies {
                here.send(one).await.expect("open");
            }
            here.close().await.expect("open");
        });
        for one in &sent {
            assert_eq!(&there.receive().await.expect("whole"), one);
        }
        assert!(matches!(there.receive().await, Err(StreamError::Closed)));
        sender.await.expect("no panic");
    }

    #[tokio::test]
    async fn a_long_message_leaves_no_long_buffers_behind() {
        let (here, there) = tokio::io::duplex(1 << 20);
        let (mut here, mut there) = (Connection::new(here), Connection::new(there));
        let long = message(60_000);
        here.send(&long).await.expect("open");
        assert_eq!(there.receive().await.expect("whole"), long);
        let wait = std::time::Duration::from_millis(5);
        assert!(tokio::time::timeout(wait, there.receive()).await.is_err());
        let kept = [here.outgoing.capacity(), there.buffer.capacity()];
        assert!(kept.iter().all(|kept| *kept <= STREAM_BUFFER_KEPT), "{kept:?}");
    }

    #[tokio::test]
    async fn a_message_that_is_announced_too_long_is_refused_before_it_comes() {
        let (mut here, there) = tokio::io::duplex(64);
        let mut there = Connection::new(there);
        here.write_all(&[0xf0, 0xff, 0xff, 0xff, 0xff]).await.expect("open");
        assert!(matches!(there.receive().await, Err(StreamError::Malformed(_))));
    }

    #[tokio::test]
    async fn a_connection_that_ends_within_a_message_is_broken() {
        let (mut here, there) = tokio::io::duplex(64);
        let mut there = Connection::new(there);
        here.write_all(&[0x31, 0x01, 0x42]).await.expect("open");
        drop(here);
        assert!(matches!(there.receive().await, Err(StreamError::Broken(_))));
    }

    #[tokio::test]
    async fn a_send_that_is_given_up_goes_on_later() {
        let (here, there) = tokio::io::duplex(64);
        let (mut here, mut there) = (Connection::new(here), Connection::new(there));
        let long = message(300);
        let wait = std::time::Duration::from_millis(5);
        assert!(tokio::time::timeout(wait, here.send(&long)).await.is_err());
        let rest = tokio::spawn(async move { here.send(&message(2)).await });
        for len in [300, 2] {
            assert_eq!(there.receive().await.expect("whole"), message(len));
        }
        rest.await.expect("no panic").expect("open");
    }

    #[tokio::test]
    async fn a_wait_that_is_given_up_loses_nothing() {
        let (here, there) = tokio::io::duplex(64);
        let (mut here, mut there) = (Connection::new(here), Connection::new(there));
        let wait = tokio::time::timeout(std::time::Duration::from_millis(5), there.receive());
        assert!(wait.await.is_err());
        here.send(&message(5)).await.expect("open");
        assert_eq!(there.receive().await.expect("whole"), message(5));
    }
}
