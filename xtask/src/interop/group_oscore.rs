//! Group OSCORE with aiocoap's `SimpleGroupContext`: its server asked by our client, and its client at our server, in group
//! mode and in pairwise mode.
//!
//! aiocoap signs an empty `sign_protected`, so the files say so too. It has no group over multicast with OSCORE: all requests
//! go to one server.

use std::fs;
use std::path::Path;

use anyhow::Result;

use super::Group;
use super::aiocoap::script;
use super::capture::Port;
use super::case::{Stage, Wants};
use super::peer::{HOST, Peer, two_free_ports};
use crate::process;

/// The members of each group: ours or theirs asks, and the other answers; the last one is there to be another.
const MEMBERS: [&str; 3] = ["asker", "server", "other"];

/// What there is to try.
pub fn groups<'a>(stage: Stage<'a>, python: Option<&'a Path>) -> Vec<Group<'a>> {
    let Some(python) = python else { return Vec::new() };
    vec![Box::new(move || ask(&stage, python)), Box::new(move || answer(&stage, python))]
}

/// Makes the files of a group; those of the asker and of the server.
fn keys(stage: &Stage<'_>, name: &str) -> Result<[String; 2]> {
    let path = stage.material.path(name);
    let members = MEMBERS.iter().flat_map(|member| ["--member", member]);
    let args: Vec<&str> = ["keygen", "group", &path].into_iter().chain(members).collect();
    process::execute(process::command(stage.binary, &args))?;
    let files = [MEMBERS[0], MEMBERS[1]].map(|member| format!("{path}-{member}.conf"));
    for file in &files {
        let text = fs::read_to_string(file)? + "sign_protected,bool,true\n";
        fs::write(file, text)?;
    }
    Ok(files)
}

/// Our client, their server.
fn ask(stage: &Stage<'_>, python: &Path) -> Result<Vec<Port>> {
    let Stage { binary, material, tally } = *stage;
    let [asker, server] = keys(stage, "group-of-theirs")?;
    let port = two_free_ports()?;
    let theirs = script("aiocoap_group_oscore.py");
    let args = [&theirs[..], "serve", &port.to_string(), &server];
    let _server = Peer::start_until(process::command(python, &args), "ready")?;
    let (hello, body, count) = (
        format!("coap://{HOST}:{port}/hello"),
        format!("coap://{HOST}:{port}/body"),
        format!("coap://{HOST}:{port}/count"),
    );
    let long = material.path("body");
    for (mode, extra) in
        [("group", &["--group-mode"][..]), ("pairwise", &["--to-member", MEMBERS[1]])]
    {
        let ask = |what: &str, args: &[&str], wants: &Wants<'_>| {
            let title = format!("lowmesh asks aiocoap with Group OSCORE in {mode} mode: {what}");
            let protected = ["--group-oscore", &asker, "-B", "20"];
            tally.ask(&title, binary, &[args, &protected, extra].concat(), wants)
        };
        ask("get", &["get", &hello], &Wants::Octets(b"hello from aiocoap"))?;
        ask("long body up", &["put", &body, "-f", &long], &Wants::Octets(b"20000"))?;
        ask("long body down", &["get", &body], &Wants::Octets(&material.body))?;
        ask("observe", &["observe", &count, "--count", "3"], &Wants::Lines(3))?;
    }
    let wrong = ["get", &hello, "--group-oscore", &asker, "--to-member", MEMBERS[2]];
    let title = "lowmesh asks aiocoap with Group OSCORE for another member";
    tally.ask(title, binary, &wrong, &Wants::Ends(6, "hint: "))?;
    // tshark knows none of the keys.
    Ok(Vec::new())
}

/// Their client, our server.
fn answer(stage: &Stage<'_>, python: &Path) -> Result<Vec<Port>> {
    let Stage { binary, material, tally } = *stage;
    let theirs = script("aiocoap_group_oscore.py");
    let long = material.path("body");
    for responses in ["pairwise", "group"] {
        let [asker, server] = keys(stage, &format!("group-of-ours-{responses}"))?;
        let text = fs::read_to_string(&server)? + &format!("responses,text,{responses}\n");
        fs::write(&server, text)?;
        let port = two_free_ports()?;
        let number = port.to_string();
        let args = ["serve", "--demo", "--address", "::1", "--port", &number];
        let mut ours = process::command(binary, &args);
        ours.args(["--group-oscore", &server]);
        let _server = Peer::start(ours, port)?;
        let uri = |path: &str| format!("coap://{HOST}:{port}{path}");
        let (hello, update) = (uri("/hello"), uri("/large-update"));
        for (what, args, wants) in [
            ("in group mode", &["get", &asker, &hello][..], "2.05 Content hello world"),
            ("in pairwise mode", &["get", &asker, &hello, MEMBERS[1]], "2.05 Content hello world"),
            ("a long body up", &["put", &asker, &update, &long], "2.04 Changed"),
        ] {
            // aiocoap 0.4.17 cannot go on with a body after a response in group mode: its context of the sender protects
            // nothing.
            if responses == "group" && args[0] == "put" {
                continue;
            }
            let title =
                format!("aiocoap asks lowmesh with Group OSCORE, responses {responses}: {what}");
            tally.ask(&title, python, &[&[&theirs[..]], args].concat(), &Wants::Says(wants))?;
        }
    }
    Ok(Vec::new())
}
