//! One behaviour a test: what is fresh, what is validated, what goes.

use lowmesh_wire::coap::{Kind, MessageId};

use super::*;

const T0: Instant = Instant::ZERO;
const ORIGIN: u8 = 1;

fn get(path: &str) -> RequestTemplate {
    RequestTemplate::get(path)
}

fn response(code: Code, tag: &[u8], max_age: Option<u32>, payload: &[u8]) -> Message {
    let mut message = Message::new(Kind::Acknowledgement, code, MessageId(1));
    if !tag.is_empty() {
        message.options.insert(OptionNumber::ETAG, tag);
    }
    if let Some(seconds) = max_age {
        message.options.insert_uint(OptionNumber::MAX_AGE, seconds);
    }
    message.payload = payload.to_vec();
    message
}

fn content(payload: &[u8]) -> Message {
    response(Code::CONTENT, b"v1", Some(30), payload)
}

/// A cache with `/t`, stored at 0 s and fresh for 30 s.
fn cache() -> Cache<u8> {
    let mut cache = Cache::new(1000);
    assert_eq!(cache.take(&ORIGIN, &get("/t"), content(b"21"), T0), content(b"21"));
    cache
}

fn lookup(cache: &mut Cache<u8>, path: &str, second: u64) -> Lookup {
    cache.lookup(&ORIGIN, &get(path), Instant::from_secs(second))
}

#[test]
fn a_fresh_response_is_answered_with_what_is_left_of_its_max_age() {
    let mut cache = cache();
    let aged = response(Code::CONTENT, b"v1", Some(20), b"21");
    assert_eq!(lookup(&mut cache, "/t", 10), Lookup::Fresh(aged));
    assert_eq!(lookup(&mut cache, "/u", 10), Lookup::Missing);
    let elsewhere = cache.lookup(&2, &get("/t"), T0);
    assert_eq!(elsewhere, Lookup::Missing, "another origin");
}

#[test]
fn without_max_age_a_response_is_fresh_for_a_minute_and_without_tag_cannot_be_validated() {
    let mut cache = Cache::new(1000);
    cache.take(&ORIGIN, &get("/t"), response(Code::CONTENT, b"", None, b"21"), T0);
    assert!(matches!(lookup(&mut cache, "/t", 59), Lookup::Fresh(_)));
    assert_eq!(lookup(&mut cache, "/t", 60), Lookup::Missing);
}

#[test]
fn a_stale_response_is_validated_by_its_tag_and_fresh_again() {
    let mut cache = cache();
    assert_eq!(lookup(&mut cache, "/t", 30), Lookup::Stale(b"v1".to_vec()));
    let mut request = get("/t");
    request.options.insert(OptionNumber::ETAG, b"v1");
    let valid = response(Code::VALID, b"v1", Some(100), b"");
    let seen = cache.take(&ORIGIN, &request, valid, Instant::from_secs(31));
    assert_eq!((seen.code, &seen.payload[..]), (Code::CONTENT, &b"21"[..]));
    assert_eq!(seen.options.get_uint(OptionNumber::MAX_AGE), Some(100));
    assert!(matches!(lookup(&mut cache, "/t", 130), Lookup::Fresh(_)));
}

#[test]
fn a_validation_of_the_applications_own_is_its_own() {
    let mut cache = cache();
    let mut request = get("/t");
    request.options.insert(OptionNumber::ETAG, b"mine");
    let valid = response(Code::VALID, b"mine", None, b"");
    assert_eq!(cache.take(&ORIGIN, &request, valid.clone(), T0), valid);
}

#[test]
fn a_method_that_changes_a_resource_takes_its_responses_out() {
    for code in [Code::CREATED, Code::CHANGED, Code::DELETED] {
        let mut cache = cache();
        cache.take(&ORIGIN, &get("/u"), content(b"other"), T0);
        let put = RequestTemplate::new(Code::PUT, "/t");
        cache.take(&ORIGIN, &put, response(code, b"", None, b""), T0);
        assert_eq!(lookup(&mut cache, "/t", 0), Lookup::Missing);
        assert!(matches!(lookup(&mut cache, "/u", 0), Lookup::Fresh(_)));
    }
}

#[test]
fn errors_are_stored_and_answers_to_unsafe_methods_are_not() {
    let mut cache = Cache::new(1000);
    cache.take(&ORIGIN, &get("/nope"), response(Code::NOT_FOUND, b"", None, b""), T0);
    assert!(matches!(lookup(&mut cache, "/nope", 5), Lookup::Fresh(_)));
    let post = RequestTemplate::new(Code::POST, "/t");
    cache.take(&ORIGIN, &post, content(b"1"), T0);
    assert_eq!(cache.lookup(&ORIGIN, &post, T0), Lookup::Missing);
}

#[test]
fn requests_that_wish_something_else_have_entries_of_their_own() {
    let mut cache = cache();
    let mut json = get("/t");
    json.options.insert_uint(OptionNumber::ACCEPT, 50);
    assert_eq!(cache.lookup(&ORIGIN, &json, T0), Lookup::Missing);
    let fetch =
        |payload: &[u8]| RequestTemplate::new(Code::FETCH, "/t").with_payload(payload.to_vec());
    cache.take(&ORIGIN, &fetch(b"a"), content(b"1"), T0);
    assert!(matches!(cache.lookup(&ORIGIN, &fetch(b"a"), T0), Lookup::Fresh(_)));
    assert_eq!(cache.lookup(&ORIGIN, &fetch(b"b"), T0), Lookup::Missing);
}

#[test]
fn an_observation_is_never_answered_from_the_cache() {
    let mut cache = cache();
    let mut observe = get("/t");
    observe.options.insert_uint(OptionNumber::OBSERVE, 0);
    assert_eq!(cache.lookup(&ORIGIN, &observe, T0), Lookup::Missing);
}

#[test]
fn what_has_an_option_that_is_unsafe_and_unknown_is_not_stored() {
    let mut cache = Cache::new(1000);
    let mut odd = content(b"21");
    odd.options.insert(OptionNumber(2050), b"");
    cache.take(&ORIGIN, &get("/t"), odd, T0);
    assert_eq!((lookup(&mut cache, "/t", 0), cache.octets()), (Lookup::Missing, 0));
}

#[test]
fn the_least_recently_used_make_room() {
    let mut cache = Cache::new(250);
    for path in ["/a", "/b"] {
        cache.take(&ORIGIN, &get(path), content(&[7; 100]), T0);
    }
    assert!(matches!(lookup(&mut cache, "/a", 1), Lookup::Fresh(_)));
    cache.take(&ORIGIN, &get("/c"), content(&[7; 100]), T0);
    assert_eq!(lookup(&mut cache, "/b", 1), Lookup::Missing);
    assert!(matches!(lookup(&mut cache, "/a", 1), Lookup::Fresh(_)));
    assert!(cache.octets() <= 250 && cache.by_use.len() == cache.entries.len());
    cache.take(&ORIGIN, &get("/huge"), content(&[7; 300]), T0);
    assert_eq!(lookup(&mut cache, "/huge", 1), Lookup::Missing);
}
