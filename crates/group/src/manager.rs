//! The manager: requests of clients in, requests to members out.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use lowmesh_coap::ResponseTemplate;
use lowmesh_coap::observe::registers;
use lowmesh_machine::{Machine, Rejected, earliest};
use lowmesh_registry::Choice;
use lowmesh_units::{Duration, Instant, Rng};
use lowmesh_wire::coap::{Code, ContentFormat, Message};

use crate::address::Block;
use crate::check::{Check, Checks};
use crate::clients::{Answer, Clients};
use crate::condition::Condition;
use crate::dispatch::{Dispatch, End};
use crate::entity::{Change, Entities, Entity, Pending, Phase};
use crate::gate::{Gate, Sample, Snapshot};
use crate::health::Standing;
use crate::hops;
use crate::input::Input;
use crate::memberships::{Memberships, described};
use crate::outcome::Reason;
use crate::output::{ExchangeId, Output, Owner, RequestId};
use crate::params::{EXCHANGES_MAX, GROUP_WAIT, SETTLE, STORE_RETRY};
use crate::prefix::Prefix;
use crate::profile::Communication;
use crate::proposal::{Goal, Proposal, question, settings};
use crate::query::Queries;
use crate::refusal::Refusal;
use crate::reply::{
    accept, check_accept, members_as_links, not_allowed, not_found, profile_response, standing,
};
use crate::route::{Route, link, links, route};
use crate::store::{Store, StoreError, changes, load};
use crate::target::Authority;
use crate::watch::{Registration, Watches};

/// The configuration of a manager.
#[derive(Clone, Debug)]
pub struct Config {
    /// The authorities by which members name entities of this manager.
    pub authorities: Vec<Authority>,
    /// The gate of each domain.
    pub gate: Choice<dyn Gate>,
    /// Whether queries fail fast for nodes that are known to be down, share requests that ask the same, and leave a reserve
    /// of places to nodes that answer. That of Ishaq et al. 2016 does none of it, so reproductions of it do not, either.
    pub fail_fast: bool,
    /// Whether group addresses are in a block that the manager draws at its first start, or in that of Ishaq et al. 2016, which
    /// every such manager has.
    pub own_block: bool,
    /// How long answers of a group are taken, unless a query or a profile has a deadline.
    pub group_wait: Duration,
    /// The addresses that members may have; any without a prefix.
    pub allowed: Vec<Prefix>,
}

impl Config {
    /// A manager as Ishaq et al. 2016 describe it.
    pub fn published() -> Self {
        Self { fail_fast: false, own_block: false, ..Self::default() }
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            authorities: Vec::new(),
            gate: Choice::default(),
            fail_fast: true,
            own_block: true,
            group_wait: GROUP_WAIT,
            allowed: Vec::new(),
        }
    }
}

/// The Entity Manager.
#[derive(Debug)]
pub struct Manager {
    authorities: Vec<Authority>,
    allowed: Vec<Prefix>,
    entities: Entities,
    dispatch: Dispatch,
    clients: Clients,
    checks: Checks,
    memberships: Memberships,
    queries: Queries,
    watches: Watches,
    store: Box<dyn Store>,
    /// When a store that failed is asked again.
    store_due: Option<Instant>,
    /// Why it failed.
    store_fault: Option<StoreError>,
    /// The messages of steps that the store does not have.
    held: Vec<Output>,
}

impl Manager {
    /// Continues from the state in the store. The error names the record that cannot be read.
    pub fn open(
        config: Config,
        mut store: Box<dyn Store>,
        rng: Rng,
        now: Instant,
    ) -> Result<Self, StoreError> {
        let (mut entities, mut rng) = (load(&mut *store, now + SETTLE)?, rng);
        if config.own_block && !entities.has_block() {
            entities.set_block(Block::draw(&mut rng));
        }
        let mut manager = Self {
            authorities: config.authorities,
            allowed: config.allowed,
            entities,
            dispatch: Dispatch::new(config.gate, config.fail_fast),
            clients: Clients::default(),
            checks: Checks::default(),
            memberships: Memberships::new(rng),
            queries: Queries::new(config.group_wait),
            watches: Watches::default(),
            store,
            store_due: None,
            store_fault: None,
            held: Vec::new(),
        };
        manager.memberships.spread(&mut manager.entities);
        let ids: Vec<u64> = manager.entities.ids().collect();
        for id in ids {
            manager.memberships.schedule(&manager.entities, id);
            let parts = (&mut manager.entities, &mut manager.dispatch, &mut manager.clients);
            manager.memberships.settle(parts, id, now);
        }
        manager.commit(true, now);
        Ok(manager)
    }
    /// Unanswered requests of clients, and unfinished requests to members.
    pub fn open_requests(&self) -> (usize, usize) {
        (self.clients.len(), self.dispatch.len())
    }
    /// A request whose observers need its new state. The host of the driver finds them, and asks for the state with the
    /// same request. A response registers its client if it has Observe.
    pub fn poll_change(&mut self) -> Option<Message> {
        self.watches.pop_change()
    }
    /// Why the store has not taken the latest changes, if it has not.
    pub const fn store_fault(&self) -> Option<&StoreError> {
        self.store_fault.as_ref()
    }
    /// What is known of a node, if nodes that are down fail fast.
    pub fn standing(&self, node: &Authority) -> Standing {
        self.dispatch.standing(node)
    }
    /// The nodes whose latest requests had no answer.
    pub fn failing(&self) -> impl Iterator<Item = (&Authority, Standing)> {
        self.dispatch.failing()
    }
    /// How many nodes are known, and how many of them are down.
    pub fn count_nodes(&self) -> (usize, usize) {
        self.dispatch.count_nodes()
    }
    /// The state of the gate of each domain.
    pub fn gates(&self) -> impl Iterator<Item = (String, Snapshot)> {
        self.dispatch.snapshots()
    }
    /// A link for each entity that answers queries, for the list of a server (RFC 6690).
    pub fn links(&self) -> impl Iterator<Item = String> {
        self.entities.iter().map(link)
    }
    /// Counts the changes of entities: what it lists is the same while the number is.
    pub const fn revision(&self) -> u64 {
        self.entities.revision()
    }
    /// The names of all entities that answer queries.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.entities.iter().map(|entity| entity.name.as_str())
    }

    fn on_request(&mut self, request: RequestId, message: &Message, now: Instant) {
        let answer = match route(&message.options) {
            Route::Unknown => Err(not_found()),
            Route::Core | Route::Root if message.code == Code::GET => {
                links(self.entities.iter(), &message.options).map(Some)
            }
            Route::Root if message.code == Code::POST => {
                let storable = self.check_store();
                storable.and_then(|()| self.create(request, message, now)).map(|()| None)
            }
            Route::Core | Route::Root => Err(not_allowed("GET and POST")),
            Route::Entity(name) => self.on_entity(request, &name, message, now),
            Route::Profile(name) => self.on_profile(request, &name, message, now),
            Route::Members(name) => match message.code {
                Code::GET => self.live(&name).map(|(_, entity)| {
                    let health = |node: &Authority| self.dispatch.standing(node).text(now);
                    Some(standing(entity, health))
                }),
                _ => Err(not_allowed("GET")),
            },
        };
        match answer {
            Ok(None) => {}
            Ok(Some(response)) => self.clients.respond(&mut self.dispatch, request, response),
            Err(refusal) => self.clients.refuse(&mut self.dispatch, request, refusal),
        }
    }
    /// Refuses a change that could not be stored.
    fn check_store(&mut self) -> Result<(), Refusal> {
        if self.store_fault.is_none() && self.store.has_room() {
            return Ok(());
        }
        let detail =
            "the manager cannot store changes now, as if its disk were full; queries go on";
        Err(Refusal::new(Code::SERVICE_UNAVAILABLE, "state not stored", detail))
    }
    fn live(&self, name: &str) -> Result<(u64, &Entity), Refusal> {
        self.entities.live(name).ok_or_else(not_found)
    }
    /// An entity that no other change is about.
    fn idle(&self, name: &str) -> Result<u64, Refusal> {
        let (id, entity) = self.live(name)?;
        if entity.pending.is_some() || self.checks.updates(id) {
            let detail = "another change of the entity is in progress: try again later";
            return Err(Refusal::new(Code::CONFLICT, "entity busy", detail));
        }
        Ok(id)
    }

    fn on_entity(
        &mut self,
        request: RequestId,
        name: &str,
        message: &Message,
        now: Instant,
    ) -> Result<Option<ResponseTemplate>, Refusal> {
        match message.code {
            Code::GET | Code::FETCH | Code::PUT | Code::POST => {
                let (id, entity) = self.live(name)?;
                if message.code == Code::GET && accept(message) == Some(ContentFormat::LINK_FORMAT)
                {
                    return Ok(Some(members_as_links(entity)));
                }
                if message.code == Code::GET && registers(message.code, &message.options) {
                    return self.watch(request, id, message, now).map(|()| None);
                }
                self.query(request, id, message, now).map(|()| None)
            }
            Code::DELETE => {
                self.check_store()?;
                let id = self.idle(name)?;
                let parents = self.entities.parents(name);
                if !parents.is_empty() {
                    let detail =
                        format_args!("members of {}: change them first", parents.join(", "));
                    let detail = alloc::format!("the entity is among the {detail}");
                    return Err(Refusal::new(Code::CONFLICT, "entity is a member", detail));
                }
                let pending = Some(Pending { request, kind: Change::Delete });
                let parts = (&mut self.entities, &mut self.dispatch, &mut self.clients);
                self.memberships.dissolve(parts, id, pending, now);
                Ok(None)
            }
            _ => Err(not_allowed("GET, FETCH, PUT, POST and DELETE")),
        }
    }

    fn query(
        &mut self,
        request: RequestId,
        id: u64,
        message: &Message,
        now: Instant,
    ) -> Result<(), Refusal> {
        check_accept(message)?;
        let entity = self.entities.get(id).ok_or_else(not_found)?;
        let (draft, content) = question(message, &self.authorities, entity)?;
        if !self.set_aside(request, self.entities.requests(id)) {
            return Ok(());
        }
        self.clients.set_accept(request, accept(message));
        let parts = (&self.entities, &mut self.dispatch);
        self.queries.start(parts, (request, id), draft, content, now)
    }

    /// Sets requests to members aside; without room the client is asked to come again, and the result is false.
    fn set_aside(&mut self, request: RequestId, exchanges: usize) -> bool {
        let has_room = self.dispatch.len() + exchanges <= EXCHANGES_MAX
            && self.clients.set_aside(request, exchanges);
        if !has_room {
            self.clients.respond(&mut self.dispatch, request, ResponseTemplate::busy());
        }
        has_room
    }

    /// Registers an observer of an entity, or tells one the state.
    fn watch(
        &mut self,
        request: RequestId,
        entity: u64,
        message: &Message,
        now: Instant,
    ) -> Result<(), Refusal> {
        check_accept(message)?;
        let Some(client) = self.clients.address(request) else { return Ok(()) };
        let mut asked = message.clone();
        let condition = Condition::take(&mut asked.options)?;
        let draft = settings(&asked, &self.authorities)?;
        let hop_limit = hops::onward(&message.options)?;
        self.clients.set_accept(request, accept(message));
        let message = message.clone();
        let registration =
            Registration { request, client, entity, draft, condition, hop_limit, message };
        let parts = (&self.entities, &mut self.dispatch);
        let finished = self.watches.register(parts, registration, now)?;
        self.clients.finish(&mut self.dispatch, finished, Answer::Notification);
        Ok(())
    }

    fn create(
        &mut self,
        request: RequestId,
        message: &Message,
        now: Instant,
    ) -> Result<(), Refusal> {
        let Some(client) = self.clients.address(request) else { return Ok(()) };
        let (entities, checks) = (&self.entities, &self.checks);
        let is_taken = |name: &str| entities.id(name).is_some() || checks.reserves(name);
        let asked = (client, message);
        let proposal = Proposal::creation(asked, &self.authorities, entities, is_taken)?;
        self.validate(request, proposal, now)
    }

    fn on_profile(
        &mut self,
        request: RequestId,
        name: &str,
        message: &Message,
        now: Instant,
    ) -> Result<Option<ResponseTemplate>, Refusal> {
        match message.code {
            Code::GET => {
                let (_, entity) = self.live(name)?;
                return profile_response(entity, accept(message)).map(Some);
            }
            Code::PUT | Code::IPATCH => {}
            _ => return Err(not_allowed("GET, PUT and iPATCH")),
        }
        self.check_store()?;
        let id = self.idle(name)?;
        let entity = self.entities.get(id).ok_or_else(not_found)?;
        let proposal = Proposal::update(message, &self.authorities, (id, entity))?;
        if proposal.keeps_members(entity) {
            let Proposal { members, profile, .. } = proposal;
            let parts = (&mut self.entities, &mut self.dispatch, &mut self.clients);
            self.memberships.update(parts, (id, request), (members, profile), now);
            return Ok(None);
        }
        self.validate(request, proposal, now).map(|()| None)
    }

    /// Checks what needs no request, then asks the members.
    fn validate(
        &mut self,
        request: RequestId,
        proposal: Proposal,
        now: Instant,
    ) -> Result<(), Refusal> {
        proposal.check(&self.entities, &self.allowed)?;
        if !self.set_aside(request, proposal.members.len()) {
            return Ok(());
        }
        if let Some(check) = self.checks.begin(&mut self.dispatch, request, proposal, now) {
            self.on_checked(check, now);
        }
        Ok(())
    }

    fn on_checked(&mut self, check: Check, now: Instant) {
        let request = check.request;
        if let Err(refusal) = self.carry_out(check, now) {
            self.clients.refuse(&mut self.dispatch, request, refusal);
        }
    }

    /// Does what was planned for members that are valid.
    fn carry_out(&mut self, check: Check, now: Instant) -> Result<(), Refusal> {
        check.verdict()?;
        let Check { request, proposal, .. } = check;
        // Entities may have changed meanwhile.
        proposal.check_nesting(&self.entities)?;
        let Proposal { goal, profile, members, .. } = proposal;
        let name = match goal {
            Goal::Update { entity } => {
                let parts = (&mut self.entities, &mut self.dispatch, &mut self.clients);
                self.memberships.update(parts, (entity, request), (members, profile), now);
                return Ok(());
            }
            Goal::Create { name } => name,
        };
        let Some(client) = self.clients.address(request) else { return Ok(()) };
        self.entities.check_room(client)?;
        if profile.communication == Communication::Unicast {
            let mut entity = Entity::new(name, profile, Phase::Live, None);
            entity.owner = Some(client);
            entity.members = entity.enlist(members, None);
            let response = described(&entity, Code::CREATED);
            self.entities.insert(entity);
            self.clients.respond(&mut self.dispatch, request, response);
            return Ok(());
        }
        let Some(number) = self.entities.allocate() else {
            let detail = "all 65535 group addresses are in use: delete an entity first";
            return Err(Refusal::new(Code::FORBIDDEN, "no group address", detail));
        };
        let mut entity = Entity::new(name, profile, Phase::Joining, Some(number));
        entity.owner = Some(client);
        entity.pending = Some(Pending { request, kind: Change::Create });
        let id = self.entities.insert(entity);
        self.memberships.gather(&mut self.entities, id, members, now);
        Ok(())
    }

    /// A request of the manager has ended with an answer or without one.
    fn on_end(
        &mut self,
        exchange: ExchangeId,
        answer: &Result<(&Message, Sample), Reason>,
        now: Instant,
    ) {
        let end = match answer {
            Ok((_, sample)) => End::Answer(*sample),
            Err(Reason::Silent) => End::Lost,
            Err(_) => End::Failed,
        };
        for (owner, client) in self.dispatch.end(exchange.0, end, now) {
            // What follows from it is for the same client.
            self.dispatch.set_client(client);
            self.tell(owner, answer.clone(), now);
        }
    }
    /// Tells a part of the manager that its request has ended.
    fn tell(&mut self, owner: Owner, answer: Result<(&Message, Sample), Reason>, now: Instant) {
        let message = answer.clone().map(|(message, _)| message);
        match owner {
            Owner::Query { query, slot } => {
                let done = self.queries.end(&mut self.dispatch, (query, slot), answer, now);
                self.clients.finish(&mut self.dispatch, done, Answer::Response);
            }
            Owner::Group { query } => {
                let entity = self.queries.entity(query);
                let parts = (&mut self.entities, &mut self.dispatch);
                let done = self.queries.over(parts, query, now);
                // Members that stayed silent may be due.
                if let Some(entity) = entity {
                    self.memberships.schedule(&self.entities, entity);
                }
                self.clients.finish(&mut self.dispatch, done, Answer::Response);
            }
            Owner::Check { check, slot } => {
                let done = self.checks.end(&mut self.dispatch, (check, slot), message, now);
                if let Some(check) = done {
                    self.on_checked(check, now);
                }
            }
            Owner::Watch { watch, slot } => {
                let finished = self.watches.end((watch, slot), message, now);
                self.clients.finish(&mut self.dispatch, finished, Answer::Notification);
            }
            Owner::Membership { entity, member } => {
                let parts = (&mut self.entities, &mut self.dispatch, &mut self.clients);
                self.memberships.end(parts, (entity, member), message, now);
            }
            Owner::Nobody => {}
        }
    }
    /// Sends what may leave. Requests that need not leave end with it, and others may follow.
    fn advance(&mut self, now: Instant) {
        loop {
            self.dispatch.advance(now);
            let ended = self.dispatch.take_ended();
            if ended.is_empty() {
                break;
            }
            for ((owner, client), reason) in ended {
                self.dispatch.set_client(client);
                self.tell(owner, Err(reason), now);
            }
            self.dispatch.set_client(None);
        }
    }
    fn on_input(&mut self, now: Instant, input: Input) -> Result<(), Rejected> {
        match input {
            Input::Request { request, client, message } => {
                if self.clients.admit(request, client, &mut self.dispatch)? {
                    self.dispatch.set_client(Some(client));
                    self.on_request(request, &message, now);
                }
            }
            Input::Response { exchange, message, rtt, retransmissions } => {
                let sample = Sample { rtt, retransmissions };
                self.on_end(exchange, &Ok((&message, sample)), now);
            }
            Input::GroupResponse { exchange, from, message } => {
                if let Some(Owner::Group { query }) = self.dispatch.owner(exchange.0) {
                    let parts = (&mut self.entities, &mut self.dispatch);
                    let done = self.queries.hear(parts, query, (&from, &message), now);
                    self.clients.finish(&mut self.dispatch, done, Answer::Response);
                }
            }
            Input::Acknowledged { exchange } => self.dispatch.on_sign(exchange.0, now),
            Input::Notification { exchange, message } => {
                if let Some(node) = self.watches.node(exchange.0) {
                    self.dispatch.on_member(&node, now);
                }
                let finished = self.watches.hear(exchange.0, &message, now);
                self.clients.finish(&mut self.dispatch, finished, Answer::Notification);
            }
            Input::Over { exchange }
            | Input::Failed { exchange, .. }
            | Input::Faulty { exchange, .. }
                if self.watches.on_over(exchange.0, now) => {}
            Input::Over { exchange } => self.on_end(exchange, &Err(Reason::Silent), now),
            Input::Failed { exchange, reason } => {
                self.on_end(exchange, &Err(Reason::of_drop(reason)), now);
            }
            Input::Faulty { exchange, fault } => {
                self.dispatch.on_sign(exchange.0, now);
                self.on_end(exchange, &Err(Reason::of_fault(fault)), now);
            }
            Input::Route { host, path } => self.dispatch.set_route(host, path),
            Input::Deadline => {}
        }
        Ok(())
    }
    /// Hands changes to the store. Until it has taken them, nothing leaves of the steps that made them.
    fn commit(&mut self, is_step_of_change: bool, now: Instant) {
        let is_due = self.store_due.is_none_or(|due| due <= now);
        if !self.entities.is_changed() || !(is_step_of_change || is_due) {
            return;
        }
        for (name, _) in self.entities.changed() {
            self.watches.on_entity_changed(&mut self.dispatch, name, now);
        }
        match self.store.commit(&changes(&self.entities)) {
            Ok(()) => {
                self.entities.clear_changed();
                (self.store_due, self.store_fault) = (None, None);
                self.held.drain(..).for_each(|output| self.dispatch.push(output));
            }
            Err(error) => {
                (self.store_due, self.store_fault) = (Some(now + STORE_RETRY), Some(error));
                if is_step_of_change {
                    self.held.extend(core::iter::from_fn(|| self.dispatch.pop()));
                }
            }
        }
    }
}

impl Machine for Manager {
    type Input<'a> = Input;
    type Output = Output;

    fn handle(&mut self, now: Instant, input: Input) -> Result<(), Rejected> {
        self.dispatch.set_client(None);
        let revision = self.entities.revision();
        let result = self.on_input(now, input);
        self.dispatch.set_client(None);
        for check in self.checks.expire(&mut self.dispatch, now) {
            self.on_checked(check, now);
        }
        let finished = self.queries.expire(&mut self.dispatch, now);
        self.clients.finish(&mut self.dispatch, finished, Answer::Response);
        let shown = self.watches.expire(&mut self.dispatch, now);
        self.clients.finish(&mut self.dispatch, shown, Answer::Notification);
        self.memberships.advance(&mut self.entities, &mut self.dispatch, now);
        self.advance(now);
        self.commit(self.entities.revision() != revision, now);
        result
    }
    fn poll_output(&mut self) -> Option<Output> {
        self.dispatch.pop()
    }
    fn next_deadline(&self) -> Option<Instant> {
        let parts = [
            self.checks.next_deadline(),
            self.queries.next_deadline(),
            self.watches.next_deadline(),
            self.memberships.next_deadline(),
            self.dispatch.next_deadline(),
            self.store_due,
        ];
        parts.into_iter().fold(None, earliest)
    }
}
