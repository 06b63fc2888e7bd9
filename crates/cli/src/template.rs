//! A request as the user gives it: a URI, a payload, options, and how to reach the server.

use std::io::Read as _;

use lowmesh_coap::RequestTemplate;
use lowmesh_units::Duration;
use lowmesh_wire::coap::uri::{Uri, percent_decode};
use lowmesh_wire::coap::{
    Code, ContentFormat, Format, OptionNumber, Options, TOKEN_LEN_MAX, Token, encode_uint,
};

use crate::answer;
use crate::body::format;
use crate::channel;
use crate::duration;
use crate::failure::Failure;
use crate::key;

/// Send one request and print the response
#[derive(Debug, clap::Args)]
#[group(id = "template")]
pub struct Args {
    /// coap://, coaps://, coap+tcp://, coaps+tcp://, coap+ws:// or coaps+ws://
    pub uri: String,
    #[command(flatten)]
    pub message: Message,
    /// Time to observe the resource; by default `observe` runs until Ctrl-C
    #[arg(short = 's', long = "observe", value_name = "TIME", value_parser = duration::wait)]
    pub observe: Option<Duration>,
    /// Proxy to send the request through
    #[arg(short = 'P', long, value_name = "URI")]
    proxy: Option<String>,
    #[command(flatten)]
    pub channel: channel::Args,
    #[command(flatten)]
    pub answer: answer::Args,
}

/// What is sent, and how long its answer is waited for.
#[derive(Debug, clap::Args)]
#[group(id = "message")]
pub struct Message {
    /// Method to use instead of the verb's: get, put, post, delete, fetch, patch or ipatch
    #[arg(short = 'm', long, value_name = "METHOD", value_parser = method)]
    pub method: Option<Code>,
    /// Payload, in which %XX is one octet; @FILE reads a file as it is, @- reads stdin, and %40 is a literal @
    #[arg(short = 'e', long = "text", value_name = "TEXT", conflicts_with = "file")]
    text: Option<String>,
    /// File with the payload; `-` is stdin
    #[arg(short = 'f', long = "file", value_name = "FILE")]
    file: Option<String>,
    /// Format of the payload: a number, a media type, or a name such as json or cbor
    #[arg(short = 't', long, value_name = "FORMAT", value_parser = format)]
    content_format: Option<ContentFormat>,
    /// Accepted format of the response
    #[arg(short = 'A', long, value_name = "FORMAT", value_parser = format)]
    accept: Option<ContentFormat>,
    /// Send a non-confirmable request (NON)
    #[arg(short = 'N', long)]
    non: bool,
    /// Time to wait for a response, such as 30 (seconds) or 2min
    #[arg(short = 'B', long, value_name = "TIME", value_parser = duration::wait)]
    pub timeout: Option<Duration>,
    /// Token of the request, as text or as 0x followed by hexadecimal digits
    #[arg(short = 'T', long, value_name = "TOKEN", value_parser = token)]
    token: Option<Token>,
    /// Additional option, such as `4,0xa1b2` or `if-none-match` (repeatable)
    #[arg(short = 'O', long = "option", value_name = "OPTION,VALUE", value_parser = option)]
    options: Vec<(OptionNumber, Vec<u8>)>,
}

fn method(text: &str) -> Result<Code, String> {
    Ok(match text.to_ascii_lowercase().as_str() {
        "get" => Code::GET,
        "put" => Code::PUT,
        "post" => Code::POST,
        "delete" => Code::DELETE,
        "fetch" => Code::FETCH,
        "patch" => Code::PATCH,
        "ipatch" => Code::IPATCH,
        _ => return Err("a method is get, put, post, delete, fetch, patch or ipatch".to_owned()),
    })
}

fn option(text: &str) -> Result<(OptionNumber, Vec<u8>), String> {
    let (name, value) = text.split_once(',').unwrap_or((text, ""));
    let number = match name.parse() {
        Ok(number) => Some(OptionNumber(number)),
        Err(_) => (0..=u16::MAX).map(OptionNumber).find(|number| {
            number.definition().is_some_and(|row| row.name.eq_ignore_ascii_case(name))
        }),
    };
    let number = number.ok_or_else(|| {
        format!("{name:?} is not an option: give a number, up to 65535, or a name such as etag")
    })?;
    if let Some(digits) = value.strip_prefix("0x") {
        return key::octets(digits).map(|value| (number, value));
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

fn token(text: &str) -> Result<Token, String> {
    let octets = key::value(text)?;
    let token = Token::new(&octets).filter(|token| token.len() <= TOKEN_LEN_MAX);
    token.ok_or_else(|| format!("a token has at most {TOKEN_LEN_MAX} octets"))
}

/// The peer to ask: the server of the URI, or the proxy.
pub fn next_hop(args: &Args) -> Result<Uri, Failure> {
    channel::uri(args.proxy.as_deref().unwrap_or(&args.uri))
}

/// The request to send.
pub fn template(method: Code, args: &Args) -> Result<RequestTemplate, Failure> {
    let target = channel::uri(&args.uri)?;
    let mut options = Options::new();
    if args.proxy.is_some() {
        // RFC 7252 s5.10.2: Proxy-Uri stands alone, without Uri-Host, Uri-Port, Uri-Path, Uri-Query.
        // RFC 7252 s6.4 step 2: dot segments are resolved, as for a request without a proxy.
        options.insert(OptionNumber::PROXY_URI, target.to_string().as_bytes());
    } else {
        target.insert_into(&mut options);
    }
    args.message.template(method, options)
}

impl Message {
    /// The request with these options and its own.
    pub fn template(&self, method: Code, mut options: Options) -> Result<RequestTemplate, Failure> {
        if let Some(ContentFormat(number)) = self.content_format {
            options.insert_uint(OptionNumber::CONTENT_FORMAT, number.into());
        }
        if let Some(ContentFormat(number)) = self.accept {
            options.insert_uint(OptionNumber::ACCEPT, number.into());
        }
        for (number, value) in &self.options {
            options.insert(*number, value);
        }
        let (confirmable, token, payload) = (!self.non, self.token.clone(), self.payload()?);
        Ok(RequestTemplate { code: method, confirmable, options, payload, token, body_max: None })
    }

    fn payload(&self) -> Result<Vec<u8>, Failure> {
        let file = match (self.text.as_deref(), self.file.as_deref()) {
            (Some(text), _) => match text.strip_prefix('@') {
                Some(file) => file,
                None => return decoded("--text ", text),
            },
            (None, Some(file)) => file,
            (None, None) => return Ok(Vec::new()),
        };
        contents(file)
    }
}

/// The contents of a file, or of stdin for `-`.
fn contents(file: &str) -> Result<Vec<u8>, Failure> {
    let read = match file {
        "-" => {
            let mut octets = Vec::new();
            std::io::stdin().read_to_end(&mut octets).map(|_| octets)
        }
        file => std::fs::read(file),
    };
    read.map_err(|error| {
        let hint = "give a path, or - for stdin; with -e, %40 is a literal @";
        Failure::usage(format!("cannot read {file}: {error}"), hint)
    })
}

/// The octets of a text in which %XX is one octet; `name` is what an error calls it, with a blank behind it.
pub fn decoded(name: &str, text: &str) -> Result<Vec<u8>, Failure> {
    percent_decode(text).ok_or_else(|| {
        Failure::usage(format!("{name}{text}: a % has two hexadecimal digits"), "write % as %25")
    })
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

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

    #[derive(clap::Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    #[test]
    fn a_proxy_is_asked_for_the_resource_that_would_be_asked_for_without_it() {
        for (uri, named) in [
            ("coap://h/a/../b/./c?d=../e", "coap://h/b/c?d=../e"),
            ("coap://H:5683/%7Eu/a%2Fb/%2e%2e", "coap://h:5683/~u/"),
            ("coap://[::1]", "coap://[::1]/"),
        ] {
            let line = Line::parse_from(["get", "-P", "coap://proxy", uri]);
            let asked = template(Code::GET, &line.args).expect("a request").options;
            let proxied = asked.get(OptionNumber::PROXY_URI).map(String::from_utf8_lossy);
            assert_eq!(proxied.as_deref(), Some(named));
            assert!(asked.get(OptionNumber::URI_PATH).is_none());
        }
    }

    #[test]
    fn a_token_is_text_or_octets_and_not_longer_than_others_take() {
        assert_eq!(token("0x01ff").map(|one| one.as_bytes().to_vec()), Ok(vec![1, 0xff]));
        assert_eq!(token("tok").map(|one| one.as_bytes().to_vec()), Ok(b"tok".to_vec()));
        assert!(token("123456789").is_err_and(|why| why.contains("8 octets")));
    }
}
