//! Responses of the manager that need no member: profiles, lists of members, refusals by method and format.

use alloc::string::String;
use alloc::vec::Vec;

use lowmesh_coap::ResponseTemplate;
use lowmesh_wire::coap::{Code, ContentFormat, Message, OptionNumber};

use crate::collector::FORMATS;
use crate::entity::{Entity, Member};
use crate::memberships::described;
use crate::profile::document;
use crate::refusal::Refusal;
use crate::target::Authority;

/// The format that a client wants.
pub(crate) fn accept(message: &Message) -> Option<ContentFormat> {
    let number = message.options.get_uint(OptionNumber::ACCEPT)?;
    u16::try_from(number).ok().map(ContentFormat)
}

/// Refuses a format that results do not have.
pub(crate) fn check_accept(message: &Message) -> Result<(), Refusal> {
    match accept(message).filter(|format| !FORMATS.contains(format)) {
        None => Ok(()),
        Some(format) => {
            let detail = alloc::format!("Accept {}: the formats are 0, 110 and 112", format.0);
            Err(Refusal::new(Code::NOT_ACCEPTABLE, "format of results", detail))
        }
    }
}

/// 4.04: no entity of this name.
pub(crate) fn not_found() -> Refusal {
    Refusal::new(Code::NOT_FOUND, "no such entity", "GET /e lists the existing ones")
}

/// 4.05, with the methods that there are.
pub(crate) fn not_allowed(methods: &str) -> Refusal {
    let detail = alloc::format!("the resource has {methods}");
    Refusal::new(Code::METHOD_NOT_ALLOWED, "method not allowed", detail)
}

/// The profile of an entity in the format that a client wants.
pub(crate) fn profile_response(
    entity: &Entity,
    accept: Option<ContentFormat>,
) -> Result<ResponseTemplate, Refusal> {
    let fields = entity.fields();
    let (format, payload) = match accept {
        Some(ContentFormat::JSON) => (ContentFormat::JSON, document::to_json(&fields)),
        Some(ContentFormat::CBOR) => (ContentFormat::CBOR, document::to_cbor(&fields)),
        None | Some(ContentFormat::TEXT_PLAIN) => return Ok(described(entity, Code::CONTENT)),
        Some(other) => {
            let detail = alloc::format!("Accept {}: the formats are 0, 50 and 60", other.0);
            return Err(Refusal::new(Code::NOT_ACCEPTABLE, "format of profiles", detail));
        }
    };
    Ok(ResponseTemplate::new(Code::CONTENT).with_format(format).with_payload(payload))
}

/// The members of an entity as links.
pub(crate) fn members_as_links(entity: &Entity) -> ResponseTemplate {
    let mut writer = lowmesh_wire::link_format::Writer::new();
    for member in &entity.members {
        let link = writer.link(&alloc::string::ToString::to_string(&member.target));
        if let Some(name) = &member.name {
            link.quoted("name", name);
        }
    }
    ResponseTemplate::new(Code::CONTENT)
        .with_format(ContentFormat::LINK_FORMAT)
        .with_payload(writer.finish().into_bytes())
}

/// A line for each member: its URI, where its membership stands, and behind a semicolon whether its node answers.
pub(crate) fn standing(
    entity: &Entity,
    health: impl Fn(&Authority) -> Option<String>,
) -> ResponseTemplate {
    let line = |(member, stands): (&Member, String)| {
        let health = member.authority().and_then(|node| health(&node));
        let health = health.map(|health| alloc::format!("; {health}")).unwrap_or_default();
        alloc::format!("{} {stands}{health}\n", member.entry())
    };
    let lines: Vec<String> = entity.standing().into_iter().map(line).collect();
    ResponseTemplate::new(Code::CONTENT)
        .with_format(ContentFormat::TEXT_PLAIN)
        .with_payload(lines.concat().into_bytes())
}
