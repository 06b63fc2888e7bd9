//! The programs under attack: started on loopback, watched, and ended with their values.

use std::fs;
use std::net::{Ipv4Addr, SocketAddrV4, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::ports;
use crate::process::{self, Stopwatch};

/// Where every victim listens.
pub const HOST: Ipv4Addr = Ipv4Addr::LOCALHOST;
/// Identity and key of the honest clients over DTLS.
pub const IDENTITY: &str = "siege";
pub const KEY: &str = "a shared secret";
/// Ports of one victim above that of coap and coap+tcp: coaps and coaps+tcp, coap+ws.
const ABOVE: [u16; 2] = [1, 2];
/// Starts of one victim before its error counts.
const STARTS_MAX: usize = 3;
/// How long a victim may take until it listens.
const START_MAX: Duration = Duration::from_secs(10);
/// Between two checks whether it listens.
const LOOK: Duration = Duration::from_millis(10);
/// Between two readings of its memory.
const MEMORY_LOOK: Duration = Duration::from_millis(50);

/// A running `lowmesh serve` or `lowmesh proxy`.
#[derive(Debug)]
pub struct Victim {
    child: Child,
    port: u16,
}

impl Victim {
    /// `lowmesh ARGS` with ports of its own and the key of the honest clients.
    pub fn start(binary: &Path, args: &[&str], certificates: bool) -> Result<Self> {
        // A program that takes no blocks of ports may take a port between the search and the start.
        let mut last = None;
        for _ in 0..STARTS_MAX {
            match Self::launch(binary, args, certificates) {
                Ok(victim) => return Ok(victim),
                Err(error) => last = Some(error),
            }
        }
        Err(last.context("the victim was never started")?)
    }

    fn launch(binary: &Path, args: &[&str], certificates: bool) -> Result<Self> {
        let port = ports::free(HOST, &ABOVE)?;
        let (plain, web) = (port.to_string(), (port + 2).to_string());
        let mut command = process::command(binary, args);
        command.args(["-a", "127.0.0.1", "-p", &plain, "-k", KEY, "-u", IDENTITY]);
        command.args(["--ws-port", &web]);
        if certificates {
            let folder = process::root().join("crates/net/tests/tls");
            command.arg("--cert").arg(folder.join("server.pem"));
            command.arg("--key").arg(folder.join("server.key"));
        }
        let line = process::line(&command);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().with_context(|| format!("cannot start {line}"))?;
        let mut victim = Self { child, port };
        let clock = Stopwatch::start();
        while clock.elapsed() < START_MAX {
            if let Some(status) = victim.child.try_wait()? {
                bail!("{line} ended with {status}");
            }
            // The port that is opened last.
            if TcpStream::connect((HOST, port + 2)).is_ok() {
                return Ok(victim);
            }
            std::thread::sleep(LOOK);
        }
        bail!("{line} does not listen at port {}", port + 2)
    }
    /// Where it takes coap and coap+tcp.
    pub const fn plain(&self) -> SocketAddrV4 {
        SocketAddrV4::new(HOST, self.port)
    }
    /// Where it takes coaps and coaps+tcp.
    pub const fn secure(&self) -> SocketAddrV4 {
        SocketAddrV4::new(HOST, self.port + 1)
    }
    /// Where it takes coap+ws, or coaps+ws with certificates.
    pub const fn web(&self) -> SocketAddrV4 {
        SocketAddrV4::new(HOST, self.port + 2)
    }
    /// Why it is not running any more, if that is so.
    pub fn end(&mut self) -> Option<String> {
        let status = self.child.try_wait().ok().flatten()?;
        Some(format!("the victim ended with {status}"))
    }
    /// Watches its memory from now on.
    pub fn watch(&self) -> Memory {
        Memory::watch(self.child.id())
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        // It may be gone already.
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

/// The resident memory of a process over time; the watching ends with the value.
#[derive(Debug)]
pub struct Memory {
    over: Arc<AtomicBool>,
    peak_kb: Arc<AtomicU64>,
    last_kb: Arc<AtomicU64>,
    watcher: Option<JoinHandle<()>>,
}

impl Memory {
    fn watch(id: u32) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let (peak_kb, last_kb) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let seen = (over.clone(), peak_kb.clone(), last_kb.clone());
        let watcher = std::thread::spawn(move || {
            let (over, peak, last) = seen;
            while !over.load(Ordering::Relaxed) {
                if let Some(now) = resident_kb(id) {
                    peak.fetch_max(now, Ordering::Relaxed);
                    last.store(now, Ordering::Relaxed);
                }
                std::thread::sleep(MEMORY_LOOK);
            }
        });
        Self { over, peak_kb, last_kb, watcher: Some(watcher) }
    }
    /// The most so far, MB.
    pub fn peak_mb(&self) -> f64 {
        megabytes(self.peak_kb.load(Ordering::Relaxed))
    }
    /// The memory now, MB.
    pub fn now_mb(&self) -> f64 {
        megabytes(self.last_kb.load(Ordering::Relaxed))
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        // A watcher that panicked has said so already.
        _ = self.watcher.take().map(JoinHandle::join);
    }
}

fn megabytes(kilobytes: u64) -> f64 {
    kilobytes as f64 * 1024.0 / 1e6
}

/// VmRSS of proc(5), on systems with proc.
fn resident_kb(id: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{id}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.split_whitespace().next()?.parse().ok()
}

/// A folder of a victim's files; it goes with the value.
#[derive(Debug)]
pub struct Folder(pub PathBuf);

impl Folder {
    /// An empty one.
    pub fn make() -> Result<Self> {
        static NEXT: AtomicU16 = AtomicU16::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("lowmesh-siege-{}-{number}", std::process::id());
        let folder = Self(std::env::temp_dir().join(name));
        fs::create_dir_all(&folder.0)
            .with_context(|| format!("cannot make {}", folder.0.display()))?;
        Ok(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        _ = fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_memory_of_this_process_is_some_megabytes() {
        let kilobytes = resident_kb(std::process::id()).expect("Linux says it");
        assert!((500..10_000_000).contains(&kilobytes), "{kilobytes}");
        assert!(resident_kb(u32::MAX).is_none());
    }
}
