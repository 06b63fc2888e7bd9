//! A member whose answer never ends is left after the octets that the manager keeps of one.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use lowmesh_net::client::Client;
use lowmesh_wire::coap::{Code, OptionNumber};

use crate::rig;

/// A member with one link and a body without an end, in blocks of the wanted size; its address, and its blocks so far.
fn member() -> (SocketAddr, Arc<AtomicUsize>) {
    let blocks = Arc::new(AtomicUsize::new(0));
    let count = blocks.clone();
    let address = rig::member(move |request, answer| {
        count.fetch_add(1, Ordering::Relaxed);
        // RFC 7959 s2.2: number, more, size exponent.
        let wanted = request.options.get_uint(OptionNumber::BLOCK2).unwrap_or(6);
        answer.options.insert_uint(OptionNumber::BLOCK2, wanted | 8);
        answer.payload = vec![b'x'; 16 << (wanted & 7)];
    });
    (address, blocks)
}

#[tokio::test]
async fn a_member_that_never_ends_fails_with_its_own_reason() {
    let (member, blocks) = member();
    let manager = rig::manager(Client::builder().build().expect("settings"), |setup| setup);
    let client = Client::builder().build().expect("settings");
    let document = format!("{{\"name\":\"room\",\"er\":[\"coap://{member}/s/t\"]}}");
    let created = client.post(format!("coap://{manager}/e")).payload(document).await;
    assert_eq!(created.expect("an answer").code(), Code::CREATED);
    let before = blocks.load(Ordering::Relaxed);
    let answer = client.get(format!("coap://{manager}/e/room")).await;
    let text = match answer {
        Ok(answer) => answer.text().into_owned(),
        Err(error) => format!("{error:?}"),
    };
    assert!(text.contains("longer than 2048 octets"), "{text}");
    let asked = blocks.load(Ordering::Relaxed) - before;
    assert!((2..=3).contains(&asked), "{asked} blocks");
}
