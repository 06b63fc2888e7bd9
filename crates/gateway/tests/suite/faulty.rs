//! Members that answer, but not well: each fault has a reason of its own, the one that every client tells.

use std::net::SocketAddr;

use lowmesh_net::client::Client;
use lowmesh_wire::coap::{Code, OptionNumber};

use crate::rig;

/// A member whose answers to GET have one more option; its lists of resources have none.
fn member(number: OptionNumber, value: &'static [u8]) -> SocketAddr {
    rig::member(move |_, answer| {
        answer.options.insert(number, value);
        answer.payload = b"21".to_vec();
    })
}

#[tokio::test]
async fn each_fault_of_a_member_has_its_own_reason() {
    let manager = rig::manager(Client::builder().build().expect("settings"), |setup| setup);
    let client = Client::builder().build().expect("settings");
    let good = member(OptionNumber::MAX_AGE, &[60]);
    for (name, number, value, reason) in [
        ("critical", OptionNumber(65001), &[][..], "the critical option 65001, which is not known"),
        // RFC 7959 s2.2: block 5 and more to come, although block 0 was asked for.
        ("block", OptionNumber::BLOCK2, &[0x5a], "another block than the requested one"),
        ("location", OptionNumber::LOCATION_PATH, b"..", "a segment . or .. in Location-Path"),
    ] {
        let bad = member(number, value);
        let er = format!("\"good=coap://{good}/s/t\",\"bad=coap://{bad}/s/t\"");
        let document = format!("{{\"name\":{name:?},\"er\":[{er}]}}");
        let created = client.post(format!("coap://{manager}/e")).payload(document).await;
        assert_eq!(created.expect("an answer").code(), Code::CREATED);
        let answer = client.get(format!("coap://{manager}/e/{name}")).await.expect("one is good");
        let text = answer.text().into_owned();
        assert!(text.starts_with("good 21\nbad ! 5.02 sent "), "{text}");
        assert!(text.contains(reason), "{text}");
    }
}
