//! The answer of a server: payload to stdout, details to stderr, errors as failures.

use std::io::{IsTerminal as _, Write};
use std::path::PathBuf;
use std::time::Duration;

use lowmesh_coap::Output;
use lowmesh_net::client::Response;
use lowmesh_net::peer::Peer;
use lowmesh_wire::coap::{Class, Code, ContentFormat, Format, Message, OptionNumber, OptionRef};

use crate::body::{plain, pretty};
use crate::console::say;
use crate::diagnostic::hex;
use crate::failure::Failure;
use crate::place;

/// How answers are shown.
#[derive(Debug, clap::Args)]
#[group(id = "answer")]
pub struct Args {
    /// Print one JSON object for each response
    #[arg(long, conflicts_with = "pretty")]
    json: bool,
    /// Format link-format, JSON, CBOR and SenML for reading, as on a terminal
    #[arg(long)]
    pretty: bool,
    /// Write the payload to a file
    #[arg(short, long, value_name = "FILE", conflicts_with_all = ["json", "pretty"])]
    pub output: Option<PathBuf>,
    /// Show messages, options and timers on stderr
    #[arg(short, long)]
    pub verbose: bool,
}

impl Args {
    /// Refuses a place for the payload where nothing can be written, before the server is asked.
    pub fn check(&self) -> Result<(), Failure> {
        let Some(file) = &self.output else { return Ok(()) };
        place::check_file(file).map_err(|why| {
            let message = format!("cannot write {}: {why}", file.display());
            Failure::usage(message, "--output takes a file in an existing folder")
        })
    }
    /// Whether payloads go to stdout as they are.
    fn is_raw(&self) -> bool {
        let laid_out = self.json || self.pretty || std::io::stdout().is_terminal();
        self.output.is_none() && !laid_out
    }
}

/// Shows one answer; an error code becomes a failure.
pub fn show(args: &Args, answer: &Response, out: &mut impl Write) -> Result<(), Failure> {
    let Response { from, message, rtt, .. } = answer;
    if args.verbose {
        say!("{} from {}{}", title(message.code), from.address, timing(*rtt));
        for option in &message.options {
            say!("  {}", option_line(option));
        }
    }
    let format = content_format(message);
    if args.json {
        writeln!(out, "{}", object(message, *from, *rtt))?;
    }
    accept(message)?;
    if args.json {
        return Ok(());
    }
    if let Some(file) = &args.output {
        return std::fs::write(file, &message.payload)
            .map_err(|error| Failure::own(format!("cannot write {}: {error}", file.display())));
    }
    if message.payload.is_empty() {
        if std::io::stdout().is_terminal() && !args.verbose {
            say!("{}", title(message.code));
        }
        return Ok(());
    }
    if args.is_raw() {
        out.write_all(&message.payload)?;
    } else {
        let text = pretty(format, &message.payload);
        writeln!(out, "{}", text.strip_suffix('\n').unwrap_or(&text))?;
    }
    Ok(())
}

/// Shows one answer of several: each raw payload ends with a line end, and is written at once.
pub fn show_one_of_many(
    args: &Args,
    answer: &Response,
    out: &mut impl Write,
) -> Result<(), Failure> {
    show(args, answer, out)?;
    if args.is_raw() && !answer.payload().ends_with(b"\n") {
        writeln!(out)?;
    }
    Ok(out.flush()?)
}

/// Prints on stderr what happens before an answer comes.
pub fn tell(output: &Output<Peer>) {
    match output {
        Output::Started { rto, .. } => tell_sent(rto.as_secs_f64()),
        Output::Acknowledged { rtt, retransmissions, .. } => say!(
            "acknowledged after {:.1} ms and {retransmissions} retransmissions; the answer follows",
            rtt.as_secs_f64() * 1000.0
        ),
        Output::SessionOver { peer } => {
            say!("{} is silent: its DTLS session is over", peer.address);
        }
        Output::Discarded { from, cause } => say!("from {}: dropped, {cause:?}", from.address),
        _ => {}
    }
}

/// Prints on stderr that a request has left, and after how many seconds it is sent again.
pub fn tell_sent(rto_s: f64) {
    say!("sent; first timeout {rto_s:.3} s");
}

/// The failure that an error code is.
pub fn accept(message: &Message) -> Result<(), Failure> {
    match message.code.class() {
        Class::ClientError | Class::ServerError => Err(refusal(message)),
        _ => Ok(()),
    }
}

/// What an answer with an error code says.
pub fn refusal(message: &Message) -> Failure {
    let format = content_format(message);
    let diagnostic = match format {
        // RFC 7252 s5.5.2: without a format, the payload of an error is for people.
        _ if message.payload.is_empty() => String::new(),
        None | Some(ContentFormat::TEXT_PLAIN) => format!(": {}", plain(&message.payload)),
        Some(_) => format!(": {}", pretty(format, &message.payload)),
    };
    Failure::Refused { class: message.code.0 >> 5, message: title(message.code) + &diagnostic }
}

fn timing(rtt: Option<Duration>) -> String {
    rtt.map(|rtt| format!(" after {:.1} ms", rtt.as_secs_f64() * 1000.0)).unwrap_or_default()
}

fn content_format(message: &Message) -> Option<ContentFormat> {
    let number = message.options.get_uint(OptionNumber::CONTENT_FORMAT)?;
    u16::try_from(number).ok().map(ContentFormat)
}

/// The code with its name, as in `4.04 Not Found`.
fn title(code: Code) -> String {
    code.name().map_or_else(|| code.to_string(), |name| format!("{code} {name}"))
}

/// An option as in `Uri-Path: temp`.
pub fn option_line(option: OptionRef<'_>) -> String {
    let definition = option.number.definition();
    let name = match definition {
        Some(definition) => definition.name.to_owned(),
        None => format!("option {}", option.number.0),
    };
    let value = match definition.map(|definition| definition.format) {
        Some(Format::Uint) => option.as_uint().map(|number| number.to_string()),
        Some(Format::String) => option.as_str().map(|text| plain(text.as_bytes())),
        Some(Format::Empty) => Some(String::new()),
        Some(Format::Opaque) | None => None,
    };
    format!("{name}: {}", value.unwrap_or_else(|| hex(option.value)))
}

fn object(message: &Message, from: Peer, rtt: Option<Duration>) -> serde_json::Value {
    let text = std::str::from_utf8(&message.payload).ok();
    serde_json::json!({
        "schema": 1,
        "code": message.code.to_string(),
        "from": from.address.to_string(),
        "observe": message.options.get_uint(OptionNumber::OBSERVE),
        "rtt_ms": rtt.map(|rtt| rtt.as_secs_f64() * 1000.0),
        "options": message.options.iter().map(option_line).collect::<Vec<_>>(),
        "content_format": content_format(message).map(|format| format.0),
        "payload": text,
        "payload_hex": text.is_none().then(|| hex(&message.payload)),
    })
}
