//! `/clock` returns the seconds since the node was switched on; `/.well-known/core` lists it (RFC 6690).

use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::fmt::Write as _;

use lowmesh_coap::ResponseTemplate;
use lowmesh_coap::resource::{Methods, Resource, Route, Router};
use lowmesh_stack::application::{Application, Claims, HostHandle, Input, Snapshot};
use lowmesh_units::Instant;
use lowmesh_wire::coap::{Code, ContentFormat, Message, OptionNumber};

/// What a resource shows.
#[derive(Clone, Copy, Debug)]
enum Reading {
    Clock,
}

/// The clock of a node, as a resource.
#[derive(Debug)]
pub struct Clock {
    resources: Router<Reading>,
    answered: u64,
}

impl Default for Clock {
    fn default() -> Self {
        let clock = Resource::new(Methods::GET, Reading::Clock)
            .format(ContentFormat::TEXT_PLAIN)
            .attribute("title", "seconds since the start")
            .multicast();
        let mut resources = Router::new();
        resources.insert("/clock", clock);
        Self { resources, answered: 0 }
    }
}

impl Application for Clock {
    fn claims(&self) -> Claims {
        let paths = [".well-known/core", "clock"].map(String::from);
        Claims { paths: paths.into(), ports: Vec::new() }
    }
    fn handle(&mut self, now: Instant, input: Input, host: &mut HostHandle<'_>) {
        let Input::Request { exchange, message, multicast, .. } = input else { return };
        match self.respond(now, &message, multicast) {
            Some(response) => {
                self.answered += 1;
                host.respond(exchange, response);
            }
            None => host.decline(exchange),
        }
    }
    fn next_deadline(&self) -> Option<Instant> {
        None
    }
    fn snapshot(&self) -> Snapshot {
        Snapshot { name: "clock", counters: vec![("answered", self.answered)] }
    }
}

impl Clock {
    fn respond(
        &self,
        now: Instant,
        request: &Message,
        multicast: bool,
    ) -> Option<ResponseTemplate> {
        match self.resources.route(request, multicast) {
            Route::Resource { resource, .. } => Some(match resource.value() {
                Reading::Clock => clock(now),
            }),
            Route::Answer(response) => Some(response),
            Route::Ignore => None,
        }
    }
}

fn clock(now: Instant) -> ResponseTemplate {
    let mut text = String::new();
    // Writing into a string cannot fail.
    let _ = write!(text, "{:.3}", now.as_secs_f64());
    let mut response = ResponseTemplate::new(Code::CONTENT).with_payload(text.into_bytes());
    let format = u32::from(ContentFormat::TEXT_PLAIN.0);
    response.options.insert_uint(OptionNumber::CONTENT_FORMAT, format);
    response
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowmesh_wire::coap::{Kind, MessageId};

    fn ask(code: Code, path: &str) -> ResponseTemplate {
        let mut request = Message::new(Kind::Confirmable, code, MessageId(1));
        request.options.insert_path(path);
        let now = Instant::from_millis(12_345);
        Clock::default().respond(now, &request, false).expect("to one node")
    }

    #[test]
    fn the_clock_tells_the_seconds_since_the_start() {
        let response = ask(Code::GET, "/clock");
        assert_eq!(response.code, Code::CONTENT);
        assert_eq!(response.payload, b"12.345");
    }

    #[test]
    fn the_clock_is_listed_and_other_paths_and_methods_are_errors() {
        let list = ask(Code::GET, "/.well-known/core");
        let text = String::from_utf8(list.payload).expect("link format is text");
        assert!(text.starts_with("</clock>"), "{text}");
        assert_eq!(ask(Code::GET, "/date").code, Code::NOT_FOUND);
        assert_eq!(ask(Code::POST, "/clock").code, Code::METHOD_NOT_ALLOWED);
    }
}
