//! What an entity is made of: resources of nodes, and other entities of the same manager.

use alloc::format;
use alloc::string::{String, ToString as _};
use alloc::vec::Vec;
use core::fmt::{self, Write as _};

use lowmesh_coap::RequestTemplate;
use lowmesh_wire::coap::Code;
use lowmesh_wire::coap::uri::{Host, Scheme, Uri};

use crate::name::is_member_name;
use crate::params::{ANSWER_MAX, ROOT};

/// Stands for this manager where a URI needs an authority.
const MANAGER: &str = "coap://manager";

/// The address of a node to which requests for its resources go (RFC 3986 s3.2).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Authority {
    /// How it is reached.
    pub scheme: Scheme,
    /// Its name or address.
    pub host: Host,
    /// Its port.
    pub port: u16,
}

impl Authority {
    /// The authority of a URI.
    pub fn of(uri: &Uri) -> Self {
        Self { scheme: uri.scheme, host: uri.host.clone(), port: uri.port() }
    }
    /// A node over plain UDP at the default port.
    pub fn plain(host: Host) -> Self {
        Self { scheme: Scheme::Coap, host, port: Scheme::Coap.default_port() }
    }
    /// Whether a response from here may be that of a URI: a response does not say at which interface its source is, and may
    /// come from another port than the one of the request (RFC 10020 s3.1.4). The members of a group have different addresses.
    pub(crate) fn may_be_of(&self, uri: &Uri) -> bool {
        let is_host = match (&self.host, &uri.host) {
            (Host::V6(from, None), Host::V6(member, _)) => from == member,
            (from, member) => from == member,
        };
        is_host && self.scheme == uri.scheme
    }
    /// Whether this is the authority of a URI.
    pub fn is_of(&self, uri: &Uri) -> bool {
        self.scheme == uri.scheme && self.port == uri.port() && self.host == uri.host
    }
    /// The radio domain: nodes with the same prefix of 64 bits are behind one border router. Others are alone.
    pub(crate) fn domain(&self) -> Domain {
        match &self.host {
            Host::V6(address, _) => {
                Domain::Prefix(address.segments()[..4].try_into().expect("4 of 8"))
            }
            Host::V4(address) => Domain::Address(address.to_bits()),
            Host::Name(name) => Domain::Name(name.clone()),
        }
    }
}

impl fmt::Display for Authority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let port = (self.port != self.scheme.default_port()).then_some(self.port);
        let (path, query) = (Vec::new(), Vec::new());
        let uri =
            Uri { scheme: self.scheme, host: self.host.clone(), explicit_port: port, path, query };
        // A URI without a path ends in a slash.
        f.write_str(uri.to_string().trim_end_matches('/'))
    }
}

/// Nodes that share one radio channel, as far as their addresses show it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Domain {
    Prefix([u16; 4]),
    Address(u32),
    Name(String),
}

impl fmt::Display for Domain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Prefix(prefix) => {
                prefix.iter().try_for_each(|part| write!(f, "{part:x}:"))?;
                f.write_str(":/64")
            }
            Self::Address(bits) => core::net::Ipv4Addr::from_bits(*bits).fmt(f),
            Self::Name(name) => f.write_str(name),
        }
    }
}

/// One resource of an entity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// A resource of a node.
    Resource(Uri),
    /// An entity of the same manager, with what the query overrides of its profile.
    Entity {
        /// Its name.
        name: String,
        /// Arguments of the query.
        query: Vec<String>,
    },
}

impl Target {
    /// Reads a URI, or a reference to an entity of the manager that is at these authorities. The error says what is wrong.
    pub fn parse(text: &str, own: &[Authority]) -> Result<Self, String> {
        if let Some(path) = text.strip_prefix('/') {
            // A reference relative to the manager itself.
            let uri = format!("{MANAGER}/{path}").parse::<Uri>();
            let uri = uri.map_err(|error| format!("{text:?}: {error}"))?;
            return Self::entity(uri)
                .ok_or_else(|| format!("{text:?} is not the URI of an entity, /{ROOT}/NAME"));
        }
        let uri: Uri = text.parse().map_err(|error| format!("{text:?}: {error}"))?;
        let uri = normal(uri);
        if matches!(uri.host, Host::V6(address, _) if address.is_multicast())
            || matches!(uri.host, Host::V4(address) if address.is_multicast())
        {
            return Err(format!("{text:?} is a group: list its members, or use ect=multicast"));
        }
        if own.iter().any(|own| own.is_of(&uri)) {
            return Self::entity(uri)
                .ok_or_else(|| format!("{text:?} is on this manager, but is not an entity"));
        }
        Ok(Self::Resource(uri))
    }
    fn entity(uri: Uri) -> Option<Self> {
        match <[String; 2]>::try_from(uri.path) {
            Ok([root, name]) if root == ROOT && !name.is_empty() => {
                Some(Self::Entity { name, query: uri.query })
            }
            _ => None,
        }
    }
    /// The name of an entity.
    pub(crate) fn entity_name(&self) -> Option<&str> {
        match self {
            Self::Resource(_) => None,
            Self::Entity { name, .. } => Some(name),
        }
    }
    /// The path and query of a resource.
    pub(crate) fn local_part(&self) -> (&[String], &[String]) {
        match self {
            Self::Resource(uri) => (&uri.path, &uri.query),
            Self::Entity { query, .. } => (&[], query),
        }
    }
    /// A name within the characters of SenML (RFC 8428 s4.5.1): scheme if it is not `coap`, address without brackets, port if it
    /// is not the default, path, query; `_` in place of any other character.
    pub fn label(&self) -> String {
        let mut label = String::new();
        match self {
            Self::Resource(uri) => {
                if uri.scheme != Scheme::Coap {
                    label.push_str(uri.scheme.name());
                    label.push(':');
                }
                match &uri.host {
                    Host::Name(name) => label.push_str(name),
                    Host::V4(address) => label.push_str(&address.to_string()),
                    Host::V6(address, _) => label.push_str(&address.to_string()),
                }
                if let Some(port) =
                    uri.explicit_port.filter(|port| *port != uri.scheme.default_port())
                {
                    write!(label, "_{port}").expect("a String takes everything");
                }
                for segment in &uri.path {
                    label.push('/');
                    label.push_str(segment);
                }
                for (place, argument) in uri.query.iter().enumerate() {
                    label.push(if place == 0 { '?' } else { '&' });
                    label.push_str(argument);
                }
            }
            Self::Entity { name, .. } => {
                label.push_str(ROOT);
                label.push('/');
                label.push_str(name);
            }
        }
        let allowed = |one: char| one.is_ascii_alphanumeric() || "-:./_".contains(one);
        let mut label: String =
            label.chars().map(|one| if allowed(one) { one } else { '_' }).collect();
        // RFC 8428 s4.5.1: a letter or digit comes first.
        if !label.starts_with(|one: char| one.is_ascii_alphanumeric()) {
            label.insert(0, '0');
        }
        label
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Resource(uri) => uri.fmt(f),
            Self::Entity { name, query } => {
                let mut uri: Uri = MANAGER.parse().expect("a URI");
                uri.path = [ROOT, name].map(String::from).to_vec();
                uri.query.clone_from(query);
                f.write_str(uri.to_string().trim_start_matches(MANAGER))
            }
        }
    }
}

/// A member as a profile writes it: a URI, or `NAME=URI` if the entity gives it a name for results.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The name in results.
    pub name: Option<String>,
    /// The resource or entity.
    pub target: Target,
}

impl Entry {
    /// Reads `NAME=URI` or a URI. What has `=` only behind a scheme or a path is a URI.
    pub fn parse(text: &str, own: &[Authority]) -> Result<Self, String> {
        let Some((name, uri)) = text.split_once('=').filter(|(name, _)| !name.contains([':', '/']))
        else {
            return Ok(Target::parse(text, own)?.into());
        };
        if !is_member_name(name) {
            let allowed =
                "1 to 32 letters, digits, - and _, of which the first is a letter or digit";
            return Err(format!("{name:?} is not the name of a member: {allowed}"));
        }
        Ok(Self { name: Some(name.to_string()), target: Target::parse(uri, own)? })
    }
    /// What results call it: its name, or the label of its target.
    pub fn label(&self) -> String {
        self.name.clone().unwrap_or_else(|| self.target.label())
    }
}

impl From<Target> for Entry {
    fn from(target: Target) -> Self {
        Self { name: None, target }
    }
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.name.iter().try_for_each(|name| write!(f, "{name}="))?;
        self.target.fmt(f)
    }
}

/// A member out of those of an entity, as a query writes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Choice {
    /// Its name in results.
    Label(String),
    /// Its URI.
    Target(Target),
}

impl Choice {
    /// Reads the name of a member, or its URI, with its name before it or not.
    pub fn parse(text: &str, own: &[Authority]) -> Result<Self, String> {
        if is_member_name(text) {
            return Ok(Self::Label(text.to_string()));
        }
        Entry::parse(text, own).map(|entry| Self::Target(entry.target))
    }
    /// Whether it is this member.
    pub(crate) fn is(&self, entry: &Entry) -> bool {
        match self {
            Self::Label(label) => *label == entry.label(),
            Self::Target(target) => *target == entry.target,
        }
    }
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Label(label) => f.write_str(label),
            Self::Target(target) => target.fmt(f),
        }
    }
}

/// A URI in the one form in which it is compared: RFC 7252 s6.3 and RFC 3986 s6.2.3 drop the default port, and a mapped
/// address is the IPv4 address that it contains (RFC 4291 s2.5.5.2).
fn normal(mut uri: Uri) -> Uri {
    let default = uri.scheme.default_port();
    uri.explicit_port = uri.explicit_port.filter(|port| *port != default);
    if let Host::V6(address, _) = &uri.host
        && let Some(mapped) = address.to_ipv4_mapped()
    {
        uri.host = Host::V4(mapped);
    }
    uri
}

/// A request for the resource of a URI at its own node. Of a longer answer no more blocks are requested.
pub(crate) fn request(method: Code, uri: &Uri) -> RequestTemplate {
    let mut template = RequestTemplate::new(method, "/").with_body_max(ANSWER_MAX);
    uri.insert_into(&mut template.options);
    template
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own() -> Vec<Authority> {
        vec![Authority::of(&"coap://gateway.example/".parse().expect("a URI"))]
    }

    #[test]
    fn references_and_own_uris_name_entities() {
        let room = Target::Entity { name: "room".into(), query: vec!["eo=avg".into()] };
        assert_eq!(Target::parse("/e/room?eo=avg", &own()), Ok(room.clone()));
        assert_eq!(Target::parse("coap://gateway.example/e/room?eo=avg", &own()), Ok(room.clone()));
        assert_eq!(room.to_string(), "/e/room?eo=avg");
        assert_eq!(room.label(), "e/room");
        // What a record of the state has is read as it was written.
        let odd = Target::parse("/e/room?er=coap://h/x%3Fa%26b&eo=avg", &own()).expect("an entity");
        assert_eq!(Target::parse(&odd.to_string(), &[]), Ok(odd));
        assert!(Target::parse("/f/room", &own()).is_err_and(|why| why.contains("/e/NAME")));
        assert!(Target::parse("coap://gateway.example/x", &own()).is_err());
    }

    #[test]
    fn a_member_has_a_name_before_its_uri_or_none() {
        let entry = |text: &str| Entry::parse(text, &own());
        let desk = entry("desk=coap://[fd00::1]/t?a=1").expect("a name and a URI");
        assert_eq!((desk.label().as_str(), desk.name.as_deref()), ("desk", Some("desk")));
        assert_eq!(desk.to_string(), "desk=coap://[fd00::1]/t?a=1");
        assert_eq!(entry(&desk.to_string()), Ok(desk.clone()));
        let bare = entry("coap://[fd00::1]/t?a=1").expect("a URI");
        assert_eq!((bare.name, &bare.target), (None, &desk.target));
        assert_eq!(entry("hall=/e/room?eo=avg").expect("an entity").label(), "hall");
        for text in ["=coap://h/t", "-a=coap://h/t", "a b=coap://h/t", "desk=lamp"] {
            assert!(entry(text).is_err(), "{text}");
        }
        let choice = |text: &str| Choice::parse(text, &own()).expect(text);
        for text in ["desk", "coap://[fd00::1]/t?a=1", "desk=coap://[fd00::1]/t?a=1"] {
            assert!(choice(text).is(&desk), "{text}");
        }
        assert!(!choice("hall").is(&desk));
    }

    #[test]
    fn resources_are_uris_of_single_nodes() {
        let lamp = Target::parse("coap://[fd00::1]:61616/s/t?x", &own()).expect("a resource");
        assert_eq!(lamp.label(), "fd00::1_61616/s/t_x");
        for (uri, label) in [
            ("coap://h/t?a=1", "h/t_a_1"),
            ("coaps+tcp://h/t", "coaps_tcp:h/t"),
            ("coap://h/t", "h/t"),
        ] {
            assert_eq!(Target::parse(uri, &own()).expect(uri).label(), label);
        }
        assert_eq!(lamp.to_string(), "coap://[fd00::1]:61616/s/t?x");
        for (text, why) in [
            ("lamp", "begins with coap://"),
            ("coap://[ff02::fd]/s", "is a group"),
            ("coap://224.0.1.187/s", "is a group"),
        ] {
            let error = Target::parse(text, &own()).expect_err(text);
            assert!(error.contains(why), "{error}");
        }
        assert_eq!(Target::parse("coap://[::1]/a b", &[]).expect("a blank").label(), "0::1/a_b");
    }

    #[test]
    fn one_resource_has_one_form_however_its_uri_is_written() {
        for (one, other) in [
            ("coap://h/t", "COAP://H:5683/%74"),
            ("coap://h/t", "coap://h:/t"),
            ("coap://h", "coap://h:5683/"),
            ("coap+tcp://h/t", "coap+tcp://h:5683/t"),
            ("coap://[fd00::1]/t", "coap://[fd00:0:0:0:0:0:0:1]:5683/x/../t"),
            ("coap://192.0.2.7/t", "coap://[::ffff:192.0.2.7]/t"),
            ("coap://[fe80::1%25eth0]/t", "coap://[FE80::0:1%eth0]/t"),
        ] {
            assert_eq!(Target::parse(one, &[]), Target::parse(other, &[]), "{one} {other}");
        }
        for (one, other) in [
            ("coap://[fe80::1%25eth0]/t", "coap://[fe80::1%25eth1]/t"),
            ("coap://h/t", "coap://h/t/"),
            ("coap://h/t", "coaps://h/t"),
        ] {
            assert_ne!(Target::parse(one, &[]), Target::parse(other, &[]), "{one} {other}");
        }
        // The manager is itself at the mapped address, too.
        let own = [Authority::of(&"coap://127.0.0.1:6000/".parse().expect("a URI"))];
        let mapped = Target::parse("coap://[::ffff:127.0.0.1]:6000/e/room", &own);
        assert!(matches!(mapped, Ok(Target::Entity { .. })), "{mapped:?}");
    }

    #[test]
    fn a_domain_is_a_prefix_of_64_bits() {
        let domain = |text: &str| Authority::of(&text.parse().expect(text)).domain();
        assert_eq!(domain("coap://[fd00::1]/a"), domain("coap://[fd00::2]:7/b"));
        assert_ne!(domain("coap://[fd00::1]/a"), domain("coap://[fd00:0:0:1::1]/a"));
        assert_ne!(domain("coap://10.0.0.1/"), domain("coap://10.0.0.2/"));
    }
}
