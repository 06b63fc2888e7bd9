//! Resources of a server, without IO: which one a request is for, whether it may be performed, and
//! what the server lists under `/.well-known/core` (RFC 7252 s5.5 to s5.10, RFC 6690).
//!
//! A [`Router`] holds resources, each with the application's own value (a function, an enum, a
//! channel). It answers by itself what needs no application: unknown paths, methods that a resource
//! does not have, preconditions that fail, formats that do not fit, discovery.
//!
//! ```
//! use lowmesh_coap::resource::{Methods, Resource, Route, Router};
//! use lowmesh_wire::coap::{Code, Kind, Message, MessageId};
//!
//! let mut router = Router::new();
//! router.insert("/temp", Resource::new(Methods::GET, "thermometer").attribute("rt", "temp"));
//! let mut request = Message::new(Kind::Confirmable, Code::GET, MessageId(1));
//! request.options.insert_path("/temp");
//! let Route::Resource { resource, .. } = router.route(&request, false) else { panic!() };
//! assert_eq!(*resource.value(), "thermometer");
//! request.code = Code::DELETE;
//! let Route::Answer(response) = router.route(&request, false) else { panic!() };
//! assert_eq!(response.code, Code::METHOD_NOT_ALLOWED);
//! ```
//!
//! Left to others: performing the method, and everything about time.

mod condition;
mod discovery;
mod entity_tag;
mod entry;
mod methods;
mod negotiation;
mod router;

pub use condition::{State, check_conditions};
pub(crate) use discovery::PATH as DISCOVERY;
pub use entity_tag::EntityTag;
pub use entry::Resource;
pub use methods::Methods;
pub use negotiation::{Wishes, content_format};
pub use router::{Route, Router};
