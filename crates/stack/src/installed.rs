//! The applications of one node: which input belongs to which, and what each has under way.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;

use lowmesh_machine::{DropReason, Handle, Outbox, earliest};
use lowmesh_units::Instant;
use lowmesh_wire::coap::{Message, OptionNumber, Options};
use lowmesh_wire::ipv6::Address;

use crate::application::{
    Action, Application, ApplicationId, HostHandle, Input, RequestId, Snapshot,
};
use crate::config::ConfigError;
use crate::event::{ApplicationEvent, Output, Peer, Transaction};
use crate::params::{APPLICATIONS_MAX, COAP_PORT, ECHO_PORT};

/// An application with what it claims.
#[derive(Debug)]
struct Installed {
    machine: Box<dyn Application>,
    /// Claimed paths.
    paths: Vec<Claim>,
    ports: Vec<u16>,
}

/// A claimed path.
#[derive(Debug)]
struct Claim {
    /// The path, as the options of a request for it.
    path: Options,
    /// Whether the paths below it are claimed too.
    subtree: bool,
}

impl Claim {
    /// The claim that a text makes: a path, or one that ends in `/*`.
    fn parse(text: &str) -> Self {
        let above = text.strip_suffix("/*");
        let mut path = Options::new();
        path.insert_path(above.unwrap_or(text));
        Self { path, subtree: above.is_some() }
    }
    fn covers(&self, asked: &Options) -> bool {
        let mut asked = asked.iter().values(OptionNumber::URI_PATH);
        let mut own = self.path.iter().values(OptionNumber::URI_PATH);
        own.all(|segment| asked.next() == Some(segment)) && (self.subtree || asked.next().is_none())
    }
    /// Whether a request can be for both.
    fn meets(&self, other: &Self) -> bool {
        self.covers(&other.path) || other.covers(&self.path)
    }
}

/// Who made a request.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Owner {
    /// The driver of the node, under a name of its own.
    Driver(Handle),
    /// An application of the node.
    Application(ApplicationId),
}

/// A request of this node that is not over.
#[derive(Clone, Copy, Debug)]
struct Open {
    owner: Owner,
    /// When its first message left.
    sent: Option<Instant>,
    /// Copies of its messages after the first.
    copies: u8,
    /// A response has come: an observation that goes on has no other end for the record.
    answered: bool,
}

/// The applications of a node and their requests.
#[derive(Debug, Default)]
pub(crate) struct Applications {
    all: Vec<Installed>,
    open: BTreeMap<u64, Open>,
    /// Number of the latest request.
    requests: u64,
    /// What the applications still have to hear.
    inbox: VecDeque<(ApplicationId, Input)>,
    actions: Outbox<Action>,
    has_joined: bool,
    /// The earliest deadline of all applications.
    due: Option<Instant>,
}

impl Applications {
    pub(crate) fn install(
        &mut self,
        machine: Box<dyn Application>,
    ) -> Result<ApplicationId, ConfigError> {
        let claims = machine.claims();
        for path in &claims.paths {
            let claim = Claim::parse(path);
            if self.all.iter().flat_map(|one| &one.paths).any(|other| other.meets(&claim)) {
                return Err(ConfigError::ClaimedPath(path.clone()));
            }
        }
        for &port in &claims.ports {
            if [COAP_PORT, ECHO_PORT].contains(&port) || self.of_port(port).is_some() {
                return Err(ConfigError::ClaimedPort(port));
            }
        }
        let place = u16::try_from(self.all.len()).ok().filter(|place| *place < APPLICATIONS_MAX);
        let id = ApplicationId(place.ok_or(ConfigError::TooManyApplications)?);
        let paths = claims.paths.iter().map(|path| Claim::parse(path)).collect();
        self.all.push(Installed { machine, paths, ports: claims.ports });
        Ok(id)
    }
    pub(crate) fn of_path(&self, options: &Options) -> Option<ApplicationId> {
        let claims = |claim: &Claim| claim.covers(options);
        let place = self.all.iter().position(|one| one.paths.iter().any(claims))?;
        Some(ApplicationId(place as u16))
    }
    fn of_port(&self, port: u16) -> Option<ApplicationId> {
        let place = self.all.iter().position(|one| one.ports.contains(&port))?;
        Some(ApplicationId(place as u16))
    }
    pub(crate) fn tell(&mut self, application: ApplicationId, input: Input) {
        self.inbox.push_back((application, input));
    }
    pub(crate) fn tell_all(&mut self, input: impl Fn() -> Input) {
        for place in 0..self.all.len() {
            self.tell(ApplicationId(place as u16), input());
        }
    }
    /// The node was switched on.
    pub fn start(&mut self) {
        self.tell_all(|| Input::Started);
    }
    /// The deadlines that have come.
    pub fn deadline(&mut self, now: Instant) {
        if self.due.is_none_or(|due| due > now) {
            return;
        }
        for place in 0..self.all.len() {
            if self.all[place].machine.next_deadline().is_some_and(|due| due <= now) {
                self.tell(ApplicationId(place as u16), Input::Deadline);
            }
        }
    }
    pub const fn next_deadline(&self) -> Option<Instant> {
        self.due
    }
    /// Passes the next input to its application, at a node with the global address `address`; `None` if none waits.
    pub(crate) fn call_next(&mut self, now: Instant, address: Address) -> Option<ApplicationId> {
        let (id, input) = self.inbox.pop_front()?;
        if let Some(installed) = self.all.get_mut(usize::from(id.0)) {
            let mut host = HostHandle::new(id.0, address, &mut self.requests, &mut self.actions);
            installed.machine.handle(now, input, &mut host);
            // The deadline of an application changes only when it handles an input.
            let deadlines = self.all.iter().map(|one| one.machine.next_deadline());
            self.due = deadlines.fold(None, earliest);
        }
        Some(id)
    }
    /// The next thing that the called application wants.
    pub(crate) fn next_action(&mut self) -> Option<Action> {
        self.actions.pop()
    }
    /// Whether the applications wait for the node to join.
    pub fn awaits_network(&self) -> bool {
        !self.has_joined && !self.all.is_empty()
    }
    /// The node has joined.
    pub fn join(&mut self) {
        self.has_joined = true;
        self.tell_all(|| Input::Joined);
    }
    pub fn on_datagram(&mut self, port: u16, from: Peer, payload: &[u8]) -> bool {
        let Some(application) = self.of_port(port) else { return false };
        self.tell(application, Input::Datagram { port, from, payload: payload.to_vec() });
        true
    }
    /// The number under which the host knows a request from now on.
    pub fn open(&mut self, handle: Handle) -> Handle {
        self.requests += 1;
        self.insert(self.requests, Owner::Driver(handle));
        Handle(self.requests)
    }
    pub(crate) fn insert(&mut self, number: u64, owner: Owner) {
        self.open.insert(number, Open { owner, sent: None, copies: 0, answered: false });
    }
    /// The host did not take a request.
    pub fn close(&mut self, host_handle: Handle) {
        self.open.remove(&host_handle.0);
    }
    fn noted(host_handle: Handle, owner: Owner, note: impl Fn(Handle) -> Transaction) -> Output {
        match owner {
            Owner::Driver(handle) => Output::Transaction(note(handle)),
            Owner::Application(application) => {
                let request = RequestId { application, number: host_handle.0 };
                let event = ApplicationEvent::Transaction(request, note(Handle(request.number)));
                Output::Application(event)
            }
        }
    }
    /// The first message of a request has left, or one of its later ones.
    pub(crate) fn on_started(
        &mut self,
        handle: Handle,
        rto: lowmesh_units::Duration,
        at: Instant,
    ) -> Option<Output> {
        let open = self.open.get_mut(&handle.0).filter(|open| open.sent.is_none())?;
        open.sent = Some(at);
        Some(Self::noted(handle, open.owner, |name| Transaction::Sent(name, rto)))
    }
    pub(crate) fn on_resent(&mut self, handle: Handle) -> Option<Output> {
        let open = self.open.get_mut(&handle.0)?;
        open.copies = open.copies.saturating_add(1);
        let copies = open.copies;
        Some(Self::noted(handle, open.owner, |name| Transaction::Resent(name, copies)))
    }
    /// A request has failed, or the host has not taken it.
    pub(crate) fn on_failed(&mut self, handle: Handle, reason: DropReason) -> Option<Output> {
        let open = self.open.remove(&handle.0)?;
        if let Owner::Application(application) = open.owner {
            let request = RequestId { application, number: handle.0 };
            self.tell(application, Input::Failed { request, reason });
        }
        let note = |name| Transaction::Failed(name, reason);
        (!open.answered).then(|| Self::noted(handle, open.owner, note))
    }
    pub(crate) fn on_response(&mut self, handle: Handle, answer: Answer) -> Option<Output> {
        let Answer { from, message, rtt, retransmissions } = answer;
        let open = self.open.remove(&handle.0)?;
        if let Owner::Application(application) = open.owner {
            let request = RequestId { application, number: handle.0 };
            self.tell(
                application,
                Input::Response { request, from, message, rtt, retransmissions },
            );
        }
        let note = |name| Transaction::Acknowledged(name, rtt, retransmissions);
        (!open.answered).then(|| Self::noted(handle, open.owner, note))
    }
    /// A request goes on after this: a notification, or the answer of a group's member.
    pub(crate) fn on_part(
        &mut self,
        now: Instant,
        handle: Handle,
        input: impl Fn(RequestId) -> Input,
    ) -> Option<Output> {
        let open = self.open.get_mut(&handle.0)?;
        let (first, copies) = (!open.answered, open.copies);
        open.answered = true;
        let (owner, rtt) = (open.owner, now.since(open.sent.unwrap_or(now)));
        if let Owner::Application(application) = owner {
            let request = RequestId { application, number: handle.0 };
            self.inbox.push_back((application, input(request)));
        }
        let note = |name| Transaction::Acknowledged(name, rtt, copies);
        first.then(|| Self::noted(handle, owner, note))
    }
    pub(crate) fn on_over(&mut self, handle: Handle) {
        let Some(open) = self.open.remove(&handle.0) else { return };
        if let Owner::Application(application) = open.owner {
            let request = RequestId { application, number: handle.0 };
            self.tell(application, Input::Over { request });
        }
    }
    /// The applications from number `first` on.
    pub fn into_machines(self, first: usize) -> Vec<Box<dyn Application>> {
        self.all.into_iter().skip(first).map(|one| one.machine).collect()
    }
    /// What the applications show of themselves.
    pub fn snapshots(&self) -> impl Iterator<Item = Snapshot> {
        self.all.iter().map(|one| one.machine.snapshot())
    }
}

/// A response with its times.
pub(crate) struct Answer {
    pub(crate) from: Peer,
    pub(crate) message: Message,
    pub(crate) rtt: lowmesh_units::Duration,
    pub(crate) retransmissions: u8,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_with_a_star_covers_its_path_and_all_below() {
        let path = |text: &str| Claim::parse(text).path;
        let (one, all) = (Claim::parse("e"), Claim::parse("e/*"));
        for (text, by_one, by_all) in [
            ("e", true, true),
            ("e/room", false, true),
            ("e/a/b", false, true),
            ("f", false, false),
        ] {
            assert_eq!(
                (one.covers(&path(text)), all.covers(&path(text))),
                (by_one, by_all),
                "{text}"
            );
        }
        assert!(all.meets(&Claim::parse("e/room")) && Claim::parse("e/room").meets(&all));
        assert!(!one.meets(&Claim::parse("e/room")) && !all.meets(&Claim::parse("es/*")));
    }
}
