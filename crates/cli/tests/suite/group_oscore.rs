//! `--group-oscore FILE` as users run it: members of a group on loopback, each a program of its own (RFC 10021).

use std::net::UdpSocket;
use std::process::{Command, Stdio};
use std::time::Duration;

use lowmesh_oscore::Header;
use lowmesh_wire::coap::{Code, Message, OptionNumber};

use crate::folder::{Folder, stderr, stdout, succeed};
use crate::served::{Server, lowmesh};

/// Longer than a server on loopback needs for an answer.
const ANSWER: Duration = Duration::from_secs(5);
/// As long as nothing must come.
const SILENCE: Duration = Duration::from_millis(700);

/// The files of a group with a client and two lamps.
struct Keys(Folder);

impl Keys {
    fn make(test: &str) -> Self {
        let folder = Folder::new(test);
        let members = ["--member", "switch", "--member", "lamp1", "--member", "lamp2"];
        succeed(&[&["keygen", "group", &folder.path("floor")][..], &members].concat());
        Self(folder)
    }
    fn of(&self, member: &str) -> String {
        self.0.path(&format!("floor-{member}.conf"))
    }
    fn serve(&self, member: &str) -> Server {
        Server::start(&["--demo", "--group-oscore", &self.of(member), "--oscore-only"])
    }
    fn get(&self, uri: &str, more: &[&str]) -> std::process::Output {
        lowmesh(&[&["get", "--group-oscore", &self.of("switch"), uri], more].concat())
    }
}

/// A socket in the place of a server, which takes down what comes.
struct Trap(UdpSocket);

impl Trap {
    fn set() -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a free port");
        socket.set_read_timeout(Some(ANSWER)).expect("a socket");
        Self(socket)
    }
    fn uri(&self) -> String {
        format!("coap://{}/hello", self.0.local_addr().expect("bound"))
    }
    /// The first datagram that comes.
    fn caught(&self) -> Vec<u8> {
        let mut octets = [0; 1500];
        let len = self.0.recv(&mut octets).expect("a request");
        octets[..len].to_vec()
    }
    /// A request of the switch that does not reach its server.
    fn request(keys: &Keys, more: &[&str]) -> Vec<u8> {
        let trap = Self::set();
        let ended = keys.get(&trap.uri(), &[&["-B", "0.2"], more].concat());
        assert_eq!(ended.status.code(), Some(3), "{}", stderr(&ended));
        trap.caught()
    }
}

/// What a server answers to a datagram from a new place: the first message that is more than an empty one.
fn answer_to(server: &Server, datagram: &[u8]) -> Option<Message> {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a free port");
    socket.set_read_timeout(Some(SILENCE)).expect("a socket");
    let address = server.uri("coap", "");
    socket.send_to(datagram, &address["coap://".len()..]).expect("loopback");
    let mut octets = [0; 1500];
    while let Ok(len) = socket.recv(&mut octets) {
        let message = Message::parse(&octets[..len]).expect("our own");
        if message.code != Code::EMPTY {
            return Some(message);
        }
    }
    None
}

/// The sequence number of a request.
fn number(datagram: &[u8]) -> u64 {
    let message = Message::parse(datagram).expect("our own");
    let option = message.options.get(OptionNumber::OSCORE).expect("protected");
    let header = Header::parse(option).expect("our own");
    let octets = header.partial_iv.expect("a request says it").padded();
    octets.iter().fold(0, |number, octet| number << 8 | u64::from(*octet))
}

#[test]
fn two_members_answer_in_both_modes_and_strangers_in_none() {
    let keys = Keys::make("group-oscore-modes");
    let lamps = ["lamp1", "lamp2"].map(|lamp| (lamp, keys.serve(lamp)));
    for (lamp, server) in &lamps {
        let uri = server.uri("coap", "/hello");
        for mode in [&["--group-mode"][..], &["--to-member", lamp]] {
            let answer = keys.get(&uri, mode);
            assert_eq!(stdout(&answer), "hello world", "{mode:?}: {}", stderr(&answer));
        }
        // The octets on the wire show nothing of it.
        let request = Trap::request(&keys, &["--group-mode"]);
        assert!(!request.windows(5).any(|part| part == b"hello"), "{request:02x?}");
        // A stranger in the open.
        let plain = lowmesh(&["get", &uri]);
        assert_eq!(plain.status.code(), Some(4), "{}", stderr(&plain));
    }
    // Pairwise, for the other lamp: the server has no key.
    let wrong = keys.get(&lamps[0].1.uri("coap", "/hello"), &["--to-member", "lamp2"]);
    assert_eq!(wrong.status.code(), Some(6), "{}", stderr(&wrong));
    // Who is asked is to be said.
    let unnamed = keys.get(&lamps[0].1.uri("coap", "/hello"), &[]);
    assert_eq!(unnamed.status.code(), Some(2), "{}", stderr(&unnamed));
    assert!(stderr(&unnamed).contains("hint: --to-member ID"), "{}", stderr(&unnamed));
    // A member of another group gets no answer in group mode.
    let others = Keys::make("group-oscore-others");
    let stranger = others.get(&lamps[0].1.uri("coap", "/hello"), &["--group-mode", "-B", "1"]);
    assert_eq!(stranger.status.code(), Some(3), "{}", stderr(&stranger));
}

#[cfg(target_os = "linux")]
#[test]
fn a_request_to_a_group_address_is_protected_and_answered() {
    let keys = Keys::make("group-oscore-multicast");
    let group = ["--group", "224.0.1.201%lo", "--leisure", "0.2"];
    let args = ["--demo", "--oscore-only", "-a", "0.0.0.0", "--group-oscore", &keys.of("lamp1")];
    let server = Server::start(&[&args[..], &group].concat());
    let served = server.served.iter().find_map(|served| served.strip_prefix("coap://0.0.0.0:"));
    let uri = format!("coap://224.0.1.201:{}/gp/lights/demo", served.expect("it is served"));
    let ask = |keys: &Keys| keys.get(&uri, &["--interface", "lo", "-B", "2"]);
    let answer = ask(&keys);
    assert_eq!(stdout(&answer), "off\n", "{}", stderr(&answer));
    let silent = ask(&Keys::make("group-oscore-multicast-others"));
    assert_eq!(silent.status.code(), Some(3), "{}", stderr(&silent));
    let plain = lowmesh(&["get", &uri, "--interface", "lo", "-B", "1"]);
    assert_eq!(plain.status.code(), Some(3), "{}", stderr(&plain));
}

#[test]
fn a_group_of_two_needs_no_name_and_uses_pairwise_mode() {
    let folder = Folder::new("group-oscore-two");
    let prefix = folder.path("pair");
    succeed(&["keygen", "group", &prefix, "--member", "switch", "--member", "lamp1"]);
    let file = |member: &str| format!("{prefix}-{member}.conf");
    let server = Server::start(&["--demo", "--oscore-only", "--group-oscore", &file("lamp1")]);
    let uri = server.uri("coap", "/hello");
    let (answer, _) = succeed(&["get", "--group-oscore", &file("switch"), &uri]);
    assert_eq!(answer, "hello world");
    let trap = Trap::set();
    let mut command = Command::new(env!("CARGO_BIN_EXE_lowmesh"));
    command.args(["get", "--group-oscore", &file("switch"), &trap.uri()]).stderr(Stdio::null());
    let mut child = command.spawn().expect("the command was built");
    let request = Message::parse(&trap.caught()).expect("our own");
    child.kill().expect("it is ours");
    child.wait().expect("it is ours");
    let option = request.options.get(OptionNumber::OSCORE).expect("protected");
    assert!(!Header::parse(option).expect("our own").group);
}

#[test]
fn a_replay_is_refused_also_after_a_crash() {
    let keys = Keys::make("group-oscore-replay");
    let (group, pairwise) =
        (Trap::request(&keys, &["--group-mode"]), Trap::request(&keys, &["--to-member", "lamp1"]));
    let server = keys.serve("lamp1");
    for request in [&group, &pairwise] {
        let answer = answer_to(&server, request).expect("it is the first time");
        assert!(answer.options.get(OptionNumber::OSCORE).is_some(), "{answer:?}");
    }
    // RFC 10021 s7: no error answers what may be a request to a group.
    assert_eq!(answer_to(&server, &group), None);
    let refused = answer_to(&server, &pairwise).expect("an error");
    assert_eq!((refused.code, &refused.payload[..]), (Code::UNAUTHORIZED, &b"Replay detected"[..]));
    // A crash loses the windows: the server asks for an Echo, inside, and serves nothing.
    drop(server);
    let server = keys.serve("lamp1");
    let answer = answer_to(&server, &group).expect("a challenge");
    // 4.01 is inside; outside, a response without Observe is 2.04.
    assert_eq!(answer.code, Code::CHANGED);
    // The code, the Echo option and the tag: no payload.
    assert_eq!(answer.payload.len(), 1 + (2 + 8) + 8, "{answer:?}");
    assert_eq!(answer_to(&server, &group), None, "a request is challenged once");
    // The switch repeats its request with the Echo, and is served.
    let served = keys.get(&server.uri("coap", "/hello"), &["--group-mode"]);
    assert_eq!(stdout(&served), "hello world", "{}", stderr(&served));
}

#[test]
fn a_member_that_starts_again_uses_no_sequence_number_twice() {
    let keys = Keys::make("group-oscore-numbers");
    let mut last = None;
    let mut rises = |datagram: &[u8]| {
        let number = Some(number(datagram));
        assert!(number > last, "{number:?} after {last:?}");
        last = number;
    };
    for mode in [&["--group-mode"][..], &["--to-member", "lamp1"], &["--to-member", "lamp2"]] {
        rises(&Trap::request(&keys, mode));
        // A process that is killed has used its number too.
        let trap = Trap::set();
        let mut command = Command::new(env!("CARGO_BIN_EXE_lowmesh"));
        command.args(["get", "--group-oscore", &keys.of("switch"), &trap.uri()]).args(mode);
        let mut child = command.stderr(Stdio::null()).spawn().expect("the command was built");
        rises(&trap.caught());
        child.kill().expect("it is ours");
        child.wait().expect("it is ours");
    }
}

#[test]
fn an_observation_brings_each_state_in_both_modes() {
    let keys = Keys::make("group-oscore-observe");
    let server = keys.serve("lamp2");
    let observe = ["observe", "--group-oscore", &keys.of("switch"), &server.uri("coap", "/time")];
    for mode in [&["--group-mode"][..], &["--to-member", "lamp2"]] {
        let ended =
            lowmesh(&[&observe[..], &["--count", "2", "-B", "20", "--json"], mode].concat());
        assert_eq!(ended.status.code(), Some(0), "{mode:?}: {}", stderr(&ended));
        assert_eq!(stdout(&ended).lines().count(), 2, "{mode:?}: {}", stdout(&ended));
    }
}

#[test]
fn a_manager_asks_members_with_a_group_file() {
    let keys = Keys::make("group-oscore-manager");
    let folder = Folder::new("group-oscore-readings");
    folder.write("t.txt", "20");
    let path = folder.path("");
    let lamps = ["lamp1", "lamp2"].map(|lamp| {
        Server::start(&[&path, "--group-oscore", &keys.of(lamp), "--oscore-only", "--mc"])
    });
    let refused = lowmesh(&["groups", "serve", "--member-group-oscore", &keys.of("switch")]);
    assert!(stderr(&refused).contains("hint: --member-group-mode"), "{}", stderr(&refused));
    let more = ["--member-group-oscore", &keys.of("switch"), "--member-group-mode"];
    let manager = Server::start_as_words(&["groups", "serve"], &more);
    let uris = lamps.each_ref().map(|lamp| lamp.uri("coap", "/t.txt"));
    let at = manager.uri("coap", "");
    succeed(&["groups", "create", "temp", &uris[0], &uris[1], "-m", &at]);
    let (answer, _) = succeed(&["groups", "query", "temp", "-m", &at]);
    // Ports of members can have any digits.
    let values = answer.lines().filter(|line| line.trim_end().ends_with("  20"));
    assert_eq!(values.count(), 2, "{answer}");
}

#[test]
fn bad_input_has_one_error_with_its_place_and_a_hint() {
    let keys = Keys::make("group-oscore-bad");
    let (file, uri) = (keys.of("switch"), "coap://127.0.0.1/");
    let text = keys.0.read("floor-switch.conf");
    let broken = keys.0.write("broken.conf", text.replace("group_id", "grupp_id"));
    let own = keys.0.write("own.conf", text.replace("lamp1", "switch"));
    let none = keys.0.path("none.conf");
    let get = |more: &[&str]| lowmesh(&[&["get", uri], more].concat());
    let serve = |more: &[&str]| lowmesh(&[&["serve", "--demo", "--port", "0"], more].concat());
    for (ended, wanted) in [
        (get(&["--group-oscore", &none]), "hint: --oscore and --group-oscore take files"),
        (get(&["--group-oscore", &broken]), "line 3: keyword \"grupp_id\" does not exist"),
        (get(&["--group-oscore", &own]), "line 9: another member has this identity"),
        (get(&["--group-oscore", &file, "-E", &file]), "cannot be used with"),
        (get(&["--to-member", "lamp1"]), "--group-oscore <FILE>"),
        (
            get(&["--group-oscore", &file, "--group-mode", "--to-member", "lamp1"]),
            "cannot be used with",
        ),
        (get(&["--group-oscore", &file, "--to-member", "lamp3"]), "no other member \"lamp3\""),
        (get(&["-E", &file]), "line 3: keyword \"group_id\" does not exist"),
        (serve(&["--oscore-only"]), "hint: give --oscore FILE or --group-oscore FILE too"),
        (serve(&["--group-oscore", &file, "--group-oscore", &file]), "in use by another process"),
    ] {
        assert_eq!(ended.status.code(), Some(2), "{wanted}: {}", stderr(&ended));
        assert!(stderr(&ended).contains(wanted), "{wanted}: {}", stderr(&ended));
    }
}
