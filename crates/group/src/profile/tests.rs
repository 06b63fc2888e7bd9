//! Tests of profiles: fields in every format, what is refused, and how.

use super::document::{arguments, fields, to_cbor, to_json, to_text};
use super::*;
use lowmesh_wire::coap::{Code, ContentFormat};

fn draft(use_: Use, fields: &[(String, Field)]) -> Result<Draft, Refusal> {
    let mut draft = Draft::default();
    fields.iter().try_for_each(|(key, field)| draft.set(key, field, use_, &[]))?;
    Ok(draft)
}

fn of_json(text: &str) -> Result<Draft, Refusal> {
    draft(Use::Creation, &fields(Some(ContentFormat::JSON), text.as_bytes())?)
}

const WHOLE: &str = r#"{"name":"room","er":["coap://[fd00::1]/t","/e/x"],"ect":"multicast","enr":2,
    "eo":["avg","lst"],"delay":100,"scope":"3"}"#;

#[test]
fn json_and_cbor_say_the_same() {
    let from_json = of_json(WHOLE).expect("a profile");
    let same: Vec<(&str, Field)> = vec![
        ("name", Field::Text("room".into())),
        ("er", Field::List(vec!["coap://[fd00::1]/t".into(), "/e/x".into()])),
        ("ect", Field::Text("multicast".into())),
        ("enr", Field::Number(2)),
        ("eo", Field::List(vec!["avg".into(), "lst".into()])),
        ("delay", Field::Number(100)),
        ("scope", Field::Text("3".into())),
    ];
    let cbor = to_cbor(&same);
    let read = fields(None, &cbor).expect("our own");
    assert_eq!(draft(Use::Creation, &read), Ok(from_json.clone()));
    let again = fields(None, &to_json(&same)).expect("our own");
    assert_eq!(draft(Use::Creation, &again), Ok(from_json.clone()));
    assert!(to_text(&same).starts_with(b"name: room\ner: coap://[fd00::1]/t /e/x\n"));
    let profile = from_json.over(&Profile::default());
    assert_eq!(profile.message_type, MessageType::NonConfirmable);
    assert_eq!(profile.operations, [Operation::Average, Operation::List]);
    assert_eq!((profile.replies, profile.scope), (Some(2), 3));
}

#[test]
fn a_cbor_map_written_by_hand_is_read() {
    // RFC 8949 s3.1: a map (5) of two pairs, texts (3), an array (4), an unsigned integer (0).
    let bytes = b"\xa2\x62er\x81\x6bcoap://a/t \x63enr\x01";
    let refused = draft(Use::Creation, &fields(None, bytes).expect("a map"));
    assert!(refused.is_ok(), "{refused:?}");
    for end in 0..bytes.len() {
        assert!(end == 0 || fields(None, &bytes[..end]).is_err(), "prefix of {end}");
    }
}

#[test]
fn links_are_members() {
    let read = fields(None, b"<coap://a/t>;rt=\"x\",</e/room>").expect("links");
    let draft = draft(Use::Creation, &read).expect("members");
    assert_eq!(draft.members.map(|members| members.len()), Some(2));
}

#[test]
fn a_query_overrides_all_but_the_communication_type() {
    let query = |text: &str| {
        let list: Vec<String> = text.split('&').map(String::from).collect();
        arguments(&list).and_then(|fields| draft(Use::Query, &fields))
    };
    let over = query("emt=non&enr=1&eo=max&delay=20&er=coap://a/t&er=coap://b/t&deadline=500");
    let over = over.expect("all allowed");
    assert_eq!(over.only.as_ref().map(Vec::len), Some(2));
    let profile = over.over(&Profile::default());
    assert_eq!(profile.message_type, MessageType::NonConfirmable);
    assert_eq!((profile.replies, profile.delay.as_millis()), (Some(1), 20));
    let error = query("ect=multicast").expect_err("S002 s2.3.1");
    assert!(error.detail.contains("delete the entity"), "{error:?}");
    assert!(query("deadline=0").is_err());
    assert!(query("enr").is_err());
}

#[test]
fn what_is_wrong_is_named_with_what_is_allowed() {
    for (text, parts) in [
        (r#"{"er":[]}"#, ["er", "0 members"]),
        (r#"{"er":["coap://a/t","coap://a/t"]}"#, ["er", "twice"]),
        (r#"{"er":7}"#, ["er", "list of URIs"]),
        (r#"{"enr":0}"#, ["enr", "1 to 256"]),
        (r#"{"enr":-1}"#, ["enr", "whole number"]),
        (r#"{"eo":"sum"}"#, ["eo", "lst, avg, min and max"]),
        (r#"{"eo":["avg","avg"]}"#, ["eo", "different"]),
        (r#"{"delay":60001}"#, ["delay", "60000 ms"]),
        (r#"{"emt":"ack"}"#, ["emt", "con or non"]),
        (r#"{"name":"a b"}"#, ["name", "letters"]),
        (r#"{"scope":2}"#, ["scope", "3, 4, 5 or e"]),
        (r#"{"speed":2}"#, ["speed", "not a field"]),
        (r#"["er"]"#, ["JSON", "object"]),
        (r#"{"er""#, ["JSON", "EOF"]),
    ] {
        let error = of_json(text).expect_err(text);
        assert_eq!(error.code, Code::BAD_REQUEST, "{text}");
        assert!(parts.iter().all(|part| error.detail.contains(part)), "{text}: {error:?}");
    }
    let xml = fields(Some(ContentFormat::XML), b"<a/>").expect_err("no format of profiles");
    assert_eq!(xml.code, Code::UNSUPPORTED_CONTENT_FORMAT);
    let long = fields(None, &vec![b'{'; 20_000]).expect_err("too long");
    assert_eq!(long.code, Code::REQUEST_ENTITY_TOO_LARGE);
}

#[test]
fn more_replies_than_members_and_con_to_a_group_are_refused() {
    let multicast = of_json(r#"{"ect":"multicast","emt":"con"}"#).expect("read");
    let profile = multicast.over(&Profile::default());
    assert!(multicast.check(&profile, 1).is_err());
    let three = of_json(r#"{"enr":3}"#).expect("read");
    let profile = three.over(&Profile::default());
    assert!(three.check(&profile, 2).is_err());
    assert_eq!(three.check(&profile, 3), Ok(()));
}
