//! Features together: {transport} x {plain, OSCORE, Group OSCORE} x {direct, proxy} x {short, long} x {once, observed} x
//! {the server restarts, it does not}.
//!
//! Each feature has tests of its own elsewhere. Here a client writes and reads, or observes, in each of the 288
//! combinations, and a server that restarts does so without a word: its sockets close, and its memory is gone.

use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use lowmesh_coap::resource::{Methods, Resource};
use lowmesh_coap::{Config, CongestionControl, ResponseTemplate};
use lowmesh_net::client::{Client, Observation, Request, Response};
use lowmesh_net::dtls::Keys;
use lowmesh_net::oscore::{Contexts, Plain, ToOne};
use lowmesh_net::proxy::{Access, Networks, Proxy, ProxyLimits};
use lowmesh_net::server::{Changes, Handler, Limits, Server};
use lowmesh_net::tls::{TlsClient, TlsServer};
use lowmesh_wire::coap::uri::Scheme;
use lowmesh_wire::coap::{Code, OptionNumber};
use tokio::task::{JoinHandle, JoinSet};

const AUTHORITY: &[u8] = include_bytes!("../tls/ca.pem");
const CHAIN: &[u8] = include_bytes!("../tls/server.pem");
const KEY: &[u8] = include_bytes!("../tls/server.key");
/// A body of several blocks, also over connections.
const LONG: usize = 5_000;
/// How long an observer may be without the newest state: Max-Age, and at most 15 s more (RFC 7641 s3.3.1).
const NEWEST_WITHIN: Duration = Duration::from_secs(30);
/// Requests until one is answered after the peer restarted: one is lost with the old session or connection.
const TRIES: usize = 3;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Security {
    Plain,
    Oscore,
    GroupOscore,
}

#[derive(Clone, Copy, Debug)]
struct Cell {
    scheme: Scheme,
    security: Security,
    proxy: bool,
    long: bool,
    observed: bool,
    restart: bool,
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pick = |chosen, one, other| if chosen { one } else { other };
        let path = pick(self.proxy, "by proxy", "direct");
        let length = pick(self.long, "long", "short");
        let kind = pick(self.observed, "observed", "once");
        let life = pick(self.restart, "restarts", "runs on");
        write!(f, "{}, {:?}, {path}, {length}, {kind}, {life}", self.scheme.name(), self.security)
    }
}

/// The folder of one cell, with the contexts of both ends.
struct Folder(PathBuf);

impl Folder {
    fn new(cell: Cell) -> Self {
        let name = cell.to_string().replace([' ', ','], "-");
        let name = format!("lowmesh-product-{}-{name}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).expect("a folder for temporary files");
        for (own, other) in [("client", "server"), ("server", "client")] {
            let pair = format!(
                "master_secret,ascii,0123456789abcdef\nsender_id,ascii,{own}\nrecipient_id,ascii,{other}\n"
            );
            std::fs::write(folder.join(own), pair).expect("a folder of ours");
            let group = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/group");
            let (from, to) =
                (group.join(format!("{own}.conf")), folder.join(format!("{own}.conf")));
            std::fs::copy(from, to).expect("the files of the group");
        }
        Self(folder)
    }
    /// The contexts of one end; a program that has crashed opens them again.
    fn contexts(&self, own: &str, security: Security) -> Option<Contexts> {
        match security {
            Security::Plain => None,
            Security::Oscore => Some(Contexts::open(&self.0.join(own)).expect("a context")),
            Security::GroupOscore => {
                let contexts = Contexts::default();
                contexts.add_group(&self.0.join(format!("{own}.conf"))).expect("a group");
                Some(contexts)
            }
        }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // The system clears its folder for temporary files if this fails.
        let _cleared = std::fs::remove_dir_all(&self.0);
    }
}

/// A program that serves at an address until it is dropped, which tells nobody.
struct Running {
    address: SocketAddr,
    changes: Changes,
    task: JoinHandle<std::io::Result<()>>,
}

impl Running {
    async fn crash(self) -> SocketAddr {
        self.task.abort();
        let ended = self.task.await;
        assert!(ended.is_err_and(|error| error.is_cancelled()), "the server ran until now");
        self.address
    }
}

/// Timers that give up within two seconds, so that a test does not wait for minutes.
fn quick() -> Config {
    let congestion = CongestionControl {
        ack_timeout: Duration::from_millis(300).into(),
        ..CongestionControl::default()
    };
    Config { congestion, max_retransmit: 2, ..Config::default() }
}

async fn listen(mut server: Server, scheme: Scheme, at: SocketAddr) -> Running {
    let address = match scheme {
        Scheme::Coap => server.listen_udp(at).expect("free"),
        Scheme::Coaps => {
            let keys = Keys::new().with(b"me", b"secret").expect("short");
            server.listen_dtls(at, keys, None).expect("free")
        }
        _ => {
            let tls = scheme.is_secure().then(|| TlsServer::new(CHAIN, KEY).expect("a chain"));
            server.listen_connections(at, scheme, tls).await.expect("free")
        }
    };
    let changes = server.changes();
    let task = tokio::spawn(server.run(std::future::pending()));
    Running { address, changes, task }
}

fn anywhere() -> SocketAddr {
    (Ipv4Addr::LOCALHOST, 0).into()
}

fn server() -> Server {
    Server::new(Limits { datagrams: quick(), ..Limits::default() }).expect("possible limits")
}

/// What the device measures or was told to do, which a restart does not change.
#[derive(Clone, Default)]
struct Memory(Arc<Mutex<Vec<u8>>>);

impl Memory {
    fn set(&self, state: &[u8]) {
        *self.0.lock().expect("nobody panics with it") = state.to_vec();
    }
    fn get(&self) -> Vec<u8> {
        self.0.lock().expect("nobody panics with it").clone()
    }
}

/// One combination with its programs.
struct World {
    cell: Cell,
    folder: Folder,
    memory: Memory,
    origin: Option<Running>,
    proxy: Option<Running>,
    client: Client,
}

impl World {
    async fn new(cell: Cell) -> Self {
        let folder = Folder::new(cell);
        let memory = Memory::default();
        let builder = Client::builder()
            .datagrams(quick())
            .key(b"me", b"secret")
            .trust(TlsClient::trusting(AUTHORITY).expect("an authority"))
            .patience(Duration::from_secs(15));
        let builder = match (cell.security, folder.contexts("client", cell.security)) {
            (Security::Oscore, Some(contexts)) => builder.protect(contexts),
            (_, Some(contexts)) => builder.protect_with_group(contexts, 0, ToOne::Answered),
            (_, None) => builder,
        };
        let client = builder.build().expect("possible settings");
        let proxy = if cell.proxy { Some(proxy(cell.scheme).await) } else { None };
        let mut world = Self { cell, folder, memory, origin: None, proxy, client };
        world.start(anywhere()).await;
        world
    }
    async fn start(&mut self, at: SocketAddr) {
        let mut server = server();
        if let Some(contexts) = self.folder.contexts("server", self.cell.security) {
            server.protect(contexts, Plain::Refused);
        }
        let memory = self.memory.clone();
        let state = Handler::new(move |request| {
            if request.message.code == Code::PUT {
                memory.set(request.payload());
                return ResponseTemplate::new(Code::CHANGED);
            }
            let mut response = ResponseTemplate::new(Code::CONTENT).with_payload(memory.get());
            response.options.insert_uint(OptionNumber::MAX_AGE, 1);
            response
        });
        server.insert("/state", Resource::new(Methods::GET | Methods::PUT, state).observable());
        self.origin = Some(listen(server, self.cell.scheme, at).await);
    }
    async fn restart(&mut self) {
        let origin = self.origin.take().expect("the server runs");
        let at = origin.crash().await;
        self.start(at).await;
    }
    fn uri(&self, of: &Running) -> String {
        let host = if self.cell.scheme.is_secure() { "localhost" } else { "127.0.0.1" };
        format!("{}://{host}:{}", self.cell.scheme.name(), of.address.port())
    }
    fn request(&self, method: Code) -> Request<'_> {
        let origin = self.origin.as_ref().expect("the server runs");
        let request = self.client.request(method, format!("{}/state", self.uri(origin)));
        match &self.proxy {
            Some(proxy) => request.via(self.uri(proxy)),
            None => request,
        }
    }
    /// A body that no other step has.
    fn body(&self, step: &str) -> Vec<u8> {
        let mut body = format!("{step} of {}", self.cell).into_bytes();
        body.resize(if self.cell.long { LONG } else { 12 }, b'.');
        body[..step.len()].copy_from_slice(step.as_bytes());
        body
    }

    async fn once(&mut self) -> Result<(), String> {
        self.write_and_read("first", 1).await?;
        if self.cell.restart {
            self.restart().await;
            self.write_and_read("second", TRIES).await?;
        }
        Ok(())
    }
    async fn write_and_read(&self, step: &str, tries: usize) -> Result<(), String> {
        let body = self.body(step);
        let mut tried = Vec::new();
        while tried.len() < tries {
            let written = self.request(Code::PUT).payload(body.clone()).send().await;
            match written.and_then(Response::ok) {
                Ok(_) => break,
                Err(error) => tried.push(format!("{step} PUT: {error}")),
            }
        }
        if tried.len() == tries {
            return Err(tried.join("; "));
        }
        if self.memory.get() != body {
            return Err(format!("{step}: the server has another body"));
        }
        let read = self.request(Code::GET).send().await.and_then(Response::ok);
        let read = read.map_err(|error| format!("{step} GET: {error}"))?;
        if read.payload() == body { Ok(()) } else { Err(format!("{step}: another body is read")) }
    }

    async fn observed(&mut self) -> Result<(), String> {
        self.memory.set(&self.body("first"));
        let observing = self.request(Code::GET).observe().await;
        let mut observation = observing.map_err(|error| format!("registration: {error}"))?;
        self.reaches("first", &mut observation).await?;
        for step in ["second", "third"] {
            self.change(step);
            self.reaches(step, &mut observation).await?;
        }
        if self.cell.restart {
            self.memory.set(&self.body("fourth"));
            self.restart().await;
            self.reaches("fourth", &mut observation).await?;
            self.change("fifth");
            self.reaches("fifth", &mut observation).await?;
        }
        observation.end().await;
        Ok(())
    }
    fn change(&self, step: &str) {
        self.memory.set(&self.body(step));
        self.origin.as_ref().expect("the server runs").changes.tell("/state");
    }
    /// Waits for a state; an observation that its connection has ended is begun again.
    async fn reaches(&self, step: &str, observation: &mut Observation) -> Result<(), String> {
        let mut seen = Vec::new();
        let reached = self.reached(step, observation, &mut seen);
        let reached = tokio::time::timeout(NEWEST_WITHIN, reached).await;
        reached.unwrap_or_else(|_| Err(format!("{step}: not seen, but {seen:?}")))
    }
    async fn reached(
        &self,
        step: &str,
        observation: &mut Observation,
        seen: &mut Vec<String>,
    ) -> Result<(), String> {
        let body = self.body(step);
        loop {
            match observation.next().await {
                Some(Ok(state)) if state.payload() == body => return Ok(()),
                Some(Ok(state)) => seen.push(state.text().chars().take(12).collect()),
                ended if self.cell.restart && !seen.iter().any(|one| one == "ended") => {
                    seen.push("ended".to_owned());
                    let cause = ended.map(|ended| ended.map(|_| ()));
                    let again = self.request(Code::GET).observe().await;
                    *observation = again.map_err(|error| format!("{step}: {cause:?}, {error}"))?;
                }
                ended => return Err(format!("{step}: {ended:?} after {seen:?}")),
            }
        }
    }
}

async fn proxy(scheme: Scheme) -> Running {
    let mut server = server();
    let allowed = vec!["127.0.0.0/8".parse().expect("a range")];
    let access =
        Access { targets: Networks { allowed, ..Networks::default() }, ..Access::default() };
    let tls = Some(TlsClient::trusting(AUTHORITY).expect("an authority"));
    let limits = ProxyLimits { access, tls, datagrams: quick(), ..ProxyLimits::default() };
    let proxy = Proxy::new(limits).expect("possible limits");
    proxy.with_key(b"me", b"secret").expect("short").serve(&mut server);
    listen(server, scheme, anywhere()).await
}

/// All combinations of a transport and a security, at once.
async fn all_of(scheme: Scheme, security: Security) {
    let mut running = JoinSet::new();
    for bits in 0_u8..16 {
        let is = |bit: u8| (bits >> bit) & 1 == 1;
        let (proxy, long, observed, restart) = (is(0), is(1), is(2), is(3));
        let cell = Cell { scheme, security, proxy, long, observed, restart };
        running.spawn(async move {
            let mut world = World::new(cell).await;
            let done = if observed { world.observed().await } else { world.once().await };
            done.err().map(|why| format!("{cell}: {why}"))
        });
    }
    let mut failed: Vec<String> = running.join_all().await.into_iter().flatten().collect();
    failed.sort();
    assert!(failed.is_empty(), "{} of 16:\n{}", failed.len(), failed.join("\n"));
}

macro_rules! product {
    ($($name:ident: $scheme:ident, $security:ident;)*) => {$(
        #[tokio::test]
        async fn $name() {
            all_of(Scheme::$scheme, Security::$security).await;
        }
    )*};
}

product! {
    coap_plain: Coap, Plain;
    coap_oscore: Coap, Oscore;
    coap_group_oscore: Coap, GroupOscore;
    coaps_plain: Coaps, Plain;
    coaps_oscore: Coaps, Oscore;
    coaps_group_oscore: Coaps, GroupOscore;
    coap_tcp_plain: CoapTcp, Plain;
    coap_tcp_oscore: CoapTcp, Oscore;
    coap_tcp_group_oscore: CoapTcp, GroupOscore;
    coaps_tcp_plain: CoapsTcp, Plain;
    coaps_tcp_oscore: CoapsTcp, Oscore;
    coaps_tcp_group_oscore: CoapsTcp, GroupOscore;
    coap_ws_plain: CoapWs, Plain;
    coap_ws_oscore: CoapWs, Oscore;
    coap_ws_group_oscore: CoapWs, GroupOscore;
    coaps_ws_plain: CoapsWs, Plain;
    coaps_ws_oscore: CoapsWs, Oscore;
    coaps_ws_group_oscore: CoapsWs, GroupOscore;
}
