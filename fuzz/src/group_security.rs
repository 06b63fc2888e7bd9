//! Group OSCORE: messages in both modes from strangers and from members that forge, and the files that users write.

use lowmesh_oscore::group::{Configuration, Group, GroupState, SignatureAlgorithm, credential_of};
use lowmesh_oscore::{Identity, Refusal};
use lowmesh_wire::coap::Code;
use lowmesh_wire::coap::stream::{Framing, StreamMessage};

use crate::target::Target;

/// The private keys of the two members, which are called `0` and `1`.
const KEYS: [[u8; 32]; 2] = [[1; 32], [2; 32]];
const STATES: [&str; 2] = [
    "sender_sequence,integer,64\n",
    "sender_sequence,integer,7\nwindow,hex,\"01\",9,00000000000000ff\n",
];

pub fn targets() -> Vec<Target> {
    let files = [file(0), file(1) + "responses,text,group\nsign_protected,bool,true\n"];
    let octets = |texts: [String; 2]| texts.map(String::into_bytes).to_vec();
    vec![
        Target { name: "group_request", corpus: requests(), accepts: request },
        Target { name: "group_response", corpus: responses(), accepts: response },
        Target { name: "group_file", corpus: octets(files), accepts: configuration },
        Target { name: "group_state", corpus: octets(STATES.map(String::from)), accepts: state },
    ]
}

fn hex(octets: &[u8]) -> String {
    octets.iter().fold(String::new(), |text, octet| text + &format!("{octet:02x}"))
}

fn file(own: usize) -> String {
    let credential =
        |key| hex(&credential_of(SignatureAlgorithm::EdDsa, key).expect("a key of EdDSA"));
    let other = 1 - own;
    format!(
        "master_secret,hex,0102030405060708090a0b0c0d0e0f10\ngroup_id,hex,0a0b\n\
         sender_id,ascii,{own}\nprivate_key,hex,{}\ncredential,hex,{}\n\
         member_id,ascii,{other}\nmember_credential,hex,{}\n",
        hex(&KEYS[own]),
        credential(&KEYS[own]),
        credential(&KEYS[other]),
    )
}

/// A member whose numbers are stored, as far as it knows.
fn member(number: usize, more: &str) -> Group {
    let text = file(number) + more;
    let mut group = Configuration::parse(&text).expect("our own").group();
    let reservation = group.reservation_needed().expect("none is used");
    group.confirm(reservation);
    group
}

fn bytes(message: &StreamMessage) -> Vec<u8> {
    let mut bytes = Vec::new();
    message.emit(Framing::WebSocket, &mut bytes);
    bytes
}

/// A request for all, or for member 1.
fn protected(to_one: bool) -> (StreamMessage, lowmesh_oscore::group::Pending) {
    let mut put = StreamMessage::new(Code::PUT);
    put.options.insert_path("/led");
    put.payload = b"1".to_vec();
    let to = to_one.then(|| Identity::new(b"1").expect("short"));
    member(0, "").protect_request(to, &put).expect("plain")
}

fn requests() -> Vec<Vec<u8>> {
    [false, true].map(|to_one| bytes(&protected(to_one).0)).to_vec()
}

/// A forged request is never taken, and one that is taken is taken once.
fn request(octets: &[u8]) -> bool {
    let Ok(outer) = StreamMessage::parse(octets, Framing::WebSocket) else { return false };
    let mut server = member(1, "");
    match server.unprotect_request(&outer) {
        Ok((request, _)) => {
            assert_eq!((request.code, &request.payload[..]), (Code::PUT, &b"1"[..]));
            assert_eq!(server.unprotect_request(&outer).expect_err("again"), Refusal::Replay);
            true
        }
        Err(refusal) => {
            let _ = refusal.response();
            // What is refused leaves no trace.
            assert!(server.unprotect_request(&protected(false).0).is_ok());
            false
        }
    }
}

fn responses() -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    for to_one in [false, true] {
        for mode in ["responses,text,group\n", "responses,text,pairwise\n"] {
            let mut server = member(1, mode);
            let (_, mut received) =
                server.unprotect_request(&protected(to_one).0).expect("our own");
            let mut content = StreamMessage::new(Code::CONTENT);
            content.payload = b"22.3 C".to_vec();
            let response = server.protect_response(&mut received, &content).expect("plain");
            all.push(bytes(&response));
        }
    }
    all
}

fn response(octets: &[u8]) -> bool {
    let Ok(outer) = StreamMessage::parse(octets, Framing::WebSocket) else { return false };
    let client = member(0, "");
    let mut accepted = false;
    for to_one in [false, true] {
        let (_, mut pending) = protected(to_one);
        if let Ok(answer) = client.unprotect_response(&mut pending, &outer) {
            assert_eq!(answer.response.payload, b"22.3 C");
            assert!(client.unprotect_response(&mut pending, &outer).is_err());
            accepted = true;
        }
    }
    accepted
}

fn configuration(octets: &[u8]) -> bool {
    let Ok(text) = core::str::from_utf8(octets) else { return false };
    match Configuration::parse(text) {
        Ok(configuration) => configuration.group().members().count() > 0,
        Err(error) => {
            assert!(error.line <= text.lines().count().max(1));
            let _ = error.to_string();
            false
        }
    }
}

fn state(octets: &[u8]) -> bool {
    let text = core::str::from_utf8(octets).ok();
    let Some(state) = text.and_then(|text| text.parse::<GroupState>().ok()) else { return false };
    assert_eq!(state.to_string().parse(), Ok(state));
    true
}
