//! `lowmesh node get`, `put`, `post`, `delete`, `fetch`, `patch` and `ipatch`: one CoAP request over the node, and its
//! answer.

use std::io::Write;
use std::net::{Ipv6Addr, SocketAddr};
use std::sync::mpsc::Receiver;
use std::time::Duration as Time;

use lowmesh_net::client::{Error, Response};
use lowmesh_net::peer::Peer as NetPeer;
use lowmesh_stack::application::Input;
use lowmesh_stack::event::{ApplicationEvent, Output, Peer, Transaction};
use lowmesh_units::Duration;
use lowmesh_wire::coap::uri::{Host, Scheme, Uri};
use lowmesh_wire::coap::{Code, Options};
use lowmesh_wire::ipv6::Address;

use super::Setup;
use super::forwarder::Forwarder;
use super::session::{Session, SessionEvent, Until};
use super::target::{reachable, words};
use crate::channel::{Transfer, patience, uri};
use crate::console::say;
use crate::failure::Failure;
use crate::{answer, template};

/// How often the verb looks for what the application has heard, if the node says nothing: ours.
const LOOK: Duration = Duration::from_millis(50);

/// Send one request from the node and print the response
#[derive(Debug, clap::Args)]
pub struct Args {
    /// coap:// with an IPv6 address, which needs no zone, as in coap://[fe80::4c:4d00:0:2]/clock
    uri: String,
    #[command(flatten)]
    message: template::Message,
    #[command(flatten)]
    transfer: Transfer,
    #[command(flatten)]
    answer: answer::Args,
}

/// Sends the request and shows the answers.
pub fn execute(
    method: Code,
    setup: &Setup,
    args: &Args,
    out: &mut impl Write,
) -> Result<(), Failure> {
    let (uri, method) = (uri(&args.uri)?, args.message.method.unwrap_or(method));
    let peer = peer(&uri)?;
    reachable(&setup.options, peer.0)?;
    args.answer.check()?;
    let mut config = setup.options.config();
    config.coap.congestion = args.transfer.congestion()?;
    if let Some(block) = args.transfer.block {
        config.host.exponent = block;
    }
    let mut options = Options::new();
    uri.insert_into(&mut options);
    let message = args.message.template(method, options)?;
    let (forwarder, inputs) = Forwarder::asking(peer, message);
    let session = Session::start(setup, &config, vec![Box::new(forwarder)], Until::Unread)?;
    let mut exchange = Exchange { session, inputs, peer, verbose: args.answer.verbose };
    let result = ask(&mut exchange, patience(args.message.timeout), args, out);
    // What was shown comes before what was counted.
    exchange.session.finish(out)?;
    result
}

/// The endpoint that a URI names.
fn peer(uri: &Uri) -> Result<Peer, Failure> {
    if uri.scheme != Scheme::Coap {
        let message = format!("a node speaks no {}", uri.scheme.name());
        return Err(Failure::usage(message, "write coap://"));
    }
    match &uri.host {
        Host::V6(address, _zone) => Ok((Address::from(*address), uri.port())),
        Host::Name(_) | Host::V4(_) => {
            let hint =
                "write the IPv6 address of the server, as in coap://[fe80::4c:4d00:0:2]/clock";
            Err(Failure::usage("a node resolves no names and has no IPv4", hint))
        }
    }
}

/// Shows the one answer.
fn ask(
    exchange: &mut Exchange,
    time: Time,
    args: &Args,
    out: &mut impl Write,
) -> Result<(), Failure> {
    let until = exchange.session.now() + time.into();
    match exchange.next(until)? {
        Answer::One(answer) => answer::show(&args.answer, &answer, out),
        // No-Response (RFC 7967) was obeyed.
        Answer::Over => Ok(()),
        Answer::None => {
            let peer = exchange.socket_addr().to_string();
            Err(Error::Silence { peer, wait: time }.into())
        }
        Answer::Stopped => Err(stopped()),
    }
}

fn stopped() -> Failure {
    Failure::no_answer("interrupted before an answer arrived", "`--timeout` limits the wait")
}

/// What becomes of a request.
enum Answer {
    One(Response),
    /// The request is over without an answer, as it asked.
    Over,
    /// The time is over.
    None,
    /// The user interrupted the command.
    Stopped,
}

/// A request under way.
struct Exchange {
    session: Session,
    inputs: Receiver<Input>,
    peer: Peer,
    verbose: bool,
}

impl Exchange {
    /// The next answer, or the end.
    fn next(&mut self, until: lowmesh_units::Instant) -> Result<Answer, Failure> {
        loop {
            while let Ok(input) = self.inputs.try_recv() {
                if let Some(answer) = self.answer(input)? {
                    return Ok(answer);
                }
            }
            let look = until.min(self.session.now() + LOOK);
            match self.session.next(Some(look))? {
                SessionEvent::Said(_, output) => self.tell(&output),
                SessionEvent::Due if look == until => return Ok(Answer::None),
                SessionEvent::Due => {}
                SessionEvent::Stopped => return Ok(Answer::Stopped),
            }
        }
    }

    fn answer(&self, input: Input) -> Result<Option<Answer>, Failure> {
        let (from, message, rtt, retransmissions) = match input {
            Input::Response { from, message, rtt, retransmissions, .. } => {
                (from, message, Some(rtt.into()), retransmissions)
            }
            Input::Failed { reason, .. } => {
                return Err(Error::Failed { peer: self.socket_addr(), reason }.into());
            }
            Input::Refused { refusal, .. } => return Err(Error::Rejected(refusal).into()),
            Input::Over { .. } => return Ok(Some(Answer::Over)),
            _ => return Ok(None),
        };
        let from = NetPeer::new(socket_addr(from), None);
        Ok(Some(Answer::One(Response { from, message, rtt, retransmissions })))
    }

    /// Prints on stderr what happens before an answer comes.
    fn tell(&self, output: &Output) {
        match output {
            Output::Trouble { from, to, problem } if *to == self.peer.0 => {
                say!("{from} says: {}", words(*problem));
            }
            Output::Application(ApplicationEvent::Transaction(_, Transaction::Sent(_, rto)))
                if self.verbose =>
            {
                answer::tell_sent(rto.as_secs_f64());
            }
            Output::Application(ApplicationEvent::Transaction(_, Transaction::Resent(_, copy)))
                if self.verbose =>
            {
                say!("sent again, retransmission {copy}");
            }
            _ => {}
        }
    }

    fn socket_addr(&self) -> SocketAddr {
        socket_addr(self.peer)
    }
}

fn socket_addr((address, port): Peer) -> SocketAddr {
    SocketAddr::new(Ipv6Addr::from(address).into(), port)
}
