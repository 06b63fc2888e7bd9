//! One behaviour a test: where a request goes, what is taken along, what comes back.

use lowmesh_wire::coap::{Kind, MessageId};

use super::*;

const NOTHING_MORE: fn(OptionNumber) -> bool = |_| false;

fn request(uri: &str) -> Message {
    let mut get = Message::new(Kind::Confirmable, Code::GET, MessageId(1));
    get.options.insert(OptionNumber::PROXY_URI, uri.as_bytes());
    get
}

fn refused(message: &Message) -> Code {
    forward(message, NOTHING_MORE).expect_err("refused")
}

#[test]
fn a_proxy_uri_becomes_the_options_of_its_target() {
    let mut get = request("coap://[2001:db8::1]:61616/sensors/temp?u=c");
    get.options.insert_uint(OptionNumber::ACCEPT, 50);
    let Forward { target, request } = forward(&get, NOTHING_MORE).expect("a target");
    assert_eq!((target.port(), request.confirmable), (61_616, true));
    let mut options = Options::new();
    options.insert_path("/sensors/temp");
    options.insert_query("u=c");
    options.insert_uint(OptionNumber::HOP_LIMIT, 15);
    options.insert_uint(OptionNumber::ACCEPT, 50);
    assert_eq!(request.options, options);
}

#[test]
fn a_proxy_scheme_goes_with_the_options_that_name_the_target() {
    let mut get = Message::new(Kind::NonConfirmable, Code::GET, MessageId(1));
    get.options.insert(OptionNumber::PROXY_SCHEME, b"coap+tcp");
    get.options.insert(OptionNumber::URI_HOST, b"Example.net");
    get.options.insert_uint(OptionNumber::URI_PORT, 7777);
    get.options.insert_path("/a b");
    let Forward { target, request } = forward(&get, NOTHING_MORE).expect("a target");
    assert_eq!(target.to_string(), "coap+tcp://example.net:7777/a%20b");
    assert!(!is_for_proxy(&request.options));
    assert!(request.confirmable, "whatever type the client used");
}

#[test]
fn a_target_that_no_proxy_serves_is_answered_with_5_05_and_one_that_is_none_with_4_02() {
    assert_eq!(refused(&request("http://example.net/")), Code::PROXYING_NOT_SUPPORTED);
    let mut without_host = Message::new(Kind::Confirmable, Code::GET, MessageId(1));
    without_host.options.insert(OptionNumber::PROXY_SCHEME, b"coap");
    assert_eq!(refused(&without_host), Code::BAD_OPTION);
    without_host.options.set(OptionNumber::PROXY_SCHEME, b"gopher");
    assert_eq!(refused(&without_host), Code::PROXYING_NOT_SUPPORTED);
}

#[test]
fn options_that_are_safe_pass_unknown_and_unsafe_ones_do_not() {
    // 2065: critical, safe. 2050: elective, unsafe. 2051: critical, unsafe.
    let mut get = request("coap://example.net/");
    get.options.insert(OptionNumber(2065), b"safe");
    let passed = forward(&get, NOTHING_MORE).expect("a target").request.options;
    assert_eq!(passed.get(OptionNumber(2065)), Some(&b"safe"[..]));
    for number in [2050, 2051] {
        let mut odd = get.clone();
        odd.options.insert(OptionNumber(number), b"unsafe");
        assert_eq!(refused(&odd), Code::BAD_OPTION, "{number}");
        assert!(forward(&odd, |one| one.0 == number).is_ok());
    }
}

#[test]
fn each_hop_takes_one_from_the_limit_and_the_last_is_not_taken() {
    for (limit, left) in [(None, Some(15)), (Some(5), Some(4)), (Some(2), Some(1)), (Some(1), None)]
    {
        let mut get = request("coap://example.net/");
        if let Some(limit) = limit {
            get.options.insert_uint(OptionNumber::HOP_LIMIT, limit);
        }
        match left {
            Some(left) => {
                let passed = forward(&get, NOTHING_MORE).expect("hops are left").request.options;
                assert_eq!(passed.get_uint(OptionNumber::HOP_LIMIT), Some(left));
            }
            None => assert_eq!(refused(&get), Code::HOP_LIMIT_REACHED),
        }
    }
}

#[test]
fn a_reverse_proxy_puts_its_targets_path_before_the_requests() {
    let mut put = Message::new(Kind::Confirmable, Code::PUT, MessageId(1));
    put.options.insert_path("/led");
    put.options.insert_query("x=1");
    put.payload = b"on".to_vec();
    let target: Uri = "coap://[::1]/house".parse().expect("a URI");
    let Forward { target, request } = reverse(&put, target, NOTHING_MORE).expect("a target");
    assert_eq!(target.to_string(), "coap://[::1]/house/led?x=1");
    let path: Vec<&[u8]> = request.options.iter().values(OptionNumber::URI_PATH).collect();
    assert_eq!((path, &request.payload[..]), (vec![&b"house"[..], b"led"], &b"on"[..]));
}

#[test]
fn a_response_comes_back_without_what_is_between_neighbours() {
    let mut response = Message::new(Kind::Acknowledgement, Code::CONTENT, MessageId(1));
    response.options.insert(OptionNumber::ETAG, b"v1");
    response.options.insert(OptionNumber::ECHO, b"value");
    response.options.insert(OptionNumber(2065), b"safe");
    response.payload = b"21".to_vec();
    let answer = back(response.clone(), NOTHING_MORE).expect("all of it is safe");
    assert_eq!((answer.code, &answer.payload[..]), (Code::CONTENT, &b"21"[..]));
    let numbers: Vec<u16> = answer.options.iter().map(|one| one.number.0).collect();
    assert_eq!(numbers, [4, 2065]);
    for number in [2050, 2051] {
        let mut odd = response.clone();
        odd.options.insert(OptionNumber(number), b"unsafe");
        assert_eq!(back(odd, NOTHING_MORE), Err(Code::BAD_GATEWAY), "{number}");
    }
}

#[test]
fn a_next_hop_without_response_has_a_code() {
    assert_eq!(failure(DropReason::GaveUp), Code::GATEWAY_TIMEOUT);
    assert_eq!(failure(DropReason::NoRoute), Code::BAD_GATEWAY);
    assert_eq!(failure(DropReason::QueueFull), Code::SERVICE_UNAVAILABLE);
}

/// RFC 7252 s5.10.1: no Uri-Path is one of these; a server behind the proxy may take them for what they mean in a folder.
#[test]
fn a_path_with_dot_segments_is_refused_wherever_it_comes_from() {
    for dots in [".", ".."] {
        for place in 0..3 {
            let mut get = Message::new(Kind::Confirmable, Code::GET, MessageId(1));
            for number in 0..3 {
                let segment = if number == place { dots } else { "a" };
                get.options.insert(OptionNumber::URI_PATH, segment.as_bytes());
            }
            let target: Uri = "coap://[::1]/base".parse().expect("a URI");
            assert_eq!(reverse(&get, target, NOTHING_MORE), Err(Code::BAD_OPTION), "{get:?}");
            get.options.insert(OptionNumber::PROXY_SCHEME, b"coap");
            get.options.insert(OptionNumber::URI_HOST, b"example.net");
            assert_eq!(refused(&get), Code::BAD_OPTION, "{get:?}");
        }
    }
    // In a URI they have a meaning, which is resolved before there are options.
    let forwarded = forward(&request("coap://example.net/a/../b"), NOTHING_MORE).expect("a URI");
    let path: Vec<&[u8]> =
        forwarded.request.options.iter().values(OptionNumber::URI_PATH).collect();
    assert_eq!(path, [b"b"]);
    for harmless in ["...", ".a", "a..", ""] {
        let mut get = Message::new(Kind::Confirmable, Code::GET, MessageId(1));
        get.options.insert(OptionNumber::URI_PATH, harmless.as_bytes());
        let target: Uri = "coap://[::1]/base".parse().expect("a URI");
        assert!(reverse(&get, target, NOTHING_MORE).is_ok(), "{harmless}");
    }
}
