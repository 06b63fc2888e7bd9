//! One node from its start to its end: a host, what is shown of it, and the signals that end it.

use std::io::Write;

use lowmesh_machine::Handle;
use lowmesh_net::clock::fresh_seed;
use lowmesh_realtime::zep::{Event, Host, Remote, Settings, Step};
use lowmesh_stack::event::{Input, Output, Packet};
use lowmesh_stack::{Application, Config, Node};
use lowmesh_units::{Duration, Instant};

use super::Setup;
use super::watch::Watch;
use crate::console::reader_gone;
use crate::failure::Failure;
use crate::ports::interrupted;

/// How long a node lives on when its verb is done: ours, as long as an acknowledgement is waited for. Without the
/// acknowledgement of the last frame its sender would repeat it.
const LINGER: Duration = Duration::from_millis(20);

/// A running node.
pub struct Session {
    host: Host,
    watch: Watch,
    /// The value of `--zep`, for errors.
    zep: String,
}

/// What [`Session::next`] returns.
#[derive(Debug)]
pub enum SessionEvent {
    /// The node says something.
    Said(Instant, Output),
    /// The time is over.
    Due,
    /// A signal arrived, or the reader of stdout closed it.
    Stopped,
}

/// What ends a session before its verb is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// Ctrl-C or SIGTERM.
    Interrupted,
    /// These, or a reader of stdout that goes away.
    Unread,
}

impl Session {
    /// Opens all outputs and the socket, and switches the node on, with these settings and applications.
    pub fn start(
        setup: &Setup,
        config: &Config,
        applications: Vec<Box<dyn Application>>,
        until: Until,
    ) -> Result<Self, Failure> {
        let options = &setup.options;
        let (peer, identity) = (options.peer()?, options.identity()?);
        let mut node = Node::alone(config, identity, fresh_seed()).map_err(Failure::own)?;
        for application in applications {
            node.install(application).map_err(|error| {
                Failure::usage(error, "the node itself has ports 7 (echo) and 5683 (CoAP)")
            })?;
        }
        let watch = Watch::open(&setup.watch, options.channel)?;
        let channel = options.channel;
        let settings = Settings { peer, local: options.bind, channel, node: options.eui64 };
        let mut host = Host::open(settings, node).map_err(|error| {
            let message = format!("cannot open a socket towards {peer}: {error}");
            Failure::usage(message, "give --bind an address of this machine and a free port")
        })?;
        stop_at(until, host.remote())?;
        host.start();
        Ok(Self { host, watch, zep: options.zep.clone() })
    }

    /// The address of its socket.
    pub fn local_addr(&self) -> Result<std::net::SocketAddr, Failure> {
        self.host.local_addr().map_err(Failure::own)
    }
    /// The time since it was opened.
    pub fn now(&self) -> Instant {
        self.host.now()
    }
    /// Tells the node something; what it refuses came too late, such as an answer to a request that is over.
    pub fn tell(&mut self, input: Input) {
        let _refused = self.host.tell(input);
    }
    /// Lets the node live until it says something, or until a time of its clock. Requests that nobody claims get 4.04.
    pub fn next(&mut self, until: Option<Instant>) -> Result<SessionEvent, Failure> {
        loop {
            match self.host.next(until).map_err(|error| lost(&self.zep, &error))? {
                Step::Happened(at, event) => {
                    self.watch.note(at, &event)?;
                    let Event::Said(output) = event else { continue };
                    match output.not_found() {
                        Some(answer) => self.tell(answer),
                        None => return Ok(SessionEvent::Said(at, output)),
                    }
                }
                Step::Due => return Ok(SessionEvent::Due),
                Step::Stopped => return Ok(SessionEvent::Stopped),
            }
        }
    }
    /// Tells the node to send a packet, and returns its name; `None` if the session was stopped.
    pub fn send(&mut self, input: Input) -> Result<Option<Handle>, Failure> {
        // What the node has said so far is not about this packet.
        if !self.rest(Duration::ZERO)? {
            return Ok(None);
        }
        self.tell(input);
        // The birth of a packet is what a node says about it first.
        match self.next(Some(self.now()))? {
            SessionEvent::Said(_, Output::Packet(Packet::Born(handle, _))) => Ok(Some(handle)),
            SessionEvent::Said(..) | SessionEvent::Due | SessionEvent::Stopped => Ok(None),
        }
    }
    /// Lets the node say what it still has to say, and live for so long; false if it was stopped meanwhile.
    pub fn rest(&mut self, time: Duration) -> Result<bool, Failure> {
        let until = self.now() + time;
        loop {
            match self.next(Some(until))? {
                SessionEvent::Said(..) => {}
                SessionEvent::Due => return Ok(true),
                SessionEvent::Stopped => return Ok(false),
            }
        }
    }
    /// Closes the outputs and shows what was counted.
    pub fn finish(mut self, out: &mut impl Write) -> Result<(), Failure> {
        self.rest(LINGER)?;
        let counters = self.host.counters();
        self.watch.finish(&counters, out)?;
        Ok(out.flush()?)
    }
}

fn lost(zep: &str, error: &std::io::Error) -> Failure {
    let message = format!("the socket towards {zep} failed: {error}");
    Failure::Own { message, hint: Some("is the network of --zep up?".to_owned()) }
}

/// Stops a host at a signal, or when its output is not read any more.
fn stop_at(until: Until, remote: Remote) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(Failure::own)?;
    // Signals are caught from here on.
    let interrupted = {
        let _inside = runtime.enter();
        interrupted().map_err(Failure::own)?
    };
    let waiting = move || {
        runtime.block_on(async {
            tokio::select! {
                () = interrupted => {}
                () = reader_gone(), if until == Until::Unread => {}
            }
        });
        remote.stop();
    };
    // It ends with the command.
    std::thread::Builder::new().name("signals".to_owned()).spawn(waiting).map_err(Failure::own)?;
    Ok(())
}
