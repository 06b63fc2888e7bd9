//! OSCORE: its option, messages from strangers, and the files that users write.

use lowmesh_oscore::params::REPLAY_WINDOW;
use lowmesh_oscore::{Configuration, Contexts, Header, SecurityContext, State};
use lowmesh_wire::coap::stream::{Framing, StreamMessage};
use lowmesh_wire::coap::{Code, OptionNumber};

use crate::target::{Target, unhex};

const CLIENT: &str = "master_secret,hex,\"0102030405060708090a0b0c0d0e0f10\"\n\
                      master_salt,hex,\"9e7ca92223786340\"\nsender_id,ascii,\"client\"\n\
                      recipient_id,ascii,\"server\"\nid_context,hex,37cbf321\n";
const SERVER: &str = "master_secret,hex,\"0102030405060708090a0b0c0d0e0f10\"\n\
                      master_salt,hex,\"9e7ca92223786340\"\nsender_id,ascii,\"server\"\n\
                      recipient_id,ascii,\"client\"\nid_context,hex,37cbf321\n\
                      replay_window,integer,30\naead_alg,integer,10\nhkdf_alg,integer,-10\n\
                      rfc8613_b_1_2,bool,true\nrfc8613_b_2,bool,false\nssn_freq,integer,8\n";

pub fn targets() -> Vec<Target> {
    let texts = |texts: &[&str]| texts.iter().map(|text| text.as_bytes().to_vec()).collect();
    vec![
        Target { name: "oscore_option", corpus: options(), accepts: option },
        Target { name: "oscore_request", corpus: requests(), accepts: request },
        Target { name: "oscore_response", corpus: responses(), accepts: response },
        Target { name: "oscore_file", corpus: texts(&[CLIENT, SERVER]), accepts: file },
        Target {
            name: "oscore_state",
            corpus: texts(&[
                "sender_sequence,integer,64\n",
                "sender_sequence,integer,7\nreplay_end,integer,9\nreplay_seen,hex,\"00ff\"\n",
                "id_context,hex,\"0a1b\"\nsender_sequence,integer,7\nreplay_end,integer,9\n\
                 replay_seen,hex,\"00ff\"\nreplay_trusted,bool,true\n",
            ]),
            accepts: state,
        },
    ]
}

fn options() -> Vec<Vec<u8>> {
    // RFC 8613 s6.3 and RFC 10021 s4.3.
    let groups = ["39050344616c25", "2852", "19050344616c25"];
    let pairs = ["090525", "0900", "19050544616c656b", "", "0107"];
    pairs.into_iter().chain(groups).map(unhex).collect()
}

fn option(octets: &[u8]) -> bool {
    let Ok(header) = Header::parse(octets) else { return false };
    let mut again = Vec::new();
    header.emit(&mut again);
    assert_eq!(again, octets);
    true
}

/// A context whose numbers are stored, as far as it knows.
fn context(file: &str) -> SecurityContext {
    let context = Configuration::parse(file).expect("our own").contexts().remove(0);
    let mut context = context.with_bounds(REPLAY_WINDOW, 8);
    let reservation = context.reservation_needed().expect("none is used");
    context.confirm(reservation);
    context
}

fn bytes(message: &StreamMessage) -> Vec<u8> {
    let mut bytes = Vec::new();
    message.emit(Framing::WebSocket, &mut bytes);
    bytes
}

/// Requests that observe, put and get.
fn plain_requests() -> [StreamMessage; 2] {
    let mut get = StreamMessage::new(Code::GET);
    get.options.insert_path("/temp");
    get.options.insert_uint(OptionNumber::OBSERVE, 0);
    let mut put = StreamMessage::new(Code::PUT);
    put.options.insert_path("/led");
    put.options.insert(OptionNumber::URI_HOST, b"example.org");
    put.payload = b"1".to_vec();
    [get, put]
}

fn requests() -> Vec<Vec<u8>> {
    let protect = |plain| bytes(&context(CLIENT).protect_request(&plain).expect("plain").0);
    plain_requests().into_iter().map(protect).collect()
}

/// A forged request is never taken, and one that is taken is taken once.
fn request(octets: &[u8]) -> bool {
    let Ok(outer) = StreamMessage::parse(octets, Framing::WebSocket) else { return false };
    let mut contexts = Contexts::new(vec![context(SERVER)]);
    match contexts.unprotect_request(&outer) {
        Ok(opened) => {
            let [get, put] = plain_requests();
            let inside = (opened.request.code, &opened.request.payload);
            assert!([(get.code, &get.payload), (put.code, &put.payload)].contains(&inside));
            assert!(contexts.unprotect_request(&outer).is_err());
            true
        }
        Err(refusal) => {
            let _ = refusal.response();
            false
        }
    }
}

fn responses() -> Vec<Vec<u8>> {
    let (mut client, mut server) = (context(CLIENT), context(SERVER));
    let [get, _] = plain_requests();
    let (outer, _) = client.protect_request(&get).expect("plain");
    let (_, mut received) = server.unprotect_request(&outer).expect("fresh");
    let mut notification = StreamMessage::new(Code::CONTENT);
    notification.options.insert_uint(OptionNumber::OBSERVE, 5);
    notification.payload = b"22.3 C".to_vec();
    let mut protect = || server.protect_response(&mut received, &notification).expect("plain");
    vec![bytes(&protect()), bytes(&protect())]
}

fn response(octets: &[u8]) -> bool {
    let Ok(outer) = StreamMessage::parse(octets, Framing::WebSocket) else { return false };
    let mut client = context(CLIENT);
    let [get, _] = plain_requests();
    let (_, mut pending) = client.protect_request(&get).expect("plain");
    let Ok(opened) = client.unprotect_response(&mut pending, &outer) else { return false };
    assert_eq!(opened.payload, b"22.3 C");
    assert!(client.unprotect_response(&mut pending, &outer).is_err());
    true
}

fn file(octets: &[u8]) -> bool {
    let Ok(text) = core::str::from_utf8(octets) else { return false };
    match Configuration::parse(text) {
        Ok(configuration) => !configuration.contexts().is_empty(),
        Err(error) => {
            assert!(error.line <= text.lines().count().max(1));
            let _ = error.to_string();
            false
        }
    }
}

fn state(octets: &[u8]) -> bool {
    let Some(state) = core::str::from_utf8(octets).ok().and_then(|text| text.parse::<State>().ok())
    else {
        return false;
    };
    assert_eq!(state.to_string().parse(), Ok(state));
    true
}
