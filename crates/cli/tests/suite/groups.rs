//! `lowmesh groups` as users run it: a manager and three members on loopback, each a program of its own.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::served::{Folder, Server, lowmesh};

/// Members that serve a reading each, and the manager that asks them.
struct Building {
    _folders: Vec<Folder>,
    members: Vec<Server>,
    manager: Server,
}

impl Building {
    fn open(test: &str, more: &[&str]) -> Self {
        let folders: Vec<Folder> = (1..=3)
            .map(|number| {
                let value = format!("{}", 18 + 2 * number);
                let files = [("t.txt", value.as_bytes()), ("s/t.txt", value.as_bytes())];
                Folder::new(&format!("{test}-{number}"), &files)
            })
            .collect();
        let member = |folder: &Folder| Server::start(&["--writable", "--mc", folder.path()]);
        let members = folders.iter().map(member).collect();
        Self {
            members,
            manager: Server::start_as_words(&["groups", "serve"], more),
            _folders: folders,
        }
    }
    /// The URI of a resource of a member.
    fn uri(&self, member: usize, path: &str) -> String {
        self.members[member - 1].uri("coap", path)
    }
    /// The name of a resource of a member in results.
    fn label(&self, member: usize, path: &str) -> String {
        let uri = self.uri(member, path);
        uri.strip_prefix("coap://").expect("a URI").replacen(':', "_", 1)
    }
    /// Asks the manager: exit code, stdout and stderr.
    fn ask(&self, words: &[&str]) -> (i32, String, String) {
        let manager = self.manager.uri("coap", "");
        let ended = lowmesh(&[&["groups"], words, &["-m", &manager]].concat());
        let text = |octets: &[u8]| String::from_utf8_lossy(octets).into_owned();
        (ended.status.code().expect("no signal"), text(&ended.stdout), text(&ended.stderr))
    }
    fn done(&self, words: &[&str]) -> String {
        let (code, out, err) = self.ask(words);
        assert_eq!(code, 0, "{words:?}: {out}{err}");
        out
    }
    fn json(&self, words: &[&str]) -> serde_json::Value {
        let (_, out, err) = self.ask(&[words, &["--json"]].concat());
        serde_json::from_str(&out).unwrap_or_else(|error| panic!("{words:?}: {error}: {out}{err}"))
    }
    /// Makes an entity of the readings of all members.
    fn create(&self, name: &str) -> String {
        let uris = [1, 2, 3].map(|member| self.uri(member, "/t.txt"));
        self.done(&["create", name, &uris[0], &uris[1], &uris[2]])
    }
    fn refused(&self, words: &[&str], code: i32, says: &[&str]) {
        let (ended, out, err) = self.ask(words);
        assert_eq!(ended, code, "{words:?}: {out}{err}");
        for says in says {
            assert!(err.contains(says), "{words:?}: {says:?} is not in {err}");
        }
        assert_eq!(err.matches("error: ").count(), 1, "{err}");
    }
}

/// The words of each line.
fn words(text: &str) -> Vec<Vec<&str>> {
    text.lines().map(|line| line.split_whitespace().collect()).collect()
}

#[test]
fn an_entity_is_created_listed_shown_changed_and_deleted() {
    let building = Building::open("groups-life", &[]);
    let created = building.create("room");
    assert!(
        created.contains("name      room\n") && created.contains("ect       unicast\n"),
        "{created}"
    );
    assert_eq!(created.matches(" member\n").count(), 3, "{created}");
    assert_eq!(words(&building.done(&["list"])), [["entity", "group"], ["room", "-"]]);
    assert_eq!(building.json(&["list"])["entities"][0]["name"], "room");

    let third = building.uri(3, "/t.txt");
    let updated = building.done(&["update", "room", "--eo", "avg,lst", "--remove", &third]);
    assert!(updated.contains("eo        avg lst\n") && !updated.contains(&third), "{updated}");
    let first = &words(&building.done(&["query", "room"]))[1].join(" ");
    assert_eq!(first, "e/room/avg 2.05 21", "the first operation is the default");
    building.done(&["update", "room", "--add", &third]);
    let shown = building.json(&["show", "room"]);
    assert_eq!(shown["members"].as_array().map(Vec::len), Some(3), "{shown}");
    assert_eq!(shown["members"][2]["uri"], third);
    building.refused(
        &["update", "room", "--remove", "coap://[::1]/x"],
        2,
        &["not a member of room"],
    );

    building.done(&["delete", "room"]);
    building.refused(&["show", "room"], 4, &["4.04", "no such entity"]);
    assert_eq!(building.done(&["list"]).lines().count(), 1);
}

#[test]
fn a_query_has_each_operation_and_each_number_of_answers() {
    let building = Building::open("groups-query", &[]);
    building.create("room");
    for (operation, value) in [("avg", 22.0), ("min", 20.0), ("max", 24.0)] {
        for enough in ["1", "2", "3", "all"] {
            let result = building.json(&["query", "room", "--eo", operation, "--enr", enough]);
            let counted = result["members"].as_array().expect("a list").len();
            let number = result["value"].as_f64().expect("a number");
            if counted == 3 {
                assert!((number - value).abs() < 1e-9, "{operation}: {result}");
            }
            assert!(counted >= enough.parse().unwrap_or(3), "{enough}: {result}");
            assert!((20.0..=24.0).contains(&number) && result["failed"] == 0, "{result}");
        }
    }
    let list = building.done(&["query", "room"]);
    let expected = [1, 2, 3].map(|member| {
        vec![building.label(member, "/t.txt"), "2.05".to_owned(), (18 + 2 * member).to_string()]
    });
    assert_eq!(words(&list)[1..], expected);
    let one =
        building.done(&["query", "room", "--only", &building.uri(2, "/t.txt"), "--emt", "non"]);
    assert_eq!(words(&one)[1..], expected[1..2]);
    building.refused(
        &["query", "room", "--enr", "4"],
        4,
        &["4.00", "4 is more than the 3 members"],
    );

    let written = building.done(&["query", "room", "--put", "17.5"]);
    assert_eq!(
        words(&written)[1..].iter().filter(|line| line[1] == "2.04").count(),
        3,
        "{written}"
    );
    assert_eq!(building.json(&["query", "room", "--eo", "max"])["value"], 17.5);
}

#[test]
fn a_member_that_is_killed_has_a_line_with_its_reason_and_the_code_is_7() {
    let mut building = Building::open("groups-killed", &[]);
    building.create("room");
    let gone = building.label(2, "/t.txt");
    building.members[1].signal("KILL");
    building.members[1].child.wait().expect("it is ours");
    let (code, out, err) = building.ask(&["query", "room", "--deadline", "3s"]);
    assert_eq!((code, err.as_str()), (7, "error: 1 of 3 members failed\n"), "{out}");
    let line = words(&out).into_iter().find(|line| line[0] == gone).expect("a line for it");
    assert_eq!(line[1], "5.04", "{out}");
    assert_eq!(out.matches("2.05").count(), 2, "{out}");
    let mean = building.json(&["query", "room", "--eo", "avg", "--deadline", "3s"]);
    assert_eq!((&mean["value"], &mean["failed"]), (&22.0.into(), &1.into()));
    // With enough answers nobody waits for the member that is gone.
    assert_eq!(building.json(&["query", "room", "--eo", "min", "--enr", "2"])["value"], 20.0);
    building.refused(
        &["query", "room", "--enr", "3", "--deadline", "3s"],
        5,
        &["5.04", "2 of 3 members answered, 3 are needed", &format!("\n  {gone}: 5.04")],
    );
}

#[test]
fn a_manager_goes_on_from_its_file() {
    let folder = Folder::new("groups-state", &[("other", b"hello\n")]);
    let file = format!("{}/state", folder.path());
    let mut building = Building::open("groups-restart", &["--state", &file]);
    building.create("room");
    building.done(&["create", "floor", "/e/room", "--eo", "max"]);
    let again = lowmesh(&["groups", "serve", "--port", "0", "--state", &file]);
    assert_eq!(again.status.code(), Some(2), "one manager at a time has the file");
    building.manager.signal("KILL");
    building.manager.child.wait().expect("it is ours");
    building.manager = Server::start_as_words(&["groups", "serve"], &["--state", &file]);
    assert_eq!(building.done(&["list"]).lines().count(), 3);
    let nested = building.json(&["query", "floor"]);
    assert_eq!(nested["value"], 24.0, "{nested}");
    building.refused(&["delete", "room"], 4, &["4.09", "among the members of floor"]);
    building.manager.signal("TERM");
    assert_eq!(building.manager.ends_within(Duration::from_secs(5)), 0);
    let other = format!("{}/other", folder.path());
    let refused = lowmesh(&["groups", "serve", "--port", "0", "--state", &other]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(Path::new(&file).exists());
}

#[test]
fn bad_input_is_one_clear_refusal_with_a_line_for_each_member() {
    let building = Building::open("groups-bad", &[]);
    building.create("room");
    let [one, two] = [1, 2].map(|member| building.uri(member, "/t.txt"));
    let absent = building.uri(2, "/none");
    let (valid, unknown) = (building.label(1, "/t.txt"), building.label(2, "/none"));
    for (words, says) in [
        (&["create", "a", &one, &absent][..], &["4.04", &valid, &unknown, "valid"][..]),
        (&["create", "room", &one], &["4.09", "name taken"]),
        (&["create", "a b", &one], &["4.00", "name"]),
        (&["create", "a", "lamp"], &["4.00", "begins with coap://"]),
        (&["create", "a", &one, &one], &["4.00", "twice"]),
        (&["create", "a", "/e/none"], &["4.04", "no entity \"none\""]),
        (&["create", "a", "/e/a"], &["4.09", "leads back"]),
        (
            &["create", "a", &one, &building.uri(2, "/s/t.txt"), "--ect", "multicast"],
            &["4.09", "mixed paths"],
        ),
        (&["create", "a", &one, &two, "--ect", "multicast"], &["4.09", "mixed paths", "port"]),
        (&["create", "a", "/e/room", "--ect", "multicast"], &["4.09", "entity in a group"]),
        (&["query", "none"], &["4.04", "no such entity"]),
        (&["query", "room", "--only", &building.uri(3, "/s/t.txt")], &["4.04", "not a member"]),
        (&["update", "room", "--enr", "9"], &["4.00", "more than the 3 members"]),
        (&["delete", "none"], &["4.04"]),
    ] {
        building.refused(words, 4, says);
    }
    building.done(&["create", "floor", "/e/room"]);
    building.refused(&["update", "room", "--add", "/e/floor"], 4, &["4.09", "cycle"]);
    let own = building.manager.uri("coap", "/e/floor");
    building.refused(&["update", "room", "--add", &own], 4, &["4.09", "cycle"]);
    // Nothing is half there.
    assert_eq!(building.done(&["list"]).lines().count(), 3);
    let raw =
        lowmesh(&["post", &building.manager.uri("coap", "/e"), "-e", "{\"er\":7}", "-t", "json"]);
    assert_eq!(raw.status.code(), Some(4), "{raw:?}");
}

#[test]
fn a_member_without_room_for_one_more_group_refuses_the_entity() {
    let building = Building::open("groups-table", &[]);
    // Datagrams to groups reach a server at all addresses only.
    let folder = Folder::new("groups-table-member", &[("t.txt", b"20")]);
    let mut command = Command::new(env!("CARGO_BIN_EXE_lowmesh"));
    command.args(["serve", "--port", "0", "-a", "::", "--mc", folder.path()]);
    let member = Server::spawn(command);
    let one = member.uri("coap", "/t.txt").replace("[::]", "[::1]");
    let port = one.rsplit(':').next().and_then(|rest| rest.split_once('/')).expect("a port").0;
    let label = format!("0::1_{port}/t.txt");
    for number in 0..6 {
        let name = format!("g{number}");
        let created = building.done(&["create", &name, &one, "--ect", "multicast", "--scope", "5"]);
        assert!(
            created.contains(" joined\n") && created.contains("mcastURI  coap://[ff15::"),
            "{created}"
        );
    }
    building.refused(
        &["create", "g6", &one, "--ect", "multicast", "--scope", "5"],
        4,
        &["4.09", "members did not join", &label],
    );
    let listed = building.done(&["list"]);
    assert_eq!(listed.lines().count(), 7, "{listed}");
    let left = building.done(&["delete", "g0"]);
    assert_eq!(words(&left), [[label.as_str(), "gone"]]);
    let again = building.done(&["create", "g6", &one, "--ect", "multicast", "--scope", "5"]);
    assert!(again.contains(":8]:"), "an address is not given twice: {again}");
}

#[test]
fn a_manager_that_is_not_there_is_no_answer() {
    let silent = std::net::UdpSocket::bind("127.0.0.1:0").expect("a free port");
    let manager = silent.local_addr().expect("bound").to_string();
    let ended = lowmesh(&["groups", "list", "-m", &manager, "-B", "0.3"]);
    assert_eq!(ended.status.code(), Some(3));
    let other = Server::demo();
    let ended = lowmesh(&["groups", "list", "-m", &other.uri("coap", "")]);
    assert_eq!(ended.status.code(), Some(4), "it has no /e");
}
