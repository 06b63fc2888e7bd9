//! The answers that resources here give, and what they keep.

use std::sync::{Mutex, MutexGuard, PoisonError};

use lowmesh_coap::ResponseTemplate;
use lowmesh_coap::resource::EntityTag;
use lowmesh_net::server::Request;
use lowmesh_wire::coap::{Code, ContentFormat, OptionNumber};

/// A body and what it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Document {
    /// Octets.
    pub body: Vec<u8>,
    /// Content-Format.
    pub format: ContentFormat,
}

impl Document {
    /// A text.
    pub fn text(text: impl Into<String>) -> Self {
        Self { body: text.into().into_bytes(), format: ContentFormat::TEXT_PLAIN }
    }
    /// What a request brings.
    pub fn of(request: &Request) -> Self {
        let format = request.format().unwrap_or(ContentFormat::TEXT_PLAIN);
        Self { body: request.payload().to_vec(), format }
    }
    /// 2.05 with the document.
    pub fn content(self) -> ResponseTemplate {
        ResponseTemplate::new(Code::CONTENT).with_payload(self.body).with_format(self.format)
    }
    /// The same with a tag, by which a client finds out whether its copy is still good.
    pub fn tagged(self) -> ResponseTemplate {
        let tag = self.tag();
        self.content().with_option(OptionNumber::ETAG, tag.as_bytes())
    }
    /// The tag that follows from the octets.
    pub fn tag(&self) -> EntityTag {
        EntityTag::of(&self.body)
    }
}

/// 2.05 with a text.
pub fn text(text: impl Into<String>) -> ResponseTemplate {
    Document::text(text).content()
}

/// A code without more.
pub const fn code(code: Code) -> ResponseTemplate {
    ResponseTemplate::new(code)
}

/// An error and why (RFC 7252 s5.5.2: a diagnostic payload has no format).
pub fn error(code: Code, why: &str) -> ResponseTemplate {
    ResponseTemplate::new(code).with_payload(why.into())
}

/// 5.03, why, and after how many seconds to ask again (RFC 7252 s5.9.3.4).
pub fn unavailable(why: &str, seconds: u32) -> ResponseTemplate {
    let mut response = error(Code::SERVICE_UNAVAILABLE, why);
    response.options.set_uint(OptionNumber::MAX_AGE, seconds);
    response
}

/// The state of a resource. A handler that has panicked leaves a state that is whole, for each changes it in one step.
pub fn lock<T>(state: &Mutex<T>) -> MutexGuard<'_, T> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}
