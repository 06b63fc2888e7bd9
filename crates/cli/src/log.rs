//! `--log` of `lowmesh serve` and `lowmesh proxy`: a line for each request that is answered.
//!
//! ```text
//!   server's tasks ── try_send ──► at most LINES_MAX lines ──► writer's thread ──► stderr, or a file
//! ```
//! A slow disk or reader keeps no client waiting: lines without room are dropped, counted and reported.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::time::{Duration, SystemTime};

use lowmesh_coap::blockwise::Block;
use lowmesh_net::server::{Observation, RequestLog, Served};
use lowmesh_wire::coap::Code;
use tokio::sync::oneshot;

use crate::body::plain;
use crate::console::say;
use crate::failure::Failure;

/// Lines that wait for the writer; ours, some 200 octets each.
const LINES_MAX: usize = 4096;
/// The value of `--log` without a file.
const STDERR: &str = "-";
/// How long the server waits for the last lines when it ends; ours.
const LAST_LINES: Duration = Duration::from_secs(1);

/// The log of requests.
#[derive(Debug, clap::Args)]
#[group(id = "request_log")]
pub struct Args {
    /// Write a line for each request to stderr, or append it to FILE: time, client, scheme, method, path, code, lengths of
    /// both bodies, duration, blocks
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = STDERR)]
    log: Option<PathBuf>,
    /// Write each line of the log as a JSON object
    #[arg(long, requires = "log")]
    json: bool,
}

/// A log and its writer.
pub struct Log {
    lines: SyncSender<String>,
    lost: Arc<AtomicU64>,
    json: bool,
    /// Resolves when nobody reads the lines any more.
    unread: oneshot::Receiver<()>,
    /// Receives when all lines are written.
    done: Receiver<()>,
}

impl Args {
    /// Opens the log, if one is wanted.
    pub fn open(&self) -> Result<Option<Log>, Failure> {
        Ok(match &self.log {
            None => None,
            Some(path) if path.as_os_str() == STDERR => {
                Some(Log::to(io::stderr(), "stderr".to_owned(), self.json))
            }
            Some(path) => Some(Log::to(append(path)?, path.display().to_string(), self.json)),
        })
    }
}

fn append(path: &Path) -> Result<File, Failure> {
    let file = OpenOptions::new().append(true).create(true).open(path);
    file.map_err(|error| {
        let message = format!("cannot write {}: {error}", path.display());
        Failure::usage(message, "--log=FILE takes a file in an existing folder")
    })
}

impl Log {
    fn to(target: impl Write + Send + 'static, name: String, json: bool) -> Self {
        let (lines, written) = sync_channel(LINES_MAX);
        let (lost, (tell, unread)) = (Arc::new(AtomicU64::new(0)), oneshot::channel());
        let (finish, done) = sync_channel(1);
        let counted = lost.clone();
        std::thread::spawn(move || {
            write(target, &name, &written, &counted, tell);
            // Nobody waits any more when that takes too long.
            let _late = finish.send(());
        });
        Self { lines, lost, json, unread, done }
    }
    /// The callback that a server calls for each request.
    pub fn requests(&self) -> RequestLog {
        let (lines, lost, json) = (self.lines.clone(), self.lost.clone(), self.json);
        RequestLog::new(move |served| {
            let line = if json { object(served, &now()) } else { line(served, &now()) };
            if let Err(TrySendError::Full(_)) = lines.try_send(line) {
                lost.fetch_add(1, Ordering::Relaxed);
            }
        })
    }
    /// Waits until nobody reads the log any more, as after `| head`.
    pub async fn unread(&mut self) {
        if (&mut self.unread).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
    /// Waits a moment for the last lines. The server has ended, so no more come.
    pub fn close(self) {
        drop(self.lines);
        let _late = self.done.recv_timeout(LAST_LINES);
    }
}

/// Writes lines until no more come, or nobody reads them.
fn write(
    mut target: impl Write,
    name: &str,
    lines: &Receiver<String>,
    lost: &AtomicU64,
    unread: oneshot::Sender<()>,
) {
    let mut failed = false;
    while let Ok(line) = lines.recv() {
        let missing = lost.swap(0, Ordering::Relaxed);
        if missing > 0 {
            say!("{missing} requests are missing from the log: {name} is too slow");
        }
        match target.write_all(line.as_bytes()) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                // The server may have ended already.
                let _ended = unread.send(());
                return;
            }
            // The next line may fit again; one message for all failures is enough.
            Err(error) if !failed => {
                failed = true;
                say!("cannot write the log {name}: {error}");
            }
            Err(_) => {}
            Ok(()) => failed = false,
        }
    }
}

/// The time of day, UTC.
#[allow(clippy::disallowed_methods, reason = "a line says when it was written")]
fn now() -> String {
    humantime::format_rfc3339_millis(SystemTime::now()).to_string()
}

/// A method by its name, an answer by its number; of a handshake nothing.
fn method(code: Code) -> String {
    if code == Code::EMPTY {
        return "-".to_owned();
    }
    code.name().map_or_else(|| code.to_string(), str::to_owned)
}

const fn observation(served: &Served) -> Option<&'static str> {
    match served.observation {
        None => None,
        Some(Observation::Registered) => Some("observe"),
        Some(Observation::Deregistered) => Some("deregister"),
    }
}

/// Number, more flag and size of a block, as RFC 7959 s3 writes them. A BERT block has a multiple of 1024 octets
/// (RFC 8323 s6).
fn block(name: &str, block: Option<Block>) -> String {
    let Some(Block { number, more, exponent }) = block else { return String::new() };
    let bert = if exponent.is_bert() { "+" } else { "" };
    format!(" {name}={number}/{}/{}{bert}", u8::from(more), exponent.size())
}

fn block_object(block: Option<Block>) -> serde_json::Value {
    let Some(Block { number, more, exponent }) = block else { return serde_json::Value::Null };
    serde_json::json!({
        "number": number,
        "more": more,
        "size": exponent.size(),
        "bert": exponent.is_bert(),
    })
}

/// Fields separated by blanks. The path, which a peer chooses, is encoded without blanks. What a peer says in the last
/// field, `refused`, is escaped.
fn line(served: &Served, time: &str) -> String {
    let Served { peer, scheme, path, request_len, response_len, .. } = served;
    let (scheme, method) = (scheme.name(), method(served.method));
    let code = served.code.map_or_else(|| "-".to_owned(), |code| code.to_string());
    let ms = served.took.as_secs_f64() * 1000.0;
    let blocks = block("block1", served.block1) + &block("block2", served.block2);
    let mark = observation(served).map(|mark| format!(" {mark}")).unwrap_or_default();
    let identity =
        served.identity.as_deref().map(|one| format!(" id={}", one.replace(' ', "\\x20")));
    let refused = served
        .refused
        .as_deref()
        .map(|why| format!(" refused: {}", plain(why.as_bytes()).replace('\n', " ")));
    let last = identity.unwrap_or_default() + &refused.unwrap_or_default();
    format!(
        "{time} {peer} {scheme} {method} {path} {code} in={request_len} out={response_len} ms={ms:.3}{blocks}{mark}{last}\n"
    )
}

fn object(served: &Served, time: &str) -> String {
    let object = serde_json::json!({
        "schema": 1,
        "time": time,
        "peer": served.peer.to_string(),
        "scheme": served.scheme.name(),
        "method": method(served.method),
        "path": served.path,
        "code": served.code.map(|code| code.to_string()),
        "request_octets": served.request_len,
        "response_octets": served.response_len,
        "ms": served.took.as_secs_f64() * 1000.0,
        "block1": block_object(served.block1),
        "block2": block_object(served.block2),
        "observation": observation(served),
        "identity": served.identity,
        "refused": served.refused,
    });
    format!("{object}\n")
}

#[cfg(test)]
mod tests {
    use lowmesh_coap::blockwise::Exponent;
    use lowmesh_net::peer::Peer;
    use lowmesh_wire::coap::uri::Scheme;

    use super::*;

    fn served() -> Served {
        Served {
            peer: Peer::new(([192, 0, 2, 1], 40_000).into(), None),
            scheme: Scheme::CoapTcp,
            method: Code::GET,
            path: "/a?b".to_owned(),
            request_len: 0,
            code: Some(Code::CONTENT),
            response_len: 11,
            took: Duration::from_micros(1500),
            block1: None,
            block2: None,
            observation: Some(Observation::Registered),
            identity: None,
            refused: None,
        }
    }

    #[test]
    fn a_line_and_an_object_say_the_same() {
        let (time, mut served) = ("2026-01-02T03:04:05.678Z", served());
        assert_eq!(
            line(&served, time),
            "2026-01-02T03:04:05.678Z 192.0.2.1:40000 coap+tcp GET /a?b 2.05 in=0 out=11 ms=1.500 observe\n"
        );
        let object: serde_json::Value =
            serde_json::from_str(&object(&served, time)).expect("an object");
        assert_eq!((&object["code"], &object["ms"]), (&"2.05".into(), &1.5.into()));
        assert_eq!(object["observation"], "observe");
        (served.code, served.observation) = (None, None);
        let at = |number, more, exponent| Some(Block { number, more, exponent });
        (served.block1, served.block2) = (at(2, false, Exponent::MAX), at(0, true, Exponent::BERT));
        let line_of = line(&served, time);
        assert!(line_of.ends_with(" ms=1.500 block1=2/0/1024 block2=0/1/1024+\n"), "{line_of}");
        let object: serde_json::Value =
            serde_json::from_str(&super::object(&served, time)).expect("an object");
        let last = serde_json::json!({"number": 2, "more": false, "size": 1024, "bert": false});
        assert_eq!((&object["block1"], &object["block2"]["bert"]), (&last, &true.into()));
        assert!(line(&served, time).contains(" /a?b - in=0 "));
        served.identity = Some("lamp 1".to_owned());
        served.refused = Some("the request is not protected".to_owned());
        let line_of = line(&served, time);
        assert!(
            line_of.ends_with(" id=lamp\\x201 refused: the request is not protected\n"),
            "{line_of}"
        );
    }

    /// Takes nothing until the other end is dropped.
    struct Stuck(Receiver<()>);
    impl Write for Stuck {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let _dropped = self.0.recv();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_writer_that_is_stuck_keeps_nobody_waiting_and_bounds_what_waits_for_it() {
        let (hold, held) = sync_channel(1);
        let log = Log::to(Stuck(held), "a stuck file".to_owned(), false);
        for _ in 0..LINES_MAX + 100 {
            log.lines.try_send("line\n".to_owned()).unwrap_or_else(|error| {
                assert!(matches!(error, TrySendError::Full(_)));
                log.lost.fetch_add(1, Ordering::Relaxed);
            });
        }
        let lost = log.lost.load(Ordering::Relaxed);
        assert!((99..=100).contains(&lost), "{lost}");
        drop(hold);
        log.close();
    }
}
