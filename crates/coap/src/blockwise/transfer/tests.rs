//! Scripts of a client with a server written by hand, then client and server together.

use lowmesh_units::Instant;
use lowmesh_wire::coap::{Kind, MessageId, Options};
use proptest::prelude::*;

use super::*;
use crate::blockwise::{Arrival, Assembled, Assemblies, BodyKey, Representations, RequestKey};
use crate::event::ResponseTemplate;
use crate::exchange::Association;

const UDP: Limits =
    Limits { exponent: Exponent::MAX, payload_max: 1024, body_max: 100_000, negotiates: false };
const SMALL: Limits = Limits { exponent: Exponent::MIN, ..UDP };

fn response(code: Code, payload: &[u8]) -> Message {
    let mut message = Message::new(Kind::Acknowledgement, code, MessageId(1));
    message.payload = payload.to_vec();
    message
}

fn with_block(mut message: Message, option: OptionNumber, block: Block) -> Message {
    block.write(&mut message.options, option);
    message
}

fn block(number: u32, more: bool, szx: u8) -> Block {
    Block { number, more, exponent: Exponent::new(szx).expect("at most 7") }
}

fn read(request: &RequestTemplate, option: OptionNumber) -> Option<Block> {
    Block::read(request.options.iter(), option).expect("three octets")
}

fn put(len: usize) -> RequestTemplate {
    RequestTemplate::new(Code::PUT, "/large").with_payload(vec![9; len])
}

#[test]
fn a_body_that_fits_leaves_without_block_option_or_tag() {
    let mut transfer = Transfer::new(put(1024), UDP, b"t");
    let request = transfer.request().expect("possible");
    assert_eq!(request, put(1024));
    let changed = response(Code::CHANGED, b"");
    assert_eq!(transfer.on_response(changed.clone()), Progress::Done(changed));
}

#[test]
fn a_long_body_goes_up_block_by_block_with_one_tag_and_its_size() {
    let mut transfer = Transfer::new(put(40), SMALL, b"t");
    let mut numbers = Vec::new();
    loop {
        let request = transfer.request().expect("possible");
        assert_eq!(request.options.get(OptionNumber::REQUEST_TAG), Some(&b"t"[..]));
        let sent = read(&request, OptionNumber::BLOCK1).expect("block-wise");
        let size = request.options.get_uint(OptionNumber::SIZE1);
        assert_eq!(size, (sent.number == 0).then_some(40));
        numbers.push((sent.number, sent.more, request.payload.len()));
        let code = if sent.more { Code::CONTINUE } else { Code::CHANGED };
        let answer = with_block(response(code, b""), OptionNumber::BLOCK1, sent);
        match transfer.on_response(answer) {
            Progress::Ask => {}
            Progress::Done(done) => {
                assert_eq!(done.code, Code::CHANGED);
                break;
            }
            Progress::Failed(error) => panic!("{error}"),
        }
    }
    assert_eq!(numbers, [(0, true, 16), (1, true, 16), (2, false, 8)]);
}

#[test]
fn the_server_may_want_smaller_blocks_after_the_first() {
    let mut transfer = Transfer::new(put(2000), UDP, b"t");
    transfer.request().expect("possible");
    let answer = with_block(response(Code::CONTINUE, b""), OptionNumber::BLOCK1, block(0, true, 3));
    assert_eq!(transfer.on_response(answer), Progress::Ask);
    let request = transfer.request().expect("possible");
    // 1024 octets are there: block 8 of 128.
    assert_eq!(read(&request, OptionNumber::BLOCK1), Some(block(8, true, 3)));
    assert_eq!(request.payload.len(), 128);
}

#[test]
fn the_server_may_refuse_the_first_block_for_its_size() {
    let mut transfer = Transfer::new(put(2000), UDP, b"t");
    transfer.request().expect("possible");
    let too_large = response(Code::REQUEST_ENTITY_TOO_LARGE, b"");
    let answer = with_block(too_large, OptionNumber::BLOCK1, block(0, true, 2));
    assert_eq!(transfer.on_response(answer), Progress::Ask);
    let request = transfer.request().expect("possible");
    assert_eq!(read(&request, OptionNumber::BLOCK1), Some(block(0, true, 2)));
}

fn refused(answered: Option<Block>) -> Message {
    let too_large = response(Code::REQUEST_ENTITY_TOO_LARGE, b"");
    match answered {
        Some(block) => with_block(too_large, OptionNumber::BLOCK1, block),
        None => too_large,
    }
}

#[test]
fn the_server_may_refuse_a_whole_request_for_its_size() {
    for (answered, next) in [
        (Some(block(0, false, 2)), Some(block(0, true, 2))),
        (None, Some(block(0, true, 4))),
        (Some(block(0, false, 6)), None),
    ] {
        let mut transfer = Transfer::new(put(300), UDP, b"t");
        assert_eq!(transfer.request().expect("possible"), put(300));
        let progress = transfer.on_response(refused(answered));
        let Some(next) = next else {
            assert_eq!(progress, Progress::Done(refused(answered)), "300 octets fit into 1024");
            continue;
        };
        assert_eq!(progress, Progress::Ask);
        let request = transfer.request().expect("possible");
        assert_eq!(read(&request, OptionNumber::BLOCK1), Some(next));
        assert_eq!(request.options.get(OptionNumber::REQUEST_TAG), Some(&b"t"[..]));
        let bad_option = response(Code::BAD_OPTION, b"");
        let told = transfer.on_response(bad_option);
        assert_eq!(told, Progress::Done(refused(answered)), "it knows no Block1");
    }
}

#[test]
fn a_body_longer_than_size1_says_is_not_tried_in_blocks() {
    let mut transfer = Transfer::new(put(300), UDP, b"t");
    transfer.request().expect("possible");
    let mut limit = refused(None);
    limit.options.insert_uint(OptionNumber::SIZE1, 200);
    assert_eq!(transfer.on_response(limit.clone()), Progress::Done(limit));
}

#[test]
fn success_for_a_first_block_as_the_whole_is_a_failure() {
    let mut transfer = Transfer::new(put(2000), UDP, b"t");
    transfer.request().expect("possible");
    let taken = response(Code::CHANGED, b"");
    assert_eq!(transfer.on_response(taken), Progress::Failed(TransferError::PartlyTaken));
}

#[test]
fn what_the_peer_takes_may_become_known_in_the_middle() {
    for first in [Exponent::MAX, Exponent::BERT] {
        let limits = Limits { exponent: first, payload_max: 1100, ..UDP };
        let mut transfer = Transfer::new(put(1500), limits, b"t");
        let sent = read(&transfer.request().expect("possible"), OptionNumber::BLOCK1);
        assert_eq!(sent, Some(block(0, true, first.szx())));
        let mut answer = response(Code::CONTINUE, b"");
        answer = with_block(answer, OptionNumber::BLOCK1, sent.expect("block-wise"));
        assert_eq!(transfer.on_response(answer), Progress::Ask);
        transfer.limit(Exponent::fitting(150), 150);
        let request = transfer.request().expect("possible");
        // 1024 octets are there: block 8 of 128.
        assert_eq!(read(&request, OptionNumber::BLOCK1), Some(block(8, true, 3)));
        assert_eq!(request.payload.len(), 128);
    }
}

#[test]
fn a_request_says_the_size_of_blocks_if_the_user_has_chosen_one() {
    let limits = Limits { exponent: Exponent::fitting(64), negotiates: true, ..UDP };
    let asks = |request| {
        let mut transfer = Transfer::new(request, limits, b"t");
        read(&transfer.request().expect("possible"), OptionNumber::BLOCK2)
    };
    assert_eq!(asks(RequestTemplate::get("/large")), Some(block(0, false, 2)));
    assert_eq!(asks(put(10)), None, "what writes may go to a server without blocks");
    let mut own = RequestTemplate::get("/large");
    block(3, false, 1).write(&mut own.options, OptionNumber::BLOCK2);
    assert_eq!(asks(own), Some(block(3, false, 1)), "the application has said it");
    let mut transfer = Transfer::new(RequestTemplate::get("/large"), limits, b"t");
    transfer.request().expect("possible");
    let short =
        with_block(response(Code::CONTENT, b"21"), OptionNumber::BLOCK2, block(0, false, 2));
    assert_eq!(transfer.on_response(short), Progress::Done(response(Code::CONTENT, b"21")));
}

#[test]
fn an_error_in_the_middle_ends_the_transfer_with_that_response() {
    let mut transfer = Transfer::new(put(2000), UDP, b"t");
    transfer.request().expect("possible");
    let refused = response(Code::REQUEST_ENTITY_INCOMPLETE, b"");
    assert_eq!(transfer.on_response(refused.clone()), Progress::Done(refused));
}

#[test]
fn a_continue_for_another_block_is_an_error() {
    let mut transfer = Transfer::new(put(2000), UDP, b"t");
    transfer.request().expect("possible");
    let answer = with_block(response(Code::CONTINUE, b""), OptionNumber::BLOCK1, block(1, true, 6));
    assert_eq!(transfer.on_response(answer), Progress::Failed(TransferError::WrongBlock));
}

fn content(number: u32, more: bool, tag: &[u8]) -> Message {
    let mut message = response(Code::CONTENT, &[number as u8; 16]);
    message.options.insert(OptionNumber::ETAG, tag);
    with_block(message, OptionNumber::BLOCK2, block(number, more, 0))
}

#[test]
fn blocks_of_a_response_become_one_body() {
    let mut transfer = Transfer::new(RequestTemplate::get("/large"), UDP, b"t");
    assert_eq!(transfer.on_response(content(0, true, b"v1")), Progress::Ask);
    let request = transfer.request().expect("possible");
    assert_eq!(read(&request, OptionNumber::BLOCK2), Some(block(1, false, 0)));
    assert_eq!(transfer.on_response(content(1, true, b"v1")), Progress::Ask);
    let Progress::Done(whole) = transfer.on_response(content(2, false, b"v1")) else {
        panic!("the last block")
    };
    assert_eq!(whole.payload, [[0; 16], [1; 16], [2; 16]].concat());
    assert_eq!(whole.options.get(OptionNumber::BLOCK2), None);
}

#[test]
fn a_body_is_fresh_as_long_as_all_of_its_blocks() {
    for (first, last, whole) in [
        (Some(30), Some(8), Some(8)),
        (Some(8), Some(30), Some(8)),
        (None, Some(8), Some(8)),
        (None, Some(80), None),
    ] {
        let mut transfer = Transfer::new(RequestTemplate::get("/a"), UDP, b"");
        let aged = |mut block: Message, seconds: Option<u32>| {
            if let Some(seconds) = seconds {
                block.options.set_uint(OptionNumber::MAX_AGE, seconds);
            }
            block
        };
        transfer.request().expect("possible");
        transfer.on_response(aged(content(0, true, b"1"), first));
        transfer.request().expect("possible");
        let done = transfer.on_response(aged(content(1, false, b"1"), last));
        let Progress::Done(body) = done else { panic!("{done:?}") };
        assert_eq!(body.options.get_uint(OptionNumber::MAX_AGE), whole);
    }
}

#[test]
fn a_resource_that_changes_is_read_from_the_start_and_not_for_ever() {
    let mut transfer = Transfer::new(RequestTemplate::get("/large"), UDP, b"t");
    for _ in 0..TRANSFER_RESTARTS_MAX {
        assert_eq!(transfer.on_response(content(0, true, b"v1")), Progress::Ask);
        assert_eq!(transfer.on_response(content(1, true, b"v2")), Progress::Ask);
        let again = transfer.request().expect("possible");
        assert_eq!(read(&again, OptionNumber::BLOCK2), None);
    }
    transfer.on_response(content(0, true, b"v1"));
    let end = transfer.on_response(content(1, true, b"v2"));
    assert_eq!(end, Progress::Failed(TransferError::KeepsChanging));
}

#[test]
fn a_block_that_was_not_asked_for_is_an_error() {
    let mut transfer = Transfer::new(RequestTemplate::get("/large"), UDP, b"t");
    transfer.on_response(content(0, true, b"v1"));
    let wrong = transfer.on_response(content(2, true, b"v1"));
    assert_eq!(wrong, Progress::Failed(TransferError::WrongBlock));
}

#[test]
fn a_body_longer_than_is_taken_is_an_error() {
    let limits = Limits { body_max: 40, ..UDP };
    let mut transfer = Transfer::new(RequestTemplate::get("/large"), limits, b"t");
    transfer.on_response(content(0, true, b"v1"));
    transfer.on_response(content(1, true, b"v1"));
    let long = transfer.on_response(content(2, true, b"v1"));
    assert_eq!(long, Progress::Failed(TransferError::TooLarge));
}

#[test]
fn a_challenge_is_answered_once_with_its_value() {
    let mut transfer = Transfer::new(RequestTemplate::get("/t"), UDP, b"t");
    let mut challenge = response(Code::UNAUTHORIZED, b"");
    challenge.options.insert(OptionNumber::ECHO, b"proof");
    assert_eq!(transfer.on_response(challenge.clone()), Progress::Ask);
    let request = transfer.request().expect("possible");
    assert_eq!(request.options.get(OptionNumber::ECHO), Some(&b"proof"[..]));
    assert_eq!(transfer.on_response(challenge.clone()), Progress::Done(challenge));
}

#[test]
fn a_notification_is_completed_without_registering_again() {
    let mut observe = RequestTemplate::get("/large");
    observe.options.insert_uint(OptionNumber::OBSERVE, 0);
    let (mut transfer, progress) = Transfer::resume(observe, UDP, content(0, true, b"v1"));
    assert_eq!(progress, Progress::Ask);
    let request = transfer.request().expect("possible");
    assert_eq!(request.options.get(OptionNumber::OBSERVE), None);
    assert_eq!(read(&request, OptionNumber::BLOCK2), Some(block(1, false, 0)));
}

/// Runs a transfer against the server's tables; the server answers with the body that it got, in
/// blocks of at most `most`.
fn echo_body(request: RequestTemplate, limits: Limits, most: (Exponent, usize)) -> Message {
    let mut bodies = Assemblies::new(1_000_000, 4_000_000, 4_000_000);
    let mut kept = Representations::new(1_000_000, 1_000_000);
    let mut transfer = Transfer::new(request, limits, b"t");
    for _ in 0..100_000 {
        let request = transfer.request().expect("enough numbers");
        let key = RequestKey::from_parts(request.code, &request.options);
        let key = BodyKey::new(&Association::Open, &key);
        let arrived = read(&request, OptionNumber::BLOCK1);
        let asked = read(&request, OptionNumber::BLOCK2);
        let mut answer = ResponseTemplate::new(Code::CONTINUE);
        if let Some(asked) = asked.filter(|asked| asked.number > 0) {
            let later = kept.later(&(1_u8, key), asked, most, Instant::ZERO);
            answer = later.expect("kept");
        } else {
            let whole = match arrived {
                None => Assembled::Whole(request.payload.clone()),
                Some(block) => {
                    let announced = request.options.get_uint(OptionNumber::SIZE1);
                    let arrival = Arrival { block, payload: &request.payload, announced };
                    bodies.take((1_u8, key.clone()), arrival, true, Instant::ZERO)
                }
            };
            if let Assembled::Whole(body) = whole {
                let content = ResponseTemplate::new(Code::CONTENT).with_payload(body);
                answer = kept.answer((1_u8, key), content, asked, most, true, Instant::ZERO);
            }
            if let Some(block) = arrived {
                block.write(&mut answer.options, OptionNumber::BLOCK1);
            }
        }
        let mut message = Message::new(Kind::Acknowledgement, answer.code, MessageId(1));
        (message.options, message.payload) = (answer.options, answer.payload);
        match transfer.on_response(message) {
            Progress::Ask => {}
            Progress::Done(done) => {
                assert_eq!(bodies.octets(), 0);
                return done;
            }
            Progress::Failed(error) => panic!("{error}"),
        }
    }
    panic!("the transfer never ends")
}

proptest! {
    #[test]
    fn any_body_goes_up_and_comes_down_whole_in_blocks_of_any_size(
        len in 0_usize..6000,
        up in 0_u8..8,
        down in 0_u8..8,
        payload_max in 1024_usize..5000,
    ) {
        let body: Vec<u8> = (0..len).map(|at| (at * 31) as u8).collect();
        let exponent = Exponent::new(up).expect("at most 7");
        let limits = Limits { exponent, payload_max, body_max: 10_000, negotiates: false };
        let most = (Exponent::new(down).expect("at most 7"), payload_max);
        let request = RequestTemplate::new(Code::POST, "/echo").with_payload(body.clone());
        let done = echo_body(request, limits, most);
        prop_assert_eq!(done.code, Code::CONTENT);
        prop_assert_eq!(done.payload, body);
    }

    #[test]
    fn no_response_makes_a_transfer_panic(
        code in any::<u8>(),
        octets in prop::collection::vec((0_u16..300, prop::collection::vec(any::<u8>(), 0..4)), 0..5),
        payload in prop::collection::vec(any::<u8>(), 0..40),
    ) {
        let mut options = Options::new();
        for (number, value) in &octets {
            options.insert(OptionNumber(*number), value);
        }
        options.insert(OptionNumber::BLOCK2, &payload[..payload.len().min(3)]);
        let mut transfer = Transfer::new(put(2000), UDP, b"t");
        let mut message = response(Code(code), &payload);
        message.options = options;
        for _ in 0..4 {
            let request = transfer.request();
            if transfer.on_response(message.clone()) != Progress::Ask {
                break;
            }
            prop_assert!(request.is_ok());
        }
    }
}

/// The first block of a notification.
fn notified(exponent: u8, tag: &[u8]) -> Message {
    let first = block(0, true, exponent);
    let mut message = with_block(response(Code::CONTENT, &[1; 16]), OptionNumber::BLOCK2, first);
    message.options.insert(OptionNumber::ETAG, tag);
    message.options.insert_uint(OptionNumber::OBSERVE, 5);
    message
}

#[test]
fn the_rest_of_a_notification_belongs_to_it_also_if_it_is_asked_for_from_the_start() {
    let mut get = RequestTemplate::get("/large");
    get.options.insert_uint(OptionNumber::OBSERVE, 0);
    // A server that does not trust our address yet, and one whose state changes meanwhile.
    for challenged in [true, false] {
        let mut first = notified(0, b"v1");
        if challenged {
            first.options.insert(OptionNumber::ECHO, b"value");
        }
        let (mut transfer, progress) = Transfer::resume(get.clone(), UDP, first);
        assert_eq!(progress, Progress::Ask);
        let request = transfer.request().expect("possible");
        assert_eq!(request.options.get(OptionNumber::OBSERVE), None);
        if !challenged {
            let last = block(1, false, 0);
            let changed = with_block(response(Code::CONTENT, &[2]), OptionNumber::BLOCK2, last);
            assert_eq!(transfer.on_response(changed), Progress::Ask, "another tag");
        }
        let request = transfer.request().expect("possible");
        assert_eq!(read(&request, OptionNumber::BLOCK2), None, "from the start");
        let Progress::Done(whole) = transfer.on_response(response(Code::CONTENT, &[3; 17])) else {
            panic!("it is whole");
        };
        assert_eq!(whole.options.get_uint(OptionNumber::OBSERVE), Some(5), "{challenged}");
    }
}

#[test]
fn what_must_leave_once_is_not_asked_for_again_from_the_start() {
    let get = RequestTemplate::new(Code::FETCH, "/large");
    let mut first = notified(0, b"v1");
    first.options.insert(OptionNumber::ECHO, b"value");
    let (mut transfer, _) = Transfer::resume_once(get, UDP, first);
    let request = transfer.request().expect("possible");
    let second = read(&request, OptionNumber::BLOCK2).expect("the next block");
    assert_eq!((second.number, request.options.get(OptionNumber::ECHO)), (1, Some(&b"value"[..])));
    let last = block(1, false, 0);
    let changed = with_block(response(Code::CONTENT, &[2]), OptionNumber::BLOCK2, last);
    assert_eq!(transfer.on_response(changed), Progress::Failed(TransferError::KeepsChanging));
}
