//! OSCORE through a proxy that cuts what is protected into blocks (RFC 8613 s4.1.3.4.2).

use std::fs;

use super::*;
use crate::client::Client;
use crate::oscore::{Contexts, Plain};

/// A context in a folder that goes with the test.
struct Keys(std::path::PathBuf);

impl Keys {
    fn new(name: &str) -> Self {
        let name = format!("lowmesh-proxied-{}-{name}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        fs::create_dir_all(&folder).expect("a place for files");
        Self(folder)
    }
    fn open(&self, ours: &str, theirs: &str) -> Contexts {
        let text = format!(
            "master_secret,ascii,\"0123456789abcdef\"\nsender_id,ascii,\"{ours}\"\n\
             recipient_id,ascii,\"{theirs}\"\nssn_freq,integer,100\n"
        );
        let file = self.0.join(ours);
        fs::write(&file, text).expect("a disk");
        Contexts::open(&file).expect("our own")
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        let _left_behind = fs::remove_dir_all(&self.0);
    }
}

fn body(len: usize) -> Vec<u8> {
    (0..len).map(|at| b'a' + (at % 26) as u8).collect()
}

/// A server that takes protected requests only; `/large/LEN` has so many octets, and `/state` is as long and observable.
async fn protected_origin(keys: &Keys) -> Running {
    let mut server = origin();
    for len in [600, 5000, 200_000] {
        let large =
            Handler::new(move |_| ResponseTemplate::new(Code::CONTENT).with_payload(body(len)));
        server.insert(&format!("/large/{len}"), Resource::new(Methods::GET, large));
    }
    let state = AtomicU32::new(0);
    let long = Handler::new(move |_| {
        let number = state.fetch_add(1, Ordering::Relaxed);
        let payload = [format!("{number} ").into_bytes(), body(5000)].concat();
        ResponseTemplate::new(Code::CONTENT).with_payload(payload)
    });
    server.insert("/long", Resource::new(Methods::GET, long).observable());
    server.protect(keys.open("server", "client"), Plain::Refused);
    run(server).await
}

#[tokio::test]
async fn long_bodies_pass_from_any_transport_to_any_other() {
    let keys = Keys::new("bodies");
    let origin = protected_origin(&keys).await;
    let client = Client::builder().protect(keys.open("client", "server")).build().expect("keys");
    for (scheme, address) in [("coap", origin.udp), ("coap+tcp", origin.tcp)] {
        for hop in ["coap", "coap+tcp"] {
            // A proxy that has never heard of the client, which it so answers in small blocks.
            let proxy = proxy_server(None).await;
            let address_of_hop = if hop == "coap" { proxy.udp } else { proxy.tcp };
            let via = format!("{hop}://{address_of_hop}");
            for len in [600, 5000, 200_000] {
                let uri = format!("{scheme}://{address}/large/{len}");
                let answer = client.get(&*uri).via(&*via).within(Duration::from_secs(60)).await;
                let answer = answer.unwrap_or_else(|error| panic!("{len} by {hop}: {error}"));
                assert!(answer.payload() == body(len), "GET {len} by {hop} and {scheme}");
                let uri = format!("{scheme}://{address}/echo");
                let put = client.put(&*uri).payload(body(len)).via(&*via);
                let answer = put.within(Duration::from_secs(60)).await;
                let answer = answer.unwrap_or_else(|error| panic!("{len} by {hop}: {error}"));
                assert!(answer.payload() == body(len), "PUT {len} by {hop} and {scheme}");
            }
        }
    }
}

#[tokio::test]
async fn the_observation_of_a_long_state_goes_on() {
    let keys = Keys::new("states");
    let origin = protected_origin(&keys).await;
    let client = Client::builder().protect(keys.open("client", "server")).build().expect("keys");
    let proxy = proxy_server(None).await;
    // A state that is one message on a connection, so that it is the proxy that cuts it.
    let uri = format!("coap+tcp://{}/long", origin.tcp);
    let get = client.get(&*uri).via(&*format!("coap://{}", proxy.udp));
    let mut observation = get.observe().await.expect("an observation");
    let mut before = None;
    for _ in 0..4 {
        let next = tokio::time::timeout(Duration::from_secs(30), observation.next()).await;
        let state = next.expect("news within 30 s").expect("more").expect("a state");
        let (number, rest) = state
            .text()
            .split_once(' ')
            .map(|(a, b)| (a.to_owned(), b.to_owned()))
            .expect("a number");
        assert_eq!(rest.len(), 5000);
        let number: u32 = number.parse().expect("a number");
        assert!(before < Some(number), "{before:?} {number}");
        before = Some(number);
        origin.changes.tell("/long");
    }
}
