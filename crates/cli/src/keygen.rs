//! `lowmesh keygen`: keys for OSCORE, Group OSCORE, DTLS and TLS, in the files that the other verbs take.

mod group;

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use lowmesh_lab::command::quoted;
use rcgen::{CertificateParams, DistinguishedName, DnType, IsCa, KeyPair};

use crate::console::say;
use crate::diagnostic::hex;
use crate::failure::Failure;

/// Octets of a master secret and of a pre-shared key: the key of AES-128.
const KEY_OCTETS: usize = 16;
/// Octets of a master salt: as in the test vectors of RFC 8613 appendix C.
const SALT_OCTETS: usize = 8;
/// Longest sender ID: RFC 8613 s3.3, the nonce of AES-CCM-16-64-128 less 6 octets.
const ID_OCTETS_MAX: usize = 7;
/// How long a certificate is valid before it was made, for clocks that are slow: ours.
const LEEWAY: Duration = Duration::from_secs(24 * 3600);

/// Make keys for OSCORE, Group OSCORE, DTLS or TLS.
///
/// Only the owner can read the files (mode 0600), and the command never replaces a file.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    kind: Kind,
}

#[derive(Debug, clap::Subcommand)]
enum Kind {
    Oscore(Oscore),
    Group(group::Args),
    Psk(Psk),
    Tls(Tls),
}

/// Make a security context for each endpoint (RFC 8613): NAME-client.conf and NAME-server.conf
#[derive(Debug, clap::Args)]
struct Oscore {
    /// Path with which the names of the files begin
    name: PathBuf,
    /// Sender ID of the client
    #[arg(long, value_name = "ID", default_value = "client", value_parser = id)]
    client: String,
    /// Sender ID of the server
    #[arg(long, value_name = "ID", default_value = "server", value_parser = id)]
    server: String,
}

/// Make a pre-shared key for coaps, as 32 hexadecimal digits
#[derive(Debug, clap::Args)]
struct Psk {
    /// File for the key
    file: PathBuf,
}

/// Make a self-signed certificate and its key (P-256): NAME-cert.pem and NAME-key.pem
#[derive(Debug, clap::Args)]
struct Tls {
    /// Path with which the names of the files begin
    name: PathBuf,
    /// Name or address by which clients reach the server (repeatable)
    #[arg(long, value_name = "HOST", default_values = ["localhost", "127.0.0.1", "::1"])]
    host: Vec<String>,
    /// Number of days for which the certificate is valid
    #[arg(long, value_name = "NUMBER", default_value_t = 365,
          value_parser = clap::value_parser!(u64).range(1..=36_500))]
    days: u64,
}

fn id(text: &str) -> Result<String, String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if (1..=ID_OCTETS_MAX).contains(&text.len()) && text.chars().all(plain) {
        return Ok(text.to_owned());
    }
    Err(format!("an ID has 1 to {ID_OCTETS_MAX} letters, digits, `-` or `_`"))
}

/// Makes the keys, and prints the names of their files.
pub fn execute(args: &Args, out: &mut impl Write) -> Result<(), Failure> {
    match &args.kind {
        Kind::Oscore(args) => oscore(args, out),
        Kind::Group(args) => group::execute(args, out),
        Kind::Psk(args) => psk(args, out),
        Kind::Tls(args) => tls(args, out),
    }
}

fn oscore(args: &Oscore, out: &mut impl Write) -> Result<(), Failure> {
    if args.client == args.server {
        let message = format!("both ends have the ID `{}`", args.client);
        return Err(Failure::usage(message, "give --client and --server different IDs"));
    }
    let (secret, salt) = (hex(&random::<KEY_OCTETS>()?), hex(&random::<SALT_OCTETS>()?));
    let context = |sender: &str, recipient: &str| {
        format!(
            "master_secret,hex,\"{secret}\"\nmaster_salt,hex,\"{salt}\"\n\
             sender_id,ascii,\"{sender}\"\nrecipient_id,ascii,\"{recipient}\"\n\
             rfc8613_b_2,bool,true\n"
        )
    };
    let client = with_ending(&args.name, "-client.conf");
    let server = with_ending(&args.name, "-server.conf");
    let contents = [
        (&client, context(&args.client, &args.server)),
        (&server, context(&args.server, &args.client)),
    ];
    write(&contents, out)?;
    say!("server: lowmesh serve DIR -E {}", word(&server));
    say!("client: lowmesh get -E {} coap://HOST/", word(&client));
    Ok(())
}

fn psk(args: &Psk, out: &mut impl Write) -> Result<(), Failure> {
    write(&[(&args.file, hex(&random::<KEY_OCTETS>()?) + "\n")], out)?;
    let file = quoted(&format!("@{}", args.file.display()));
    say!("server: lowmesh serve DIR --psk {file} --identity NAME");
    say!("client: lowmesh get --psk {file} --identity NAME coaps://HOST/");
    Ok(())
}

fn tls(args: &Tls, out: &mut impl Write) -> Result<(), Failure> {
    let (cert, key) = self_signed(args).map_err(|error| {
        let hint = "give --host a DNS name or an IP address, without port and brackets";
        Failure::usage(format!("no certificate for {}: {error}", args.host.join(", ")), hint)
    })?;
    let cert_file = with_ending(&args.name, "-cert.pem");
    let key_file = with_ending(&args.name, "-key.pem");
    write(&[(&cert_file, cert), (&key_file, key)], out)?;
    let (cert, key) = (word(&cert_file), word(&key_file));
    say!("server: lowmesh serve DIR --cert {cert} --key {key}");
    say!("client: lowmesh get --cafile {cert} coaps+tcp://{}/", args.host[0]);
    Ok(())
}

/// A file as one word of a command line.
fn word(file: &Path) -> String {
    quoted(&file.to_string_lossy())
}

/// A certificate and its key, as PEM.
fn self_signed(args: &Tls) -> Result<(String, String), rcgen::Error> {
    let mut params = CertificateParams::new(args.host.clone())?;
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, args.host[0].as_str());
    // An authority's certificate cannot stand for a server (RFC 5280 s4.2.1.9 and what TLS libraries make of it).
    params.is_ca = IsCa::ExplicitNoCa;
    let now = now();
    params.not_before = (now - LEEWAY).into();
    params.not_after = (now + Duration::from_secs(args.days * 24 * 3600)).into();
    let key = KeyPair::generate()?;
    Ok((params.self_signed(&key)?.pem(), key.serialize_pem()))
}

#[expect(clippy::disallowed_methods, reason = "a certificate has dates")]
fn now() -> SystemTime {
    SystemTime::now()
}

fn random<const N: usize>() -> Result<[u8; N], Failure> {
    let mut octets = [0; N];
    getrandom::fill(&mut octets)
        .map_err(|error| Failure::own(format!("the system has no randomness: {error}")))?;
    Ok(octets)
}

fn with_ending(name: &Path, ending: &str) -> PathBuf {
    let mut name = name.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

/// Writes new files for their owner only, all or none, and prints their names.
fn write(files: &[(&PathBuf, String)], out: &mut impl Write) -> Result<(), Failure> {
    if let Some((file, _)) = files.iter().find(|(file, _)| file.symlink_metadata().is_ok()) {
        let message = format!("{} exists, and lowmesh never overwrites a key", file.display());
        return Err(Failure::usage(message, "give another name, or remove the old file"));
    }
    for (file, contents) in files {
        let mut options = OpenOptions::new();
        options.write(true).create_new(true).mode(0o600);
        let written = options.open(file).and_then(|mut file| file.write_all(contents.as_bytes()));
        written
            .map_err(|error| Failure::own(format!("cannot write {}: {error}", file.display())))?;
        writeln!(out, "{}", file.display())?;
    }
    Ok(())
}
