//! The files that `lowmesh serve` gives and takes: tags without reading, rights, links, and what is no file.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::served::{Folder, Server, lowmesh};

/// Longer than the 4 MiB that are served, and without any octet on the disk.
const SPARSE_LEN: u64 = 3 << 30;

fn sparse(path: &Path, len: u64) {
    fs::File::create(path).and_then(|file| file.set_len(len)).expect("a place for files");
}

fn fifo(path: &Path) {
    let made = Command::new("mkfifo").arg(path).status().expect("every system has it");
    assert!(made.success());
}

/// The entity tag of a file, in hexadecimal.
fn tag(server: &Server, path: &str) -> String {
    let answer = server.json(path, &[]);
    let options = answer["options"].as_array().expect("a list").iter();
    let mut tags = options.filter_map(|option| option.as_str()?.strip_prefix("ETag: "));
    tags.next().unwrap_or_else(|| panic!("{answer}")).to_owned()
}

/// The most memory that a process ever had, KiB.
#[cfg(target_os = "linux")]
fn peak_kib(id: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{id}/status")).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("Linux says it");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

#[cfg(target_os = "linux")]
#[test]
fn a_file_of_any_size_is_replaced_and_deleted_without_being_read() {
    let folder = Folder::new("sparse", &[("a.txt", b"small")]);
    for name in ["large.bin", "other.bin"] {
        sparse(&folder.0.join(name), SPARSE_LEN);
    }
    let server = Server::start(&["-w", folder.path()]);
    let refused = server.ask("get", "/large.bin", &[]);
    assert!(refused.1.contains("5.01"), "{refused:?}");
    let stale = server.ask("put", "/large.bin", &["-e", "x", "-O", "if-match,0x0102"]);
    assert!(stale.1.contains("4.12"), "{stale:?}");
    assert_eq!(server.ask("put", "/large.bin", &["-e", "now small"]).0, 0);
    assert_eq!(server.get("/large.bin"), "now small");
    assert_eq!(server.ask("delete", "/other.bin", &[]).0, 0);
    assert!(!folder.0.join("other.bin").exists());
    let peak = peak_kib(server.child.id());
    assert!(peak < 200 << 10, "{peak} KiB");
}

#[test]
fn a_tag_changes_with_the_contents_and_conditions_go_by_it() {
    let folder = Folder::new("tags", &[("a.txt", b"one")]);
    let server = Server::start(&["-w", folder.path()]);
    let first = tag(&server, "/a.txt");
    assert_eq!(tag(&server, "/a.txt"), first);
    let known = server.json("/a.txt", &["-O", &format!("etag,0x{first}")]);
    assert_eq!((&known["code"], &known["payload"]), (&"2.03".into(), &"".into()));
    let if_match = |tag: &str| format!("if-match,0x{tag}");
    // The same octets, written once more, are the same length at another time.
    assert_eq!(server.ask("put", "/a.txt", &["-e", "two", "-O", &if_match(&first)]).0, 0);
    let refused = server.ask("put", "/a.txt", &["-e", "six", "-O", &if_match(&first)]);
    assert!(refused.1.contains("4.12"), "{refused:?}");
    let second = tag(&server, "/a.txt");
    assert_ne!(second, first);
    fs::write(folder.0.join("a.txt"), "by another program").expect("ours");
    assert_ne!(tag(&server, "/a.txt"), second);
    let refused = server.ask("delete", "/a.txt", &["-O", &if_match(&second)]);
    assert!(refused.1.contains("4.12"), "{refused:?}");
    let newest = if_match(&tag(&server, "/a.txt"));
    assert_eq!(server.ask("delete", "/a.txt", &["-O", &newest]).0, 0);
}

#[test]
fn a_long_file_comes_whole_and_one_past_the_bound_is_refused() {
    let folder = Folder::new("bound", &[]);
    fs::create_dir_all(&folder.0).expect("a place for files");
    // Our own client takes no longer body.
    sparse(&folder.0.join("fits"), 1 << 20);
    sparse(&folder.0.join("not"), (4 << 20) + 1);
    let server = Server::start(&[folder.path()]);
    let uri = server.uri("coap+tcp", "/fits");
    assert_eq!(lowmesh(&["get", &uri]).stdout.len(), 1 << 20);
    assert!(server.ask("get", "/not", &[]).1.contains("5.01"));
}

#[test]
fn what_is_no_file_keeps_nobody_waiting_and_the_end_comes_at_once() {
    let folder = Folder::new("fifo", &[("a.txt", b"a")]);
    fifo(&folder.0.join("pipe"));
    let socket = folder.0.join("socket");
    let _bound = std::os::unix::net::UnixListener::bind(socket).expect("a short path");
    symlink("/dev/zero", folder.0.join("zero")).expect("a link");
    symlink("pipe", folder.0.join("to-pipe")).expect("a link");
    let mut server = Server::start(&["-w", folder.path()]);
    for path in ["/pipe", "/socket", "/zero", "/to-pipe"] {
        for verb in ["get", "put", "delete"] {
            let asked = server.ask(verb, path, &["-B", "5"]);
            assert_eq!(asked.0, 4, "{verb} {path}: {asked:?}");
        }
    }
    let names: Vec<_> = fs::read_dir(&folder.0).expect("it is there").collect();
    assert_eq!(names.len(), 5, "{names:?}");
    assert_eq!(server.get("/a.txt"), "a");
    server.signal("TERM");
    assert_eq!(server.ends_within(Duration::from_secs(4)), 0);
}

#[test]
fn a_hidden_file_is_not_served_through_a_link_and_loops_lead_nowhere() {
    let folder =
        Folder::new("links", &[(".secret", b"secret"), (".d/in", b"secret"), ("d/a", b"a")]);
    for (target, link) in [
        (".secret", "visible"),
        (".d", "folder"),
        ("d/../.secret", "around"),
        ("loop", "loop"),
        ("pong", "ping"),
        ("ping", "pong"),
        ("nowhere", "dangling"),
        ("../d/a", "d/up"),
        ("d", "way"),
    ] {
        symlink(target, folder.0.join(link)).expect("a link");
    }
    let server = Server::start(&["-w", folder.path()]);
    for path in
        ["/visible", "/folder/in", "/around", "/loop", "/loop/a", "/ping", "/dangling", "/.secret"]
    {
        for verb in ["get", "put", "delete"] {
            let asked = server.ask(verb, path, &[]);
            assert!(asked.1.contains("4.04"), "{verb} {path}: {asked:?}");
        }
    }
    assert_eq!(server.get("/way/a"), "a");
    // What a client sends need not be a URI's.
    for raw in ["..", ".", "", "a/b"] {
        let asked = server.ask("get", "/d", &["-O", &format!("uri-path,{raw}")]);
        assert_eq!(asked.0, 4, "{raw}: {asked:?}");
    }
    assert_eq!(fs::read(folder.0.join(".secret")).expect("it is there"), b"secret");
}

#[test]
fn a_link_to_a_file_inside_is_written_through_and_deleted_by_itself() {
    let folder = Folder::new("through", &[("d/a.txt", b"old")]);
    symlink("d/a.txt", folder.0.join("b.txt")).expect("a link");
    let server = Server::start(&["-w", folder.path()]);
    assert_eq!(server.ask("put", "/b.txt", &["-e", "new"]).0, 0);
    assert_eq!(fs::read(folder.0.join("d/a.txt")).expect("it is there"), b"new");
    assert_eq!(server.ask("delete", "/b.txt", &[]).0, 0);
    assert!(folder.0.join("d/a.txt").exists() && !folder.0.join("b.txt").is_symlink());
}

#[test]
fn a_file_keeps_its_rights_when_it_is_replaced() {
    let folder = Folder::new("rights", &[("private", b"old"), ("script", b"old")]);
    for (name, mode) in [("private", 0o600), ("script", 0o4754)] {
        let rights = fs::Permissions::from_mode(mode);
        fs::set_permissions(folder.0.join(name), rights).expect("ours");
    }
    let server = Server::start(&["-w", folder.path()]);
    for (name, mode) in [("private", 0o600), ("script", 0o754)] {
        assert_eq!(server.ask("put", &format!("/{name}"), &["-e", "new"]).0, 0);
        let about = fs::metadata(folder.0.join(name)).expect("it is there");
        assert_eq!(about.mode() & 0o7777, mode, "{name}");
    }
}

/// The names in a folder.
fn names(folder: &Folder) -> Vec<String> {
    let names = fs::read_dir(&folder.0).expect("it is there");
    let name = |entry: fs::DirEntry| entry.file_name().into_string().expect("text");
    let mut names: Vec<String> = names.map(|entry| name(entry.expect("readable"))).collect();
    names.sort();
    names
}

#[test]
fn without_room_the_old_file_stays_and_nothing_is_left_behind() {
    let folder = Folder::new("full", &[("a.txt", b"old")]);
    let mut limited = Command::new("sh");
    // A file past the limit of the process fails to be written as one past the end of a disk does.
    let script = "trap '' XFSZ; ulimit -f 8; exec \"$0\" \"$@\"";
    limited.args(["-c", script, env!("CARGO_BIN_EXE_lowmesh")]);
    limited.args(["serve", "--port", "0", "-a", "127.0.0.1", "-w", folder.path()]);
    let server = Server::spawn(limited);
    let long = "long ".repeat(10_000);
    let refused = server.ask("put", "/a.txt", &["-e", &long]);
    assert!(refused.1.contains("5.00") && refused.1.contains("no room"), "{refused:?}");
    assert_eq!(server.ask("put", "/b.txt", &["-e", &long]).0, 5);
    assert_eq!(server.get("/a.txt"), "old");
    assert_eq!(names(&folder), ["a.txt"]);
    assert_eq!(server.ask("put", "/a.txt", &["-e", "short"]).0, 0, "it goes on");
}

#[test]
fn what_a_crash_has_left_is_removed_at_the_next_start() {
    let folder = Folder::new("crash", &[("a.txt", b"a"), ("d/b.txt", b"b")]);
    for left in [".lowmesh-unfinished", ".lowmesh-unfinished-1-0", "d/.lowmesh-unfinished-9-9"] {
        fs::write(folder.0.join(left), "half").expect("ours");
    }
    fs::write(folder.0.join(".other"), "stays").expect("ours");
    // Another server writes this one.
    let mut written = fs::File::create(folder.0.join(".lowmesh-unfinished-2-0")).expect("ours");
    written.lock().expect("nobody else has it");
    written.write_all(b"half").expect("a disk");
    let reader = Server::start(&[folder.path()]);
    assert_eq!(names(&folder).len(), 6, "without -w a server changes nothing");
    drop(reader);
    let _server = Server::start(&["-w", folder.path()]);
    assert_eq!(names(&folder), [".lowmesh-unfinished-2-0", ".other", "a.txt", "d"]);
    assert_eq!(fs::read_dir(folder.0.join("d")).expect("it is there").count(), 1);
}

#[test]
fn the_list_of_many_files_is_bounded_filtered_and_kept_up_to_date() {
    let folder = Folder::new("many", &[("aaa.json", b"{}")]);
    for number in 0..3000 {
        fs::write(folder.0.join(format!("{number:04}.txt")), "").expect("a disk");
    }
    let server = Server::start(&["-w", folder.path()]);
    let links = |query: &str| {
        let uri = server.uri("coap+tcp", &format!("/.well-known/core{query}"));
        let stdout = lowmesh(&["get", &uri]).stdout;
        String::from_utf8(stdout).expect("text").split(',').map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(links("").len(), 1000);
    assert_eq!(links("?href=/000*").len(), 10);
    // What the server itself changes is known at once.
    assert_eq!(server.ask("delete", "/0001.txt", &[]).0, 0);
    assert_eq!(links("?href=/000*").len(), 9);
    assert_eq!(server.ask("put", "/0001.txt", &["-e", "four"]).0, 0);
    assert_eq!(links("?href=/0001*"), ["</0001.txt>;sz=\"4\";ct=0"]);
    // What others change is known after a while.
    fs::remove_file(folder.0.join("0002.txt")).expect("ours");
    std::thread::sleep(Duration::from_secs(3));
    assert_eq!(links("?href=/0002*"), [""]);
}

/// A group at the loopback interface, which every machine has.
#[cfg(target_os = "linux")]
const GROUP: &str = "224.0.1.201";

#[cfg(target_os = "linux")]
#[test]
fn files_respond_to_groups_only_if_the_server_belongs_to_one_and_are_written_by_permission() {
    let folder = Folder::new("of-a-group", &[("t.txt", b"20"), ("large.txt", &[b'x'; 5000])]);
    let serve = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lowmesh"));
        command.args(["serve", "--port", "0", "-a", "0.0.0.0", "--leisure", "50ms"]);
        command.args(args).arg(folder.path());
        Server::spawn(command)
    };
    // What the members of the group answer to a verb.
    let ask = |server: &Server, verb: &str, path: &str, args: &[&str]| {
        let uri = server.uri("coap", path).replace("0.0.0.0", GROUP);
        let ended = lowmesh(&[&[verb, &uri, "--interface", "lo", "-B", "1"], args].concat());
        let text = [ended.stdout, ended.stderr].concat();
        (ended.status.code(), String::from_utf8_lossy(&text).into_owned())
    };
    let content = || fs::read(folder.0.join("t.txt")).expect("it is there");
    let member = format!("{GROUP}%lo");

    let reading = serve(&["-w", "--group", &member]);
    let (code, text) = ask(&reading, "get", "/t.txt", &[]);
    assert!(code == Some(0) && text.starts_with("20"), "{code:?} {text}");
    let (code, text) = ask(&reading, "get", "/large.txt", &[]);
    assert!(code == Some(0) && text.contains("xxx"), "the first block: {code:?} {text}");
    // Errors, as of a path that is not there, are not sent to a group.
    assert_eq!(ask(&reading, "get", "/none.txt", &[]).0, Some(3));
    assert_eq!(ask(&reading, "put", "/t.txt", &["-e", "21"]).0, Some(3));
    assert_eq!(ask(&reading, "delete", "/t.txt", &[]).0, Some(3));
    assert_eq!(content(), b"20");
    let (code, text) = ask(&reading, "put", "/t.txt", &["-e", "21", "-O", "no-response,0"]);
    assert!(code == Some(4) && text.contains("4.05"), "{code:?} {text}");
    drop(reading);

    let writing = serve(&["-w", "--group", &member, "--group-writable"]);
    assert_eq!(ask(&writing, "put", "/t.txt", &["-e", "21"]).0, Some(0));
    assert_eq!(content(), b"21");
    assert_eq!(ask(&writing, "delete", "/t.txt", &[]).0, Some(0));
    assert!(!folder.0.join("t.txt").exists());
    drop(writing);

    let refused = lowmesh(&["serve", folder.path(), "--group-writable"]);
    assert_eq!(refused.status.code(), Some(2), "it needs --writable");
}
