//! `/.well-known/core`: what a server lists, and the queries that narrow it (RFC 6690 s4).

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Write as _;
use core::str;

use lowmesh_wire::coap::{Code, ContentFormat, Message, OptionNumber};
use lowmesh_wire::link_format::{Filter, Writer, links};

use super::Resource;
use crate::event::ResponseTemplate;

/// The path of discovery: RFC 6690 s4, registered by RFC 8615.
pub(crate) const PATH: [&[u8]; 2] = [b".well-known", b"core"];

/// Answers a GET for `/.well-known/core` out of all (path, resource).
pub(super) fn answer<'a, R: 'a>(
    request: &Message,
    resources: impl Iterator<Item = (String, &'a Resource<R>)>,
) -> ResponseTemplate {
    let Some(filters) = filters(request) else { return ResponseTemplate::new(Code::BAD_REQUEST) };
    let mut document = String::new();
    let listed = resources.filter(|(_, resource)| !resource.is_hidden());
    for link in listed.flat_map(|(path, resource)| {
        core::iter::once(link(&path, resource)).chain(resource.below())
    }) {
        let wanted =
            links(&link).flatten().all(|link| filters.iter().all(|filter| filter.matches(&link)));
        if wanted {
            if !document.is_empty() {
                document.push(',');
            }
            document.push_str(&link);
        }
    }
    let mut response = ResponseTemplate::new(Code::CONTENT).with_payload(document.into_bytes());
    let format = u32::from(ContentFormat::LINK_FORMAT.0);
    response.options.insert_uint(OptionNumber::CONTENT_FORMAT, format);
    response
}

/// The filters of a query: RFC 6690 s4.1 defines one; several have to match all. `None` if one is
/// no filter.
fn filters(request: &Message) -> Option<Vec<Filter<'_>>> {
    let arguments = request.options.iter().values(OptionNumber::URI_QUERY);
    arguments.map(|argument| str::from_utf8(argument).ok().and_then(Filter::parse)).collect()
}

fn link<R>(path: &str, resource: &Resource<R>) -> String {
    let mut writer = Writer::new();
    let link = writer.link(path);
    for (name, value) in resource.attributes() {
        match value {
            Some(value) => link.quoted(name, value),
            None => link.flag(name),
        };
    }
    let mut formats = String::new();
    for format in resource.formats() {
        let blank = if formats.is_empty() { "" } else { " " };
        write!(formats, "{blank}{}", format.0).expect("a String takes everything");
    }
    match resource.formats() {
        [] => {}
        // RFC 7252 s7.2.1: one number, or a list of numbers apart by blanks.
        [one] => {
            link.number("ct", u32::from(one.0));
        }
        _ => {
            link.quoted("ct", &formats);
        }
    }
    if resource.is_observable() {
        // RFC 7641 s6: the attribute has no value.
        link.flag("obs");
    }
    writer.finish()
}

/// A path as a URI writes it: segments after slashes, with what a segment may not hold
/// percent-encoded (RFC 3986 s3.3).
pub(super) fn push_segment(path: &mut String, segment: &str) {
    path.push('/');
    for octet in segment.bytes() {
        let plain = octet.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@".contains(&octet);
        if plain {
            path.push(char::from(octet));
        } else {
            write!(path, "%{octet:02X}").expect("a String takes everything");
        }
    }
}
