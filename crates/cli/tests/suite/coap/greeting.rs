//! What answers `coap+tcp` and is no CoAP server is named as such.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};

use super::server::{lowmesh, stderr};

/// Takes one connection and does something with it; the address where.
fn listen(act: impl FnOnce(TcpStream) + Send + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("bound");
    std::thread::spawn(move || act(listener.accept().expect("the command connects").0));
    address
}

/// What `get` says of an address.
fn told(address: SocketAddr, more: &[&str]) -> String {
    let ended = lowmesh(&[&["get", &format!("coap+tcp://{address}/")], more].concat());
    assert_eq!(ended.status.code(), Some(3), "{}", stderr(&ended));
    assert!(stderr(&ended).contains("hint: is a server of this scheme"), "{}", stderr(&ended));
    stderr(&ended)
}

#[test]
fn a_silent_port_sends_no_csm_in_time() {
    let address = listen(|mut stream| while stream.read(&mut [0; 64]).is_ok_and(|len| len > 0) {});
    let told = told(address, &["-B", "1"]);
    assert!(told.contains("no CSM arrived within 1.0 s"), "{told}");
}

#[test]
fn what_an_http_server_says_is_no_csm() {
    let address = listen(|mut stream| {
        let _asked = stream.read(&mut [0; 64]);
        let answer = b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n";
        stream.write_all(answer).expect("the command waits");
    });
    let told = told(address, &[]);
    assert!(told.contains("first") && told.contains("not a CSM"), "{told}");
}

#[test]
fn a_connection_that_is_closed_at_once_had_no_csm() {
    let told = told(listen(|mut stream| _ = stream.read(&mut [0; 64])), &[]);
    assert!(told.contains("without a CSM"), "{told}");
}
