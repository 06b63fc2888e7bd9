//! Groups: our server, libcoap's and aiocoap's are members of the same groups, each asked by each of the three clients.
//!
//! A group has one port, so each member has a host of its own: a network namespace behind one bridge. That takes root and
//! the command `ip`.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::Result;

use super::Group;
use super::aiocoap::script;
use super::capture::Port;
use super::case::{Stage, Wants};
use super::libcoap::{PLAIN, client};
use super::peer::Peer;
use crate::process;

/// The group of all members, and one of our server alone.
const ALL: &str = "ff35::30:1";
const OURS: &str = "ff35::30:2";
/// An IPv4 group of our server and aiocoap's; libcoap's joins one group only.
const ALL_V4: &str = "224.0.1.200";
/// A group that our server joins when a client says so, and its address as the payload of libcoap's client.
const JOINED: &str = "ff1e::89:1";
const JOINED_OCTETS: &str = "%ff%1e%00%00%00%00%00%00%00%00%00%00%00%89%00%01";
/// Over how long our server spreads its answers, and how long clients wait for those of all members.
const LEISURE_S: &str = "1";
const WAIT_S: &str = "8";
const CASE_MAX: Duration = Duration::from_secs(30);

/// What there is to try.
pub fn groups<'a>(stage: Stage<'a>, libcoap: bool, python: Option<&'a Path>) -> Vec<Group<'a>> {
    let Some(python) = python.filter(|_| libcoap) else { return Vec::new() };
    vec![Box::new(move || ask(&stage, python))]
}

/// Hosts on one link, which end with the value.
pub(super) struct Link {
    prefix: String,
    hosts: Vec<&'static str>,
}

impl Link {
    /// Lays a link of a name between hosts; number N has the addresses fd00:77::N and 10.77.0.N.
    pub(super) fn lay(name: &str, hosts: &[&'static str]) -> Result<Self> {
        let prefix = format!("lowmesh{}{name}", std::process::id());
        let link = Self { prefix, hosts: hosts.to_vec() };
        let hub = link.name("hub");
        ip(&["netns", "add", &hub])?;
        let in_hub = |args: &[&str]| ip(&[&["-n", &hub][..], args].concat());
        in_hub(&["link", "add", "bridge", "type", "bridge", "mcast_snooping", "0"])?;
        in_hub(&["link", "set", "bridge", "up"])?;
        for (number, host) in (1..).zip(hosts) {
            let name = link.name(host);
            ip(&["netns", "add", &name])?;
            in_hub(&["link", "add", host, "type", "veth", "peer", "name", "eth0", "netns", &name])?;
            in_hub(&["link", "set", host, "master", "bridge", "up"])?;
            let at = |args: &[&str]| ip(&[&["-n", &name][..], args].concat());
            at(&["link", "set", "lo", "up"])?;
            at(&["addr", "add", &format!("fd00:77::{number}/64"), "dev", "eth0", "nodad"])?;
            at(&["addr", "add", &format!("10.77.0.{number}/24"), "dev", "eth0"])?;
            at(&["link", "set", "eth0", "up"])?;
            at(&["route", "add", "224.0.0.0/4", "dev", "eth0"])?;
        }
        Ok(link)
    }
    fn name(&self, host: &str) -> String {
        format!("{}{host}", self.prefix)
    }
    /// A program on a host.
    pub(super) fn on(&self, host: &str, program: impl AsRef<Path>, args: &[&str]) -> Command {
        let program = program.as_ref().to_string_lossy().into_owned();
        let name = self.name(host);
        process::command("ip", &[&["netns", "exec", &name, &program][..], args].concat())
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        for host in self.hosts.iter().chain(&["hub"]) {
            // One that could not be made is not there.
            _ = ip(&["netns", "del", &self.name(host)]);
        }
    }
}

fn ip(args: &[&str]) -> Result<()> {
    process::execute(process::command("ip", args))
}

fn ask(stage: &Stage<'_>, python: &Path) -> Result<Vec<Port>> {
    let Stage { binary, tally, .. } = *stage;
    let link = match Link::lay("members", &["ours", "libcoap", "aiocoap", "asker"]) {
        Ok(link) => link,
        Err(why) => {
            tally.skip("groups", &format!("network namespaces need root and ip: {why:#}"));
            return Ok(Vec::new());
        }
    };
    let serve = ["serve", "--demo", "--mc", "--leisure", LEISURE_S, "--group", ALL];
    let more = ["--group", OURS, "--group", &format!("{ALL_V4}%eth0")];
    let ours = link.on("ours", binary, &[&serve[..], &more].concat());
    let _ours = Peer::start_until(ours, "Ctrl-C")?;
    let server = format!("coap-server-{PLAIN}");
    let args = ["-A", "::", "-p", "5683", "-g", ALL, "-G", "eth0", "-v", "7"];
    let _libcoap = Peer::start_until(link.on("libcoap", server, &args), "added mcast group")?;
    let group = script("aiocoap_group.py");
    let args = [&group[..], "serve", ALL, ALL_V4];
    let _aiocoap = Peer::start_until(link.on("aiocoap", python, &args), "ready")?;

    let links = |group: &str| format!("coap://{group}/.well-known/core");
    let everyone = ["/gp/lights/demo", "rt=\"ticks\"", "aiocoap"];
    let v6 = links(&format!("[{ALL}%25eth0]"));
    let mine = link.on("asker", binary, &["get", &v6, "-B", WAIT_S, "--interface", "eth0"]);
    all_answer(stage, "lowmesh asks a group of three stacks", mine, &everyone)?;
    let v4 = links(ALL_V4);
    let mine = link.on("asker", binary, &["get", &v4, "-B", WAIT_S, "--interface", "eth0"]);
    all_answer(stage, "lowmesh asks an IPv4 group", mine, &[everyone[0], everyone[2]])?;
    let theirs = [&group[..], "get", &links(&format!("[{OURS}%eth0]"))];
    let theirs = link.on("asker", python, &theirs);
    all_answer(stage, "aiocoap asks a group of ours", theirs, &everyone[..1])?;

    let discover = ["discover", &format!("[{ALL}%eth0]"), "rt=g.*", "-B", "4"];
    let discover = link.on("asker", binary, &discover);
    tally.run("groups are discovered by rt=g.*", discover, &Wants::Says("g.light"))?;
    let mc = |query: &str| format!("coap://[fd00:77::1]/mc{query}");
    let join = ["-m", "post", "-e", JOINED_OCTETS, &mc("?act=add")];
    let join = link.on("asker", client(), &join);
    tally.run("libcoap makes lowmesh join a group", join, &Wants::Says(""))?;
    let list = link.on("asker", client(), &["-m", "get", &mc("")]);
    tally.run("libcoap lists the groups of lowmesh", list, &Wants::Says(JOINED))?;
    let joined = format!("coap://[{JOINED}%25eth0]/gp/lights/demo");
    let asked = link.on("asker", binary, &["get", &joined, "-B", "3"]);
    tally.run("the group that was joined answers", asked, &Wants::Says("off"))?;
    Ok(Vec::new())
}

/// Runs a client, which has to show the answers of all these members.
fn all_answer(stage: &Stage<'_>, title: &str, command: Command, members: &[&str]) -> Result<()> {
    let line = process::line(&command);
    let (output, _in_time) = process::watch(command, CASE_MAX)?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let silent: Vec<_> = members.iter().filter(|one| !text.contains(**one)).collect();
    let verdict = if silent.is_empty() {
        Ok(())
    } else {
        let errors = String::from_utf8_lossy(&output.stderr);
        Err(format!("no answer with {silent:?}:\n{text}{errors}\n    {line}"))
    };
    stage.tally.note(title, verdict);
    Ok(())
}
