//! Asks for a resource by a URI of any of the six schemes, and prints what comes.
//!
//! ```text
//!   get coap://[::1]/hello
//!   get coaps://host/hello --psk IDENTITY KEY
//!   get coaps+tcp://host/hello --trust CA.pem
//!   get coap://host/hello --oscore FILE           state in FILE.state
//! ```

use std::error::Error;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use lowmesh_coap::{Config, Endpoint, Input, Output, RequestTemplate};
use lowmesh_machine::Handle;
use lowmesh_net::clock::fresh_seed;
use lowmesh_net::driver::Driver;
use lowmesh_net::dtls::Sessions;
use lowmesh_net::line::Line;
use lowmesh_net::oscore::{AfterLoss, StoredContext};
use lowmesh_net::resolve::resolve;
use lowmesh_net::tls::TlsClient;
use lowmesh_net::udp::Udp;
use lowmesh_oscore::Configuration;
use lowmesh_units::{NodeId, Purpose, Rng};
use lowmesh_wire::coap::signaling::{Capabilities, Signal};
use lowmesh_wire::coap::stream::StreamMessage;
use lowmesh_wire::coap::uri::Uri;
use lowmesh_wire::coap::{Class, Code, OptionNumber, Token};

type Failure = Box<dyn Error>;

/// What the command line says.
struct Wish {
    uri: Uri,
    psk: Option<(String, String)>,
    trust: Option<PathBuf>,
    oscore: Option<PathBuf>,
}

fn wish() -> Result<Wish, Failure> {
    let mut args = std::env::args().skip(1);
    let uri = args.next().ok_or("get URI [--psk IDENTITY KEY] [--trust PEM] [--oscore FILE]")?;
    let mut wish = Wish { uri: uri.parse()?, psk: None, trust: None, oscore: None };
    while let Some(flag) = args.next() {
        let mut value = || args.next().ok_or_else(|| format!("{flag} needs a value"));
        match flag.as_str() {
            "--psk" => wish.psk = Some((value()?, value()?)),
            "--trust" => wish.trust = Some(value()?.into()),
            "--oscore" => wish.oscore = Some(value()?.into()),
            _ => return Err(format!("{flag} is not known").into()),
        }
    }
    Ok(wish)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    let wish = wish()?;
    let mut request = StreamMessage::new(Code::GET);
    wish.uri.insert_into(&mut request.options);
    let answer = match &wish.oscore {
        None => ask(&wish, request).await?,
        Some(file) => ask_protected(&wish, request, file).await?,
    };
    eprintln!("{}", answer.code);
    std::io::stdout().write_all(&answer.payload)?;
    Ok(())
}

/// Asks with OSCORE, and once again if the server wants to know that this is not a replay.
async fn ask_protected(
    wish: &Wish,
    mut request: StreamMessage,
    file: &Path,
) -> Result<StreamMessage, Failure> {
    let contexts = Configuration::parse(&std::fs::read_to_string(file)?)?.contexts();
    let context = contexts.into_iter().next().ok_or("a file has a recipient")?;
    let state = file.with_extension("state");
    let mut context = StoredContext::open(context, &state, AfterLoss::Challenge)?;
    for _ in 0..2 {
        let (outer, mut pending) = context.protect_request(&request)?;
        let outer = ask(wish, outer).await?;
        let answer = context.unprotect_response(&mut pending, &outer)?;
        match answer.options.get(OptionNumber::ECHO) {
            Some(echo) if answer.code == Code::UNAUTHORIZED => {
                request.options.insert(OptionNumber::ECHO, echo);
            }
            _ => {
                context.close()?;
                return Ok(answer);
            }
        }
    }
    Err("the server does not take its own Echo".into())
}

async fn ask(wish: &Wish, request: StreamMessage) -> Result<StreamMessage, Failure> {
    if wish.uri.scheme.is_reliable() {
        ask_by_line(wish, request).await
    } else {
        ask_by_datagram(wish, request).await
    }
}

async fn ask_by_datagram(wish: &Wish, request: StreamMessage) -> Result<StreamMessage, Failure> {
    let rng = Rng::stream(fresh_seed(), NodeId(0), Purpose::Coap);
    let config = Config { extensions: vec![OptionNumber::OSCORE], ..Config::default() };
    let (udp, endpoint) = (Udp::ephemeral()?, Endpoint::new(config, rng)?);
    let mut driver = match &wish.psk {
        Some((identity, key)) => {
            let sessions = Sessions::client(identity.as_bytes(), key.as_bytes())?;
            Driver::secure(udp, sessions, endpoint)
        }
        None if wish.uri.scheme.is_secure() => return Err("coaps needs --psk".into()),
        None => Driver::new(udp, endpoint),
    };
    let peer = driver.udp().peer(resolve(&wish.uri).await?[0])?;
    let StreamMessage { code, options, payload, .. } = request;
    let mut message = RequestTemplate::new(code, "/");
    (message.options, message.payload) = (options, payload);
    driver.handle(Input::Request { peer, message, handle: Handle(1) })?;
    loop {
        match driver.next().await? {
            Output::Response { message, .. } => {
                driver.close();
                let (code, token) = (message.code, message.token);
                let (options, payload) = (message.options, message.payload);
                return Ok(StreamMessage { code, token, options, payload });
            }
            Output::Failed { reason, .. } => {
                let loss = driver.take_session_loss().map(|loss| loss.reason);
                return Err(loss.unwrap_or_else(|| reason.name().to_owned()).into());
            }
            _ => {}
        }
    }
}

async fn ask_by_line(wish: &Wish, mut request: StreamMessage) -> Result<StreamMessage, Failure> {
    let trust = match &wish.trust {
        Some(file) => Some(TlsClient::trusting(&std::fs::read(file)?)?),
        None => None,
    };
    let mut line = Line::connect(&wish.uri, trust.as_ref()).await?;
    let csm = Signal::Csm(Capabilities { block_wise: true, ..Capabilities::default() });
    line.send(&csm.into_message(Token::EMPTY)).await?;
    request.token = Token::from_number(fresh_seed().0, 4);
    line.send(&request).await?;
    loop {
        let message = line.receive().await?;
        match message.code.class() {
            Class::Signaling => match Signal::parse(&message.as_view())? {
                Signal::Ping { .. } => {
                    let pong = Signal::Pong { custody: false };
                    line.send(&pong.into_message(message.token)).await?;
                }
                Signal::Abort { diagnostic, .. } => return Err(diagnostic.into()),
                Signal::Csm(_) | Signal::Pong { .. } | Signal::Release { .. } => {}
            },
            _ if message.token == request.token => {
                line.close().await?;
                return Ok(message);
            }
            _ => {}
        }
    }
}
