//! A client over a connection (RFC 8323).

use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpStream};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use lowmesh_wire::coap::stream::{Framing, StreamMessage};
use lowmesh_wire::coap::{Code, Token};
use socket2::{Domain, Protocol, Socket, Type};

use super::carrier::Carrier;
use super::{Answer, Client, PATIENCE, Request};
use crate::process::Stopwatch;

/// How long a connection may take.
const CONNECT_MAX: Duration = Duration::from_secs(5);

/// A connection.
pub struct Stream {
    carrier: Carrier,
    next_token: u32,
    observation: Option<u32>,
    notified: u64,
}

/// A TCP connection from an address of this machine.
pub fn connection(from: Ipv4Addr, to: SocketAddrV4) -> Result<TcpStream> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP))?;
    socket.bind(&SocketAddr::from((from, 0)).into())?;
    let connected = socket.connect_timeout(&SocketAddr::from(to).into(), CONNECT_MAX);
    connected.with_context(|| format!("no connection from {from}"))?;
    let tcp = TcpStream::from(socket);
    tcp.set_nodelay(true)?;
    Ok(tcp)
}

/// A message of signaling without more.
pub fn signal(code: Code) -> Vec<u8> {
    let mut bytes = Vec::new();
    StreamMessage::new(code).emit(Framing::Stream, &mut bytes);
    bytes
}

/// A request as it goes over a stream.
pub fn frame(request: &Request, token: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    message(request, token).emit(Framing::Stream, &mut bytes);
    bytes
}

fn message(request: &Request, token: u32) -> StreamMessage {
    let mut message = StreamMessage::new(request.code);
    message.token = Token::new(&token.to_be_bytes()).expect("four octets");
    message.options = request.options.clone();
    message.payload.clone_from(&request.payload);
    message
}

impl Stream {
    /// Says what the client can do (RFC 8323 s5.3).
    pub fn open(mut carrier: Carrier) -> Result<Self> {
        carrier.send(&StreamMessage::new(Code::CSM))?;
        Ok(Self { carrier, next_token: 0, observation: None, notified: 0 })
    }
    /// The answer with this token, if the message is it.
    fn take(&mut self, message: StreamMessage, token: Option<u32>) -> Result<Option<Answer>> {
        match message.code {
            Code::PING => {
                let pong = StreamMessage { code: Code::PONG, ..message };
                self.carrier.send(&pong)?;
                Ok(None)
            }
            Code::ABORT | Code::RELEASE => {
                bail!("the server ends the connection: {}", message.code)
            }
            _ => {
                let named = message.token.as_bytes().try_into().map(u32::from_be_bytes).ok();
                if named.is_some() && named == token {
                    let StreamMessage { code, options, payload, .. } = message;
                    return Ok(Some(Answer { code, options, payload }));
                }
                self.notified += u64::from(named.is_some() && named == self.observation);
                Ok(None)
            }
        }
    }
}

impl Client for Stream {
    fn ask(&mut self, request: &Request, observe: bool) -> Result<Answer> {
        let known = self.observation.filter(|_| observe);
        let token = known.unwrap_or_else(|| {
            self.next_token = self.next_token.wrapping_add(1);
            self.next_token
        });
        if observe {
            self.observation = Some(token);
        }
        self.carrier.send(&message(request, token))?;
        let clock = Stopwatch::start();
        loop {
            let left = PATIENCE.saturating_sub(clock.elapsed());
            if left.is_zero() {
                bail!("no answer within {} s", PATIENCE.as_secs());
            }
            if let Some(message) = self.carrier.receive(left)?
                && let Some(answer) = self.take(message, Some(token))?
            {
                return Ok(answer);
            }
        }
    }
    fn wait(&mut self, span: Duration) -> Result<()> {
        let clock = Stopwatch::start();
        while let Some(left) = span.checked_sub(clock.elapsed()).filter(|left| !left.is_zero()) {
            if let Some(message) = self.carrier.receive(left)? {
                self.take(message, None)?;
            }
        }
        Ok(())
    }
    fn notified(&self) -> u64 {
        self.notified
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read as _, Write as _};
    use std::net::TcpListener;

    #[test]
    fn a_notification_is_counted_on_the_way_to_the_answer_and_a_ping_is_answered() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let SocketAddr::V4(to) = listener.local_addr().expect("bound") else { panic!("IPv4") };
        let server = std::thread::spawn(move || {
            let (mut tcp, _) = listener.accept().expect("a client");
            let answer = [frame(&Request::new(Code::CONTENT, "/"), 1), signal(Code::PING)].concat();
            let mut came = [0; 2];
            tcp.read_exact(&mut came).expect("a CSM");
            tcp.write_all(&answer).expect("open");
            tcp.write_all(&frame(&Request::new(Code::CONTENT, "/"), 1)).expect("open");
            tcp.write_all(&frame(&Request::new(Code::CHANGED, "/"), 2)).expect("open");
            let mut rest = Vec::new();
            tcp.read_to_end(&mut rest).expect("until it closes");
            (came, rest)
        });
        let tcp = connection(Ipv4Addr::new(127, 5, 5, 5), to).expect("a connection");
        let carrier = Carrier::tcp(tcp).expect("open");
        let mut client = Stream::open(carrier).expect("a connection");
        client.ask(&Request::get("/"), true).expect("the state");
        let answer = client.ask(&Request::get("/"), false).expect("an answer");
        assert_eq!((answer.code, client.notified()), (Code::CHANGED, 1));
        drop(client);
        let (came, rest) = server.join().expect("no panic");
        assert_eq!(came, [0, Code::CSM.0]);
        assert!(rest.windows(2).any(|two| two == [0, Code::PONG.0]));
    }
}
