//! CoAP messages in all framings, and the formats of their payloads. The corpora are examples of the RFCs.

use lowmesh_wire::coap::signaling::Signal;
use lowmesh_wire::coap::stream::{Framing, StreamMessage, StreamView, frame_len};
use lowmesh_wire::coap::uri::Uri;
use lowmesh_wire::coap::{Code, ContentFormat, Message, MessageView, OptionNumber, Token};
use lowmesh_wire::link_format::{Filter, links};
use lowmesh_wire::problem_details::ProblemDetails;
use lowmesh_wire::senml;

use crate::target::{Target, unhex};

const MESSAGE_SIZE_MAX: usize = 1 << 20;

pub fn targets() -> Vec<Target> {
    vec![
        Target { name: "coap", corpus: messages(), accepts: message },
        Target { name: "coap_stream", corpus: framed(Framing::Stream), accepts: stream },
        Target { name: "coap_websocket", corpus: framed(Framing::WebSocket), accepts: websocket },
        Target { name: "coap_uri", corpus: uris(), accepts: uri },
        Target { name: "link_format", corpus: documents(), accepts: link_format },
        Target { name: "link_format_filter", corpus: filters(), accepts: filter },
        Target { name: "senml_json", corpus: senml_json(), accepts: json },
        Target { name: "senml_cbor", corpus: senml_cbor(), accepts: cbor },
        Target { name: "problem_details", corpus: problems(), accepts: problem },
    ]
}

fn messages() -> Vec<Vec<u8>> {
    [
        // RFC 7252 figures 16 to 21, in our own numbers.
        "40017d34bb74656d7065726174757265",
        "60457d34ff32322e332043",
        "60007d38",
        "70000bad",
        "52451234 7a10 61 0e c1 28 ff 3c2f743e",
        // Uri-Host, Uri-Path, Uri-Query, Accept, Block2, If-Match, a long option.
        "48020001 0102030405060708 11aa 2c6578616d706c652e6f7267 8161 01620173 46713d31 2132 6102",
        "4d010002 02 0102030405060708090a0b0c0d0e0f ed0200 00 7878787878787878787878787878",
    ]
    .iter()
    .map(|line| unhex(&line.replace(' ', "")))
    .filter(|octets| message(octets))
    .collect()
}

fn message(octets: &[u8]) -> bool {
    let Ok(view) = MessageView::parse(octets) else { return false };
    for option in view.options() {
        let _ = (option.as_uint(), option.as_str(), option.number.definition());
    }
    let message = Message::from(&view);
    let mut again = Vec::new();
    message.emit(&mut again);
    assert_eq!(again.len(), message.encoded_len());
    assert_eq!(Message::parse(&again), Ok(message));
    true
}

fn stream_messages() -> Vec<StreamMessage> {
    let mut put = StreamMessage::new(Code::PUT);
    put.token = Token::from_number(0xbeef, 2);
    put.options.insert_path("/large/body");
    put.options.insert_uint(OptionNumber::CONTENT_FORMAT, u32::from(ContentFormat::CBOR.0));
    put.payload = vec![7; 300];
    let mut short = StreamMessage::new(Code::CONTENT);
    short.token = Token::new(&[9; 14]).expect("short enough");
    let signals = [
        Signal::Csm(lowmesh_wire::coap::signaling::Capabilities {
            max_message_size: Some(8_388_864),
            block_wise: true,
            extended_token_length: Some(20),
        }),
        Signal::Ping { custody: true },
        Signal::Release {
            alternatives: vec!["[2001:db8::1]:5683".into()],
            hold_off: Some(60),
            diagnostic: "bye".into(),
        },
        Signal::Abort { bad_csm_option: Some(2), diagnostic: "no".into() },
    ];
    let signals = signals.into_iter().map(|signal| signal.into_message(Token::EMPTY));
    [put, short].into_iter().chain(signals).collect()
}

fn framed(framing: Framing) -> Vec<Vec<u8>> {
    let emit = |message: StreamMessage| {
        let mut bytes = Vec::new();
        message.emit(framing, &mut bytes);
        bytes
    };
    stream_messages().into_iter().map(emit).collect()
}

fn stream(octets: &[u8]) -> bool {
    // The first message of the stream, and all that may follow it.
    let Ok(Some(len)) = frame_len(octets, MESSAGE_SIZE_MAX) else { return false };
    let Some(first) = octets.get(..len) else { return false };
    unframed(first, Framing::Stream)
}

fn websocket(octets: &[u8]) -> bool {
    unframed(octets, Framing::WebSocket)
}

fn unframed(octets: &[u8], framing: Framing) -> bool {
    let Ok(view) = StreamView::parse(octets, framing) else { return false };
    let message = StreamMessage::from(&view);
    let mut again = Vec::new();
    message.emit(framing, &mut again);
    assert_eq!(again.len(), message.encoded_len(framing));
    assert_eq!(StreamMessage::parse(&again, framing).as_ref(), Ok(&message));
    if let Ok(signal) = Signal::parse(&view) {
        let mut bytes = Vec::new();
        signal.clone().into_message(view.token()).emit(framing, &mut bytes);
        let view = StreamView::parse(&bytes, framing).expect("our own");
        assert_eq!(Signal::parse(&view), Ok(signal));
    }
    true
}

fn uris() -> Vec<Vec<u8>> {
    [
        "coap://example.com:5683/~sensors/temp.xml?a=1&b",
        "coaps+tcp://[2001:db8::2:1%25eth0]/%E3%81%93",
        "coap+ws://198.51.100.1:61616//%2F//?%2F%2F&?%26",
    ]
    .map(|text| text.as_bytes().to_vec())
    .to_vec()
}

fn uri(octets: &[u8]) -> bool {
    let text = core::str::from_utf8(octets).ok();
    let Some(uri) = text.and_then(|text| text.parse::<Uri>().ok()) else { return false };
    assert_eq!(uri.to_string().parse(), Ok(uri.clone()));
    let mut options = lowmesh_wire::coap::Options::new();
    uri.insert_into(&mut options);
    assert_eq!(options.iter().recognise(|_| false).critical, None);
    true
}

fn documents() -> Vec<Vec<u8>> {
    [
        "</sensors>;ct=40;title=\"Sensor Index\",</sensors/temp>;rt=\"temperature-c\";if=\"sensor\"",
        "<http://www.example.com/sensors/t123>;anchor=\"/sensors/temp\";rel=\"describedby\",</t>;obs",
        "</a>;title=\"say \\\"hi\\\" \\\\o/\"",
    ]
    .map(|text| text.as_bytes().to_vec())
    .to_vec()
}

fn link_format(octets: &[u8]) -> bool {
    let Ok(text) = core::str::from_utf8(octets) else { return false };
    let mut valid = true;
    for link in links(text) {
        match link {
            Ok(link) => {
                for attribute in link.attributes() {
                    assert!(!attribute.name.is_empty());
                    let _ = attribute.value();
                }
            }
            Err(error) => {
                assert!(error.offset <= text.len());
                valid = false;
            }
        }
    }
    valid
}

fn filters() -> Vec<Vec<u8>> {
    ["rt=temp*", "href=/sensors", "if=sensor"].map(|text| text.as_bytes().to_vec()).to_vec()
}

fn filter(octets: &[u8]) -> bool {
    let Some(filter) = core::str::from_utf8(octets).ok().and_then(Filter::parse) else {
        return false;
    };
    let document = "</sensors/temp>;rt=\"temperature-c x\";if=\"sensor\";title=\"t*\"";
    links(document).flatten().filter(|link| filter.matches(link)).for_each(drop);
    true
}

const PACKS: [&str; 3] = [
    r#"[{"bn":"urn:dev:ow:10e2073a0108006:","bt":1.276020076001e+09,"bu":"A","bver":5,"n":"voltage","u":"V","v":120.1},{"n":"current","t":-5,"v":1.2}]"#,
    r#"[{"n":"a","vs":"Machine Room"},{"n":"b","vb":false},{"n":"c","vd":"aGkgCg","ut":10}]"#,
    r#"[{"bn":"m/","bv":-1,"bs":100,"n":"x","v":1,"s":2,"new":[{"deep":1}]}]"#,
];

fn senml_json() -> Vec<Vec<u8>> {
    PACKS.map(|text| text.as_bytes().to_vec()).to_vec()
}

fn senml_cbor() -> Vec<Vec<u8>> {
    let packs = PACKS.iter().map(|text| {
        let pack = senml::parse_json(text.as_bytes()).expect("our own");
        let mut bytes = Vec::new();
        senml::emit_cbor(&pack, &mut bytes).expect("finite");
        bytes
    });
    packs.chain([unhex("9fbf616e61616176c4822118e7ffff")]).collect()
}

fn json(octets: &[u8]) -> bool {
    senml::parse_json(octets).is_ok_and(|pack| reread(&pack))
}

fn cbor(octets: &[u8]) -> bool {
    senml::parse_cbor(octets).is_ok_and(|pack| reread(&pack))
}

/// Both forms of a pack say the same.
fn reread(pack: &[senml::Record]) -> bool {
    let _ = senml::resolve(pack, 1e9);
    let text = senml::emit_json(pack).expect("what was read is finite");
    assert_eq!(senml::parse_json(text.as_bytes()).as_deref(), Ok(pack));
    let mut bytes = Vec::new();
    senml::emit_cbor(pack, &mut bytes).expect("what was read is finite");
    assert_eq!(senml::parse_cbor(&bytes).as_deref(), Ok(pack));
    true
}

fn problems() -> Vec<Vec<u8>> {
    let details = ProblemDetails {
        title: Some("title of the error".into()),
        detail: Some("detailed information".into()),
        instance: Some("coaps://pd.example/FA317434".into()),
        response_code: Some(Code::BAD_REQUEST),
    };
    let mut bytes = Vec::new();
    details.emit(&mut bytes);
    vec![
        bytes,
        b"\xbf\x20\xd8\x26\x83\x62de\x64nein\xf4\x01\xa1\x00\x81\x82\x61a\x61b\xff".to_vec(),
    ]
}

fn problem(octets: &[u8]) -> bool {
    let Ok(details) = ProblemDetails::parse(octets) else { return false };
    let mut again = Vec::new();
    details.emit(&mut again);
    assert_eq!(ProblemDetails::parse(&again), Ok(details));
    true
}
