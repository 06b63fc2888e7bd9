//! A data point: a number that other nodes read and write as text, one by one or as a group.

use alloc::collections::VecDeque;
use alloc::string::{String, ToString as _};
use alloc::vec;

use lowmesh_coap::ResponseTemplate;
use lowmesh_coap::membership::PATH as MEMBERSHIPS;
use lowmesh_coap::resource::{Methods, Resource, Route, Router};
use lowmesh_stack::application::{
    Application, Claims, Exchange, HostHandle, Input, Report, Snapshot,
};
use lowmesh_units::{Duration, Instant};
use lowmesh_wire::coap::{Code, ContentFormat, Message};

/// An application with one resource: GET returns a number with blanks behind it, PUT and POST set it. `/.well-known/core`
/// lists the resource (RFC 6690), and `/mc` beside it, which [`Membership`](crate::Membership) has.
#[derive(Debug)]
pub struct Point {
    path: String,
    payload_octets: usize,
    value: f64,
    resources: Router<bool>,
    service: Duration,
    /// Requests in service, with the times and the responses; none is for no response.
    working: VecDeque<(Instant, Exchange, Option<ResponseTemplate>)>,
    read: u64,
    written: u64,
}

impl Point {
    /// A point with the resource `path` and a first value, which takes the time `service` for a request. What it returns
    /// has `payload_octets`, if the number is not longer.
    pub fn new(path: &str, value: f64, payload_octets: usize, service: Duration) -> Self {
        let methods = Methods::GET | Methods::PUT | Methods::POST;
        let own = Resource::new(methods, true).format(ContentFormat::TEXT_PLAIN).multicast();
        let mut resources = Router::new();
        resources.insert(path, own);
        resources.insert(MEMBERSHIPS, Resource::new(Methods::GET | Methods::POST, false));
        let path = path.trim_matches('/').to_string();
        Self {
            path,
            payload_octets,
            value,
            resources,
            service,
            working: VecDeque::new(),
            read: 0,
            written: 0,
        }
    }

    /// The answer to a request; none if a group asked for what is not here (RFC 7252 s8.2).
    fn respond(&mut self, request: &Message, multicast: bool) -> Option<ResponseTemplate> {
        match self.resources.route(request, multicast) {
            Route::Resource { .. } if request.code == Code::GET => {
                self.read += 1;
                let mut text = self.value.to_string().into_bytes();
                text.resize(text.len().max(self.payload_octets), b' ');
                let response = ResponseTemplate::new(Code::CONTENT).with_payload(text);
                Some(response.with_format(ContentFormat::TEXT_PLAIN))
            }
            Route::Resource { .. } => {
                let text = core::str::from_utf8(&request.payload).ok();
                let value = text.and_then(|text| text.trim().parse::<f64>().ok());
                let Some(value) = value.filter(|value| value.is_finite()) else {
                    return Some(ResponseTemplate::new(Code::BAD_REQUEST));
                };
                self.value = value;
                self.written += 1;
                Some(ResponseTemplate::new(Code::CHANGED))
            }
            Route::Answer(response) => Some(response),
            Route::Ignore => None,
        }
    }
}

impl Application for Point {
    fn claims(&self) -> Claims {
        let paths = vec![".well-known/core".into(), self.path.clone()];
        Claims { paths, ..Claims::default() }
    }
    fn handle(&mut self, now: Instant, input: Input, host: &mut HostHandle<'_>) {
        if let Input::Request { exchange, message, multicast, .. } = input {
            host.report(Report::Executed);
            let response = self.respond(&message, multicast);
            self.working.push_back((now + self.service, exchange, response));
        }
        while self.working.front().is_some_and(|(due, ..)| *due <= now) {
            match self.working.pop_front() {
                Some((_, exchange, Some(response))) => host.respond(exchange, response),
                Some((_, exchange, None)) => host.decline(exchange),
                None => {}
            }
        }
    }
    fn next_deadline(&self) -> Option<Instant> {
        self.working.front().map(|(due, ..)| *due)
    }
    fn snapshot(&self) -> Snapshot {
        Snapshot { name: "point", counters: vec![("read", self.read), ("written", self.written)] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowmesh_wire::coap::{Kind, MessageId};

    fn ask(point: &mut Point, code: Code, path: &str, payload: &[u8]) -> ResponseTemplate {
        let mut request = Message::new(Kind::Confirmable, code, MessageId(1));
        request.options.insert_path(path);
        request.payload = payload.to_vec();
        point.respond(&request, false).expect("to one node")
    }

    #[test]
    fn a_point_returns_what_was_written() {
        let mut point = Point::new("s/t", 21.5, 6, Duration::ZERO);
        assert_eq!(ask(&mut point, Code::GET, "s/t", b"").payload, b"21.5  ");
        assert_eq!(ask(&mut point, Code::PUT, "s/t", b" 3 ").code, Code::CHANGED);
        assert_eq!(ask(&mut point, Code::GET, "s/t", b"").payload, b"3     ");
        assert_eq!(ask(&mut point, Code::PUT, "s/t", b"bright").code, Code::BAD_REQUEST);
    }

    #[test]
    fn a_point_lists_itself_and_the_memberships_of_its_node() {
        let mut point = Point::new("s/t", 21.5, 0, Duration::ZERO);
        let list = ask(&mut point, Code::GET, ".well-known/core", b"").payload;
        let list = String::from_utf8(list).expect("link format is text");
        assert!(list.contains("</s/t>") && list.contains("</mc>"), "{list}");
        assert_eq!(ask(&mut point, Code::GET, "s/u", b"").code, Code::NOT_FOUND);
    }
}
