//! The Entity Manager and what it needs of members: the manager's machine with members that answer at once.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};

use lowmesh_coap::membership::{Memberships, Step};
use lowmesh_coap::params::MEMBERSHIPS_MAX;
use lowmesh_coap::{Leisure, RequestTemplate, ResponseTemplate};
use lowmesh_group::store::Memory;
use lowmesh_group::{Config, Input, Manager, Output, RequestId};
use lowmesh_machine::Machine as _;
use lowmesh_multicast::{Engine, smrf, trickle};
use lowmesh_registry::Choice;
use lowmesh_sim::Sinks;
use lowmesh_units::{Duration, Instant, NodeId, Purpose, Rng, Seed};
use lowmesh_wire::coap::uri::Host;
use lowmesh_wire::coap::{Class, Code, ContentFormat, Kind, Message, MessageId, OptionNumber};
use lowmesh_wire::ipv6::Address;
use lowmesh_wire::senml::parse_json;

use super::{Values, values};
use crate::scenario::Scenario;
use crate::settings;

/// The subjects of this probe.
pub const SUBJECTS: [&str; 7] =
    ["leisure", "memberships", "profile", "multicast", "nesting", "memory", "defaults"];

/// Runs the probe about `subject`.
pub fn probe(subject: &str) -> Result<Values, String> {
    match subject {
        "leisure" => Ok(leisure()),
        "memberships" => Ok(memberships()),
        "profile" => Ok(profile()),
        "multicast" => Ok(multicast()),
        "nesting" => Ok(nesting()),
        "memory" => Ok(memory()),
        "defaults" => defaults(),
        _ => Err(format!("there is no subject `{subject}`")),
    }
}

fn flag(is: bool) -> f64 {
    f64::from(u8::from(is))
}

/// Ishaq et al. 2016 s5.2.1: answers of 80 octets at 1 kB/s.
fn leisure() -> Values {
    let of = |members| Leisure::Estimated { members, octets_per_second: 1000 }.of(80);
    let delay_ms = |members: u32| of(members).as_millis_f64() / f64::from(members - 1);
    values([
        ("leisure_5_s", of(5).as_secs_f64()),
        ("leisure_40_s", of(40).as_secs_f64()),
        ("delay_5_ms", delay_ms(5)),
        ("delay_40_ms", delay_ms(40)),
    ])
}

const GROUP: Ipv6Addr = Ipv6Addr::new(0xff1e, 0, 0, 0, 0, 0, 0x89, 1);

/// A request of a member's resources.
fn asked(code: Code, template: RequestTemplate) -> Message {
    let mut message = Message::new(Kind::Confirmable, code, MessageId(1));
    (message.options, message.payload) = (template.options, template.payload);
    message
}

fn change(action: &str, payload: &[u8]) -> Message {
    let mut template = RequestTemplate::new(Code::POST, "mc").with_payload(payload.to_vec());
    template.options.insert_query(action);
    asked(Code::POST, template)
}

/// What `/mc` does with a request.
fn answer(memberships: &mut Memberships<u16>, request: &Message) -> ResponseTemplate {
    match memberships.step(99, request) {
        Step::Answer(response) => response,
        Step::Change(change) => memberships.settle(change, Ok(())),
    }
}

fn memberships() -> Values {
    let mut table = Memberships::default();
    let list = || {
        let mut template = RequestTemplate::get("mc");
        let format = u32::from(ContentFormat::OCTET_STREAM.0);
        template.options.insert_uint(OptionNumber::ACCEPT, format);
        asked(Code::GET, template)
    };
    let before = answer(&mut table, &list()).payload.len();
    let joined = answer(&mut table, &change("act=add", &GROUP.octets())).code;
    let during = answer(&mut table, &list()).payload;
    let refused = answer(&mut table, &change("act=add", b"short")).code;
    let left = answer(&mut table, &change("act=del", &GROUP.octets())).code;
    let after = answer(&mut table, &list()).payload.len();
    let is_listed = during == GROUP.octets();
    values([
        ("listed_before", before as f64),
        ("joined", flag(joined.class() == Class::Success && is_listed)),
        ("listed_octets", during.len() as f64),
        ("left", flag(left.class() == Class::Success)),
        ("listed_after", after as f64),
        ("refused", flag(refused == Code::BAD_REQUEST)),
    ])
}

/// A manager and members with a number each, which answer ten milliseconds after a request.
struct Bench {
    manager: Manager,
    now: Instant,
    serial: u64,
    members: BTreeMap<Ipv6Addr, Memberships<u16>>,
    /// Members that refuse to join groups.
    full: Vec<Ipv6Addr>,
    silent: Vec<Ipv6Addr>,
    /// Requests to `/mc`, and those of them that were confirmable.
    changes: (usize, usize),
    responses: BTreeMap<RequestId, ResponseTemplate>,
}

fn member(number: u16) -> Ipv6Addr {
    Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, number)
}

impl Bench {
    fn new() -> Self {
        let rng = Rng::stream(Seed(1), NodeId(0), Purpose::Traffic);
        let store = Box::new(Memory::default());
        let manager = Manager::open(Config::published(), store, rng, Instant::ZERO);
        Self {
            manager: manager.expect("an empty store has no bad record"),
            now: Instant::ZERO,
            serial: 0,
            members: (1..=6).map(|number| (member(number), Memberships::default())).collect(),
            full: Vec::new(),
            silent: Vec::new(),
            changes: (0, 0),
            responses: BTreeMap::new(),
        }
    }
    /// The response to a request of a client, after all that it leads to.
    fn ask(
        &mut self,
        code: Code,
        path: &str,
        payload: &str,
        accept: Option<ContentFormat>,
    ) -> ResponseTemplate {
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        let mut template = RequestTemplate::new(code, path);
        query
            .split('&')
            .filter(|one| !one.is_empty())
            .for_each(|one| template.options.insert_query(one));
        if let Some(accept) = accept {
            template.options.insert_uint(OptionNumber::ACCEPT, accept.0.into());
        }
        self.serial += 1;
        let (request, client) = (RequestId(self.serial), IpAddr::from(member(99)));
        let message = asked(code, template.with_payload(payload.as_bytes().to_vec()));
        self.tell(Input::Request { request, client, message });
        loop {
            self.carry_out();
            if let Some(response) = self.responses.remove(&request) {
                return response;
            }
            self.now = self.manager.next_deadline().expect("an open request ends").max(self.now);
            self.tell(Input::Deadline);
        }
    }
    fn tell(&mut self, input: Input) {
        // A manager takes each of these: its names are its own.
        let taken = self.manager.handle(self.now, input);
        debug_assert!(taken.is_ok(), "{taken:?}");
    }
    fn carry_out(&mut self) {
        while let Some(output) = self.manager.poll_output() {
            match output {
                Output::Request { exchange, to, message } => {
                    let Host::V6(address, _) = to.host else { continue };
                    if self.silent.contains(&address) {
                        continue;
                    }
                    let rtt = Duration::from_millis(10);
                    let message = self.answer_of(address, message);
                    self.tell(Input::Response { exchange, message, rtt, retransmissions: 0 });
                }
                Output::Group { exchange, .. } => self.tell(Input::Over { exchange }),
                Output::Respond { request, response } => {
                    self.responses.insert(request, response);
                }
                Output::Cancel { .. } => {}
            }
        }
    }
    fn answer_of(&mut self, address: Ipv6Addr, template: RequestTemplate) -> Message {
        let (code, confirmable) = (template.code, template.confirmable);
        let segments: Vec<Vec<u8>> =
            template.options.iter().values(OptionNumber::URI_PATH).map(<[u8]>::to_vec).collect();
        let request = asked(code, template);
        let first = segments.first().map(Vec::as_slice);
        let response = match (first, self.members.get_mut(&address)) {
            (Some(b".well-known"), _) => {
                let list = b"</s/t>;ct=0,</s/u>;ct=0,</mc>".to_vec();
                let response = ResponseTemplate::new(Code::CONTENT).with_payload(list);
                response.with_format(ContentFormat::LINK_FORMAT)
            }
            (Some(b"mc"), Some(table)) => {
                if code == Code::POST {
                    self.changes = (self.changes.0 + 1, self.changes.1 + usize::from(confirmable));
                }
                if self.full.contains(&address) {
                    ResponseTemplate::new(Code::CONFLICT)
                } else {
                    answer(table, &request)
                }
            }
            (_, Some(_)) => {
                let number = address.segments()[7].to_string();
                ResponseTemplate::new(Code::CONTENT).with_payload(number.into_bytes())
            }
            _ => ResponseTemplate::new(Code::NOT_FOUND),
        };
        let mut message = Message::new(Kind::Acknowledgement, response.code, MessageId(1));
        (message.options, message.payload) = (response.options, response.payload);
        message
    }
    /// Creates an entity of members, and returns the response as text.
    fn create(&mut self, name: &str, members: &[u16], path: &str, more: &str) -> (Code, String) {
        let uris = members.iter().map(|one| format!("\"coap://[{}]/{path}\"", member(*one)));
        let uris: Vec<String> = uris.collect();
        self.create_of(name, &uris, more)
    }
    fn create_of(&mut self, name: &str, uris: &[String], more: &str) -> (Code, String) {
        let document = format!("{{\"name\":{name:?},\"er\":[{}]{more}}}", uris.join(","));
        let response = self.ask(Code::POST, "e", &document, Some(ContentFormat::TEXT_PLAIN));
        (response.code, String::from_utf8_lossy(&response.payload).into_owned())
    }
    fn text(&mut self, path: &str) -> (Code, String) {
        let response = self.ask(Code::GET, path, "", None);
        (response.code, String::from_utf8_lossy(&response.payload).into_owned())
    }
}

fn profile() -> Values {
    let mut bench = Bench::new();
    bench.create("room", &[1, 2, 3], "s/t", "");
    let (_, text) = bench.text("e/room/profile");
    let field = |key: &str| {
        let value = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(": "));
        value.unwrap_or_default().to_owned()
    };
    let fields = ["er", "emt", "ect", "enr", "eo", "delay"];
    let has = |key: &str| text.lines().any(|line| line.starts_with(&format!("{key}:")));
    let overridden = ["emt=non", "enr=1", "eo=max", "delay=10"];
    let mut succeeds = |query: &str| bench.text(&format!("e/room?{query}")).0 == Code::CONTENT;
    let overrides = overridden.into_iter().filter(|query| succeeds(query)).count();
    let ect = succeeds("ect=multicast");
    let multicast = ",\"ect\":\"multicast\",\"emt\":\"con\"";
    let (confirmable, _) = bench.create("group", &[1, 2], "s/t", multicast);
    values([
        ("fields", fields.iter().filter(|key| has(key)).count() as f64),
        ("confirmable", flag(field("emt") == "con")),
        ("unicast", flag(field("ect") == "unicast")),
        ("all_replies", flag(["all", "3"].contains(&field("enr").as_str()))),
        ("list", flag(field("eo").starts_with("lst"))),
        ("delay_ms", field("delay").trim_end_matches(" ms").parse().unwrap_or(f64::NAN)),
        ("overrides", overrides as f64),
        ("ect_override", flag(ect)),
        ("multicast_confirmable", flag(confirmable.class() == Class::Success)),
    ])
}

/// The number of a group address in a text, and whether its whole URI is there.
fn group_in(text: &str) -> Option<(f64, bool)> {
    let rest = text.split_once("[ff1e::89:")?.1;
    let (number, behind) = rest.split_once(']')?;
    let number = u16::from_str_radix(number, 16).ok()?;
    Some((f64::from(number), text.contains("coap://[ff1e::89:") && behind.starts_with("/s/t")))
}

fn multicast() -> Values {
    const GROUPED: &str = ",\"ect\":\"multicast\"";
    let mut bench = Bench::new();
    let (_, text) = bench.create("a", &[1, 2, 3], "s/t", GROUPED);
    let (first, is_whole) = group_in(&text).unwrap_or((f64::NAN, false));
    let joined =
        |bench: &Bench| bench.members.values().filter(|one| one.groups().next().is_some()).count();
    let (after_join, changes) = (joined(&bench), bench.changes);
    let (_, text) = bench.create("b", &[4, 5], "s/t", GROUPED);
    let second = group_in(&text).map_or(f64::NAN, |(number, _)| number);
    let mut deletion = |name: &str| {
        let response = bench.ask(Code::DELETE, &format!("e/{name}"), "", None);
        String::from_utf8_lossy(&response.payload).into_owned()
    };
    let reported = deletion("a");
    _ = deletion("b");
    let left = (1..=3).filter(|one| bench.members[&member(*one)].groups().next().is_none()).count();
    let (_, text) = bench.create("c", &[1, 2], "s/t", GROUPED);
    let third = group_in(&text).map_or(f64::NAN, |(number, _)| number);
    bench.full.push(member(6));
    let (refused, _) = bench.create("d", &[5, 6], "s/t", GROUPED);
    let uris =
        [format!("\"coap://[{}]/s/t\"", member(1)), format!("\"coap://[{}]/s/u\"", member(2))];
    let (mixed, _) = bench.create_of("m", &uris, GROUPED);
    values([
        ("first", first),
        ("second", second),
        ("after_deletion", third),
        ("joins_confirmable", flag(changes.0 == 3 && changes.1 == 3)),
        ("joined", after_join as f64),
        ("uri_given", flag(is_whole)),
        ("created_with_refusal", flag(refused.class() == Class::Success)),
        ("left", left as f64),
        ("reported", flag(reported.lines().count() == 3)),
        ("mixed_paths_refused", flag(mixed.class() == Class::ClientError)),
    ])
}

/// Two rooms of three sensors (avg, enr 2), a floor of both, and a building of one floor.
fn nesting() -> Values {
    let mut bench = Bench::new();
    let room = ",\"eo\":\"avg\",\"enr\":2";
    let below = |name: &str| format!("\"/e/{name}\"");
    let codes = [
        bench.create("room-1", &[1, 2, 3], "s/t", room).0,
        bench.create("room-2", &[4, 5, 6], "s/t", room).0,
        bench.create_of("floor", &[below("room-1"), below("room-2")], "").0,
        bench.create_of("building", &[below("floor")], "").0,
    ];
    let levels = if codes.iter().all(|code| *code == Code::CREATED) { 3.0 } else { 0.0 };
    let (_, text) = bench.text("e/building");
    let numbers = |text: &str| {
        let number = |line: &str| line.split(' ').nth(1).and_then(|one| one.parse::<f64>().ok());
        text.lines().filter_map(number).count()
    };
    let in_text = numbers(&text);
    let senml = bench.ask(Code::GET, "e/building", "", Some(ContentFormat::SENML_JSON));
    let records = parse_json(&senml.payload).unwrap_or_default();
    bench.silent.push(member(1));
    let (code, text) = bench.text("e/building");
    values([
        ("levels", levels),
        ("numbers_text", in_text as f64),
        ("numbers_senml", records.len() as f64),
        ("answered_with_two_of_three", flag(code == Code::CONTENT && numbers(&text) == 2)),
    ])
}

/// Octets that each part sets aside with its default bounds, on this machine. A packet has at most the MTU of IPv6.
fn memory() -> Values {
    let packet = lowmesh_lowpan::params::MTU as f64;
    let of = |row: &'static lowmesh_registry::Row<dyn Engine>, key: &str| {
        Choice::<dyn Engine>::from(row).whole::<u32>(key)
    };
    let smrf = f64::from(of(&smrf::SMRF, "buffer")) * packet;
    let trickle = f64::from(of(&trickle::ROW, "buffers")) * packet;
    let memberships = (MEMBERSHIPS_MAX * size_of::<Address>()) as f64;
    values([
        ("trickle", trickle),
        ("smrf", smrf),
        ("memberships", memberships),
        ("trickle_above_smrf", flag(trickle > smrf)),
        ("smrf_above_memberships", flag(smrf > memberships)),
    ])
}

/// The groups of a member of `wilab-40` when it is switched on.
fn defaults() -> Result<Values, String> {
    let set = ["topology.nodes=4".to_owned()];
    let scenario = Scenario::load("wilab-40", &set).map_err(|error| error.to_string())?;
    let mesh = settings::mesh(&scenario, Seed(1), Sinks::default());
    let mesh = mesh.map_err(|error| error.to_string())?;
    let node = mesh.nodes().last().ok_or("a mesh without nodes")?;
    let solicited = node.global_address().solicited_node();
    let is_member = |group: Address| flag(node.is_member(&group));
    Ok(values([
        ("all_nodes", is_member(Address::ALL_NODES)),
        ("all_routers", is_member(Address::ALL_ROUTERS)),
        ("all_rpl_nodes", is_member(Address::ALL_RPL_NODES)),
        ("solicited_node", is_member(solicited)),
    ]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_subject_gives_numbers_and_another_is_refused() {
        for subject in SUBJECTS {
            let found = probe(subject).unwrap_or_else(|error| panic!("{subject}: {error}"));
            assert!(found.values().all(|value| value.is_finite()), "{subject}: {found:?}");
        }
        assert!(probe("weather").is_err());
    }

    #[test]
    fn a_group_address_is_counted_up_and_not_given_again() {
        let found = multicast();
        let numbers = ["first", "second", "after_deletion"].map(|name| found[name] as u16);
        assert_eq!(numbers, [1, 2, 3], "{found:?}");
    }
}
