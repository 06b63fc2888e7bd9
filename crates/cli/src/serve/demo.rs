//! Resources for trying a client: a greeting, a counter, the time.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use lowmesh_coap::ResponseTemplate;
use lowmesh_coap::resource::{Methods, Resource};
use lowmesh_net::clock::ntp_timestamp;
use lowmesh_net::server::{Handler, Server};
use lowmesh_wire::coap::{Code, ContentFormat};

use super::reply::text;

/// Adds them to a server.
pub fn resources(server: &mut Server) {
    let hello = Handler::new(|_| text("hello world"));
    let hello = Resource::new(Methods::GET, hello).format(ContentFormat::TEXT_PLAIN);
    server.insert("/hello", hello.attribute("title", "A greeting").multicast());
    let executions = AtomicU64::new(0);
    let count =
        Handler::new(move |_| text((executions.fetch_add(1, Ordering::Relaxed) + 1).to_string()));
    let count = Resource::new(Methods::POST, count);
    server.insert("/count", count.attribute("title", "How often it was executed"));
    let time = Resource::new(Methods::GET, Handler::new(|_| text(time_of_day(ntp_timestamp()))));
    let time = time.format(ContentFormat::TEXT_PLAIN).observable();
    server.insert("/time", time.attribute("title", "The time of day, UTC").multicast());
    let light = Mutex::new(b"off".to_vec());
    let light = Handler::new(move |request| {
        let mut light = light.lock().unwrap_or_else(PoisonError::into_inner);
        if request.method() == Code::GET {
            return text(String::from_utf8_lossy(&light));
        }
        if !matches!(request.payload(), b"on" | b"off") {
            return ResponseTemplate::new(Code::BAD_REQUEST).with_payload(b"on or off".to_vec());
        }
        light.clear();
        light.extend_from_slice(request.payload());
        ResponseTemplate::new(Code::CHANGED)
    });
    let light = Resource::new(Methods::GET | Methods::PUT, light).format(ContentFormat::TEXT_PLAIN);
    let light = light.attribute("rt", "g.light").attribute("title", "A light of a group");
    server.insert("/gp/lights/demo", light.multicast());
    let changes = server.changes();
    tokio::spawn(async move {
        loop {
            tokio::time::sleep(until_next_second(ntp_timestamp())).await;
            changes.tell("/time");
        }
    });
}

/// Changes a resource once each `period`, and notifies its observers if `change` returns true.
pub fn tick(
    server: &Server,
    path: &'static str,
    period: Duration,
    change: impl Fn() -> bool + Send + 'static,
) {
    let changes = server.changes();
    tokio::spawn(async move {
        loop {
            tokio::time::sleep(period).await;
            if change() {
                changes.tell(path);
            }
        }
    });
}

/// Of a time stamp of NTP, whose upper half has the seconds since midnight of 1900-01-01.
fn time_of_day(ntp: u64) -> String {
    let seconds = (ntp >> 32) % (24 * 3600);
    format!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60)
}

/// Two notifications never have the same second, and none is left out.
fn until_next_second(ntp: u64) -> Duration {
    const SECOND: u64 = 1 << 32;
    Duration::from_nanos(((SECOND - ntp % SECOND) * 1_000_000_000).div_ceil(SECOND))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_ticks_with_the_second() {
        assert_eq!(until_next_second(7 << 32), Duration::from_secs(1));
        assert_eq!(until_next_second((7 << 32) + (3 << 30)), Duration::from_millis(250));
        assert_eq!(until_next_second((8 << 32) - 1), Duration::from_nanos(1));
    }

    #[test]
    fn the_time_of_day_has_hours_minutes_and_seconds() {
        assert_eq!(time_of_day(((3 * 24 * 3600 + 3723) << 32) + 99), "01:02:03");
    }
}
