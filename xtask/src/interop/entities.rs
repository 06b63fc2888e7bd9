//! Entities: a manager of ours whose members are servers of ours, libcoap and aiocoap, used by the clients of all three.
//!
//! ```text
//!   lowmesh groups | coap-client | aiocoap  ── /e/NAME ──►  lowmesh groups serve
//!                                                             ├── lowmesh serve      10
//!                                                             ├── coap-server        25
//!                                                             └── aiocoap            16
//! ```
//! Each client makes an entity of all members, one of that entity, and deletes them; then a member is killed.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result};

use super::Group;
use super::aiocoap::script;
use super::capture::Port;
use super::case::{Stage, Wants};
use super::libcoap::{client, server};
use super::peer::{Peer, base, two_free_ports};
use crate::process;

/// What the members say: the mean is none of them.
const VALUES: [&str; 3] = ["10", "25", "16"];
const AVERAGE: &str = "17";
/// The combined value of each operation.
const OPERATIONS: [(&str, &str); 3] = [("avg", AVERAGE), ("min", "10"), ("max", "25")];
/// What a member says later, and the mean then.
const CHANGED: &str = "40";
const AVERAGE_CHANGED: &str = "27";
/// SenML JSON: RFC 8428 s12.2.
const SENML_JSON: &str = "110";
/// JSON: RFC 7252 s12.3.
const JSON: &str = "50";
/// How long an observer is given for the second state.
const OBSERVED: Duration = Duration::from_secs(15);

/// What there is to try.
pub fn groups<'a>(stage: Stage<'a>, libcoap: bool, python: Option<&'a Path>) -> Vec<Group<'a>> {
    let Some(python) = python.filter(|_| libcoap) else { return Vec::new() };
    vec![Box::new(move || Entity::serve(stage, python)?.try_all())]
}

/// Who asks the manager.
#[derive(Clone, Copy, Debug)]
enum Client {
    Lowmesh,
    Libcoap,
    Aiocoap,
}

/// A manager and the members of its entities, which end with the value.
struct Entity<'a> {
    stage: Stage<'a>,
    python: &'a Path,
    /// The URIs of the members.
    members: [String; 3],
    /// The servers of ours, libcoap and aiocoap.
    servers: [Option<Peer>; 3],
    manager: u16,
    _manager: Peer,
    ports: Vec<u16>,
}

impl<'a> Entity<'a> {
    /// Starts all servers, and gives each member its value.
    fn serve(stage: Stage<'a>, python: &'a Path) -> Result<Self> {
        let ports = [two_free_ports()?, two_free_ports()?, two_free_ports()?, two_free_ports()?];
        let [ours, theirs, others, manager] = ports;
        let folder = stage.material.path("entity");
        fs::create_dir_all(&folder)?;
        fs::write(format!("{folder}/t.txt"), VALUES[0])?;
        let number = ours.to_string();
        let args = ["serve", &folder, "-w", "--address", "::1", "--port", &number];
        let lowmesh = Peer::start(process::command(stage.binary, &args), ours)?;
        let libcoap = Peer::start(server(theirs, &[]), theirs)?;
        let number = others.to_string();
        let aiocoap = process::command(python, &[&script("aiocoap_server.py"), &number]);
        let aiocoap = Peer::start_until(aiocoap, "ready")?;
        let number = manager.to_string();
        // aiocoap 0.4.17 returns no Echo outside of OSCORE.
        let args = ["groups", "serve", "--no-echo", "--address", "::1", "--port", &number];
        let serving = Peer::start_until(process::command(stage.binary, &args), "Ctrl-C")?;
        let members = [(ours, "/t.txt"), (theirs, "/t"), (others, "/reading")];
        let members = members.map(|(port, path)| format!("{}{path}", base("coap", port)));
        let entity = Self {
            stage,
            python,
            members,
            servers: [Some(lowmesh), Some(libcoap), Some(aiocoap)],
            manager,
            _manager: serving,
            ports: ports.to_vec(),
        };
        for (member, value) in entity.members.iter().zip(VALUES) {
            entity.put(member, value)?;
        }
        Ok(entity)
    }
    fn try_all(mut self) -> Result<Vec<Port>> {
        for client in [Client::Lowmesh, Client::Libcoap, Client::Aiocoap] {
            self.create_and_query(client)?;
            self.observe(client)?;
            self.nest_and_delete(client)?;
        }
        self.kill_one()?;
        Ok(Port::in_the_open(self.ports))
    }
    fn put(&self, uri: &str, value: &str) -> Result<()> {
        let args = ["put", uri, "-t", "text/plain", "-e", value];
        process::read(process::command(self.stage.binary, &args))
            .context("a member takes a value")?;
        Ok(())
    }
    fn base(&self) -> String {
        base("coap", self.manager)
    }
    fn try_one(&self, client: Client, what: &str, command: Command, says: &str) -> Result<()> {
        let title = format!("an entity of three stacks, used with {client:?}: {what}");
        self.stage.tally.run(&title, command, &Wants::Says(says))
    }

    /// A request of a client for an entity; the answer in SenML if `senml`.
    fn get(&self, client: Client, path: &str, senml: bool) -> Command {
        let uri = format!("{}{path}", self.base());
        match client {
            Client::Lowmesh => {
                let accept: &[&str] = if senml { &["-A", SENML_JSON] } else { &[] };
                process::command(self.stage.binary, &[&["get", &uri][..], accept].concat())
            }
            Client::Libcoap => {
                let accept: &[&str] = if senml { &["-A", SENML_JSON] } else { &[] };
                let args = [&["-m", "get", "-B", "20"][..], accept, &[&uri]].concat();
                process::command(self::client(), &args)
            }
            Client::Aiocoap => {
                let accept: &[&str] = if senml { &[SENML_JSON] } else { &[] };
                let (script, base) = (script("aiocoap_entity.py"), self.base());
                let args = [&[&*script, "get", &base, path][..], accept].concat();
                process::command(self.python, &args)
            }
        }
    }
    fn create(&self, client: Client, name: &str, members: &[&str]) -> Command {
        let (manager, uri) = (self.base(), format!("{}/e", self.base()));
        match client {
            Client::Lowmesh => {
                let args = ["groups", "create", name, "-m", &manager];
                process::command(self.stage.binary, &[&args[..], members].concat())
            }
            Client::Libcoap => {
                let profile = serde_json::json!({"name": name, "er": members}).to_string();
                let args = ["-m", "post", "-v", "6", "-t", JSON, "-e", &profile, "-B", "20", &uri];
                process::command(self::client(), &args)
            }
            Client::Aiocoap => {
                let script = script("aiocoap_entity.py");
                let args = [&script, "create", &manager, name];
                process::command(self.python, &[&args[..], members].concat())
            }
        }
    }
    fn delete(&self, client: Client, name: &str) -> Command {
        let (manager, uri) = (self.base(), format!("{}/e/{name}", self.base()));
        match client {
            Client::Lowmesh => {
                process::command(self.stage.binary, &["groups", "delete", name, "-m", &manager])
            }
            Client::Libcoap => {
                process::command(self::client(), &["-m", "delete", "-v", "6", "-B", "20", &uri])
            }
            Client::Aiocoap => {
                let script = script("aiocoap_entity.py");
                process::command(self.python, &[&script, "delete", &manager, name])
            }
        }
    }

    /// The entity of all members, and each operation on it.
    fn create_and_query(&self, client: Client) -> Result<()> {
        let members: Vec<&str> = self.members.iter().map(String::as_str).collect();
        let name = entity(client);
        let created = match client {
            Client::Lowmesh => "member",
            Client::Libcoap => "2.01",
            Client::Aiocoap => "2.01 Created e/",
        };
        self.try_one(client, "create", self.create(client, name, &members), created)?;
        for (operation, value) in OPERATIONS {
            let path = format!("/e/{name}?eo={operation}");
            self.try_one(client, operation, self.get(client, &path, false), value)?;
        }
        let path = format!("/e/{name}?eo=lst");
        for value in VALUES {
            let what = format!("lst has {value}");
            self.try_one(client, &what, self.get(client, &path, false), value)?;
        }
        let path = format!("/e/{name}?eo=lst");
        self.try_one(client, "SenML", self.get(client, &path, true), "\"v\":16")?;
        for enr in ["1", "2", "3", "all"] {
            let path = format!("/e/{name}?eo=max&enr={enr}");
            // One or two answers may be any; three have the greatest among them.
            let says = if matches!(enr, "3" | "all") { VALUES[1] } else { "" };
            self.try_one(client, &format!("enr={enr}"), self.get(client, &path, false), says)?;
        }
        let path = format!("/e/{name}?eo=max&enr=4");
        let refused = self.get(client, &path, false);
        self.refused(client, "enr=4 is refused", refused)
    }
    /// An answer with an error: ours ends with its exit code, the others write it.
    fn refused(&self, client: Client, what: &str, command: Command) -> Result<()> {
        let title = format!("an entity of three stacks, used with {client:?}: {what}");
        let wants = match client {
            Client::Lowmesh => Wants::Ends(4, "4.00"),
            Client::Libcoap => Wants::Warns("4.00"),
            Client::Aiocoap => Wants::Says("4.00"),
        };
        self.stage.tally.run(&title, command, &wants)
    }
    /// The mean, and the mean after a member has changed.
    fn observe(&self, client: Client) -> Result<()> {
        let path = format!("/e/{}?eo=avg", entity(client));
        let uri = format!("{}{path}", self.base());
        let command = match client {
            Client::Lowmesh => process::command(self.stage.binary, &["observe", &uri]),
            Client::Libcoap => {
                process::command(self::client(), &["-m", "get", "-s", "30", "-w", &uri])
            }
            Client::Aiocoap => {
                let (script, base) = (script("aiocoap_entity.py"), self.base());
                process::command(self.python, &[&script, "observe", &base, &path, "9"])
            }
        };
        let seen = self.watch(command);
        self.put(&self.members[0], VALUES[0])?;
        let title = format!("an entity of three stacks, used with {client:?}: observe");
        self.stage.tally.note(&title, seen.map_err(|error| format!("{error:#}")));
        Ok(())
    }
    fn watch(&self, command: Command) -> Result<()> {
        let (_observer, lines) = Peer::listen(command)?;
        let wait = |wanted: &str| {
            let clock = process::Stopwatch::start();
            loop {
                let left = OBSERVED.saturating_sub(clock.elapsed());
                let line = lines.recv_timeout(left).with_context(|| format!("no {wanted}"))?;
                if line.contains(wanted) {
                    return anyhow::Ok(());
                }
            }
        };
        wait(AVERAGE)?;
        self.put(&self.members[0], CHANGED)?;
        wait(AVERAGE_CHANGED)
    }
    /// An entity with an entity as its member; then both are deleted.
    fn nest_and_delete(&self, client: Client) -> Result<()> {
        let (name, outer) = (entity(client), format!("outer-{}", entity(client)));
        let inner = format!("/e/{name}?eo=max");
        let nested = self.create(client, &outer, &[&inner, &self.members[0]]);
        self.try_one(client, "nest", nested, "")?;
        let path = format!("/e/{outer}?eo=min");
        self.try_one(client, "least of the nested", self.get(client, &path, false), VALUES[0])?;
        let path = format!("/e/{outer}?eo=max");
        self.try_one(client, "greatest of the nested", self.get(client, &path, false), VALUES[1])?;
        for name in [&*outer, name] {
            let says = match client {
                Client::Lowmesh => "",
                Client::Libcoap | Client::Aiocoap => "2.02",
            };
            self.try_one(client, &format!("delete {name}"), self.delete(client, name), says)?;
        }
        let gone = self.get(client, &format!("/e/{name}"), false);
        let title = format!("an entity of three stacks, used with {client:?}: it is gone");
        let wants = match client {
            Client::Lowmesh => Wants::Ends(4, "4.04"),
            Client::Libcoap => Wants::Warns("4.04"),
            Client::Aiocoap => Wants::Says("4.04"),
        };
        self.stage.tally.run(&title, gone, &wants)
    }
    /// A member is killed while the entity is in use: the answer comes, and says who has failed.
    fn kill_one(&mut self) -> Result<()> {
        let members: Vec<&str> = self.members.iter().map(String::as_str).collect();
        for (killed, stack) in ["lowmesh", "libcoap", "aiocoap"].into_iter().enumerate() {
            if killed == 0 {
                let created = self.create(Client::Lowmesh, "falling", &members);
                self.try_one(Client::Lowmesh, "create", created, "member")?;
            }
            if killed == members.len() - 1 {
                break;
            }
            drop(self.servers[killed].take());
            let path = "/e/falling?eo=lst&deadline=3000";
            for client in [Client::Lowmesh, Client::Libcoap, Client::Aiocoap] {
                let what = format!("{stack}'s member killed, the others answer");
                let left = VALUES[killed + 1];
                self.try_one(client, &what, self.get(client, path, false), left)?;
                let what = format!("{stack}'s member killed, it shows as failed");
                self.try_one(client, &what, self.get(client, path, true), "/reason")?;
            }
        }
        let args = ["groups", "query", "falling", "-m", &self.base(), "--deadline", "3s"];
        let query = process::command(self.stage.binary, &args);
        let title = "an entity of three stacks: two of three members have failed";
        self.stage.tally.run(title, query, &Wants::Ends(7, "2 of 3 members failed"))
    }
}

/// What each client calls its entity.
fn entity(client: Client) -> &'static str {
    match client {
        Client::Lowmesh => "ours",
        Client::Libcoap => "libcoap",
        Client::Aiocoap => "aiocoap",
    }
}
