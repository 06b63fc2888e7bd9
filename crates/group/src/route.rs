//! Which resource of the manager a request is for, lists of links, and subsets of members.

use alloc::string::{String, ToString as _};
use alloc::vec::Vec;

use lowmesh_coap::ResponseTemplate;
use lowmesh_coap::resource::content_format;
use lowmesh_wire::coap::{Code, ContentFormat, Message, OptionNumber, Options};
use lowmesh_wire::link_format::{self, Filter, Writer};
use lowmesh_wire::senml::{Record, parse_cbor, parse_json};

use crate::entity::{Entity, Member};
use crate::params::{MEMBERS_MAX, ROOT};
use crate::profile::Communication;
use crate::refusal::Refusal;
use crate::target::Choice;

/// A resource of the manager.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    /// `/.well-known/core`.
    Core,
    /// `/e`.
    Root,
    /// `/e/NAME`.
    Entity(String),
    /// `/e/NAME/profile`.
    Profile(String),
    /// `/e/NAME/members`.
    Members(String),
    Unknown,
}

/// The resource of a request.
pub(crate) fn route(options: &Options) -> Route {
    let segments: Vec<&[u8]> = options.iter().values(OptionNumber::URI_PATH).collect();
    let root = ROOT.as_bytes();
    let name = |name: &[u8]| core::str::from_utf8(name).map(String::from).ok();
    let found = match segments[..] {
        [b".well-known", b"core"] => Some(Route::Core),
        [one] if one == root => Some(Route::Root),
        [one, entity] if one == root => name(entity).map(Route::Entity),
        [one, entity, b"profile"] if one == root => name(entity).map(Route::Profile),
        [one, entity, b"members"] if one == root => name(entity).map(Route::Members),
        _ => None,
    };
    found.unwrap_or(Route::Unknown)
}

/// Links of all entities that a query wants (RFC 6690 s4.1).
pub(crate) fn links<'a>(
    entities: impl Iterator<Item = &'a Entity>,
    options: &Options,
) -> Result<ResponseTemplate, Refusal> {
    let filters: Option<Vec<Filter<'_>>> = options
        .iter()
        .values(OptionNumber::URI_QUERY)
        .map(|argument| core::str::from_utf8(argument).ok().and_then(Filter::parse))
        .collect();
    let filters = filters.ok_or_else(|| {
        let detail =
            "an argument of the query is not a filter such as rt=core.entity (RFC 6690 s4.1)";
        Refusal::new(Code::BAD_REQUEST, "malformed filter", detail)
    })?;
    let mut document = String::new();
    let mut root = Writer::new();
    root.link(&["/", ROOT].concat()).quoted("rt", "core.entities");
    for link in core::iter::once(root.finish()).chain(entities.map(link)) {
        let wanted = link_format::links(&link)
            .flatten()
            .all(|link| filters.iter().all(|filter| filter.matches(&link)));
        if wanted {
            if !document.is_empty() {
                document.push(',');
            }
            document.push_str(&link);
        }
    }
    Ok(ResponseTemplate::new(Code::CONTENT)
        .with_format(ContentFormat::LINK_FORMAT)
        .with_payload(document.into_bytes()))
}

/// The link of an entity; `core.lb` is the linked batch of draft-ietf-core-interfaces.
pub(crate) fn link(entity: &Entity) -> String {
    let mut writer = Writer::new();
    let path = ["/", ROOT, "/", &entity.name].concat();
    let link = writer.link(&path).quoted("rt", "core.entity").quoted("if", "core.lb");
    link.quoted("ct", "0 110 112");
    if entity.profile.communication == Communication::Multicast
        && let Some(group) = entity.address()
    {
        link.quoted("group", &group.to_string());
    }
    writer.finish()
}

/// The members that a FETCH asks for: names in SenML, or links (RFC 8132 s2, RFC 8790 s4).
pub(crate) fn selection(entity: &Entity, message: &Message) -> Result<Vec<Choice>, Refusal> {
    let bad = |detail: String| Refusal::new(Code::BAD_REQUEST, "malformed selection", detail);
    let names: Vec<String> = match content_format(&message.options) {
        Some(ContentFormat::SENML_JSON | SENML_ETCH_JSON) => {
            names(&parse_json(&message.payload).map_err(|error| bad(error.to_string()))?)
        }
        Some(ContentFormat::SENML_CBOR | SENML_ETCH_CBOR) => {
            names(&parse_cbor(&message.payload).map_err(|error| bad(error.to_string()))?)
        }
        Some(ContentFormat::LINK_FORMAT) => {
            let text = core::str::from_utf8(&message.payload);
            let text = text.map_err(|error| bad(error.to_string()))?;
            let targets: Result<_, _> =
                link_format::links(text).map(|link| link.map(|one| one.target.into())).collect();
            targets.map_err(|error| bad(error.to_string()))?
        }
        _ => {
            let detail = "Content-Format of a FETCH is 40, 110, 112, 320 or 322";
            let code = Code::UNSUPPORTED_CONTENT_FORMAT;
            return Err(Refusal::new(code, "format of a selection", detail));
        }
    };
    if names.is_empty() {
        return Err(bad("it names no member".to_string()));
    }
    if names.len() > MEMBERS_MAX {
        return Err(bad(alloc::format!("it has {} names; {MEMBERS_MAX} are allowed", names.len())));
    }
    let member = |name: &String| {
        let is_named =
            |member: &&Member| member.label() == *name || member.target.to_string() == *name;
        let member = entity.members.iter().find(is_named);
        member.map(|member| Choice::Target(member.target.clone())).ok_or_else(|| {
            let detail = alloc::format!("{name:?} is not a member of {:?}", entity.name);
            Refusal::new(Code::NOT_FOUND, "unknown member", detail)
        })
    };
    names.iter().map(member).collect()
}

/// RFC 8790 s6: the formats of FETCH and PATCH for SenML.
const SENML_ETCH_JSON: ContentFormat = ContentFormat(320);
const SENML_ETCH_CBOR: ContentFormat = ContentFormat(322);

fn names(records: &[Record]) -> Vec<String> {
    let mut base = String::new();
    let mut names = Vec::new();
    for record in records {
        if let Some(name) = &record.base_name {
            base.clone_from(name);
        }
        let name = [base.as_str(), record.name.as_deref().unwrap_or("")].concat();
        if !name.is_empty() {
            names.push(name);
        }
    }
    names
}
