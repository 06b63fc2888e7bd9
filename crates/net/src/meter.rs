//! How much of a message has come on a byte stream, whatever takes messages out of it.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Counts octets that come; runs from the first until it is stopped.
#[derive(Clone, Debug, Default)]
pub(crate) struct Meter(Arc<AtomicUsize>);

impl Meter {
    /// True if octets have come since it was stopped.
    pub(crate) fn is_running(&self) -> bool {
        self.0.load(Ordering::Relaxed) > 0
    }
    /// A message is complete.
    pub(crate) fn stop(&self) {
        self.0.store(0, Ordering::Relaxed);
    }
    /// So many octets belong to no message: with any others that have come a message has begun.
    pub(crate) fn pass_over(&self, octets: usize) {
        let others = self.0.load(Ordering::Relaxed).saturating_sub(octets);
        self.0.store(others, Ordering::Relaxed);
    }
}

/// A stream that starts its meter when octets come.
#[derive(Debug)]
pub(crate) struct Metered<S> {
    stream: S,
    meter: Meter,
}

impl<S> Metered<S> {
    /// The stream with its meter.
    pub(crate) fn new(stream: S) -> (Self, Meter) {
        let meter = Meter::default();
        (Self { stream, meter: meter.clone() }, meter)
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Metered<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        self.meter.0.fetch_add(buffer.filled().len() - before, Ordering::Relaxed);
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Metered<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }
    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }
    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
