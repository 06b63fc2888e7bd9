//! `/mc`: the groups that a node belongs to, as a resource (Ishaq et al. 2016, Table 4).
//!
//! ```text
//!   GET                                   the groups: text, one a line, or 16 octets each
//!   POST ?act=add   16 octets of address  joins a group
//!   POST ?act=del   16 octets of address  leaves a group
//! ```
//! No standard says how a client makes a server join a group: RFC 10020 leaves it open. The resource decides what is asked
//! for, and its owner joins and leaves: a node then schedules a DAO, a server sets an option of its socket. So a client that
//! may use the resource decides what the node listens to. The table is bounded, and so is the share of one source in it; one
//! group more is refused with 4.09. A group belongs to the source that has asked for it first.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use lowmesh_wire::coap::{Code, ContentFormat, Message, OptionNumber};
use lowmesh_wire::ipv6::Address;

use crate::PeerAddress;
use crate::event::ResponseTemplate;
use crate::params::{MEMBERSHIPS_MAX, MEMBERSHIPS_PER_SOURCE};
use crate::resource::{Methods, Resource};

/// The path of the resource.
pub const PATH: &str = "/mc";
/// Octets of an address in a request.
const ADDRESS_OCTETS: usize = 16;

/// The result of a request to the resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step<P> {
    /// The response; nothing changes.
    Answer(ResponseTemplate),
    /// The owner has to join or leave a group, and then says how that went with [`Memberships::settle`].
    Change(Change<P>),
}

/// A change of the groups of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change<P> {
    /// The node joins a group, and makes that known to its routers.
    Join {
        /// The group.
        group: Address,
        /// The source of the client that asks for it.
        source: P,
    },
    /// The node leaves a group.
    Leave(Address),
}

/// The groups that clients have made a node join.
///
/// ```
/// use lowmesh_coap::membership::{Change, Memberships, Step};
/// use lowmesh_wire::coap::{Code, Kind, Message, MessageId, OptionNumber};
///
/// let mut memberships = Memberships::default();
/// let mut post = Message::new(Kind::Confirmable, Code::POST, MessageId(1));
/// post.options.insert_path("/mc");
/// post.options.insert(OptionNumber::URI_QUERY, b"act=add");
/// post.payload = "ff1e::89:1".parse::<std::net::Ipv6Addr>()?.octets().to_vec();
/// let client = ("fd00::1", 5683);
/// let Step::Change(change) = memberships.step(client, &post) else { panic!() };
/// assert!(matches!(change, Change::Join { .. }));
/// // The owner joins the group here.
/// assert_eq!(memberships.settle(change, Ok(())).code, Code::CHANGED);
/// assert_eq!(memberships.groups().count(), 1);
/// # Ok::<(), std::net::AddrParseError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Memberships<P> {
    /// In the order in which the node has joined them, each with the source that has asked for it.
    groups: Vec<(Address, P)>,
    groups_max: usize,
    per_source: usize,
}

impl<P: PeerAddress> Default for Memberships<P> {
    fn default() -> Self {
        Self::new(MEMBERSHIPS_MAX, MEMBERSHIPS_PER_SOURCE)
    }
}

impl<P: PeerAddress> Memberships<P> {
    /// A node without groups, with at most this many groups, and at most `per_source` of one source.
    pub const fn new(groups_max: usize, per_source: usize) -> Self {
        Self { groups: Vec::new(), groups_max, per_source }
    }
    /// The resource as a router lists it; `value` is the application's.
    pub fn resource<R>(value: R) -> Resource<R> {
        Resource::new(Methods::GET | Methods::POST, value)
            .attribute("title", "Groups of this node")
            .format(ContentFormat::TEXT_PLAIN)
            .format(ContentFormat::OCTET_STREAM)
            .consumes(ContentFormat::OCTET_STREAM)
    }
    /// The groups that the node has joined.
    pub fn groups(&self) -> impl Iterator<Item = Address> {
        self.groups.iter().map(|(group, _)| *group)
    }
    /// Whether a client has made the node join a group.
    pub fn contains(&self, group: Address) -> bool {
        self.groups().any(|one| one == group)
    }
    /// Handles a request of a client.
    pub fn step(&self, from: P, request: &Message) -> Step<P> {
        match request.code {
            Code::GET => Step::Answer(self.list(request)),
            Code::POST => match self.change(from.source(), request) {
                Ok(change) => Step::Change(change),
                Err(response) => Step::Answer(response),
            },
            _ => Step::Answer(ResponseTemplate::new(Code::METHOD_NOT_ALLOWED)),
        }
    }
    /// The owner has made a change, or cannot make it and says why: the response to its request.
    pub fn settle(&mut self, change: Change<P>, made: Result<(), &str>) -> ResponseTemplate {
        if let Err(why) = made {
            return refuse(Code::INTERNAL_SERVER_ERROR, why);
        }
        match change {
            Change::Join { group, source } if !self.contains(group) => {
                self.groups.push((group, source));
            }
            Change::Join { .. } => {}
            Change::Leave(group) => self.groups.retain(|(one, _)| *one != group),
        }
        ResponseTemplate::new(Code::CHANGED)
    }

    fn change(&self, source: P, request: &Message) -> Result<Change<P>, ResponseTemplate> {
        let mut queries = request.options.iter().values(OptionNumber::URI_QUERY);
        let act = queries.find_map(|query| query.strip_prefix(b"act="));
        let joins = match act {
            Some(b"add") => true,
            Some(b"del") => false,
            _ => return Err(refuse(Code::BAD_REQUEST, "the query is act=add or act=del")),
        };
        let octets = <[u8; ADDRESS_OCTETS]>::try_from(&request.payload[..]).map_err(|_| {
            let found = request.payload.len();
            refuse(
                Code::BAD_REQUEST,
                &format!("the payload is an IPv6 address of 16 octets, not {found}"),
            )
        })?;
        let group = Address(octets);
        if !joins {
            return Ok(Change::Leave(group));
        }
        if !group.is_multicast() {
            return Err(refuse(
                Code::BAD_REQUEST,
                "the address is not a group address, which begins with ff",
            ));
        }
        if !self.contains(group) {
            self.check_room(source).map_err(|why| refuse(Code::CONFLICT, &why))?;
        }
        Ok(Change::Join { group, source })
    }
    /// Whether a source may make the node join one more group.
    fn check_room(&self, source: P) -> Result<(), String> {
        let max = self.groups_max;
        if self.groups.len() >= max {
            return Err(format!("the node is in {max} groups, the maximum: leave one first"));
        }
        let share = self.per_source;
        if self.groups.iter().filter(|(_, one)| *one == source).count() >= share {
            return Err(format!(
                "the node is in {share} groups of this client, the maximum: leave one first"
            ));
        }
        Ok(())
    }
    fn list(&self, request: &Message) -> ResponseTemplate {
        let accept = request.options.get_uint(OptionNumber::ACCEPT);
        let (format, payload) = if accept == Some(u32::from(ContentFormat::OCTET_STREAM.0)) {
            let octets = self.groups().flat_map(|group| group.0).collect();
            (ContentFormat::OCTET_STREAM, octets)
        } else {
            let lines: Vec<_> = self.groups().map(|group| format!("{group}")).collect();
            (ContentFormat::TEXT_PLAIN, lines.join("\n").into_bytes())
        };
        ResponseTemplate::new(Code::CONTENT).with_payload(payload).with_format(format)
    }
}

/// A refusal with its reason in words (RFC 7252 s5.5.2).
fn refuse(code: Code, why: &str) -> ResponseTemplate {
    ResponseTemplate::new(code).with_payload(why.as_bytes().to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use lowmesh_wire::coap::{Kind, MessageId};

    fn group(last: u8) -> Vec<u8> {
        let mut octets = vec![0; ADDRESS_OCTETS];
        (octets[0], octets[1], octets[13], octets[15]) = (0xff, 0x1e, 0x89, last);
        octets
    }

    fn post(query: &str, payload: &[u8]) -> Message {
        let mut post = Message::new(Kind::Confirmable, Code::POST, MessageId(1));
        post.options.insert(OptionNumber::URI_QUERY, query.as_bytes());
        post.payload = payload.to_vec();
        post
    }

    /// A client: its address and port.
    type Client = (u8, u16);
    const CLIENT: Client = (1, 5683);

    fn perform(memberships: &mut Memberships<Client>, request: &Message) -> ResponseTemplate {
        perform_for(memberships, CLIENT, request)
    }

    fn perform_for(
        memberships: &mut Memberships<Client>,
        client: Client,
        request: &Message,
    ) -> ResponseTemplate {
        match memberships.step(client, request) {
            Step::Answer(response) => response,
            Step::Change(change) => memberships.settle(change, Ok(())),
        }
    }

    fn list(memberships: &Memberships<Client>, accept: Option<u32>) -> Vec<u8> {
        let mut get = Message::new(Kind::Confirmable, Code::GET, MessageId(1));
        if let Some(accept) = accept {
            get.options.insert_uint(OptionNumber::ACCEPT, accept);
        }
        let Step::Answer(response) = memberships.step(CLIENT, &get) else { panic!("no change") };
        assert_eq!(response.code, Code::CONTENT);
        response.payload
    }

    #[test]
    fn groups_are_joined_listed_and_left() {
        let mut node = Memberships::default();
        assert_eq!(list(&node, None), b"");
        for last in [1, 2] {
            let joined = perform(&mut node, &post("act=add", &group(last)));
            assert_eq!(joined.code, Code::CHANGED);
        }
        assert_eq!(list(&node, None), b"ff1e::89:1\nff1e::89:2");
        assert_eq!(list(&node, Some(42)), [group(1), group(2)].concat());
        assert_eq!(perform(&mut node, &post("act=del", &group(1))).code, Code::CHANGED);
        assert_eq!(list(&node, None), b"ff1e::89:2");
    }

    #[test]
    fn a_change_that_is_made_already_is_made_again_without_effect() {
        let mut node = Memberships::new(1, 1);
        for _ in 0..2 {
            assert_eq!(perform(&mut node, &post("act=add", &group(1))).code, Code::CHANGED);
            assert_eq!(node.groups().count(), 1);
        }
        for _ in 0..2 {
            assert_eq!(perform(&mut node, &post("act=del", &group(1))).code, Code::CHANGED);
            assert_eq!(node.groups().count(), 0);
        }
    }

    #[test]
    fn a_full_table_refuses_one_group_more_until_one_is_left() {
        let mut node = Memberships::new(2, 2);
        for last in [1, 2] {
            perform(&mut node, &post("act=add", &group(last)));
        }
        let refused = perform(&mut node, &post("act=add", &group(3)));
        assert_eq!(refused.code, Code::CONFLICT);
        assert!(String::from_utf8_lossy(&refused.payload).contains("leave one first"));
        perform(&mut node, &post("act=del", &group(1)));
        assert_eq!(perform(&mut node, &post("act=add", &group(3))).code, Code::CHANGED);
    }

    #[test]
    fn one_client_with_all_its_ports_leaves_room_for_another() {
        let mut node = Memberships::default();
        let joined = |node: &mut Memberships<Client>, client, last| {
            perform_for(node, client, &post("act=add", &group(last))).code == Code::CHANGED
        };
        let flood = (0..100).filter(|last| joined(&mut node, (1, u16::from(*last)), *last)).count();
        assert_eq!(flood, MEMBERSHIPS_PER_SOURCE);
        let refused = perform_for(&mut node, (1, 7), &post("act=add", &group(200)));
        assert!(String::from_utf8_lossy(&refused.payload).contains("of this client"));
        // The group of another client is joined already, and costs nobody a place.
        assert!(joined(&mut node, (2, 0), 0));
        let rest = (100..200).filter(|last| joined(&mut node, (2, 0), *last)).count();
        assert_eq!(rest, MEMBERSHIPS_MAX - MEMBERSHIPS_PER_SOURCE);
        assert!(!joined(&mut node, (3, 0), 201), "the table is full");
    }

    #[test]
    fn a_malformed_request_says_what_is_wrong_and_changes_nothing() {
        let mut node = Memberships::default();
        let mut unicast = group(1);
        unicast[0] = 0xfd;
        for (query, payload, says) in [
            ("act=add", &group(1)[..15], "not 15"),
            ("act=add", &[], "not 0"),
            ("act=add", &[group(1), vec![0]].concat(), "not 17"),
            ("act=add", &unicast, "begins with ff"),
            ("act=join", &group(1), "act=add or act=del"),
            ("add", &group(1), "act=add or act=del"),
        ] {
            let refused = perform(&mut node, &post(query, payload));
            assert_eq!(refused.code, Code::BAD_REQUEST, "{query}");
            let text = String::from_utf8(refused.payload).expect("text");
            assert!(text.contains(says), "{query}: {text}");
        }
        assert_eq!(node.groups().count(), 0);
    }

    #[test]
    fn a_change_that_the_node_cannot_make_is_not_noted() {
        let mut node = Memberships::default();
        let Step::Change(change) = node.step(CLIENT, &post("act=add", &group(1))) else { panic!() };
        let response = node.settle(change, Err("no memory"));
        assert_eq!(
            (response.code, &response.payload[..]),
            (Code::INTERNAL_SERVER_ERROR, &b"no memory"[..])
        );
        assert_eq!(node.groups().count(), 0);
    }
}
