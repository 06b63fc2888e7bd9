//! The memory of a process whose cache is filled past its bound, as the system counts it. This is a program of its own:
//! tests that run at the same time would add their memory.

#![cfg(target_os = "linux")]

use lowmesh_coap::RequestTemplate;
use lowmesh_coap::cache::Cache;
use lowmesh_units::Instant;
use lowmesh_wire::coap::{Code, Kind, Message, MessageId, OptionNumber};

/// Octets of memory that the process has in use.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux tells it");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let line = line.expect("there is one").trim().trim_end_matches(" kB");
    line.parse::<usize>().expect("a number") << 10
}

/// Different FETCHes with `body_len` octets each, whose answers have a few; what the process grows by.
fn growth(octets_max: usize, requests: u32, body_len: usize) -> usize {
    let before = resident();
    let mut cache = Cache::of_origins(octets_max, String::len);
    let origin = "coap://[2001:db8::1]:5683/".to_owned();
    for number in 0..requests {
        let mut body = vec![b'x'; body_len];
        body.extend(number.to_be_bytes());
        let mut request = RequestTemplate::new(Code::FETCH, "/sensors").with_payload(body);
        request.options.insert_uint(OptionNumber::HOP_LIMIT, 15);
        let mut response = Message::new(Kind::Acknowledgement, Code::CONTENT, MessageId(1));
        response.payload = b"21".to_vec();
        cache.take(&origin, &request, response, Instant::ZERO);
        assert!(cache.octets() <= octets_max);
    }
    assert!(cache.octets() > octets_max * 9 / 10, "the cache is full");
    resident().saturating_sub(before)
}

/// One test, so that no other takes memory at the same time.
#[test]
fn a_flood_of_different_fetches_costs_no_more_memory_than_the_bound_says() {
    // What an allocator keeps for itself.
    let slack = 1 << 20;
    for body_len in [4, 1000, 4000] {
        let octets_max = 8 << 20;
        let grown = growth(octets_max, 80_000, body_len);
        assert!(grown <= octets_max + slack, "{grown} octets with bodies of {body_len}");
    }
}
