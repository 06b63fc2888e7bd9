//! `lowmesh observe`, and `-s` of `get` and `fetch`: a resource's state, each time it changes (RFC 7641).
//!
//! However the observation ends (time, count, Ctrl-C, no reader), it is deregistered at the server (s3.6).

use std::io::Write;
use std::time::Duration;

use lowmesh_net::client::{Error, Observation};
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
    if target.group {
        let hint = "`lowmesh discover` finds its members";
        return Err(Failure::usage("a group is not observed, but each of its members", hint));
    }
    let request = client.request(method, &target.uri).template(message);
    let result = match request.observe().await {
        Ok(states) => watch(args, count, states, out).await,
        Err(Error::Answer(answer)) => answer::show(&args.answer, &answer, out),
        Err(error) => Err(error.into()),
    };
    client.close().await?;
    result
}

async fn watch(
    args: &template::Args,
    count: Option<u64>,
    mut states: Observation,
    out: &mut impl Write,
) -> Result<(), Failure> {
    let span = args.observe.map(Duration::from);
    let result = tokio::select! {
        result = follow(args, count.unwrap_or(u64::MAX), &mut states, out) => result,
        () = elapsed(span) => Ok(()),
        () = reader_gone() => Err(Failure::EnoughRead),
        interrupted = tokio::signal::ctrl_c() => interrupted.map_err(Failure::own),
    };
    states.end().await;
    result
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
    for shown in 0..left {
        let state = match states.next().await {
            Some(Err(Error::Answer(answer))) => {
                return answer::show_one_of_many(&args.answer, &answer, out);
            }
            Some(state) => state?,
            None => {
                // RFC 7641 s4.1 and s4.2: no Observe option, no observation, from now on.
                let never =
                    if shown > 1 { "ends the observation" } else { "does not observe this" };
                say!("the server {never}; no more notifications will come");
                return Ok(());
            }
        };
        answer::show_one_of_many(&args.answer, &state, out)?;
    }
    Ok(())
}
