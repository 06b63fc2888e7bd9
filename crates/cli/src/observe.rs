//! `lowmesh observe`, and `-s` of `get` and `fetch`: a resource's state, each time that it changes (RFC 7641).
//!
//! However it ends, by time, count, Ctrl-C or a reader that has enough, the server is told (s3.6).

use std::io::Write;
use std::time::Duration;

use lowmesh_coap::observe::REGISTER;
use lowmesh_coap::{Input, Output};
use lowmesh_machine::Handle;
use lowmesh_wire::coap::{Code, OptionNumber};

use crate::answer;
use crate::channel::{self, Channel, patience, refused};
use crate::failure::Failure;
use crate::template::{self, next_hop, template};

/// How long the answer to a deregistration is waited for: one retransmission with the timers of RFC 7252 s4.8.
const FAREWELL: Duration = Duration::from_secs(5);
/// The one thing that is observed.
const HANDLE: Handle = Handle(1);

/// The command line of `observe`
#[derive(Debug, clap::Args)]
pub struct Args {
    /// End after so many notifications
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,
    #[command(flatten)]
    pub request: template::Args,
}

/// Observes until the time is over, `count` notifications have come, or the user has enough.
pub fn execute(
    method: Code,
    args: &template::Args,
    count: Option<u64>,
    out: &mut impl Write,
) -> Result<(), Failure> {
    if !matches!(method, Code::GET | Code::FETCH) {
        // RFC 7641 s2 and RFC 8132 s2.4.
        return Err(Failure::usage("only GET and FETCH observe", "leave --observe out"));
    }
    channel::wait(observe(method, args, count, out))
}

async fn observe(
    method: Code,
    args: &template::Args,
    count: Option<u64>,
    out: &mut impl Write,
) -> Result<(), Failure> {
    let mut message = template(method, args)?;
    message.options.set_uint(OptionNumber::OBSERVE, REGISTER);
    let limit = patience(args.timeout);
    let mut channel = Channel::open(&args.channel, &next_hop(args)?, limit).await?;
    let (peer, handle) = (channel.peer, HANDLE);
    if peer.is_group() {
        let hint = "`lowmesh discover` finds its members";
        return Err(Failure::usage("a group is not observed, but each of its members", hint));
    }
    channel.handle(Input::Request { peer, message, handle }).map_err(refused)?;
    let span = args.observe.map(Duration::from_secs_f64);
    let mut left = count.unwrap_or(u64::MAX);
    let ending = tokio::select! {
        ending = follow(args, &mut left, limit, &mut channel, out) => ending,
        () = elapsed(span) => Ending::Ours(Ok(())),
        interrupted = tokio::signal::ctrl_c() => Ending::Ours(interrupted.map_err(Failure::own)),
    };
    let result = match ending {
        Ending::Theirs(result) => result,
        Ending::Ours(result) => {
            // Who does not answer any more has been told as well as can be.
            let _in_time = tokio::time::timeout(FAREWELL, deregister(&mut channel)).await;
            result
        }
    };
    channel.close().await;
    result
}

/// Whose doing the end of an observation is: the server does not know of ours yet.
enum Ending {
    Ours(Result<(), Failure>),
    Theirs(Result<(), Failure>),
}

async fn elapsed(span: Option<Duration>) {
    match span {
        Some(span) => tokio::time::sleep(span).await,
        None => std::future::pending().await,
    }
}

/// Shows `left` notifications. The first has to come within `limit`.
async fn follow(
    args: &template::Args,
    left: &mut u64,
    limit: Duration,
    channel: &mut Channel,
    out: &mut impl Write,
) -> Ending {
    let mut first = true;
    while *left > 0 {
        let next = async {
            if !first {
                return Some(channel.next().await);
            }
            tokio::time::timeout(limit, channel.next()).await.ok()
        };
        let output = match next.await {
            None => return Ending::Theirs(Err(channel.silence(limit))),
            Some(Err(failure)) => return Ending::Theirs(Err(failure)),
            Some(Ok(output)) => output,
        };
        match output {
            Output::Notification { from, message, .. } => {
                (first, *left) = (false, *left - 1);
                let shown = answer::show_one_of_many(&args.answer, &message, from, None, out);
                if shown.is_err() {
                    return Ending::Ours(shown);
                }
            }
            Output::Response { from, message, rtt, .. } => {
                let shown = answer::show_one_of_many(&args.answer, &message, from, Some(rtt), out);
                if shown.is_ok() {
                    // RFC 7641 s4.1 and s4.2: no Observe option, no observation, from now on.
                    let never =
                        if first { "does not observe this" } else { "ends the observation" };
                    eprintln!("the server {never}; no more notifications will come");
                }
                return Ending::Theirs(shown);
            }
            Output::Failed { reason, .. } => {
                return Ending::Theirs(Err(channel.failure(reason)));
            }
            other => answer::tell(args.answer.verbose, &other),
        }
    }
    Ending::Ours(Ok(()))
}

async fn deregister(channel: &mut Channel) -> Result<(), Failure> {
    channel.handle(Input::Deregister { handle: HANDLE }).map_err(refused)?;
    loop {
        let output = channel.next().await?;
        if matches!(output, Output::Response { .. } | Output::Failed { .. } | Output::Over { .. }) {
            return Ok(());
        }
    }
}
