//! How a verb reaches its server over any transport, and the error if it does not. The client of `lowmesh-net` does the
//! rest.

use std::future::Future;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use lowmesh_coap::CongestionControl;
use lowmesh_coap::blockwise::Exponent;
use lowmesh_net::client::{self, Client, Error};
use lowmesh_net::multicast::Interface;
use lowmesh_net::oscore::{Contexts, NO_MEMBER};
use lowmesh_net::tap::Tap;
use lowmesh_net::tls::TlsClient;
use lowmesh_units::Duration as Span;
use lowmesh_wire::coap::uri::{Scheme, Uri};

use crate::answer;
use crate::console::{reader_gone, say};
use crate::failure::Failure;
use crate::group_oscore;
use crate::key;
use crate::rows;
use crate::secret_file;
use crate::traffic;

/// How long a request waits for its answer: as long as libcoap's client.
const WAIT: Duration = Duration::from_secs(90);
/// How long a request to a group waits for answers by default: DEFAULT_LEISURE (RFC 7252 s8.2), 5 s, and a round
/// trip.
const GROUP_WAIT: Duration = Duration::from_secs(8);
/// The same with Group OSCORE, whose DEFAULT_LEISURE is 20 s (RFC 10020).
const SECURED_GROUP_WAIT: Duration = Duration::from_secs(23);
const KEY_HINT: &str = "does the server know this --identity and --psk?";

/// How to reach the server.
#[derive(Debug, clap::Args)]
#[group(id = "channel")]
pub struct Args {
    /// Use TCP or TLS even if the scheme is coap or coaps
    #[arg(short, long)]
    reliable: bool,
    /// Local port, for coap and coaps
    #[arg(short, long, value_name = "PORT")]
    port: Option<u16>,
    /// Local address, for coap and coaps
    #[arg(short, long, value_name = "ADDRESS")]
    address: Option<IpAddr>,
    /// Interface that sends requests to groups, for IPv4 groups and for URIs without an interface
    #[arg(long, value_name = "NAME", value_parser = interface)]
    interface: Option<Interface>,
    /// Hop limit of requests to groups; by default they stay on the link
    #[arg(long, value_name = "HOPS", value_parser = clap::value_parser!(u8).range(1..))]
    hops: Option<u8>,
    /// Pre-shared key for coaps: text, 0x and hexadecimal digits, or @FILE
    #[arg(short = 'k', long, value_name = "KEY", requires = "identity")]
    psk: Option<String>,
    /// Identity that belongs to the key: text, or 0x and hexadecimal digits
    #[arg(short = 'u', long, value_name = "NAME", requires = "psk")]
    identity: Option<String>,
    /// Certificates (PEM) of the authorities to trust, for coaps+tcp and coaps+ws
    #[arg(long, value_name = "FILE")]
    cafile: Option<PathBuf>,
    /// Accept any certificate, for tests only: an attacker on the path can read and change all messages
    #[arg(long, conflicts_with = "cafile")]
    insecure: bool,
    /// Security context for OSCORE, in libcoap's file format; the state is stored next to the file
    #[arg(short = 'E', long, value_name = "FILE")]
    oscore: Option<PathBuf>,
    /// Folder for the state of security contexts, where that of their files cannot be written; later commands use it too
    #[arg(long, value_name = "DIR")]
    oscore_state: Option<PathBuf>,
    #[command(flatten)]
    security: group_oscore::Member,
    #[command(flatten)]
    transfer: Transfer,
}

/// How messages go, whatever carries them.
#[derive(Debug, clap::Args)]
#[group(id = "transfer")]
pub struct Transfer {
    /// Largest block of a long body, in octets
    #[arg(short, long, value_name = "OCTETS", value_parser = block)]
    pub block: Option<Exponent>,
    /// Retransmission timer
    #[arg(long, value_name = "NAME", default_value = "default", value_parser = rows::timers())]
    cc: String,
}

impl Transfer {
    /// The congestion control with the timer of `--cc`.
    pub fn congestion(&self) -> Result<CongestionControl, Failure> {
        Ok(CongestionControl::new(&self.cc).map_err(Error::from)?)
    }
}

/// Reads the name of an interface.
pub fn interface(text: &str) -> Result<Interface, String> {
    Interface::named(text).map_err(|error| error.to_string())
}

fn block(text: &str) -> Result<Exponent, String> {
    let size: Option<usize> = text.parse().ok();
    let fits = size.filter(|size| Exponent::fitting(*size).size() == *size);
    fits.map(Exponent::fitting)
        .ok_or_else(|| "a block has 16, 32, 64, 128, 256, 512 or 1024 octets".to_owned())
}

/// Reads a URI of any scheme.
pub fn uri(text: &str) -> Result<Uri, Failure> {
    text.parse().map_err(|error| {
        let message = format!("{text:?} is not a CoAP URI: {error}");
        Failure::usage(message, "write it as in coap://[::1]/hello")
    })
}

/// Reads a URI, or the host of one: a name, an address, with or without a port.
pub fn host_or_uri(text: &str) -> Result<Uri, Failure> {
    let address = text.split_once('%').map_or(text, |(address, _zone)| address);
    if text.contains("://") {
        uri(text)
    } else if address.parse::<Ipv6Addr>().is_ok() {
        uri(&format!("coap://[{text}]"))
    } else {
        uri(&format!("coap://{text}"))
    }
}

/// Runs the asynchronous part of a verb. Threads that still wait for a disk or a name server do not delay the end.
pub fn wait<T>(task: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(Failure::own)?;
    let result = runtime.block_on(task);
    runtime.shutdown_background();
    result
}

/// Runs what only shows things until it is done, or until nobody reads stdout any more.
pub async fn while_read<T>(task: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    tokio::select! {
        biased;
        result = task => result,
        () = reader_gone() => Err(Failure::EnoughRead),
    }
}

impl Args {
    /// The client of a verb; waits for answers as long as `patience` says, and if `verbose` prints on stderr what happens
    /// meanwhile.
    pub fn client(&self, patience: Duration, verbose: bool) -> Result<Client, Failure> {
        let congestion = self.transfer.congestion()?;
        let mut builder = Client::builder().congestion(congestion).patience(patience);
        if let Some(block) = self.transfer.block {
            builder = builder.block(block);
        }
        if let (Some(key), Some(identity)) = (&self.psk, &self.identity) {
            builder = builder.key(&key::identity(identity)?, &key::secret(key)?);
        }
        if let Some(file) = &self.cafile {
            builder = builder.trust(trusted(file)?);
        }
        if self.insecure {
            builder = builder.trust(TlsClient::insecure()?);
        }
        if let Some(file) = &self.oscore {
            secret_file::look_at(file);
            builder = builder.protect(Contexts::open_in(file, self.oscore_state.as_deref())?);
        }
        builder = self.security.protect(builder, self.oscore_state.as_deref())?;
        if self.address.is_some() || self.port.is_some() {
            let address = self.address.unwrap_or(Ipv6Addr::UNSPECIFIED.into());
            builder = builder.local(SocketAddr::new(address, self.port.unwrap_or(0)));
        }
        if self.interface.is_some() || self.hops.is_some() {
            builder = builder.groups(self.interface.unwrap_or_default(), self.hops.unwrap_or(1));
        }
        if verbose {
            builder = builder.watch(answer::tell).tap(Tap::new(traffic::tell));
        }
        Ok(builder.build()?)
    }
    /// The URI that is asked, as all flags together determine it; flags that contradict each other are refused.
    pub async fn target(&self, uri: Uri) -> Result<Target, Failure> {
        let mut uri = uri;
        if self.reliable {
            uri.scheme = match uri.scheme {
                Scheme::Coap => Scheme::CoapTcp,
                Scheme::Coaps => Scheme::CoapsTcp,
                reliable => reliable,
            };
        }
        let local = self.port.is_some() || self.address.is_some();
        if local && uri.scheme.is_reliable() {
            let message = format!("{} chooses its own local address", uri.scheme.name());
            return Err(Failure::usage(message, "--port and --address are for coap and coaps"));
        }
        if uri.scheme == Scheme::Coaps && self.psk.is_none() {
            return Err(Error::NoKey.into());
        }
        if self.insecure && uri.scheme.is_reliable() && uri.scheme.is_secure() {
            say!("warning: --insecure: the server's certificate is not verified");
        }
        let address = client::address(&uri).await?;
        if let Some(local) = self.address
            && !local.is_unspecified()
            && local.is_ipv4() != address.is_ipv4()
        {
            let message = format!("{local} and {} are of different IP versions", address.ip());
            let hint =
                "give --address an address of the same IP version as the server, or leave it out";
            return Err(Failure::usage(message, hint));
        }
        let group = address.ip().is_multicast();
        if group && uri.scheme == Scheme::Coaps {
            return Err(Failure::usage("DTLS cannot reach a group", "use coap:// for a group"));
        }
        Ok(Target { uri, address, group })
    }
}

/// Who is asked.
pub struct Target {
    /// By which URI.
    pub uri: Uri,
    /// The first of its addresses.
    pub address: SocketAddr,
    /// Whether that is a group.
    pub group: bool,
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match error {
            Error::Rejected(NO_MEMBER) => Self::usage(&error, "--to-member ID names the member"),
            Error::Uri { .. }
            | Error::Rejected(_)
            | Error::NoGroup(_)
            | Error::SecurePort(_)
            | Error::Crowded(_)
            | Error::Unwanted => Self::usage(&error, error.hint()),
            Error::Resolve(error) => error.into(),
            Error::Bind(error) => error.into(),
            Error::Connect(error) => error.into(),
            Error::Settings(_) => Self::usage(error, "--cc chooses the retransmission timer"),
            Error::Key(_) => Self::usage(error, "see --psk and --identity"),
            Error::Store(_) => Self::own(error),
            Error::NoKey => Self::usage("coaps needs a key", "give --psk KEY --identity NAME"),
            Error::Group(_) => Self::usage(error, "`lowmesh discover` finds its members"),
            Error::Silence { wait, .. } => silence(wait),
            Error::Handshake { reason, .. } => Self::Security { message: reason, hint: KEY_HINT },
            Error::Unprotected { .. } => {
                Self::Security { message: error.to_string(), hint: error.hint() }
            }
            Error::NoWay { .. } | Error::Failed { .. } | Error::Fault { .. } | Error::Missed(_) => {
                Self::no_answer(&error, error.hint())
            }
            Error::Ended { .. } => {
                Self::no_answer(error, "is a server of this scheme running there, at this port?")
            }
            Error::Answer(answer) => answer::refusal(&answer.message),
        }
    }
}

/// How long a request waits for its answer.
pub fn patience(timeout: Option<Span>) -> Duration {
    timeout.map_or(WAIT, Duration::from)
}

impl Args {
    /// How long a request to a group waits for answers.
    pub fn group_patience(&self, timeout: Option<Span>) -> Duration {
        let usual = if self.security.is_given() { SECURED_GROUP_WAIT } else { GROUP_WAIT };
        timeout.map_or(usual, Duration::from)
    }
}

fn silence(limit: Duration) -> Failure {
    let message = format!("no answer within {} s", limit.as_secs_f64());
    Failure::no_answer(message, "is the server there? `--timeout` waits longer")
}

/// The authorities of `--cafile`.
pub fn trusted(file: &Path) -> Result<TlsClient, Failure> {
    let pem = std::fs::read(file).map_err(|error| {
        let message = format!("cannot read {}: {error}", file.display());
        Failure::usage(message, "--cafile takes a PEM file")
    })?;
    TlsClient::trusting(&pem).map_err(|error| {
        let message = format!("{}: {error}", file.display());
        Failure::usage(message, "--cafile takes the certificates of authorities, as PEM")
    })
}
