//! `lowmesh keygen`: our server and our client take what it makes.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use crate::folder::{Folder, stderr, stdout, succeed};
use crate::served::{Server, lowmesh};

fn mode(file: &str) -> u32 {
    Path::new(file).metadata().expect("it was made").permissions().mode() & 0o777
}

#[test]
fn a_pair_of_contexts_protects_a_request() {
    let folder = Folder::new("keygen-oscore");
    let (names, hints) = succeed(&["keygen", "oscore", &folder.path("home")]);
    let (client, server) = (folder.path("home-client.conf"), folder.path("home-server.conf"));
    assert_eq!(names, format!("{client}\n{server}\n"));
    assert!(hints.contains(&format!("lowmesh serve DIR -E {server}")), "{hints}");
    assert_eq!((mode(&client), mode(&server)), (0o600, 0o600));
    let started = Server::start(&["--demo", "-E", &server, "--oscore-only"]);
    let uri = started.uri("coap", "/hello");
    let answer = lowmesh(&["get", "-E", &client, &uri]);
    assert_eq!(stdout(&answer), "hello world", "{}", stderr(&answer));
    // A context with another secret is refused, and the hint is about the secret.
    succeed(&["keygen", "oscore", &folder.path("other")]);
    let refused = lowmesh(&["get", "-E", &folder.path("other-client.conf"), &uri]);
    assert_eq!(refused.status.code(), Some(6), "{}", stderr(&refused));
    assert!(stderr(&refused).contains("\nhint: are master_secret"), "{}", stderr(&refused));
    succeed(&["keygen", "oscore", &folder.path("third"), "--client", "guest"]);
    let unknown = lowmesh(&["get", "-E", &folder.path("third-client.conf"), &uri]);
    assert!(stderr(&unknown).contains("\nhint: does the server have"), "{}", stderr(&unknown));
}

#[test]
fn each_member_of_a_group_has_a_file_with_its_own_private_key() {
    let folder = Folder::new("keygen-group");
    for algorithm in ["EdDSA", "ES256"] {
        let name = folder.path(algorithm);
        let members = ["--member", "a", "--member", "b", "--sign-alg", algorithm];
        let (names, hints) = succeed(&[&["keygen", "group", &name][..], &members].concat());
        let files = ["a", "b"].map(|member| format!("{name}-{member}.conf"));
        assert_eq!(names, format!("{}\n{}\n", files[0], files[1]));
        assert!(hints.contains(&format!("--group-oscore {}", files[1])), "{hints}");
        assert_eq!(files.each_ref().map(|file| mode(file)), [0o600; 2]);
        let secret = |member: &str| {
            let text = folder.read(&format!("{algorithm}-{member}.conf"));
            let line = text.lines().find(|line| line.starts_with("private_key"));
            line.expect("it has one").to_owned()
        };
        assert_ne!(secret("a"), secret("b"));
        assert!(!folder.read(&format!("{algorithm}-b.conf")).contains(&secret("a")));
        let started = Server::start(&["--demo", "--group-oscore", &files[1], "--oscore-only"]);
        let uri = started.uri("coap", "/hello");
        let answer = lowmesh(&["get", "--group-oscore", &files[0], &uri]);
        assert_eq!(stdout(&answer), "hello world", "{algorithm}: {}", stderr(&answer));
    }
    for (members, wanted) in [
        (&["--member", "a"][..], "a group has 2 to 1025 members, but got 1"),
        (&["--member", "a", "--member", "a"], "two members have the ID `a`"),
        (&["--member", "a", "--member", "b", "--sign-alg", "RSA"], "are EdDSA and ES256"),
        (&["--member", "a b", "--member", "b"], "an ID has 1 to 7 letters"),
    ] {
        let refused = lowmesh(&[&["keygen", "group", &folder.path("bad")][..], members].concat());
        assert_eq!(refused.status.code(), Some(2), "{}", stderr(&refused));
        assert!(stderr(&refused).contains(wanted), "{}", stderr(&refused));
    }
}

#[test]
fn a_key_protects_a_session() {
    let folder = Folder::new("keygen-psk");
    let key = folder.path("key");
    succeed(&["keygen", "psk", &key]);
    assert_eq!((mode(&key), folder.read("key").trim_end().len()), (0o600, 32));
    let secret = format!("@{key}");
    let started = Server::start(&["--demo", "--psk", &secret, "--identity", "me"]);
    let uri = started.uri("coaps", "/hello");
    let answer = lowmesh(&["get", "--psk", &secret, "--identity", "me", &uri]);
    assert_eq!(stdout(&answer), "hello world", "{}", stderr(&answer));
}

#[test]
fn a_certificate_is_one_that_our_client_takes() {
    let folder = Folder::new("keygen-tls");
    succeed(&["keygen", "tls", &folder.path("s"), "--host", "localhost"]);
    let (cert, key) = (folder.path("s-cert.pem"), folder.path("s-key.pem"));
    assert_eq!((mode(&cert), mode(&key)), (0o600, 0o600));
    let started = Server::start(&["--demo", "--cert", &cert, "--key", &key]);
    let address = started.uri("coaps+tcp", "/hello");
    let named = address.replace("127.0.0.1", "localhost");
    let answer = lowmesh(&["get", "--cafile", &cert, &named]);
    assert_eq!(stdout(&answer), "hello world", "{}", stderr(&answer));
    // The certificate is not for the address.
    let misnamed = lowmesh(&["get", "--cafile", &cert, &address]);
    assert_eq!(misnamed.status.code(), Some(6), "{}", stderr(&misnamed));
    assert!(
        stderr(&misnamed).contains("\nhint: the certificate is for other"),
        "{}",
        stderr(&misnamed)
    );
    // Any certificate is accepted on request, and the client says so.
    let insecure = lowmesh(&["get", "--insecure", &address]);
    assert_eq!(stdout(&insecure), "hello world", "{}", stderr(&insecure));
    assert_eq!(
        stderr(&insecure),
        "warning: --insecure: the server's certificate is not verified\n"
    );
    // Of another server, it is no authority.
    succeed(&["keygen", "tls", &folder.path("t")]);
    let other = lowmesh(&["get", "--cafile", &folder.path("t-cert.pem"), &named]);
    assert_eq!(other.status.code(), Some(6), "{}", stderr(&other));
    assert!(
        stderr(&other).contains("\nhint: is the server's certificate trusted"),
        "{}",
        stderr(&other)
    );
}

#[test]
fn the_certificate_of_an_authority_is_refused_with_a_hint() {
    let file =
        |ending| format!("{}/../net/tests/tls/authority-only.{ending}", env!("CARGO_MANIFEST_DIR"));
    let (cert, key) = (file("pem"), file("key"));
    let started = Server::start(&["--demo", "--cert", &cert, "--key", &key]);
    let uri = started.uri("coaps+tcp", "/hello").replace("127.0.0.1", "localhost");
    let refused = lowmesh(&["get", "--cafile", &cert, &uri]);
    assert_eq!(refused.status.code(), Some(6), "{}", stderr(&refused));
    assert!(stderr(&refused).contains("make one with basicConstraints"), "{}", stderr(&refused));
}

#[test]
fn an_existing_file_is_never_replaced() {
    let folder = Folder::new("keygen-twice");
    let key = folder.write("s-key.pem", "precious");
    let again = lowmesh(&["keygen", "tls", &folder.path("s")]);
    assert_eq!(again.status.code(), Some(2), "{}", stderr(&again));
    assert!(stderr(&again).starts_with(&format!("error: {key} exists")), "{}", stderr(&again));
    assert_eq!((folder.read("s-key.pem").as_str(), folder.names().len()), ("precious", 1));
}

#[test]
fn a_host_that_no_certificate_can_have_is_refused() {
    let folder = Folder::new("keygen-host");
    let refused = lowmesh(&["keygen", "tls", &folder.path("s"), "--host", "höst"]);
    assert_eq!(refused.status.code(), Some(2), "{}", stderr(&refused));
    assert!(stderr(&refused).contains("hint: give --host a DNS name"), "{}", stderr(&refused));
    assert_eq!(folder.names(), Vec::<String>::new());
}
