//! The client beside servers that answer, but not well: each fault has an error of its own, and none is silence.

use std::net::SocketAddr;

use lowmesh_coap::Fault;
use lowmesh_coap::blockwise::{Block, Exponent};
use lowmesh_net::client::{Client, Error};
use lowmesh_wire::coap::{Code, Kind, Message, OptionNumber};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, UdpSocket};

/// A server that answers the n-th request, from 0, as `answer` says.
async fn server(
    mut answer: impl FnMut(&Message, u32, &mut Message) + Send + 'static,
) -> SocketAddr {
    let socket = UdpSocket::bind("127.0.0.1:0").await.expect("a free port");
    let address = socket.local_addr().expect("bound");
    tokio::spawn(async move {
        let mut octets = [0; 2000];
        for count in 0.. {
            let (len, from) = socket.recv_from(&mut octets).await.expect("loopback");
            let request = Message::parse(&octets[..len]).expect("a message");
            let mut response =
                Message::new(Kind::Acknowledgement, Code::CONTENT, request.message_id);
            response.token = request.token.clone();
            answer(&request, count, &mut response);
            socket.send_to(&response.to_vec(), from).await.expect("loopback");
        }
    });
    address
}

fn block(number: u32, more: bool, szx: u8) -> Block {
    Block { number, more, exponent: Exponent::new(szx).expect("at most 7") }
}

fn asked(request: &Message, option: OptionNumber) -> Option<Block> {
    Block::read(request.options.iter(), option).expect("three octets")
}

async fn fault(server: SocketAddr) -> Fault {
    let client = Client::builder().build().expect("settings");
    let error = client.get(format!("coap://{server}/t")).await.expect_err("a fault");
    assert!(!error.to_string().contains("no answer"), "{error}");
    assert!(!error.hint().contains("is the server there"), "{}", error.hint());
    match error {
        Error::Fault { fault, .. } => fault,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn each_fault_of_a_server_has_a_text_of_its_own() {
    let option = server(|_, _, response| response.options.insert(OptionNumber(65001), b"")).await;
    assert_eq!(fault(option).await, Fault::CriticalOption(OptionNumber(65001)));
    let dots = server(|_, _, response| {
        for segment in ["a", "..", "b"] {
            response.options.insert(OptionNumber::LOCATION_PATH, segment.as_bytes());
        }
    });
    assert_eq!(fault(dots.await).await, Fault::DotSegment);
    let changes = server(|request, count, response| {
        let number = asked(request, OptionNumber::BLOCK2).map_or(0, |block| block.number);
        response.options.insert(OptionNumber::ETAG, &count.to_be_bytes());
        block(number, true, 4).write(&mut response.options, OptionNumber::BLOCK2);
        response.payload = vec![0; 256];
    });
    assert_eq!(fault(changes.await).await, Fault::KeepsChanging);
    let short = server(|_, _, response| {
        block(0, true, 4).write(&mut response.options, OptionNumber::BLOCK2);
        response.payload = vec![0; 100];
    });
    assert_eq!(fault(short.await).await, Fault::WrongBlock);
}

#[tokio::test]
async fn a_server_that_takes_a_part_for_the_whole_is_no_success() {
    let server = server(|_, _, response| response.code = Code::CHANGED).await;
    let client = Client::builder().build().expect("settings");
    let put = client.put(format!("coap://{server}/t")).payload(vec![0; 4096]);
    let error = put.await.expect_err("a part");
    assert!(matches!(error, Error::Fault { fault: Fault::PartlyTaken, .. }), "{error:?}");
}

#[tokio::test]
async fn a_server_that_finds_a_message_too_long_gets_it_in_blocks() {
    let server = server(|request, _, response| match asked(request, OptionNumber::BLOCK1) {
        Some(block) if block.exponent.size() <= 64 => {
            response.code = if block.more { Code::CONTINUE } else { Code::CHANGED };
            block.write(&mut response.options, OptionNumber::BLOCK1);
        }
        _ => {
            response.code = Code::REQUEST_ENTITY_TOO_LARGE;
            block(0, false, 2).write(&mut response.options, OptionNumber::BLOCK1);
        }
    })
    .await;
    for len in [2000, 300] {
        let client = Client::builder().build().expect("settings");
        let put = client.put(format!("coap://{server}/t")).payload(vec![0; len]);
        assert_eq!(put.await.expect("an answer").code(), Code::CHANGED, "{len}");
    }
}

#[tokio::test]
async fn the_reason_of_an_abort_is_told() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let server = listener.local_addr().expect("bound");
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.expect("loopback");
        let mut octets = [0; 4096];
        let _csm = stream.read(&mut octets).await;
        // An empty CSM, and 7.05 with a diagnostic payload.
        let abort = [&b"\x00\xe1"[..], b"\xb0\xe5\xffgoing down"].concat();
        stream.write_all(&abort).await.expect("loopback");
        let _end = stream.read(&mut octets).await;
    });
    let client = Client::builder().build().expect("settings");
    let error = client.get(format!("coap+tcp://{server}/t")).await.expect_err("an Abort");
    assert!(error.to_string().contains("going down"), "{error}");
}
