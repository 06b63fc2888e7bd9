//! The verbs of CoAP against a server of ours on loopback: what is printed where, and the code they end with.

use std::net::SocketAddr;
use std::process::{Command, Output as Ended};
use std::sync::mpsc;

use lowmesh_coap::resource::{Methods, Resource, Route, Router};
use lowmesh_coap::{Config, Host, HostLimits, Input, Output, ResponseTemplate};
use lowmesh_machine::Handle;
use lowmesh_net::clock::fresh_seed;
use lowmesh_net::driver::Driver;
use lowmesh_net::udp::Udp;
use lowmesh_units::{NodeId, Purpose, Rng};
use lowmesh_wire::coap::{Code, ContentFormat, Message, OptionNumber};

#[derive(Clone, Copy)]
enum Thing {
    Echo,
    Json,
    Large,
    Broken,
}

fn router() -> Router<Thing> {
    let mut router = Router::new();
    router.insert("/echo", Resource::new(Methods::ALL, Thing::Echo));
    router.insert("/json", Resource::new(Methods::GET, Thing::Json));
    router.insert("/large", Resource::new(Methods::GET, Thing::Large));
    router.insert("/broken", Resource::new(Methods::GET, Thing::Broken));
    router
}

fn perform(thing: Thing, request: &Message) -> ResponseTemplate {
    let content =
        |payload: &[u8]| ResponseTemplate::new(Code::CONTENT).with_payload(payload.into());
    match thing {
        Thing::Echo => content(&[&[b'0' + request.code.0][..], &request.payload].concat()),
        Thing::Json => {
            let mut response = content(b"{\"a\":1}");
            let format = ContentFormat::JSON.0.into();
            response.options.insert_uint(OptionNumber::CONTENT_FORMAT, format);
            response
        }
        Thing::Large => content(&[b'x'; 5000]),
        Thing::Broken => ResponseTemplate::new(Code::INTERNAL_SERVER_ERROR),
    }
}

async fn serve(address: mpsc::Sender<SocketAddr>) {
    let rng = Rng::stream(fresh_seed(), NodeId(0), Purpose::Coap);
    let host = Host::over_datagrams(Config::default(), HostLimits::default(), rng);
    let udp = Udp::bind("127.0.0.1:0".parse().expect("an address")).expect("a free port");
    address.send(udp.local_addr()).expect("the test waits");
    let mut driver = Driver::new(udp, host.expect("the defaults are possible"));
    let router = router();
    while let Ok(output) = driver.next().await {
        let Output::Request { exchange, message, multicast, .. } = output else { continue };
        let response = match router.route(&message, multicast) {
            Route::Resource { resource, .. } => perform(*resource.value(), &message),
            Route::Answer(response) => response,
            Route::Ignore => continue,
        };
        let respond = Input::Respond { exchange, response, handle: Handle::NONE };
        driver.handle(respond).expect("the exchange is open");
    }
}

/// Starts a server that lives as long as the test, and returns its authority.
fn server() -> SocketAddr {
    let (tell, told) = mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime").block_on(serve(tell));
    });
    told.recv().expect("the server has a port")
}

fn lowmesh(args: &[&str]) -> Ended {
    Command::new(env!("CARGO_BIN_EXE_lowmesh")).args(args).output().expect("the command was built")
}

fn stderr(ended: &Ended) -> String {
    String::from_utf8_lossy(&ended.stderr).into_owned()
}

#[test]
fn every_method_reaches_the_server_with_its_payload() {
    let uri = format!("coap://{}/echo", server());
    for (verb, told) in [
        ("get", "1"),
        ("post", "2a b"),
        ("put", "3a b"),
        ("delete", "4"),
        ("fetch", "5a b"),
        ("patch", "6a b"),
        ("ipatch", "7a b"),
    ] {
        let payload: &[&str] = if told.len() > 1 { &["-e", "a%20b"] } else { &[] };
        let ended = lowmesh(&[&[verb, &uri], payload].concat());
        assert_eq!(String::from_utf8_lossy(&ended.stdout), told, "{verb}: {}", stderr(&ended));
        assert_eq!(ended.status.code(), Some(0), "{verb}");
        assert_eq!(stderr(&ended), "", "{verb}");
    }
}

#[test]
fn a_long_body_comes_whole_in_blocks_of_any_size() {
    let uri = format!("coap://{}/large", server());
    for block in ["64", "1024"] {
        let ended = lowmesh(&["get", &uri, "-b", block]);
        assert_eq!(ended.stdout, [b'x'; 5000], "{}", stderr(&ended));
    }
}

#[test]
fn the_errors_of_a_server_are_exit_codes() {
    let server = server();
    let missing = lowmesh(&["get", &format!("coap://{server}/none")]);
    assert_eq!(missing.status.code(), Some(4));
    assert!(stderr(&missing).starts_with("error: 4.04 Not Found"), "{}", stderr(&missing));
    assert_eq!(missing.stdout, b"");
    let broken = lowmesh(&["get", &format!("coap://{server}/broken"), "-N"]);
    assert_eq!(broken.status.code(), Some(5), "{}", stderr(&broken));
}

#[test]
fn json_is_laid_out_on_request_and_answers_are_json_on_request() {
    let uri = format!("coap://{}/json", server());
    assert_eq!(lowmesh(&["get", &uri]).stdout, b"{\"a\":1}");
    assert_eq!(lowmesh(&["get", &uri, "--pretty"]).stdout, b"{\n  \"a\": 1\n}\n");
    let ended = lowmesh(&["get", &uri, "--json"]);
    let answer: serde_json::Value = serde_json::from_slice(&ended.stdout).expect("one object");
    assert_eq!((&answer["code"], &answer["content_format"]), (&"2.05".into(), &50.into()));
    assert_eq!(answer["payload"], "{\"a\":1}");
}

#[test]
fn a_port_where_nobody_listens_ends_with_3_at_once() {
    let closed = std::net::UdpSocket::bind("127.0.0.1:0").and_then(|socket| socket.local_addr());
    let port = closed.expect("a port that was free").port();
    for scheme in ["coap", "coap+tcp", "coap+ws"] {
        let ended = lowmesh(&["get", &format!("{scheme}://127.0.0.1:{port}/")]);
        assert_eq!(ended.status.code(), Some(3), "{scheme}: {}", stderr(&ended));
        assert!(stderr(&ended).contains("\nhint: "), "{}", stderr(&ended));
    }
}

#[test]
fn silence_ends_with_3_when_the_time_is_over() {
    let silent = std::net::UdpSocket::bind("127.0.0.1:0").expect("a free port");
    let address = silent.local_addr().expect("bound");
    let ended = lowmesh(&["get", &format!("coap://{address}/"), "-B", "0.2"]);
    assert_eq!(ended.status.code(), Some(3));
    assert!(stderr(&ended).starts_with("error: no answer within 0.2 s\nhint: "));
}

#[test]
fn bad_input_ends_with_2_and_a_hint() {
    let taken = std::net::UdpSocket::bind("127.0.0.1:0").expect("a free port");
    let port = taken.local_addr().expect("bound").port().to_string();
    for (args, told) in [
        (&["get", "127.0.0.1/hello"][..], "coap://"),
        (&["get", "http://127.0.0.1/"], "coap://"),
        (&["get", "coap://[::1/"], "is not a host"),
        (&["get", "coap://127.0.0.1:70000/"], "is not a port"),
        (&["get", "coap://[fe80::1]/"], "%25eth0"),
        (&["get", "coaps://127.0.0.1/"], "--psk"),
        (&["get", "coaps+tcp://127.0.0.1/"], "--cafile"),
        (&["get", "coap://127.0.0.1/", "--cc", "coca"], "6cocoa"),
        (&["get", "coap://127.0.0.1/", "-b", "100"], "1024"),
        (&["put", "coap://127.0.0.1/", "-e", "100%"], "%25"),
        (&["put", "coap://127.0.0.1/", "-f", "no/such/file"], "no/such/file"),
        (&["get", "coap://127.0.0.1/", "-a", "127.0.0.1", "-p", &port], "in use"),
    ] {
        let ended = lowmesh(args);
        assert_eq!(ended.status.code(), Some(2), "{args:?}: {}", stderr(&ended));
        assert!(stderr(&ended).contains(told), "{args:?}: {}", stderr(&ended));
        assert_eq!(ended.stdout, b"", "{args:?}");
    }
}
