//! What a client wishes of a representation: Accept, and the tags it has already (RFC 7252 s5.10.4,
//! s5.10.6.2).

use alloc::vec::Vec;

use lowmesh_wire::coap::{Class, Code, ContentFormat, Message, OptionNumber, Options};

use super::EntityTag;
use crate::event::ResponseTemplate;

/// The Content-Format of a message, if it has one.
pub fn content_format(options: &Options) -> Option<ContentFormat> {
    number(options, OptionNumber::CONTENT_FORMAT)
}

/// An option that holds a content format.
pub(super) fn number(options: &Options, option: OptionNumber) -> Option<ContentFormat> {
    options.get_uint(option).and_then(|number| u16::try_from(number).ok()).map(ContentFormat)
}

/// The requirements of a request on its response; kept while the application makes the response.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Wishes {
    accept: Option<ContentFormat>,
    /// Tags of representations that the client has, if the method may be answered with 2.03.
    known: Vec<EntityTag>,
}

impl Wishes {
    /// The requirements of `request`.
    pub fn of(request: &Message) -> Self {
        let reads = matches!(request.code, Code::GET | Code::FETCH);
        let tags = request.options.iter().values(OptionNumber::ETAG).filter(|_| reads);
        Self {
            accept: number(&request.options, OptionNumber::ACCEPT),
            known: tags.filter_map(EntityTag::new).collect(),
        }
    }
    /// Makes a response fit: 2.03 without payload for a representation that the client has, 4.06
    /// for a format that it does not accept.
    ///
    /// ```
    /// use lowmesh_coap::{ResponseTemplate, resource::Wishes};
    /// use lowmesh_wire::coap::{Code, Kind, Message, MessageId, OptionNumber};
    /// let mut get = Message::new(Kind::Confirmable, Code::GET, MessageId(1));
    /// get.options.insert(OptionNumber::ETAG, b"v1");
    /// let mut response = ResponseTemplate::new(Code::CONTENT).with_payload(b"long".to_vec());
    /// response.options.insert(OptionNumber::ETAG, b"v1");
    /// Wishes::of(&get).apply(&mut response);
    /// assert_eq!((response.code, response.payload.len()), (Code::VALID, 0));
    /// ```
    pub fn apply(&self, response: &mut ResponseTemplate) {
        if response.code.class() != Class::Success {
            return;
        }
        // RFC 7252 s5.10.4: 4.06 MUST be sent if the preferred format cannot be returned.
        if let Some(accepted) = self.accept
            && content_format(&response.options).is_some_and(|format| format != accepted)
        {
            *response = ResponseTemplate::new(Code::NOT_ACCEPTABLE);
            return;
        }
        if self.known.is_empty() || response.code != Code::CONTENT {
            return;
        }
        if response.options.get(OptionNumber::ETAG).is_none() {
            // The tag may be one that was made of the representation when it left in blocks.
            let tag = EntityTag::of(&response.payload);
            response.options.insert(OptionNumber::ETAG, tag.as_bytes());
        }
        let tag = response.options.get(OptionNumber::ETAG).and_then(EntityTag::new);
        if tag.is_some_and(|tag| self.known.contains(&tag)) {
            // RFC 7252 s5.9.1.3: 2.03 MUST include the tag and MUST NOT include a payload.
            response.code = Code::VALID;
            response.payload.clear();
            response.options.remove(OptionNumber::CONTENT_FORMAT);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowmesh_wire::coap::{Kind, MessageId};

    fn get(option: OptionNumber, value: &[u8]) -> Message {
        let mut get = Message::new(Kind::Confirmable, Code::GET, MessageId(1));
        get.options.insert(option, value);
        get
    }

    fn json() -> ResponseTemplate {
        let mut response = ResponseTemplate::new(Code::CONTENT).with_payload(b"{}".to_vec());
        response.options.insert(OptionNumber::ETAG, b"v1");
        response.options.insert_uint(OptionNumber::CONTENT_FORMAT, 50);
        response
    }

    #[test]
    fn a_format_that_the_client_does_not_accept_becomes_4_06() {
        let mut response = json();
        Wishes::of(&get(OptionNumber::ACCEPT, &[50])).apply(&mut response);
        assert_eq!(response, json());
        Wishes::of(&get(OptionNumber::ACCEPT, &[60])).apply(&mut response);
        assert_eq!(response, ResponseTemplate::new(Code::NOT_ACCEPTABLE));
    }

    #[test]
    fn an_error_is_sent_whatever_the_client_accepts() {
        let mut response = ResponseTemplate::new(Code::NOT_FOUND);
        response.options.insert_uint(OptionNumber::CONTENT_FORMAT, 0);
        let before = response.clone();
        Wishes::of(&get(OptionNumber::ACCEPT, &[60])).apply(&mut response);
        assert_eq!(response, before);
    }

    #[test]
    fn a_representation_without_tag_is_known_by_the_tag_that_follows_from_it() {
        let plain = || ResponseTemplate::new(Code::CONTENT).with_payload(b"{}".to_vec());
        let tag = EntityTag::of(b"{}");
        let mut response = plain();
        Wishes::of(&get(OptionNumber::ETAG, tag.as_bytes())).apply(&mut response);
        assert_eq!((response.code, response.payload.len()), (Code::VALID, 0));
        let mut response = plain();
        Wishes::of(&get(OptionNumber::ACCEPT, &[50])).apply(&mut response);
        assert_eq!(response, plain(), "nobody asked for a tag");
    }

    #[test]
    fn only_a_representation_that_the_client_has_is_answered_with_2_03() {
        let mut response = json();
        Wishes::of(&get(OptionNumber::ETAG, b"v0")).apply(&mut response);
        assert_eq!(response, json());
        Wishes::of(&get(OptionNumber::ETAG, b"v1")).apply(&mut response);
        assert_eq!(response.code, Code::VALID);
        assert_eq!(response.options.get(OptionNumber::ETAG), Some(&b"v1"[..]));
        assert_eq!(content_format(&response.options), None);
        let mut put = get(OptionNumber::ETAG, b"v1");
        put.code = Code::PUT;
        let mut response = json();
        Wishes::of(&put).apply(&mut response);
        assert_eq!(response, json());
    }
}
