//! The manager: requests of clients in, requests to members out.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::net::IpAddr;

use lowmesh_coap::ResponseTemplate;
use lowmesh_coap::observe::{REGISTER, registers};
use lowmesh_coap::resource::content_format;
use lowmesh_machine::{DropReason, Machine, Rejected, earliest};
use lowmesh_registry::Choice;
use lowmesh_units::{Duration, Instant, Rng};
use lowmesh_wire::coap::{Code, ContentFormat, Message, OptionNumber};

use crate::check::{Check, Checks, Plan, check_paths};
use crate::clients::Clients;
use crate::collector::response;
use crate::condition::Condition;
use crate::dispatch::{Dispatch, End, ExchangeId, Output, Owner, RequestId};
use crate::entity::{Change, Entities, Entity, Pending, Phase};
use crate::gate::{Gate, Path, Sample, Snapshot};
use crate::memberships::{Memberships, described};
use crate::outcome::Reason;
use crate::params::{EXCHANGES_MAX, SETTLE, STORE_RETRY, WRITE_MAX};
use crate::profile::document::{self, fields, query};
use crate::profile::{Communication, Draft, Profile, Use};
use crate::query::{Content, Finished, Queries, overrides};
use crate::refusal::Refusal;
use crate::reply::{
    accept, check_accept, members_as_links, not_allowed, not_found, profile_response, standing,
};
use crate::route::{Route, links, route, selection};
use crate::store::{Store, StoreError, changes, load};
use crate::target::{Authority, Target};
use crate::watch::{Registration, Watches};

/// What can happen to a manager.
#[derive(Debug)]
pub enum Input {
    /// A client asks. It gets one [`Output::Respond`].
    Request {
        /// The name of the request.
        request: RequestId,
        /// The address of the client, for its share.
        client: IpAddr,
        /// The whole request.
        message: Message,
    },
    /// A node answers.
    Response {
        /// The name of the manager's request.
        exchange: ExchangeId,
        /// The whole answer.
        message: Message,
        /// From the first copy of the request to now.
        rtt: Duration,
        /// Copies after the first.
        retransmissions: u8,
    },
    /// A member that is observed notifies, after the response.
    Notification {
        /// The name of the manager's request.
        exchange: ExchangeId,
        /// The whole notification.
        message: Message,
    },
    /// One member of a group answers.
    GroupResponse {
        /// The name of the manager's request.
        exchange: ExchangeId,
        /// The member.
        from: Authority,
        /// The whole answer.
        message: Message,
    },
    /// The time for answers of a group is over, or a member notifies no more.
    Over {
        /// The name of the manager's request.
        exchange: ExchangeId,
    },
    /// A request came to nothing.
    Failed {
        /// The name of the manager's request.
        exchange: ExchangeId,
        /// Why.
        reason: DropReason,
    },
    /// The route to a node, for gates that use it.
    Route {
        /// The node.
        host: IpAddr,
        /// The route.
        path: Path,
    },
    /// The time of [`Machine::next_deadline`] has come.
    Deadline,
}

/// What a manager is made with.
#[derive(Clone, Debug, Default)]
pub struct Config {
    /// The authorities by which members name entities of this manager.
    pub authorities: Vec<Authority>,
    /// The gate of each domain.
    pub gate: Choice<dyn Gate>,
}

/// The Entity Manager.
#[derive(Debug)]
pub struct Manager {
    authorities: Vec<Authority>,
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
}

impl Manager {
    /// Goes on from what the store has. The error names the record that cannot be read.
    pub fn open(
        config: Config,
        mut store: Box<dyn Store>,
        rng: Rng,
        now: Instant,
    ) -> Result<Self, StoreError> {
        let entities = load(&mut *store, now + SETTLE)?;
        let mut manager = Self {
            authorities: config.authorities,
            entities,
            dispatch: Dispatch::new(config.gate),
            clients: Clients::default(),
            checks: Checks::default(),
            memberships: Memberships::new(rng),
            queries: Queries::default(),
            watches: Watches::default(),
            store,
            store_due: None,
        };
        let ids: Vec<u64> = manager.entities.ids().collect();
        for id in ids {
            manager.memberships.schedule(&manager.entities, id);
            let parts = (&mut manager.entities, &mut manager.dispatch, &mut manager.clients);
            manager.memberships.settle(parts, id, now);
        }
        manager.commit(now);
        Ok(manager)
    }
    /// Requests of clients that are not answered, and requests to members that are not over.
    pub fn open_requests(&self) -> (usize, usize) {
        (self.clients.len(), self.dispatch.len())
    }
    /// A request whose observers need its new state. The host of the driver finds them, and asks for the state with the
    /// same request. A response registers its client if it has Observe.
    pub fn poll_change(&mut self) -> Option<Message> {
        self.watches.pop_change()
    }
    /// The state of the gate of each domain.
    pub fn gates(&self) -> impl Iterator<Item = (String, Snapshot)> {
        self.dispatch.snapshots()
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
                self.create(request, message, now).map(|()| None)
            }
            Route::Core | Route::Root => Err(not_allowed("GET and POST")),
            Route::Entity(name) => self.on_entity(request, &name, message, now),
            Route::Profile(name) => self.on_profile(request, &name, message, now),
            Route::Members(name) => match message.code {
                Code::GET => self.live(&name).map(|(_, entity)| Some(standing(entity))),
                _ => Err(not_allowed("GET")),
            },
        };
        match answer {
            Ok(None) => {}
            Ok(Some(response)) => self.clients.respond(&mut self.dispatch, request, response),
            Err(refusal) => self.clients.refuse(&mut self.dispatch, request, refusal),
        }
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
        let mut draft = self.draft(query(&message.options)?, Use::Query)?;
        let mut content = Content { method: Code::GET, format: None, payload: Vec::new() };
        match message.code {
            Code::FETCH => {
                let entity = self.entities.get(id).ok_or_else(not_found)?;
                draft.members = Some(selection(entity, message)?);
            }
            Code::PUT | Code::POST => {
                check_length(&message.payload)?;
                content.method = message.code;
                content.format = message.options.get_uint(OptionNumber::CONTENT_FORMAT);
                content.payload.clone_from(&message.payload);
            }
            _ => {}
        }
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
        let mut options = message.options.clone();
        let condition = Condition::take(&mut options)?;
        let draft = self.draft(query(&options)?, Use::Query)?;
        self.clients.set_accept(request, accept(message));
        let message = message.clone();
        let registration = Registration { request, client, entity, draft, condition, message };
        let parts = (&self.entities, &mut self.dispatch);
        let finished = self.watches.register(parts, registration, now)?;
        self.on_shown(finished);
        Ok(())
    }

    fn draft(&self, fields: Vec<(String, document::Field)>, use_: Use) -> Result<Draft, Refusal> {
        let mut draft = Draft::default();
        for (key, field) in fields {
            draft.set(&key, &field, use_, &self.authorities)?;
        }
        Ok(draft)
    }

    fn create(
        &mut self,
        request: RequestId,
        message: &Message,
        now: Instant,
    ) -> Result<(), Refusal> {
        let mut all = fields(content_format(&message.options), &message.payload)?;
        all.extend(query(&message.options)?);
        let mut draft = self.draft(all, Use::Creation)?;
        let Some(targets) = draft.members.take() else {
            return Err(Refusal::field("er: the list of the URIs of members is missing"));
        };
        let name = match draft.name.take() {
            Some(name) if self.entities.id(&name).is_some() || self.checks.reserves(&name) => {
                let detail =
                    alloc::format!("name: there is an entity {name:?}, or its members still leave");
                return Err(Refusal::new(Code::CONFLICT, "name taken", detail));
            }
            Some(name) => name,
            None => self.entities.free_name(|name| self.checks.reserves(name)),
        };
        if !self.entities.has_room() {
            let detail =
                alloc::format!("{} entities: delete one first", crate::params::ENTITIES_MAX);
            return Err(Refusal::new(Code::FORBIDDEN, "manager full", detail));
        }
        let profile = draft.over(&Profile::default());
        draft.check(&profile, targets.len())?;
        self.validate(request, Plan::Create { name }, (profile, targets), now)
    }

    fn on_profile(
        &mut self,
        request: RequestId,
        name: &str,
        message: &Message,
        now: Instant,
    ) -> Result<Option<ResponseTemplate>, Refusal> {
        let base = match message.code {
            Code::GET => {
                let (_, entity) = self.live(name)?;
                return profile_response(entity, accept(message)).map(Some);
            }
            Code::PUT => None,
            Code::IPATCH => Some(()),
            _ => return Err(not_allowed("GET, PUT and iPATCH")),
        };
        let id = self.idle(name)?;
        let all = fields(content_format(&message.options), &message.payload)?;
        let mut draft = self.draft(all, Use::Update)?;
        let entity = self.entities.get(id).ok_or_else(not_found)?;
        let current: Vec<Target> = entity.members.iter().map(|one| one.target.clone()).collect();
        let (communication, scope) = (entity.profile.communication, entity.profile.scope);
        let old = base.map(|()| entity.profile.clone());
        let old = old.unwrap_or(Profile { communication, scope, ..Profile::default() });
        let targets = draft.members.take().unwrap_or_else(|| current.clone());
        let profile = draft.over(&old);
        draft.check(&profile, targets.len())?;
        if targets == current {
            let parts = (&mut self.entities, &mut self.dispatch, &mut self.clients);
            self.memberships.update(parts, (id, request), (targets, profile), now);
            return Ok(None);
        }
        self.validate(request, Plan::Update { entity: id }, (profile, targets), now).map(|()| None)
    }

    /// Checks what needs no request, then asks the members.
    fn validate(
        &mut self,
        request: RequestId,
        plan: Plan,
        (profile, targets): (Profile, Vec<Target>),
        now: Instant,
    ) -> Result<(), Refusal> {
        let name = match &plan {
            Plan::Create { name } => name.as_str(),
            Plan::Update { entity } => self.entities.get(*entity).map_or("", |entity| &entity.name),
        };
        check_paths(&profile, &targets)?;
        self.entities.check_nesting(name, &targets)?;
        for target in &targets {
            if let Target::Entity { query, .. } = target {
                overrides(query)?;
            }
        }
        if !self.set_aside(request, targets.len()) {
            return Ok(());
        }
        let check = self.checks.begin(&mut self.dispatch, (request, plan), (profile, targets), now);
        if let Some(check) = check {
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
        let Check { request, plan, profile, targets, .. } = check;
        let name = match plan {
            Plan::Update { entity } => {
                let name = self.entities.get(entity).map(|entity| entity.name.clone());
                // Entities may have changed meanwhile.
                self.entities.check_nesting(&name.ok_or_else(not_found)?, &targets)?;
                let parts = (&mut self.entities, &mut self.dispatch, &mut self.clients);
                self.memberships.update(parts, (entity, request), (targets, profile), now);
                return Ok(());
            }
            Plan::Create { name } => name,
        };
        self.entities.check_nesting(&name, &targets)?;
        if profile.communication == Communication::Unicast {
            let mut entity = Entity::new(name, profile, Phase::Live, None);
            entity.members = entity.enlist(targets, None);
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
        entity.pending = Some(Pending { request, kind: Change::Create });
        let id = self.entities.insert(entity);
        self.memberships.gather(&mut self.entities, id, targets, now);
        Ok(())
    }

    /// A request of the manager has ended with an answer or without one.
    fn on_end(
        &mut self,
        exchange: ExchangeId,
        answer: Result<(&Message, Sample), Reason>,
        now: Instant,
    ) {
        let end = answer.as_ref().map_or(End::Lost, |(_, sample)| End::Answer(*sample));
        let Some(owner) = self.dispatch.end(exchange.0, end, now) else { return };
        let message = answer.clone().map(|(message, _)| message);
        match owner {
            Owner::Query { query, slot } => {
                let done = self.queries.end(&mut self.dispatch, (query, slot), answer, now);
                self.on_finished(done);
            }
            Owner::Group { query } => {
                let entity = self.queries.entity(query);
                let parts = (&mut self.entities, &mut self.dispatch);
                let done = self.queries.over(parts, query, now);
                // Members that stayed silent may be due.
                if let Some(entity) = entity {
                    self.memberships.schedule(&self.entities, entity);
                }
                self.on_finished(done);
            }
            Owner::Check { check, slot } => {
                let done = self.checks.end(&mut self.dispatch, (check, slot), message, now);
                if let Some(check) = done {
                    self.on_checked(check, now);
                }
            }
            Owner::Watch { watch, slot } => {
                let finished = self.watches.end((watch, slot), message, now);
                self.on_shown(finished);
            }
            Owner::Membership { entity, member } => {
                let parts = (&mut self.entities, &mut self.dispatch, &mut self.clients);
                self.memberships.end(parts, (entity, member), message, now);
            }
        }
    }
    fn on_finished(&mut self, finished: impl IntoIterator<Item = Finished>) {
        for (request, result) in finished {
            let accept = self.clients.accept(request);
            let response = match result {
                Ok(answer) => response(&answer, accept),
                Err(refusal) => refusal.into_response(),
            };
            self.clients.respond(&mut self.dispatch, request, response);
        }
    }
    /// Answers clients that observe.
    fn on_shown(&mut self, finished: Vec<Finished>) {
        for (request, result) in finished {
            let accept = self.clients.accept(request);
            let response = match result {
                Ok(answer) => {
                    let mut response = response(&answer, accept);
                    response.options.set_uint(OptionNumber::OBSERVE, REGISTER);
                    response
                }
                Err(refusal) => refusal.into_response(),
            };
            self.clients.respond(&mut self.dispatch, request, response);
        }
    }
    fn on_input(&mut self, now: Instant, input: Input) -> Result<(), Rejected> {
        match input {
            Input::Request { request, client, message } => {
                if self.clients.admit(request, client, &mut self.dispatch)? {
                    self.on_request(request, &message, now);
                }
            }
            Input::Response { exchange, message, rtt, retransmissions } => {
                let sample = Sample { rtt, retransmissions };
                self.on_end(exchange, Ok((&message, sample)), now);
            }
            Input::GroupResponse { exchange, from, message } => {
                if let Some(Owner::Group { query }) = self.dispatch.owner(exchange.0) {
                    let parts = (&mut self.entities, &mut self.dispatch);
                    let done = self.queries.hear(parts, query, (&from, &message), now);
                    self.on_finished(done);
                }
            }
            Input::Notification { exchange, message } => {
                let finished = self.watches.hear(exchange.0, &message, now);
                self.on_shown(finished);
            }
            Input::Over { exchange } | Input::Failed { exchange, .. }
                if self.watches.on_over(exchange.0, now) => {}
            Input::Over { exchange } => self.on_end(exchange, Err(Reason::Silent), now),
            Input::Failed { exchange, reason } => {
                self.on_end(exchange, Err(Reason::of_drop(reason)), now);
            }
            Input::Route { host, path } => self.dispatch.set_route(host, path),
            Input::Deadline => {}
        }
        Ok(())
    }
    /// Hands the changes of a step to the store. Until it has taken them, nothing leaves.
    fn commit(&mut self, now: Instant) {
        if self.entities.is_changed() {
            for (name, _) in self.entities.changed() {
                self.watches.on_entity_changed(&mut self.dispatch, name, now);
            }
            if self.store.commit(&changes(&self.entities)).is_ok() {
                self.entities.clear_changed();
                self.store_due = None;
            } else {
                self.store_due = Some(now + STORE_RETRY);
            }
        }
    }
}

/// 4.13: what is written goes to every member in a copy of its own.
fn check_length(payload: &[u8]) -> Result<(), Refusal> {
    if payload.len() <= WRITE_MAX {
        return Ok(());
    }
    let detail = alloc::format!("{} octets; {WRITE_MAX} are allowed", payload.len());
    Err(Refusal::new(Code::REQUEST_ENTITY_TOO_LARGE, "payload too long", detail))
}

impl Machine for Manager {
    type Input<'a> = Input;
    type Output = Output;

    fn handle(&mut self, now: Instant, input: Input) -> Result<(), Rejected> {
        let result = self.on_input(now, input);
        let finished = self.queries.expire(&mut self.dispatch, now);
        self.on_finished(finished);
        let shown = self.watches.expire(&mut self.dispatch, now);
        self.on_shown(shown);
        self.memberships.advance(&mut self.entities, &mut self.dispatch, now);
        self.dispatch.advance(now);
        self.commit(now);
        result
    }
    fn poll_output(&mut self) -> Option<Output> {
        if self.entities.is_changed() { None } else { self.dispatch.pop() }
    }
    fn next_deadline(&self) -> Option<Instant> {
        let parts = [
            self.queries.next_deadline(),
            self.watches.next_deadline(),
            self.memberships.next_deadline(),
            self.dispatch.next_deadline(),
            self.store_due,
        ];
        parts.into_iter().fold(None, earliest)
    }
}
