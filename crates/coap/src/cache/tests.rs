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
    let mut cache = Cache::new(10_000);
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
    let mut cache = Cache::new(10_000);
    cache.take(&ORIGIN, &get("/t"), response(Code::CONTENT, b"", None, b"21"), T0);
    assert!(matches!(lookup(&mut cache, "/t", 59), Lookup::Fresh(_)));
    assert_eq!(lookup(&mut cache, "/t", 60), Lookup::Missing);
}

#[test]
fn a_stale_response_is_validated_by_its_tag_and_fresh_again() {
    let mut cache = cache();
    assert_eq!(lookup(&mut cache, "/t", 30), Lookup::Stale(b"v1".to_vec()));
    let valid = response(Code::VALID, b"v1", Some(100), b"");
    let seen = cache.take(&ORIGIN, &get("/t"), valid, Instant::from_secs(31));
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
fn who_has_the_representation_hears_that_it_is_good_and_the_cache_too() {
    let mut cache = cache();
    let mut request = get("/t");
    request.options.insert(OptionNumber::ETAG, b"v1");
    assert_eq!(validating(&mut request, b"v1"), None, "one tag is asked about once");
    let valid = response(Code::VALID, b"v1", Some(100), b"");
    let seen = cache.take(&ORIGIN, &request, valid.clone(), Instant::from_secs(31));
    assert_eq!(seen, valid);
    assert!(matches!(lookup(&mut cache, "/t", 130), Lookup::Fresh(_)));
}

#[test]
fn a_2_03_is_an_answer_to_who_has_asked_about_its_tag_and_to_nobody_else() {
    let mut cache = cache();
    let (v1, v2) =
        (response(Code::VALID, b"v1", None, b""), response(Code::VALID, b"v2", None, b""));
    let (plain, mut own) = (get("/t"), get("/t"));
    own.options.insert(OptionNumber::ETAG, b"v2");
    // The cache has v1, and asks about it besides.
    for (request, valid, code, understood) in [
        (&plain, &v1, Code::CONTENT, true),
        (&plain, &v2, Code::VALID, false),
        (&own, &v1, Code::CONTENT, true),
        (&own, &v2, Code::VALID, true),
    ] {
        let seen = cache.take(&ORIGIN, request, valid.clone(), T0);
        assert_eq!((seen.code, is_understood(request, &seen)), (code, understood), "{request:?}");
    }
    let untagged = response(Code::VALID, b"", None, b"");
    assert!(!is_understood(&plain, &untagged) && is_understood(&own, &untagged));
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
    let mut cache = Cache::new(10_000);
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
    let mut cache = Cache::new(10_000);
    let mut odd = content(b"21");
    odd.options.insert(OptionNumber(2050), b"");
    cache.take(&ORIGIN, &get("/t"), odd, T0);
    assert_eq!((lookup(&mut cache, "/t", 0), cache.octets()), (Lookup::Missing, 0));
}

/// A cache for three answers of 100 octets, and not for four.
fn small() -> Cache<u8> {
    let mut one = Cache::new(10_000);
    one.take(&ORIGIN, &get("/a"), content(&[7; 100]), T0);
    Cache::new(one.octets() * 7 / 2)
}

#[test]
fn the_least_recently_used_make_room() {
    let mut cache = small();
    for path in ["/a", "/b", "/c"] {
        cache.take(&ORIGIN, &get(path), content(&[7; 100]), T0);
    }
    assert!(matches!(lookup(&mut cache, "/a", 1), Lookup::Fresh(_)));
    cache.take(&ORIGIN, &get("/d"), content(&[7; 100]), T0);
    assert_eq!(lookup(&mut cache, "/b", 1), Lookup::Missing);
    assert!(matches!(lookup(&mut cache, "/a", 1), Lookup::Fresh(_)));
    assert_eq!((cache.len(), cache.by_use.len()), (3, 3));
    cache.take(&ORIGIN, &get("/huge"), content(&[7; 10_000]), T0);
    assert_eq!(lookup(&mut cache, "/huge", 1), Lookup::Missing);
    assert_eq!(cache.len(), 3, "what has no room at all takes none from others");
}

#[test]
fn keys_count_too_so_that_long_requests_for_short_answers_stay_within_the_bound() {
    let max = 200_000;
    let heap = |origin: &Vec<u8>| origin.capacity();
    let mut cache = Cache::of_origins(max, heap);
    let mut spelt_out = 0;
    for number in 0..2000_u32 {
        let body = [&number.to_be_bytes()[..], &[b'k'; 400]].concat();
        let fetch = RequestTemplate::new(Code::FETCH, "/t").with_payload(body);
        cache.take(&vec![b'o'; 60], &fetch, content(b"1"), T0);
        assert!(cache.octets() <= max);
        // Each has its body and its origin twice.
        spelt_out = cache.len() * 2 * (400 + 60);
    }
    assert!(spelt_out <= cache.octets(), "{spelt_out} of {}", cache.octets());
    assert!(cache.len() > 50, "{}", cache.len());
}

#[test]
fn an_entry_that_is_validated_with_other_options_counts_as_what_it_has_become() {
    let mut cache = Cache::new(10_000);
    cache.take(&ORIGIN, &get("/t"), response(Code::CONTENT, b"v1", None, b"21"), T0);
    let before = cache.octets();
    let mut request = get("/t");
    request.options.insert(OptionNumber::ETAG, b"v1");
    let mut valid = response(Code::VALID, b"v1", Some(1_000_000), b"");
    valid.options.insert(OptionNumber(2048), &[9; 50]);
    let seen = cache.take(&ORIGIN, &request, valid, Instant::from_secs(61));
    assert_eq!(seen.options.get(OptionNumber(2048)), Some(&[9; 50][..]), "RFC 7252 s5.9.1.3");
    assert!(cache.octets() > before + 50);
    let put = RequestTemplate::new(Code::PUT, "/t");
    cache.take(&ORIGIN, &put, response(Code::CHANGED, b"", None, b""), T0);
    assert_eq!((cache.octets(), cache.len()), (0, 0));
}

#[test]
fn a_change_takes_all_responses_of_its_resource_out_and_looks_at_no_other() {
    let mut cache = Cache::new(1 << 20);
    for number in 0..200_u32 {
        cache.take(&ORIGIN, &get(&format!("/other/{number}")), content(b"1"), T0);
        let mut accepting = get("/t");
        accepting.options.insert_uint(OptionNumber::ACCEPT, number);
        cache.take(&ORIGIN, &accepting, content(b"1"), T0);
        cache.take(&2, &accepting, content(b"1"), T0);
    }
    let put = RequestTemplate::new(Code::PUT, "/t");
    cache.take(&ORIGIN, &put, response(Code::CHANGED, b"", None, b""), T0);
    assert_eq!((cache.len(), cache.by_use.len()), (400, 400));
    assert_eq!(lookup(&mut cache, "/t", 0), Lookup::Missing);
    assert!(matches!(lookup(&mut cache, "/other/7", 0), Lookup::Fresh(_)));
}

#[test]
fn what_is_created_elsewhere_is_no_longer_fresh_there() {
    let mut cache = Cache::new(10_000);
    for path in ["/list/7", "/list"] {
        cache.take(&ORIGIN, &get(path), content(b"1"), T0);
    }
    let mut made = response(Code::CREATED, b"", None, b"");
    for segment in [&b"list"[..], b"7"] {
        made.options.insert(OptionNumber::LOCATION_PATH, segment);
    }
    cache.take(&ORIGIN, &RequestTemplate::new(Code::POST, "/list"), made, T0);
    assert!(cache.is_empty());
}

#[test]
fn a_hop_limit_belongs_to_the_key_and_what_it_provokes_is_never_stored() {
    let mut cache = Cache::new(10_000);
    let limited = |hops: u32| {
        let mut request = get("/t");
        request.options.insert_uint(OptionNumber::HOP_LIMIT, hops);
        request
    };
    let over = response(Code::HOP_LIMIT_REACHED, b"", None, b"proxy");
    cache.take(&ORIGIN, &limited(1), over, T0);
    for hops in [1, 15] {
        assert_eq!(cache.lookup(&ORIGIN, &limited(hops), T0), Lookup::Missing);
    }
    cache.take(&ORIGIN, &limited(15), content(b"1"), T0);
    assert!(matches!(cache.lookup(&ORIGIN, &limited(15), T0), Lookup::Fresh(_)));
    assert_eq!(cache.lookup(&ORIGIN, &limited(3), T0), Lookup::Missing);
}

#[test]
fn errors_about_one_client_one_request_or_the_path_are_for_nobody_else() {
    for code in [
        Code::BAD_REQUEST,
        Code::UNAUTHORIZED,
        Code::BAD_OPTION,
        Code::FORBIDDEN,
        Code::REQUEST_ENTITY_INCOMPLETE,
        Code::PRECONDITION_FAILED,
        Code::TOO_MANY_REQUESTS,
        Code::INTERNAL_SERVER_ERROR,
        Code::BAD_GATEWAY,
        Code::GATEWAY_TIMEOUT,
        Code::PROXYING_NOT_SUPPORTED,
        Code::HOP_LIMIT_REACHED,
        Code::new(2, 30),
    ] {
        let mut cache = Cache::new(10_000);
        cache.take(&ORIGIN, &get("/t"), response(code, b"", Some(600), b""), T0);
        assert_eq!(lookup(&mut cache, "/t", 0), Lookup::Missing, "{code}");
    }
}

#[test]
fn challenges_parts_and_what_oscore_protects_are_not_stored() {
    let marked = |number: OptionNumber, value: &[u8]| {
        let mut message = content(b"1");
        message.options.insert(number, value);
        message
    };
    // Block 0 of more, and block 1.
    let blocks = [(OptionNumber::BLOCK2, &[0x0e][..]), (OptionNumber::BLOCK2, &[0x16])];
    let others = [(OptionNumber::ECHO, &b"challenge"[..]), (OptionNumber::OSCORE, b"")];
    for (number, value) in blocks.into_iter().chain(others) {
        let mut cache = Cache::new(10_000);
        cache.take(&ORIGIN, &get("/t"), marked(number, value), T0);
        assert!(cache.is_empty(), "{number:?}");
    }
    let mut cache = Cache::new(10_000);
    let mut protected = RequestTemplate::new(Code::FETCH, "/t");
    protected.options.insert(OptionNumber::OSCORE, b"\x09\x00\x01");
    cache.take(&ORIGIN, &protected, content(b"secret"), T0);
    assert_eq!(cache.lookup(&ORIGIN, &protected, T0), Lookup::Missing);
    assert!(cache.is_empty());
}

#[test]
fn no_max_age_keeps_a_response_for_longer_than_a_day_or_an_error_for_longer_than_a_minute() {
    let mut cache = Cache::new(10_000);
    let forever = Some(u32::MAX);
    cache.take(&ORIGIN, &get("/t"), response(Code::CONTENT, b"", forever, b"1"), T0);
    cache.take(&ORIGIN, &get("/none"), response(Code::NOT_FOUND, b"", forever, b""), T0);
    assert!(matches!(lookup(&mut cache, "/t", 24 * 3600 - 1), Lookup::Fresh(_)));
    assert_eq!(lookup(&mut cache, "/t", 24 * 3600), Lookup::Missing);
    assert!(matches!(lookup(&mut cache, "/none", 59), Lookup::Fresh(_)));
    assert_eq!(lookup(&mut cache, "/none", 60), Lookup::Missing);
}

#[test]
fn what_is_neither_fresh_nor_can_be_validated_takes_no_room() {
    let mut cache = Cache::new(10_000);
    cache.take(&ORIGIN, &get("/t"), response(Code::CONTENT, b"", Some(0), b"1"), T0);
    assert!(cache.is_empty());
    cache.take(&ORIGIN, &get("/t"), response(Code::CONTENT, b"v1", Some(0), b"1"), T0);
    assert_eq!(lookup(&mut cache, "/t", 0), Lookup::Stale(b"v1".to_vec()));
}
