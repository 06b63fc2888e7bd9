//! Steps of a conversation with the Entity Manager, and conversations, each with the codes of the responses that it comes to.
//!
//! ```text
//!   a case:  | gate, and whether observers ask (1) | steps |
//!   a step:  | what (1) | length (1) | octets |
//!   request:  format and method, bits for Observe and Accept, path and query as text, 0xff, payload
//!   answer:   which request, code, format, payload
//! ```

use lowmesh_wire::coap::{Code, ContentFormat, Kind, Message, MessageId, OptionNumber};

pub const GATES: [&str; 5] = ["fixed", "gate-aimd", "gate-climb", "gate-route", "hybrid"];
/// Bit of the first octet: the state has a room and lamps from the start.
pub const FURNISHED: u8 = 0x40;
const METHODS: [Code; 6] =
    [Code::GET, Code::POST, Code::PUT, Code::DELETE, Code::FETCH, Code::IPATCH];
/// Formats of requests, after none.
const FORMATS: [ContentFormat; 5] = [
    ContentFormat::LINK_FORMAT,
    ContentFormat::JSON,
    ContentFormat::CBOR,
    ContentFormat::SENML_JSON,
    ContentFormat::SENML_CBOR,
];

/// The client and the request of a step.
pub fn request_of(octets: &[u8]) -> Option<(u16, Message)> {
    let [method, bits, text @ ..] = octets else { return None };
    let end = text.iter().position(|octet| *octet == 0xff).unwrap_or(text.len());
    let (text, payload) = text.split_at(end);
    let text = std::str::from_utf8(text).ok()?;
    let (method, format) = (usize::from(method & 7), usize::from(method >> 3));
    let method = METHODS[method % METHODS.len()];
    let mut message = request(method, text, payload.get(1..).unwrap_or_default());
    if let Some(format) = format.checked_sub(1).and_then(|format| FORMATS.get(format)) {
        message.options.insert_uint(OptionNumber::CONTENT_FORMAT, format.0.into());
    }
    if bits & 1 != 0 {
        message.options.insert_uint(OptionNumber::OBSERVE, u32::from(bits >> 7));
    }
    if bits & 2 != 0 {
        message.options.insert_uint(OptionNumber::ACCEPT, u32::from(bits >> 2));
    }
    Some((u16::from(bits & 3), message))
}

/// A request of a client. An option has at most 255 octets (RFC 7252 s5.10), so longer parts are left out.
pub fn request(method: Code, target: &str, payload: &[u8]) -> Message {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let mut message = Message::new(Kind::Confirmable, method, MessageId(1));
    if path.split('/').chain(query.split('&')).all(|part| part.len() <= 255) {
        message.options.insert_path(path);
        message.options.insert_query(query);
    }
    message.payload = payload.to_vec();
    message
}

/// What a member says: code, format, payload. Bit 7 of the format stands for Observe.
pub fn answer(octets: &[u8]) -> Message {
    let (code, rest) = octets.split_first().unwrap_or((&Code::CONTENT.0, &[]));
    let (format, payload) = rest.split_first().unwrap_or((&0, &[]));
    let mut message = Message::new(Kind::Acknowledgement, Code(*code), MessageId(1));
    if *format != 0xff {
        message.options.insert_uint(OptionNumber::CONTENT_FORMAT, u32::from(format & 0x7f));
    }
    if format & 0x80 != 0 {
        message.options.insert_uint(OptionNumber::OBSERVE, 1);
    }
    message.payload = payload.to_vec();
    message
}

fn step(what: u8, octets: &[u8]) -> Vec<u8> {
    [&[what, octets.len() as u8][..], octets].concat()
}

fn ask(method: u8, bits: u8, target: &str, payload: &str) -> Vec<u8> {
    let text = [target.as_bytes(), b"\xff", payload.as_bytes()].concat();
    step(0, &[&[method, bits][..], &text].concat())
}

/// The answer of the member that was asked first.
fn says(code: u8, format: u8, payload: &[u8]) -> Vec<u8> {
    step(2, &[&[0, code, format][..], payload].concat())
}

/// An answer of one member of a group.
fn heard(node: u8, payload: &[u8]) -> Vec<u8> {
    step(4, &[&[0, node, CONTENT, 0][..], payload].concat())
}

fn wait(exponent: u8) -> Vec<u8> {
    step(6, &[exponent])
}

const GET: u8 = 0;
const POST: u8 = 1;
const PUT: u8 = 2;
const DELETE: u8 = 3;
const FETCH: u8 = 4;
const IPATCH: u8 = 5;
/// Content-Format of a request: link format.
const LINKS: u8 = 1 << 3;
/// Code of an answer.
const CHANGED: u8 = 0x44;
const CONTENT: u8 = 0x45;
const OBSERVED: u8 = 0x80;
const NO_FORMAT: u8 = 0xff;
const OCTETS: u8 = 42;
/// Bits of a request: Observe; Accept with JSON or link format.
const OBSERVE: u8 = 1;
const ACCEPT_JSON: u8 = 2 | 50 << 2;
const ACCEPT_LINKS: u8 = 2 | 40 << 2;
/// The first address of the block that the manager draws with its seed.
const GROUP: [u8; 16] = [0xff, 0x1e, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x0d, 0xd2, 0xbb, 0, 1];

/// A member that lists its resource.
fn valid() -> Vec<u8> {
    says(CONTENT, 40, b"</t>;ct=\"0 110\"")
}

/// An entity of two members.
pub fn room() -> Vec<u8> {
    let room = "{\"name\":\"room\",\"er\":[\"coap://[fd00::1]/t\",\"coap://[fd00::2]/t\"]}";
    [ask(POST, 0, "e", room), valid(), valid()].concat()
}

/// A group of two members, which are in no group, join, and list their groups.
pub fn lamps() -> Vec<u8> {
    let lamps = "{\"name\":\"lamps\",\"ect\":\"multicast\",\
                 \"er\":[\"coap://[fd00::1]/t\",\"coap://[fd00::2]/t\"]}";
    let each = [
        valid(),
        says(CONTENT, OCTETS, b""),
        says(CHANGED, NO_FORMAT, b""),
        says(CONTENT, OCTETS, &GROUP),
    ];
    let twice = each.iter().flat_map(|step| [step, step]).flatten().copied();
    ask(POST, 0, "e", lamps).into_iter().chain(twice).collect()
}

fn query(target: &str) -> Vec<u8> {
    let senml = br#"[{"bn":"a","n":"b","v":2.5,"u":"Cel"},{"n":"c","vs":"on"}]"#;
    [ask(GET, 0, target, ""), says(CONTENT, 0, b"22.5 C"), says(CONTENT, 110, senml)].concat()
}

/// A state of a member that observers get.
fn tells(payload: &[u8]) -> Vec<u8> {
    says(CONTENT, OBSERVED, payload)
}

/// What a client can do with members that are asked one by one.
fn of_rooms() -> Vec<(Vec<u8>, &'static str)> {
    let observed = [ask(GET, OBSERVE, "e/room", ""), tells(b"1"), tells(b"2")].concat();
    let third = step(10, &[0, CONTENT, OBSERVED, b'3']);
    let floor = ask(POST, 0, "e", "{\"name\":\"floor\",\"er\":[\"/e/room?eo=min\"]}");
    let other = "{\"delay\":90,\"eo\":[\"max\"],\"er\":[\"coap://[fd00::3]/t\"]}";
    let limit = ask(GET, OBSERVE, "e/room?eo=max&c.st=1", "");
    vec![
        ([query("e/room"), query("e/room?eo=avg&enr=1"), wait(10)].concat(), "2.05 2.05"),
        (
            [ask(PUT, 0, "e/room", "on"), says(CHANGED, NO_FORMAT, b""), step(5, &[0])].concat(),
            "2.04",
        ),
        ([limit, tells(b"1"), tells(b"5"), step(7, b"")].concat(), "2.05"),
        ([observed, third, wait(15), ask(DELETE, 0, "e/room", "")].concat(), "2.05 2.05 2.02 4.04"),
        ([floor, query("e/floor")].concat(), "2.01 2.05"),
        ([ask(IPATCH, 0, "e/room/profile", other), valid()].concat(), "2.04"),
        (
            [
                ask(GET, ACCEPT_JSON, "e/room/profile", ""),
                ask(GET, 0, "e/room/members", ""),
                ask(GET, ACCEPT_LINKS, "e/room", ""),
                ask(FETCH | LINKS, 0, "e/room", "<coap://[fd00::2]/t>"),
                says(CONTENT, 0, b"7"),
            ]
            .concat(),
            "2.05 2.05 2.05 2.05",
        ),
        (
            [
                ask(POST | LINKS, 0, "e", "</x>,<coap://a/t>"),
                ask(IPATCH, 2, "e/room", "{\"er\":[]}"),
                ask(GET, 0, ".well-known/core?rt=core.entities", ""),
            ]
            .concat(),
            "4.00 4.05 2.05",
        ),
    ]
}

/// What a client can do with a group.
fn of_groups() -> Vec<(Vec<u8>, &'static str)> {
    let left = says(CHANGED, NO_FORMAT, b"");
    let delete = ask(DELETE, 0, "e/lamps", "");
    vec![
        ([ask(GET, 0, "e/lamps", ""), heard(1, b"1"), heard(2, b"2")].concat(), "2.05"),
        (
            // Some gates ask the silent member again, first by the group, then alone.
            [
                ask(GET, 0, "e/lamps", ""),
                heard(1, b"1"),
                step(5, &[0]),
                says(CONTENT, 0, b"2"),
                says(CONTENT, 0, b"2"),
            ]
            .concat(),
            "2.05",
        ),
        (
            // The store fails for two seconds, and the members leave after it has taken the change.
            [step(8, b""), delete, wait(11), step(8, b""), wait(11), left.clone(), left].concat(),
            "2.02",
        ),
        (
            // After a restart a member has forgotten its group, and joins again.
            [
                step(9, &[1, 2, 7]),
                step(7, b""),
                wait(16),
                says(CONTENT, OCTETS, b""),
                says(CHANGED, NO_FORMAT, b""),
                ask(GET, 0, "e/lamps/members", ""),
            ]
            .concat(),
            "2.05",
        ),
    ]
}

/// Conversations that create, query, write, observe, nest, change and delete, by unicast and by multicast, each with every
/// gate, and the codes of the responses. They begin with an entity that exists, or create it first.
pub fn conversations() -> Vec<(Vec<u8>, String)> {
    let with = |created: Vec<u8>| move |(steps, codes)| (created.clone(), steps, codes);
    let all = of_rooms().into_iter().map(with(room()));
    let all: Vec<_> = all.chain(of_groups().into_iter().map(with(lamps()))).collect();
    let mut cases = Vec::new();
    for (created, steps, codes) in all {
        for gate in 0..GATES.len() as u8 {
            cases.push(([&[gate | FURNISHED][..], &steps].concat(), codes.to_string()));
            cases.push(([&[gate][..], &created, &steps].concat(), format!("2.01 {codes}")));
        }
    }
    cases
}
