//! `lowmesh get`, `put`, `post`, `delete`, `fetch`, `patch` and `ipatch`: one request, and its answer or, from
//! a group, all its answers (RFC 7252 s5.8 and s8, RFC 8132).

use std::io::{Read as _, Write};

use lowmesh_coap::{Input, Output, RequestTemplate};
use lowmesh_machine::{DropReason, Handle};
use lowmesh_units::Duration;
use lowmesh_wire::coap::uri::{Uri, percent_decode};
use lowmesh_wire::coap::{Code, ContentFormat, Format, OptionNumber, Options, encode_uint};

use crate::answer;
use crate::body::format;
use crate::channel::{self, Channel};
use crate::failure::Failure;

/// How long the answers of a group are waited for unless `--timeout` says otherwise: DEFAULT_LEISURE (RFC 7252
/// s8.2), 5 s, and the way there and back.
const GROUP_WAIT_S: f64 = 8.0;
/// How long one answer is waited for: what libcoap's client waits.
const WAIT_S: f64 = 90.0;
/// The one thing that is asked for.
const HANDLE: Handle = Handle(1);

/// Send one request and print its answer
#[derive(Debug, clap::Args)]
#[command(after_help = "The payload of the answer goes to stdout, everything else to stderr.\n\
    Exit codes: 0 done, 2 usage, 3 no answer, 4 the server says 4.xx, 5 it says 5.xx, 6 security.\n\
    A group, as in coap://[ff02::fd%25eth0]/hello, is waited for until the time is over.")]
pub struct Args {
    /// coap://, coaps://, coap+tcp://, coaps+tcp://, coap+ws:// or coaps+ws://
    pub uri: String,
    /// Payload; %XX stands for one octet
    #[arg(short = 'e', long = "text", value_name = "TEXT", conflicts_with = "file")]
    text: Option<String>,
    /// File whose octets are the payload; `-` is stdin
    #[arg(short = 'f', long = "file", value_name = "FILE")]
    file: Option<String>,
    /// Format of the payload: a number, a media type, or a name such as json or cbor
    #[arg(short = 't', long, value_name = "FORMAT", value_parser = format)]
    content_format: Option<ContentFormat>,
    /// Format wished for
    #[arg(short = 'A', long, value_name = "FORMAT", value_parser = format)]
    accept: Option<ContentFormat>,
    /// Without acknowledgement (NON)
    #[arg(short = 'N', long)]
    non: bool,
    /// Seconds to wait
    #[arg(short = 'B', long, value_name = "SECONDS", value_parser = seconds)]
    timeout: Option<f64>,
    /// One more option, as in `4,0xa1b2` or `if-none-match`; may be given several times
    #[arg(short = 'O', long = "option", value_name = "OPTION,VALUE", value_parser = option)]
    options: Vec<(OptionNumber, Vec<u8>)>,
    /// Proxy that is to ask
    #[arg(short = 'P', long, value_name = "URI")]
    proxy: Option<String>,
    #[command(flatten)]
    channel: channel::Args,
    #[command(flatten)]
    answer: answer::Args,
}

fn seconds(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number| *number > 0.0 && *number <= 86_400.0);
    number.ok_or_else(|| "give seconds, above 0 and at most 86400".to_owned())
}

fn option(text: &str) -> Result<(OptionNumber, Vec<u8>), String> {
    let (name, value) = text.split_once(',').unwrap_or((text, ""));
    let number = match name.parse() {
        Ok(number) => Some(OptionNumber(number)),
        Err(_) => (0..=u16::MAX).map(OptionNumber).find(|number| {
            number.definition().is_some_and(|row| row.name.eq_ignore_ascii_case(name))
        }),
    };
    let number = number.ok_or_else(|| format!("{name:?} is neither a number nor an option"))?;
    if let Some(digits) = value.strip_prefix("0x") {
        return octets(digits).map(|value| (number, value));
    }
    let value = match number.definition().map(|row| row.format) {
        Some(Format::Uint) => {
            let value = value.parse().map_err(|_| format!("{name} takes a number"))?;
            encode_uint(value).as_bytes().to_vec()
        }
        _ => value.as_bytes().to_vec(),
    };
    Ok((number, value))
}

fn octets(digits: &str) -> Result<Vec<u8>, String> {
    let wrong = || "behind 0x come two hexadecimal digits for each octet".to_owned();
    let pairs = digits.as_bytes().chunks(2);
    let octet = |pair: &[u8]| {
        let text = std::str::from_utf8(pair).ok().filter(|text| text.len() == 2)?;
        u8::from_str_radix(text, 16).ok()
    };
    pairs.map(|pair| octet(pair).ok_or_else(wrong)).collect()
}

/// Asks, and shows what comes.
pub fn execute(method: Code, args: &Args, out: &mut impl Write) -> Result<(), Failure> {
    let target = channel::uri(&args.uri)?;
    let message = template(method, args, &target)?;
    let next_hop = args.proxy.as_deref().map_or(Ok(target), channel::uri)?;
    channel::wait(ask(args, &next_hop, message, out))
}

fn template(method: Code, args: &Args, target: &Uri) -> Result<RequestTemplate, Failure> {
    let mut options = Options::new();
    if args.proxy.is_some() {
        // RFC 7252 s5.10.2: Proxy-Uri stands alone, without Uri-Host, Uri-Port, Uri-Path, Uri-Query.
        options.insert(OptionNumber::PROXY_URI, args.uri.as_bytes());
    } else {
        target.insert_into(&mut options);
    }
    if let Some(ContentFormat(number)) = args.content_format {
        options.insert_uint(OptionNumber::CONTENT_FORMAT, number.into());
    }
    if let Some(ContentFormat(number)) = args.accept {
        options.insert_uint(OptionNumber::ACCEPT, number.into());
    }
    for (number, value) in &args.options {
        options.insert(*number, value);
    }
    Ok(RequestTemplate { code: method, confirmable: !args.non, options, payload: payload(args)? })
}

fn payload(args: &Args) -> Result<Vec<u8>, Failure> {
    if let Some(text) = &args.text {
        return percent_decode(text).ok_or_else(|| {
            Failure::usage(
                format!("--text {text}: a % has two hexadecimal digits"),
                "write % as %25",
            )
        });
    }
    let read = match args.file.as_deref() {
        None => return Ok(Vec::new()),
        Some("-") => {
            let mut octets = Vec::new();
            std::io::stdin().read_to_end(&mut octets).map(|_| octets)
        }
        Some(file) => std::fs::read(file),
    };
    let file = args.file.as_deref().unwrap_or("-");
    read.map_err(|error| {
        Failure::usage(
            format!("cannot read {file}: {error}"),
            "--file takes a path, or - for stdin",
        )
    })
}

async fn ask(
    args: &Args,
    uri: &Uri,
    message: RequestTemplate,
    out: &mut impl Write,
) -> Result<(), Failure> {
    let limit = std::time::Duration::from_secs_f64(args.timeout.unwrap_or(WAIT_S));
    let silence = || {
        let message = format!("no answer within {} s", limit.as_secs_f64());
        let hint = if uri.scheme.is_secure() {
            "is the server there, with this key? a wrong one shows as silence; `--timeout` waits longer"
        } else {
            "is the server there? `--timeout` waits longer"
        };
        Failure::no_answer(message, hint)
    };
    let opening = tokio::time::timeout(limit, Channel::open(&args.channel, uri)).await;
    let mut channel = opening.map_err(|_| silence())??;
    let (peer, handle) = (channel.peer, HANDLE);
    let refused = |error| Failure::usage(error, "the server was not asked");
    if peer.is_group() {
        if args.answer.output.is_some() {
            let message = "the answers of a group do not go into one file";
            return Err(Failure::usage(message, "--json prints them one a line"));
        }
        let wait = Duration::from_secs_f64(args.timeout.unwrap_or(GROUP_WAIT_S));
        channel
            .handle(Input::RequestGroup { group: peer, message, wait, handle })
            .map_err(refused)?;
        return gather(args, channel, out).await;
    }
    channel.handle(Input::Request { peer, message, handle }).map_err(refused)?;
    let answered = tokio::time::timeout(limit, follow(args, &mut channel, out)).await;
    let result = answered.unwrap_or_else(|_| Err(silence()));
    channel.close().await;
    result
}

/// Waits for the one answer.
async fn follow(args: &Args, channel: &mut Channel, out: &mut impl Write) -> Result<(), Failure> {
    loop {
        match channel.next().await? {
            Output::Response { from, message, rtt, .. } => {
                return answer::show(&args.answer, &message, from, Some(rtt), out);
            }
            Output::Notification { from, message, .. } => {
                return answer::show(&args.answer, &message, from, None, out);
            }
            // No-Response (RFC 7967) was obeyed.
            Output::Over { .. } => return Ok(()),
            Output::Failed { reason, .. } => return Err(failed(channel, reason)),
            other => tell(args, &other),
        }
    }
}

/// Waits for the answers of a group until the time is over.
async fn gather(args: &Args, mut channel: Channel, out: &mut impl Write) -> Result<(), Failure> {
    let (mut answers, mut error) = (0, None);
    loop {
        match channel.next().await? {
            Output::GroupResponse { from, message, rtt, .. } => {
                answers += 1;
                eprintln!("from {}", from.address);
                match answer::show(&args.answer, &message, from, Some(rtt), out) {
                    Err(refused @ Failure::Refused { .. }) => error = Some(refused),
                    shown => shown?,
                }
                // Raw payloads have to be told apart.
                if args.answer.is_raw() && !message.payload.ends_with(b"\n") {
                    writeln!(out)?;
                }
                out.flush()?;
            }
            Output::Over { .. } if answers == 0 => {
                let hint = "are there members on this link? [ff02::fd%25eth0] says which link";
                return Err(Failure::no_answer("nobody of the group answered", hint));
            }
            Output::Over { .. } => return error.map_or(Ok(()), Err),
            Output::Failed { reason, .. } => return Err(failed(&mut channel, reason)),
            other => tell(args, &other),
        }
    }
}

fn failed(channel: &mut Channel, reason: DropReason) -> Failure {
    let address = channel.peer.address;
    if let Some(message) = channel.take_session_loss() {
        let hint = "is a DTLS server there, and are --identity and --psk what it knows?";
        return Failure::Security { message, hint };
    }
    match reason {
        DropReason::NoRoute => {
            let hint = "is a server running there, at this port? is there a route?";
            Failure::no_answer(format!("{address} cannot be reached"), hint)
        }
        DropReason::Reset => {
            Failure::no_answer(format!("{address} rejected the message"), "is it a CoAP server?")
        }
        reason => {
            let message = format!("no answer from {address}: {}", reason.name());
            Failure::no_answer(message, "is the server there? `lowmesh get -v` shows the timers")
        }
    }
}

fn tell(args: &Args, output: &Output<lowmesh_net::peer::Peer>) {
    if !args.answer.verbose {
        return;
    }
    match output {
        Output::Started { rto, .. } => eprintln!("sent; first timeout {:.3} s", rto.as_secs_f64()),
        Output::Acknowledged { rtt, retransmissions, .. } => eprintln!(
            "acknowledged after {:.1} ms and {retransmissions} retransmissions; the answer follows",
            rtt.as_secs_f64() * 1000.0
        ),
        Output::Discarded { from, cause } => eprintln!("from {}: dropped, {cause:?}", from.address),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_have_numbers_and_names() {
        assert_eq!(option("4,0xa1b2"), Ok((OptionNumber::ETAG, vec![0xa1, 0xb2])));
        assert_eq!(option("etag,abc"), Ok((OptionNumber::ETAG, b"abc".to_vec())));
        assert_eq!(option("if-none-match"), Ok((OptionNumber::IF_NONE_MATCH, Vec::new())));
        assert_eq!(option("hop-limit,16"), Ok((OptionNumber::HOP_LIMIT, vec![16])));
        assert!(option("etga,1").is_err_and(|why| why.contains("etga")));
        assert!(option("4,0xa").is_err_and(|why| why.contains("two hexadecimal digits")));
    }

    #[test]
    fn seconds_are_positive() {
        assert_eq!(seconds("2.5"), Ok(2.5));
        for wrong in ["0", "-1", "NaN", "inf", "soon"] {
            assert!(seconds(wrong).is_err(), "{wrong}");
        }
    }
}
