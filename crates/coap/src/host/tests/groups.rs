//! A client and the members of a group, over a perfect link in virtual time (RFC 10020).

use super::*;
use crate::Leisure;
use crate::exchange::Repetition;
use crate::resource::{Methods, Resource, Route, Router};

const GROUP: u8 = 99;
const WAIT: Duration = Duration::from_secs(20);

/// A client at address 1 and members at 10, 11, ... that all have the same resources.
struct Group {
    client: Datagrams,
    members: Vec<Datagrams>,
    router: Router<()>,
    body: Vec<u8>,
    now: Instant,
    /// What reached the members by unicast.
    unicast: Vec<(u8, Message)>,
    /// What reached the client: when, and from whom.
    came: Vec<(Instant, u8, Message)>,
}

impl Group {
    fn new(count: u8, limits: &HostLimits) -> Self {
        let mut router = Router::new();
        let light = || Resource::new(Methods::GET, ()).multicast();
        router.insert("/gp/lights/1", light().attribute("rt", "g.light").observable());
        router.insert("/gp/fans/1", light().attribute("rt", "g.fan"));
        router.insert("/door", light().attribute("rt", "lock"));
        let members = (0..count).map(|member| host(100 + u16::from(member), limits.clone()));
        let (members, body) = (members.collect(), b"on".to_vec());
        let (unicast, came) = (Vec::new(), Vec::new());
        Self { client: host(1, TRUSTING), members, router, body, now: T0, unicast, came }
    }
    fn ask(&mut self, message: RequestTemplate) {
        let request = GroupInput::Request { group: GROUP, message, wait: WAIT, handle: Handle(7) };
        self.client.handle(self.now, Input::Group(request)).expect("acceptable");
    }
    /// Lets the time run to `until`; returns what the client's application gets.
    fn run(&mut self, until: Instant) -> Vec<Output<u8>> {
        let mut heard = Vec::new();
        loop {
            while self.exchange(&mut heard) {}
            let members = self.members.iter().map(Host::next_deadline);
            let due = members.fold(self.client.next_deadline(), earliest);
            let Some(due) = due.filter(|due| *due <= until) else {
                self.now = until;
                return heard;
            };
            self.now = self.now.max(due);
            self.client.handle(self.now, Input::Deadline).expect("never fails");
            for member in &mut self.members {
                member.handle(self.now, Input::Deadline).expect("never fails");
            }
        }
    }
    /// Carries all messages once; false if there was none.
    fn exchange(&mut self, heard: &mut Vec<Output<u8>>) -> bool {
        let mut moved = false;
        while let Some(output) = self.client.poll_output() {
            moved = true;
            match output {
                Output::Send { to, bytes, .. } => self.carry(to, &bytes),
                Output::Started { .. } | Output::Acknowledged { .. } => {}
                other => heard.push(other),
            }
        }
        for (index, member) in self.members.iter_mut().enumerate() {
            while let Some(output) = member.poll_output() {
                moved = true;
                let from = 10 + index as u8;
                match output {
                    Output::Send { bytes, .. } => {
                        let message = Message::parse(&bytes).expect("own bytes");
                        self.came.push((self.now, from, message));
                        let input = Input::Datagram { from, bytes: &bytes };
                        self.client.handle(self.now, input).expect("never fails");
                    }
                    Output::Request { exchange, message, multicast, .. } => {
                        let response = match self.router.route(&message, multicast) {
                            Route::Answer(response) => response,
                            Route::Ignore => continue,
                            Route::Resource { resource, .. } => {
                                let mut response = ResponseTemplate::new(Code::CONTENT)
                                    .with_payload(self.body.clone());
                                if resource.is_observable() {
                                    response.options.insert_uint(OptionNumber::OBSERVE, 0);
                                }
                                response
                            }
                        };
                        let input = Input::Respond { exchange, response, handle: Handle::NONE };
                        member.handle(self.now, input).expect("acceptable");
                    }
                    _ => {}
                }
            }
        }
        moved
    }
    fn carry(&mut self, to: u8, bytes: &[u8]) {
        for (index, member) in self.members.iter_mut().enumerate() {
            let address = 10 + index as u8;
            let input = match to {
                GROUP => Input::Group(GroupInput::Datagram { from: CLIENT, bytes }),
                to if to == address => {
                    self.unicast.push((to, Message::parse(bytes).expect("own bytes")));
                    Input::Datagram { from: CLIENT, bytes }
                }
                _ => continue,
            };
            member.handle(self.now, input).expect("never fails");
        }
    }
}

fn answers(heard: &[Output<u8>]) -> Vec<(u8, Vec<u8>)> {
    let mut all: Vec<_> = heard
        .iter()
        .filter_map(|output| match output {
            Output::GroupResponse { from, message, .. } => Some((*from, message.payload.clone())),
            _ => None,
        })
        .collect();
    all.sort();
    all
}

#[test]
fn each_member_answers_at_its_own_time_within_the_leisure() {
    let mut group = Group::new(8, &TRUSTING);
    group.ask(RequestTemplate::get("/gp/lights/1"));
    let heard = group.run(Instant::from_secs(30));
    assert_eq!(answers(&heard).len(), 8);
    assert_eq!(heard.last(), Some(&Output::Over { handle: Handle(7) }));
    let mut times: Vec<_> = group.came.iter().map(|(at, ..)| *at).collect();
    times.dedup();
    assert_eq!(times.len(), 8, "{times:?}");
    assert!(times[7] < Instant::ZERO + Leisure::default().of(0));
}

#[test]
fn groups_are_discovered_by_resource_type_or_path_and_others_stay_silent() {
    for (query, found) in [("rt=g.*", 2), ("href=/gp/lights/*", 1), ("rt=none", 0)] {
        let mut group = Group::new(2, &TRUSTING);
        let mut message = RequestTemplate::get("/.well-known/core");
        message.options.insert(OptionNumber::URI_QUERY, query.as_bytes());
        group.ask(message);
        let answers = answers(&group.run(Instant::from_secs(30)));
        assert_eq!(answers.len(), if found == 0 { 0 } else { 2 }, "{query}");
        for (_, list) in answers {
            let list = String::from_utf8(list).expect("link format");
            assert_eq!(list.split(',').count(), found, "{query}: {list}");
        }
    }
}

#[test]
fn with_a_group_block_each_member_sends_a_short_first_block_and_the_rest_by_unicast() {
    let limits = HostLimits { group_block: Some(Exponent::fitting(32)), ..TRUSTING };
    let mut group = Group::new(3, &limits);
    group.body = body(100);
    group.ask(RequestTemplate::get("/gp/fans/1"));
    let heard = group.run(Instant::from_secs(30));
    let expected: Vec<_> = (10..13).map(|member| (member, body(100))).collect();
    assert_eq!(answers(&heard), expected);
    assert!(group.came.iter().all(|(_, _, message)| message.payload.len() <= 32));
    assert_eq!(group.unicast.len(), 3 * 3, "three more blocks of each member");
    assert!(group.unicast.iter().all(|(_, get)| get.kind == Kind::Confirmable));
}

#[test]
fn a_body_in_blocks_is_not_taken_by_multicast() {
    let mut group = Group::new(1, &TRUSTING);
    let mut put = Message::new(Kind::NonConfirmable, Code::PUT, MessageId(4));
    put.options.insert_path("/gp/fans/1");
    let block = Block { number: 0, more: true, exponent: Exponent::fitting(16) };
    block.write(&mut put.options, OptionNumber::BLOCK1);
    put.payload = vec![1; 16];
    group.carry(GROUP, &put.to_vec());
    group.run(Instant::from_secs(30));
    assert_eq!(group.came, []);
}

#[test]
fn a_strange_client_of_a_group_proves_its_address_to_each_member_by_unicast() {
    let limits = HostLimits { challenge_groups: true, ..CAREFUL };
    let mut group = Group::new(2, &limits);
    group.body = body(20);
    group.ask(RequestTemplate::get("/gp/fans/1"));
    let heard = group.run(Instant::from_secs(30));
    assert_eq!(answers(&heard), [(10, body(20)), (11, body(20))]);
    for member in [10, 11] {
        let from = group.came.iter().filter(|(_, from, _)| *from == member);
        let codes: Vec<_> = from.map(|(_, _, message)| message.code).collect();
        assert_eq!(codes, [Code::UNAUTHORIZED, Code::CONTENT]);
    }
    let echoes =
        group.unicast.iter().filter(|(_, get)| get.options.get(OptionNumber::ECHO).is_some());
    assert_eq!(echoes.count(), 2);
    group.came.clear();
    group.ask(RequestTemplate::get("/gp/fans/1"));
    group.run(Instant::from_secs(60));
    assert!(group.came.iter().all(|(_, _, message)| message.code == Code::CONTENT), "proven now");
}

#[test]
fn discovery_by_multicast_needs_no_proof() {
    let mut group = Group::new(1, &HostLimits { challenge_groups: true, ..TRUSTING });
    group.ask(RequestTemplate::get("/.well-known/core"));
    group.run(Instant::from_secs(30));
    assert_eq!(group.came[0].2.code, Code::CONTENT);
}

#[test]
fn an_answer_past_the_credit_of_a_strange_client_asks_for_a_proof_too() {
    let mut group = Group::new(1, &CAREFUL);
    group.body = body(900);
    group.ask(RequestTemplate::get("/gp/fans/1"));
    let heard = group.run(Instant::from_secs(30));
    assert_eq!(answers(&heard), [(10, body(900))]);
    assert!(group.came[0].2.payload.len() < 300, "{:?}", group.came[0]);
    assert!(group.came[0].2.options.get(OptionNumber::ECHO).is_some());
}

#[test]
fn all_members_are_observed_with_one_request_and_released_with_one() {
    let mut group = Group::new(3, &TRUSTING);
    group.ask(observe("/gp/lights/1"));
    assert_eq!(answers(&group.run(Instant::from_secs(40))).len(), 3);
    assert!(group.members.iter().all(|member| member.observers() == 1));
    group.body = b"off".to_vec();
    group.came.clear();
    let changed = group.now;
    for member in &mut group.members {
        member.changed("/gp/lights/1", changed);
    }
    let heard = group.run(Instant::from_secs(80));
    let expected: Vec<_> = (10..13).map(|member| (member, b"off".to_vec())).collect();
    assert_eq!(answers(&heard), expected);
    let mut times: Vec<_> = group.came.iter().map(|(at, ..)| at.since(changed)).collect();
    times.dedup();
    assert_eq!(times.len(), 3, "notifications are spread over the leisure: {times:?}");
    group.client.handle(group.now, Input::Deregister { handle: Handle(7) }).expect("known");
    let heard = group.run(Instant::from_secs(120));
    assert_eq!(heard.last(), Some(&Output::Over { handle: Handle(7) }));
    assert!(group.members.iter().all(|member| member.observers() == 0));
}

#[test]
fn a_strange_client_that_observes_a_group_gets_the_first_state_of_each_member() {
    let mut group = Group::new(3, &CAREFUL);
    group.ask(observe("/gp/lights/1"));
    let heard = group.run(Instant::from_secs(40));
    let expected: Vec<_> = (10..13).map(|member| (member, b"on".to_vec())).collect();
    assert_eq!(answers(&heard), expected);
    assert!(group.came.iter().all(|(_, _, one)| one.options.get(OptionNumber::OBSERVE).is_some()));
    group.body = b"off".to_vec();
    let changed = group.now;
    for member in &mut group.members {
        member.changed("/gp/lights/1", changed);
    }
    let heard = group.run(Instant::from_secs(80));
    let off = answers(&heard).into_iter().filter(|(_, body)| body == b"off");
    assert_eq!(off.count(), 3, "{heard:?}");
}

#[test]
fn a_member_that_missed_the_request_is_reached_by_its_repetition_alone() {
    let mut group = Group::new(2, &TRUSTING);
    let late = group.members.pop().expect("two members");
    group.ask(RequestTemplate::get("/gp/fans/1"));
    assert_eq!(answers(&group.run(Instant::from_secs(8))).len(), 1);
    group.members.push(late);
    let (handle, wait) = (Handle(7), WAIT);
    let repeat = GroupInput::Repeat { handle, repetition: Repetition::SameMessage, wait };
    group.client.handle(group.now, Input::Group(repeat)).expect("open");
    let heard = group.run(Instant::from_secs(60));
    assert_eq!(answers(&heard), [(11, b"on".to_vec())]);
    assert_eq!(heard.last(), Some(&Output::Over { handle: Handle(7) }));
    let repeat = GroupInput::Repeat { handle, repetition: Repetition::NewMessage, wait };
    assert!(group.client.handle(group.now, Input::Group(repeat)).is_err(), "it is over");
}
