//! `lowmesh observe`, and `-s` of `get` and `fetch`: a resource's state, each time it changes (RFC 7641).
//!
//! However the observation ends (time, count, Ctrl-C, no reader), it is deregistered at the server (s3.6), and of a group
//! at all members (RFC 10020 s3.7).

use std::io::Write;
use std::time::Duration;

use lowmesh_net::client::{Error, GroupObservation, Observation};
use lowmesh_wire::coap::Code;

use crate::answer;
use crate::channel::{self, patience};
use crate::console::{reader_gone, say};
use crate::failure::Failure;
use crate::template::{self, next_hop, template};

/// The command line of `observe`
#[derive(Debug, clap::Args)]
pub struct Args {
    /// End after this many notifications
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,
    #[command(flatten)]
    pub request: template::Args,
}

/// Observes until the time is over, `count` notifications have come, or the user stops.
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
    let message = template(method, args)?;
    let client = args.channel.client(patience(args.message.timeout), args.answer.verbose)?;
    let target = args.channel.target(next_hop(args)?).await?;
    let request = client.request(method, &target.uri).template(message);
    let left = count.unwrap_or(u64::MAX);
    let result = if target.group {
        match request.observe_group(args.channel.group_patience(args.message.timeout)).await {
            Ok(mut states) => {
                let result = until_end(args, follow_group(args, left, &mut states, out)).await;
                states.end().await;
                result
            }
            Err(error) => Err(error.into()),
        }
    } else {
        match request.observe().await {
            Ok(mut states) => {
                let result = until_end(args, follow(args, left, &mut states, out)).await;
                states.end().await;
                result
            }
            Err(Error::Answer(answer)) => answer::show(&args.answer, &answer, out),
            Err(error) => Err(error.into()),
        }
    };
    client.close().await?;
    result
}

/// Follows an observation until the time is over, the user stops, or nobody reads.
async fn until_end(
    args: &template::Args,
    following: impl Future<Output = Result<(), Failure>>,
) -> Result<(), Failure> {
    let span = args.observe.map(Duration::from);
    tokio::select! {
        result = following => result,
        () = elapsed(span) => Ok(()),
        () = reader_gone() => Err(Failure::EnoughRead),
        interrupted = tokio::signal::ctrl_c() => interrupted.map_err(Failure::own),
    }
}

async fn elapsed(span: Option<Duration>) {
    match span {
        Some(span) => tokio::time::sleep(span).await,
        None => std::future::pending().await,
    }
}

/// Shows `left` states.
async fn follow(
    args: &template::Args,
    left: u64,
    states: &mut Observation,
    out: &mut impl Write,
) -> Result<(), Failure> {
    let mut shown = 0;
    while shown < left {
        let state = match states.next().await {
            Some(Err(Error::Answer(answer))) => {
                return answer::show_one_of_many(&args.answer, &answer, out);
            }
            Some(Err(missed @ Error::Missed(_))) => {
                say!("{missed}");
                continue;
            }
            Some(state) => state?,
            None => {
                // RFC 7641 s4.1 and s4.2: no Observe option, no observation, from now on.
                let never = if shown > 1 {
                    "ends the observation"
                } else {
                    "accepts no observation of this resource"
                };
                say!("the server {never}; no more notifications will come");
                return Ok(());
            }
        };
        answer::show_one_of_many(&args.answer, &state, out)?;
        shown += 1;
    }
    Ok(())
}

/// Shows `left` states of the members of a group, each with its member. A member that answers with an error does not end
/// the observation of the others.
async fn follow_group(
    args: &template::Args,
    left: u64,
    states: &mut GroupObservation,
    out: &mut impl Write,
) -> Result<(), Failure> {
    let wait = args.channel.group_patience(args.message.timeout);
    for shown in 0..left {
        let next = states.next();
        let state = if shown == 0 {
            tokio::time::timeout(wait, next).await.map_err(|_| Failure::no_member())?
        } else {
            next.await
        };
        let Some(state) = state else { return Ok(()) };
        let state = state?;
        say!("from {}", state.from.address);
        match answer::show_one_of_many(&args.answer, &state, out) {
            Err(Failure::Refused { message, .. }) => say!("{message}"),
            result => result?,
        }
    }
    Ok(())
}
