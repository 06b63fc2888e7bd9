//! An entity with multicast whose members are folders: `lowmesh serve DIR --mc` on two hosts, and the manager on a third.
//!
//! A group has one port, so each member has a host of its own: a network namespace behind one bridge. That takes root and
//! the command `ip`.

use std::fs;

use anyhow::Result;

use super::Group;
use super::capture::Port;
use super::case::{Stage, Wants};
use super::members::Link;
use super::peer::Peer;

/// The members, and what each serves.
const MEMBERS: [(&str, &str); 2] = [("kitchen", "20"), ("hall", "23")];
const MANAGER: &str = "fd00:77::3";

/// What there is to try.
pub fn groups(stage: Stage<'_>) -> Vec<Group<'_>> {
    vec![Box::new(move || ask(&stage))]
}

fn ask(stage: &Stage<'_>) -> Result<Vec<Port>> {
    let Stage { binary, material, tally } = *stage;
    let link = match Link::lay("folders", &[MEMBERS[0].0, MEMBERS[1].0, "manager"]) {
        Ok(link) => link,
        Err(why) => {
            tally.skip("folders", &format!("network namespaces need root and ip: {why:#}"));
            return Ok(Vec::new());
        }
    };
    let mut members = Vec::new();
    for (host, value) in MEMBERS {
        let folder = material.path(host);
        fs::create_dir_all(&folder)?;
        fs::write(format!("{folder}/t.txt"), value)?;
        let mut args = vec!["serve", &folder, "-w", "--mc", "--leisure", "500ms"];
        // One of the two lets groups write.
        if host == MEMBERS[0].0 {
            args.push("--group-writable");
        }
        members.push(Peer::start_until(link.on(host, binary, &args), "Ctrl-C")?);
    }
    let args = ["groups", "serve", "-a", MANAGER, "--open", "--interface", "eth0"];
    let _manager = Peer::start_until(link.on("manager", binary, &args), "Ctrl-C")?;
    let groups = |verb: &[&str]| {
        let manager = format!("[{MANAGER}]");
        link.on("manager", binary, &[&["groups"][..], verb, &["-m", &manager]].concat())
    };
    let uris = [1, 2].map(|number| format!("coap://[fd00:77::{number}]/t.txt"));
    let create = ["create", "house", &uris[0], &uris[1], "--ect", "multicast", "--scope", "5"];
    tally.run("folders join the group of an entity", groups(&create), &Wants::Says("joined"))?;
    let mean = groups(&["query", "house", "--eo", "avg", "--enr", "2", "--deadline", "5s"]);
    tally.run("folders respond to the group of an entity", mean, &Wants::Says("21.5"))?;
    let put = groups(&["query", "house", "--put", "30", "--deadline", "3s"]);
    let partial = Wants::Ends(7, "1 of 2 members failed");
    tally.run("one folder lets groups write, the other stays silent", put, &partial)?;
    let list = groups(&["query", "house", "--eo", "avg", "--enr", "2", "--deadline", "5s"]);
    tally.run("the folder that lets groups write has changed", list, &Wants::Says("26.5"))?;
    let delete = groups(&["delete", "house"]);
    tally.run("folders leave the group of an entity", delete, &Wants::Says("gone"))?;
    drop(members);
    Ok(Vec::new())
}
