//! One resource: what is known about it without asking the application (RFC 7252 s5.8 to s5.10, RFC
//! 6690 s3).

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use lowmesh_wire::coap::{Code, ContentFormat, Message, OptionNumber};

use super::condition::{State, check_conditions};
use super::methods::Methods;
use super::negotiation::{content_format, number};
use crate::event::Notifications;

/// A resource, and its properties that are known without the application.
#[derive(Clone, Debug)]
pub struct Resource<R> {
    value: R,
    methods: Methods,
    attributes: Vec<(String, Option<String>)>,
    formats: Vec<ContentFormat>,
    consumes: Vec<ContentFormat>,
    observable: bool,
    notifications: Notifications,
    multicast: bool,
    hidden: bool,
    subtree: bool,
    conditional: bool,
    below: Option<Below>,
}

/// Lists what is below a subtree now: a link each.
#[derive(Clone)]
struct Below(Arc<dyn Fn() -> Vec<String> + Send + Sync>);

impl fmt::Debug for Below {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Below")
    }
}

impl<R> Resource<R> {
    /// A resource with these methods; `value` is the application's.
    pub const fn new(methods: Methods, value: R) -> Self {
        Self {
            value,
            methods,
            attributes: Vec::new(),
            formats: Vec::new(),
            consumes: Vec::new(),
            observable: false,
            notifications: Notifications::AsRequested,
            multicast: false,
            hidden: false,
            subtree: false,
            conditional: false,
            below: None,
        }
    }
    /// Adds a link attribute (RFC 6690 s3), such as `rt`, to the listing.
    pub fn attribute(mut self, name: &str, value: &str) -> Self {
        self.attributes.push((name.into(), Some(value.into())));
        self
    }
    /// Adds a link attribute without a value to the listing.
    pub fn flag(mut self, name: &str) -> Self {
        self.attributes.push((name.into(), None));
        self
    }
    /// Adds a format of its representations, listed as `ct`. With at least one, a request that accepts none of them is
    /// answered with 4.06.
    pub fn format(mut self, format: ContentFormat) -> Self {
        self.formats.push(format);
        self
    }
    /// Adds a format that the resource accepts in requests. With at least one, any other is answered with 4.15.
    pub fn consumes(mut self, format: ContentFormat) -> Self {
        self.consumes.push(format);
        self
    }
    /// Lets clients observe the resource (RFC 7641).
    pub fn observable(self) -> Self {
        Self { observable: true, ..self }
    }
    /// Lets clients observe the resource, with NON notifications even if they registered with CON: for states that are
    /// soon replaced. [`Notifications::NonConfirmable`] has the exceptions.
    pub fn notify_non(self) -> Self {
        Self { observable: true, notifications: Notifications::NonConfirmable, ..self }
    }
    /// Lets the resource answer multicast requests; other resources do not respond (RFC 7252 s8.2).
    pub fn multicast(self) -> Self {
        Self { multicast: true, ..self }
    }
    /// Omits the resource from `/.well-known/core`.
    pub fn hidden(self) -> Self {
        Self { hidden: true, ..self }
    }
    /// Makes the resource answer for every path below its own too, whether something exists there or not.
    pub fn subtree(self) -> Self {
        Self { subtree: true, ..self }
    }
    /// Makes `/.well-known/core` list what is below a subtree, too: `links` gives a link for each resource, as RFC 6690 s2
    /// writes it, whenever a client asks.
    pub fn lists(self, links: impl Fn() -> Vec<String> + Send + Sync + 'static) -> Self {
        Self { below: Some(Below(Arc::new(links))), ..self }
    }
    /// The application checks If-Match and If-None-Match itself, with
    /// [`check_conditions`](super::check_conditions), for it knows the entity tag.
    pub fn conditional(self) -> Self {
        Self { conditional: true, ..self }
    }
    /// The application's value.
    pub const fn value(&self) -> &R {
        &self.value
    }
    /// Whether clients may observe it.
    pub const fn is_observable(&self) -> bool {
        self.observable
    }
    /// How its observers are notified.
    pub const fn notifications(&self) -> Notifications {
        self.notifications
    }
    /// Links of what is below.
    pub(super) fn below(&self) -> Vec<String> {
        self.below.as_ref().map(|below| (below.0)()).unwrap_or_default()
    }
    pub(super) const fn is_hidden(&self) -> bool {
        self.hidden
    }
    pub(super) fn attributes(&self) -> impl Iterator<Item = (&str, Option<&str>)> {
        self.attributes.iter().map(|(name, value)| (name.as_str(), value.as_deref()))
    }
    pub(super) fn formats(&self) -> &[ContentFormat] {
        &self.formats
    }

    pub(super) const fn is_multicast(&self) -> bool {
        self.multicast
    }
    pub(super) const fn is_subtree(&self) -> bool {
        self.subtree
    }

    /// Why a request cannot be performed on this resource, if so.
    pub(super) fn refusal(&self, request: &Message) -> Option<Code> {
        if !self.methods.contains(request.code) {
            return Some(Code::METHOD_NOT_ALLOWED);
        }
        // What exists below a subtree, or under which tag, only the application knows.
        if !self.conditional && !self.subtree {
            let here = check_conditions(&request.options, State::Present(None));
            if let Err(code) = here {
                return Some(code);
            }
        }
        let fits = |formats: &[ContentFormat], wanted: Option<ContentFormat>| {
            formats.is_empty() || wanted.is_none_or(|wanted| formats.contains(&wanted))
        };
        if !fits(&self.consumes, content_format(&request.options)) {
            // RFC 7252 s5.10.3 and s5.9.2.11.
            return Some(Code::UNSUPPORTED_CONTENT_FORMAT);
        }
        // RFC 7252 s5.10.4: 4.06 MUST be sent if the preferred format cannot be returned.
        (!fits(&self.formats, number(&request.options, OptionNumber::ACCEPT)))
            .then_some(Code::NOT_ACCEPTABLE)
    }
}
