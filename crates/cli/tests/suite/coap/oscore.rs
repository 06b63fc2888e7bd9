//! `-E FILE`: requests that only the server can read.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::mpsc;

use lowmesh_coap::ResponseTemplate;
use lowmesh_coap::resource::{Methods, Resource};
use lowmesh_net::oscore::{Contexts, Plain};
use lowmesh_net::server::{Handler, Limits, Server};
use lowmesh_wire::coap::Code;

use super::server::{lowmesh, stderr};

/// A folder that goes with the test.
struct Folder(PathBuf);
impl Folder {
    fn new(name: &str) -> Self {
        let name = format!("lowmesh-cli-oscore-{}-{name}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        fs::create_dir_all(&folder).expect("a place for files");
        Self(folder)
    }
    /// A file of one context.
    fn context(&self, ours: &str, theirs: &str) -> PathBuf {
        let text = format!(
            "master_secret,ascii,0123456789abcdef\nsender_id,ascii,{ours}\n\
             recipient_id,ascii,{theirs}\n"
        );
        let file = self.0.join(ours);
        fs::write(&file, text).expect("a disk");
        file
    }
}
impl Drop for Folder {
    fn drop(&mut self) {
        let _left_behind = fs::remove_dir_all(&self.0);
    }
}

/// A server that lives as long as the test and answers nothing that is not protected.
fn serve(keys: &Path) -> SocketAddr {
    let contexts = Contexts::open(keys).expect("our own");
    let (tell, told) = mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime").block_on(async {
            let mut server = Server::new(Limits::default()).expect("the defaults");
            server.protect(contexts, Plain::Refused);
            let large = Handler::new(|_| {
                ResponseTemplate::new(Code::CONTENT).with_payload(vec![b'x'; 5000])
            });
            server.insert("/large", Resource::new(Methods::GET, large));
            let loopback = "127.0.0.1:0".parse().expect("an address");
            tell.send(server.listen_udp(loopback).expect("free")).expect("the test waits");
            server.run(std::future::pending()).await
        })
    });
    told.recv().expect("the server has a port")
}

#[test]
fn a_protected_request_brings_a_long_body_and_the_next_one_goes_on_where_it_ended() {
    let folder = Folder::new("body");
    let uri = format!("coap://{}/large", serve(&folder.context("s", "c")));
    let keys = folder.context("c", "s");
    for _ in 0..2 {
        let ended = lowmesh(&["get", "-E", keys.to_str().expect("text"), &uri]);
        assert_eq!(
            (ended.status.code(), ended.stdout.len()),
            (Some(0), 5000),
            "{}",
            stderr(&ended)
        );
    }
    let plain = lowmesh(&["get", &uri]);
    assert_eq!(plain.status.code(), Some(4), "{}", stderr(&plain));
}

#[test]
fn a_server_without_the_context_and_a_file_that_is_none_have_their_exit_codes() {
    let folder = Folder::new("codes");
    let uri = format!("coap://{}/large", serve(&folder.context("s", "c")));
    let stranger = folder.context("x", "s");
    let ended = lowmesh(&["get", "-E", stranger.to_str().expect("text"), &uri]);
    assert_eq!(ended.status.code(), Some(6), "{}", stderr(&ended));
    assert!(stderr(&ended).contains("exchanged"), "{}", stderr(&ended));
    let broken = folder.0.join("broken");
    fs::write(&broken, "master_secret,ascii\n").expect("a disk");
    let ended = lowmesh(&["get", "-E", broken.to_str().expect("text"), &uri]);
    assert_eq!(ended.status.code(), Some(2), "{}", stderr(&ended));
    assert!(stderr(&ended).contains("line 1"), "{}", stderr(&ended));
}
