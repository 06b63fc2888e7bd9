//! A document: whatever was written to it last, for clients with long bodies.

use alloc::string::{String, ToString as _};
use alloc::vec;
use alloc::vec::Vec;

use lowmesh_coap::ResponseTemplate;
use lowmesh_coap::resource::{Methods, Resource, Route, Router};
use lowmesh_stack::application::{Application, Claims, HostHandle, Input, Snapshot};
use lowmesh_units::Instant;
use lowmesh_wire::coap::{Code, Message};

/// An application with one resource: PUT replaces its body, and GET returns it. `/.well-known/core` lists the resource
/// (RFC 6690).
///
/// | bound | total | share of a client | the next one |
/// |---|---|---|---|
/// | body | one, as long as the host of the node puts together | all of it: clients replace each other's | replaces the body |
#[derive(Debug)]
pub struct Document {
    path: String,
    body: Vec<u8>,
    resources: Router<()>,
    read: u64,
    written: u64,
}

impl Document {
    /// An empty document with the resource `path`.
    pub fn new(path: &str) -> Self {
        let own = Resource::new(Methods::GET | Methods::PUT, ());
        let mut resources = Router::new();
        resources.insert(path, own.attribute("title", "what was written last"));
        let path = path.trim_matches('/').to_string();
        Self { path, body: Vec::new(), resources, read: 0, written: 0 }
    }

    /// The answer to a request; none if a group asked, to which the document does not answer (RFC 7252 s8.2).
    fn respond(&mut self, request: Message, multicast: bool) -> Option<ResponseTemplate> {
        match self.resources.route(&request, multicast) {
            Route::Resource { .. } if request.code == Code::GET => {
                self.read += 1;
                Some(ResponseTemplate::new(Code::CONTENT).with_payload(self.body.clone()))
            }
            Route::Resource { .. } => {
                self.written += 1;
                self.body = request.payload;
                Some(ResponseTemplate::new(Code::CHANGED))
            }
            Route::Answer(response) => Some(response),
            Route::Ignore => None,
        }
    }
}

impl Application for Document {
    fn claims(&self) -> Claims {
        let paths = vec![".well-known/core".into(), self.path.clone()];
        Claims { paths, ..Claims::default() }
    }
    fn handle(&mut self, _now: Instant, input: Input, host: &mut HostHandle<'_>) {
        let Input::Request { exchange, message, multicast, .. } = input else { return };
        match self.respond(message, multicast) {
            Some(response) => host.respond(exchange, response),
            None => host.decline(exchange),
        }
    }
    fn next_deadline(&self) -> Option<Instant> {
        None
    }
    fn snapshot(&self) -> Snapshot {
        let counters = vec![("read", self.read), ("written", self.written)];
        Snapshot { name: "document", counters }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowmesh_wire::coap::{Kind, MessageId};

    fn request(code: Code, path: &str, payload: &[u8]) -> Message {
        let mut request = Message::new(Kind::Confirmable, code, MessageId(1));
        request.options.insert_path(path);
        request.payload = payload.to_vec();
        request
    }
    fn ask(document: &mut Document, code: Code, path: &str, payload: &[u8]) -> ResponseTemplate {
        document.respond(request(code, path, payload), false).expect("to one node")
    }

    #[test]
    fn a_document_returns_what_was_written_last_and_other_methods_are_errors() {
        let mut document = Document::new("/body");
        assert_eq!(ask(&mut document, Code::GET, "body", b"").payload, b"");
        for body in [&b"first"[..], b"second, and longer", b""] {
            assert_eq!(ask(&mut document, Code::PUT, "body", body).code, Code::CHANGED);
            let response = ask(&mut document, Code::GET, "body", b"");
            assert_eq!((response.code, &response.payload[..]), (Code::CONTENT, body));
        }
        let deleted = ask(&mut document, Code::DELETE, "body", b"");
        assert_eq!(deleted.code, Code::METHOD_NOT_ALLOWED);
        let counters = document.snapshot().counters;
        assert_eq!(counters, [("read", 4), ("written", 3)]);
    }

    #[test]
    fn a_document_is_listed_and_does_not_answer_groups() {
        let mut document = Document::new("/body");
        let list = ask(&mut document, Code::GET, ".well-known/core", b"").payload;
        let list = String::from_utf8(list).expect("link format is text");
        assert!(list.starts_with("</body>"), "{list}");
        assert!(document.respond(request(Code::GET, "body", b""), true).is_none());
    }
}
