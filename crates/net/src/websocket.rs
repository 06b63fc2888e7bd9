//! CoAP messages over WebSockets (RFC 8323 s4): one binary message each.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::io;

use futures_util::{SinkExt as _, StreamExt as _};
use lowmesh_wire::coap::stream::{Framing, StreamMessage};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::handshake::server::{ErrorResponse, Request, Response};
use tokio_tungstenite::tungstenite::http::{HeaderValue, StatusCode, header};
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{WebSocketStream, accept_hdr_async_with_config, client_async_with_config};

use crate::meter::Meter;
use crate::origins::Origins;
use crate::params::{STREAM_MESSAGE_MAX, WEBSOCKET_BUFFER, WEBSOCKET_PATH, WEBSOCKET_PROTOCOL};
use crate::stream::StreamError;

/// A WebSocket that carries CoAP messages.
#[derive(Debug)]
pub struct WebSocket<S> {
    inner: WebSocketStream<S>,
    outgoing: VecDeque<Vec<u8>>,
    /// Octets in `outgoing`.
    waiting: usize,
    meter: Meter,
    /// Octets around the payload of a control frame that comes: RFC 6455 s5.2, 2, and 4 for the mask of a client.
    control_overhead: usize,
}

/// A handshake that failed.
#[derive(Debug, thiserror::Error)]
pub enum UpgradeError {
    /// The other end does not speak CoAP over WebSockets.
    #[error("the peer does not speak CoAP over WebSockets: {0}")]
    Refused(String),
    /// A host that cannot stand in a request.
    #[error("{0:?} cannot be the host of a request")]
    Host(String),
}

impl<S: AsyncRead + AsyncWrite + Unpin> WebSocket<S> {
    /// Upgrades a connection to `authority`, the host and port of the URI.
    pub async fn connect(authority: &str, stream: S) -> Result<Self, UpgradeError> {
        // RFC 8323 s8.3: the well-known path; s4.1: the subprotocol MUST be asked for.
        let url = format!("ws://{authority}{WEBSOCKET_PATH}");
        let request = url.into_client_request();
        let mut request = request.map_err(|_| UpgradeError::Host(authority.to_owned()))?;
        let protocol = HeaderValue::from_static(WEBSOCKET_PROTOCOL);
        request.headers_mut().insert(header::SEC_WEBSOCKET_PROTOCOL, protocol);
        let upgraded = client_async_with_config(request, stream, Some(config())).await;
        let (inner, _) = upgraded.map_err(|error| UpgradeError::Refused(error.to_string()))?;
        Ok(Self::new(inner, 2))
    }
    /// Accepts a client that requests CoAP, and a web page only if it is admitted.
    #[expect(clippy::result_large_err, reason = "the type of tungstenite's callback")]
    pub async fn accept(stream: S, origins: &Origins) -> Result<Self, UpgradeError> {
        let choose = |request: &Request, response: Response| choose(origins, request, response);
        let accepted = accept_hdr_async_with_config(stream, choose, Some(config())).await;
        let inner = accepted.map_err(|error| UpgradeError::Refused(error.to_string()))?;
        Ok(Self::new(inner, 2 + 4))
    }
    fn new(inner: WebSocketStream<S>, control_overhead: usize) -> Self {
        let (outgoing, meter) = (VecDeque::new(), Meter::default());
        Self { inner, outgoing, waiting: 0, meter, control_overhead }
    }
    /// The same WebSocket, which tells the meter of its stream about control frames.
    pub(crate) fn metered(self, meter: Meter) -> Self {
        Self { meter, ..self }
    }
    /// The next message. May be dropped and called again at any time: nothing is lost.
    pub async fn receive(&mut self) -> Result<StreamMessage, StreamError> {
        loop {
            match self.inner.next().await {
                Some(Ok(Message::Binary(bytes))) => {
                    return Ok(StreamMessage::parse(&bytes, Framing::WebSocket)?);
                }
                // Pings are answered below; RFC 8323 s4.2 has binary messages only.
                // One may lie amid the frames of a message (RFC 6455 s5.4), which gets no more time for it.
                Some(Ok(Message::Ping(payload) | Message::Pong(payload))) => {
                    self.meter.pass_over(self.control_overhead + payload.len());
                }
                // Frames by themselves are for writing.
                Some(Ok(Message::Frame(_))) => {}
                Some(Ok(Message::Text(_))) => {
                    let text = io::Error::new(io::ErrorKind::InvalidData, "a text message");
                    return Err(StreamError::Broken(text));
                }
                Some(Ok(Message::Close(_)) | Err(Error::ConnectionClosed)) | None => {
                    return Err(StreamError::Closed);
                }
                Some(Err(error)) => return Err(StreamError::Broken(io::Error::other(error))),
            }
        }
    }
    /// Sends a message. Dropped before it is done, it goes on with the next.
    pub async fn send(&mut self, message: &StreamMessage) -> io::Result<()> {
        self.queue(message);
        self.flush().await
    }
    /// Queues a message for [`WebSocket::flush`].
    pub fn queue(&mut self, message: &StreamMessage) {
        let mut bytes = Vec::new();
        message.emit(Framing::WebSocket, &mut bytes);
        self.waiting += bytes.len();
        self.outgoing.push_back(bytes);
    }
    /// Octets that are queued and not sent.
    pub const fn waiting(&self) -> usize {
        self.waiting
    }
    /// Sends what is queued. May be dropped and called again at any time.
    pub async fn flush(&mut self) -> io::Result<()> {
        while !self.outgoing.is_empty() {
            let ready = poll_fn(|context| self.inner.poll_ready_unpin(context)).await;
            ready.map_err(io::Error::other)?;
            if let Some(bytes) = self.outgoing.pop_front() {
                self.waiting -= bytes.len();
                let sent = self.inner.start_send_unpin(Message::Binary(bytes.into()));
                sent.map_err(io::Error::other)?;
            }
        }
        self.inner.flush().await.map_err(io::Error::other)
    }
    /// Closes the sending direction.
    pub async fn close(mut self) -> io::Result<()> {
        self.inner.close(None).await.map_err(io::Error::other)
    }
}

fn config() -> WebSocketConfig {
    WebSocketConfig::default()
        .read_buffer_size(WEBSOCKET_BUFFER)
        .write_buffer_size(WEBSOCKET_BUFFER)
        // Without it the answers to Pings gather for a peer that does not read them.
        .max_write_buffer_size(WEBSOCKET_BUFFER + 2 * STREAM_MESSAGE_MAX)
        .max_message_size(Some(STREAM_MESSAGE_MAX))
        .max_frame_size(Some(STREAM_MESSAGE_MAX))
}

/// A server's side of the handshake: the path and the subprotocol have to be right, and the page admitted.
#[expect(clippy::result_large_err, reason = "the type of tungstenite's callback")]
fn choose(
    origins: &Origins,
    request: &Request,
    mut response: Response,
) -> Result<Response, ErrorResponse> {
    let refused = |status: StatusCode, why: &str| {
        let mut refused = ErrorResponse::new(Some(why.to_owned()));
        *refused.status_mut() = status;
        refused
    };
    if request.uri().path() != WEBSOCKET_PATH {
        return Err(refused(StatusCode::NOT_FOUND, "CoAP is at /.well-known/coap\n"));
    }
    // RFC 6455 s10.2: a server that is not for any page SHOULD verify the Origin; s4.2.2: 403 refuses it.
    let mut pages = request.headers().get_all(header::ORIGIN).iter();
    if !pages.all(|page| origins.admit(page.to_str().ok())) {
        return Err(refused(StatusCode::FORBIDDEN, "web pages of this origin are not admitted\n"));
    }
    let offered = request.headers().get_all(header::SEC_WEBSOCKET_PROTOCOL);
    let mut offered = offered.iter().filter_map(|list| list.to_str().ok());
    if !offered.any(|list| list.split(',').any(|one| one.trim() == WEBSOCKET_PROTOCOL)) {
        return Err(refused(StatusCode::BAD_REQUEST, "the subprotocol has to be coap\n"));
    }
    let protocol = HeaderValue::from_static(WEBSOCKET_PROTOCOL);
    response.headers_mut().insert(header::SEC_WEBSOCKET_PROTOCOL, protocol);
    Ok(response)
}

#[cfg(test)]
mod tests {
    use lowmesh_wire::coap::{Code, Token};
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;
    use crate::meter::Metered;

    #[tokio::test]
    async fn messages_go_both_ways_after_the_handshake() {
        let (here, there) = tokio::io::duplex(4096);
        let server = tokio::spawn(accept(there));
        let mut client = WebSocket::connect("example.org", here).await.expect("a CoAP server");
        let mut server = server.await.expect("no panic").expect("a CoAP client");
        let mut ping = StreamMessage::new(Code::PING);
        ping.token = Token::from_number(0x42, 1);
        client.send(&ping).await.expect("open");
        assert_eq!(server.receive().await.expect("whole"), ping);
        server.send(&ping).await.expect("open");
        assert_eq!(client.receive().await.expect("whole"), ping);
        client.close().await.expect("open");
        assert!(matches!(server.receive().await, Err(StreamError::Closed)));
    }

    /// Where no page is admitted.
    async fn accept<S: AsyncRead + AsyncWrite + Unpin>(
        stream: S,
    ) -> Result<WebSocket<S>, UpgradeError> {
        WebSocket::accept(stream, &Origins::default()).await
    }

    async fn status(request: &str, origins: Origins) -> String {
        let (mut here, there) = tokio::io::duplex(4096);
        let server = tokio::spawn(async move { WebSocket::accept(there, &origins).await });
        here.write_all(request.as_bytes()).await.expect("open");
        let mut answer = vec![0; 12];
        here.read_exact(&mut answer).await.expect("an answer");
        let accepted = server.await.expect("no panic").is_ok();
        assert_eq!(accepted, answer.ends_with(b"101"));
        String::from_utf8(answer).expect("text")
    }

    #[tokio::test]
    async fn another_path_and_another_subprotocol_are_refused() {
        let request = |path: &str, protocol: &str| {
            format!(
                "GET {path} HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
                 Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\
                 Sec-WebSocket-Protocol: {protocol}\r\n\r\n"
            )
        };
        let status = async |request: &str| status(request, Origins::default()).await;
        assert_eq!(status(&request("/", "coap")).await, "HTTP/1.1 404");
        assert_eq!(status(&request("/.well-known/coap", "chat")).await, "HTTP/1.1 400");
    }

    #[tokio::test]
    async fn a_web_page_is_refused_unless_its_origin_is_admitted() {
        let request = |origins: &str| {
            format!(
                "GET /.well-known/coap HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\n\
                 Connection: Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
                 Sec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: coap\r\n{origins}\r\n"
            )
        };
        let admitted = || ["https://example.org".parse().expect("an origin")].into_iter().collect();
        for (headers, expected) in [
            ("", "HTTP/1.1 101"),
            ("Origin: https://example.org\r\n", "HTTP/1.1 101"),
            ("Origin: https://evil.example\r\n", "HTTP/1.1 403"),
            ("Origin: null\r\n", "HTTP/1.1 403"),
            ("Origin: \u{e9}\r\n", "HTTP/1.1 403"),
            ("Origin: https://example.org\r\norigin: https://evil.example\r\n", "HTTP/1.1 403"),
        ] {
            assert_eq!(status(&request(headers), admitted()).await, expected, "{headers}");
        }
        let page = request("Origin: https://example.org\r\n");
        assert_eq!(status(&page, Origins::default()).await, "HTTP/1.1 403");
    }

    #[tokio::test]
    async fn a_ping_amid_the_frames_of_a_message_does_not_end_its_time() {
        // The frames of RFC 6455 s5.2 with a mask of zeros: the first of two, its end, and a Ping.
        const BEGINNING: [u8; 8] = [0x02, 0x82, 0, 0, 0, 0, 0x00, Code::PING.0];
        const END: [u8; 6] = [0x80, 0x80, 0, 0, 0, 0];
        const PING: [u8; 7] = [0x89, 0x81, 0, 0, 0, 0, 7];
        let (here, there) = tokio::io::duplex(4096);
        let (stream, meter) = Metered::new(there);
        let server = tokio::spawn(accept(stream));
        let mut client = WebSocket::connect("example.org", here).await.expect("a CoAP server");
        let server = server.await.expect("no panic").expect("a CoAP client");
        let mut server = server.metered(meter.clone());
        for _ in 0..2 {
            // As a line does it after a message.
            meter.stop();
            for (frame, runs) in [(&PING[..], false), (&BEGINNING, true), (&PING, true)] {
                client.inner.get_mut().write_all(frame).await.expect("open");
                let quiet = std::time::Duration::from_millis(50);
                assert!(tokio::time::timeout(quiet, server.receive()).await.is_err());
                assert_eq!(meter.is_running(), runs, "{frame:?}");
            }
            client.inner.get_mut().write_all(&END).await.expect("open");
            assert_eq!(server.receive().await.expect("whole").code, Code::PING);
        }
    }

    #[tokio::test]
    async fn answers_to_pings_that_nobody_reads_do_not_gather() {
        const PINGS: usize = 20_000;
        let (here, there) = tokio::io::duplex(4096);
        let server = tokio::spawn(accept(there));
        let mut client = WebSocket::connect("example.org", here).await.expect("a CoAP server");
        let mut server = server.await.expect("no panic").expect("a CoAP client");
        let receiving = tokio::spawn(async move { server.receive().await });
        let payload = vec![7; 125];
        for _ in 0..PINGS {
            // Only sends: what comes back is not looked at.
            client.inner.send(Message::Ping(payload.clone().into())).await.expect("it is read");
        }
        let mut pongs = 0;
        let quiet = std::time::Duration::from_millis(300);
        while let Ok(Some(Ok(Message::Pong(_)))) =
            tokio::time::timeout(quiet, client.inner.next()).await
        {
            pongs += 1;
        }
        let kept = (WEBSOCKET_BUFFER + 2 * STREAM_MESSAGE_MAX + 2 * 4096) / payload.len();
        assert!(pongs > 0 && pongs <= kept, "{pongs} of {PINGS} were kept");
        receiving.abort();
    }
}
