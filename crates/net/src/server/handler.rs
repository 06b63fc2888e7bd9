//! What an application does with a request: a function, or an asynchronous one.

use std::fmt;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;

use futures_util::FutureExt as _;
use lowmesh_coap::ResponseTemplate;
use lowmesh_coap::resource::content_format;
use lowmesh_wire::coap::{Code, ContentFormat, Message, OptionNumber};

use crate::peer::Peer;

/// A whole request to a resource, over any transport and from any number of blocks.
#[derive(Clone, Debug)]
pub struct Request {
    /// The client.
    pub peer: Peer,
    /// The whole message, all options included.
    pub message: Message,
    /// The peer has shown that it receives at its address. A handler that needs this proof of every client answers with
    /// [`ResponseTemplate::challenge`].
    pub proven: bool,
    /// The request came to a group that the server belongs to.
    pub multicast: bool,
    /// The request asks for a notification: it was answered before, and what it observes has changed.
    pub refresh: bool,
    /// Segments of the path that are the resource's own.
    pub(super) depth: usize,
}

impl Request {
    /// The method.
    pub const fn method(&self) -> Code {
        self.message.code
    }
    /// The payload.
    pub fn payload(&self) -> &[u8] {
        &self.message.payload
    }
    /// The segments of the path after the resource's own path, for a subtree.
    pub fn below(&self) -> impl Iterator<Item = &[u8]> {
        self.values(OptionNumber::URI_PATH).skip(self.depth)
    }
    /// The arguments of the query.
    pub fn arguments(&self) -> impl Iterator<Item = &[u8]> {
        self.values(OptionNumber::URI_QUERY)
    }
    /// The format of the payload, if the request has one.
    pub fn format(&self) -> Option<ContentFormat> {
        content_format(&self.message.options)
    }
    /// The format that the client accepts, if the request has one.
    pub fn accept(&self) -> Option<ContentFormat> {
        let number = self.message.options.get_uint(OptionNumber::ACCEPT)?;
        u16::try_from(number).ok().map(ContentFormat)
    }
    fn values(&self, number: OptionNumber) -> impl Iterator<Item = &[u8]> {
        self.message.options.iter().values(number)
    }
}

/// An answer that is being made.
pub(super) type Pending = Pin<Box<dyn Future<Output = ResponseTemplate> + Send>>;

/// An answer, or the future that makes it.
pub(super) enum Reply {
    Now(ResponseTemplate),
    Later(Pending),
}

type AtOnce = dyn Fn(&Request) -> ResponseTemplate + Send + Sync;
type InTime = dyn Fn(Request) -> Pending + Send + Sync;

/// The function of a resource. The same one serves all transports, and as many requests at a time as there are. A panic
/// ends the request that it happened in, with 5.00, and no other: the program's panic hook tells of it, and what the
/// function shares with its other calls has to be whole by itself.
pub struct Handler(Function);

enum Function {
    AtOnce(Box<AtOnce>),
    InTime(Box<InTime>),
}

impl fmt::Debug for Handler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Handler")
    }
}

impl Handler {
    /// A function that responds immediately. It must not wait: nothing else is served meanwhile.
    pub fn new(answer: impl Fn(&Request) -> ResponseTemplate + Send + Sync + 'static) -> Self {
        Self(Function::AtOnce(Box::new(answer)))
    }
    /// An asynchronous function. A client that has to wait longer than a second gets its answer in a message of its own
    /// (RFC 7252 s5.2.2).
    pub fn later<A>(answer: impl Fn(Request) -> A + Send + Sync + 'static) -> Self
    where
        A: Future<Output = ResponseTemplate> + Send + 'static,
    {
        Self(Function::InTime(Box::new(move |request| Box::pin(answer(request)))))
    }
    pub(super) fn call(&self, request: Request) -> Reply {
        // No request is seen again after a panic; what calls share is the function's own, as `Handler` says.
        let called = catch_unwind(AssertUnwindSafe(|| match &self.0 {
            Function::AtOnce(answer) => Reply::Now(answer(&request)),
            Function::InTime(answer) => {
                let answer = AssertUnwindSafe(answer(request)).catch_unwind();
                Reply::Later(Box::pin(answer.map(|made| made.unwrap_or_else(|_| broken()))))
            }
        }));
        called.unwrap_or_else(|_| Reply::Now(broken()))
    }
}

/// RFC 7252 s5.9.3.1: 5.00, what a request gets that the server failed at.
const fn broken() -> ResponseTemplate {
    ResponseTemplate::new(Code::INTERNAL_SERVER_ERROR)
}
