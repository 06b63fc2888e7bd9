//! `lowmesh get`, `put`, `post`, `delete`, `fetch`, `patch` and `ipatch`: one request, and its answer or, from
//! a group, all its answers (RFC 7252 s5.8 and s8, RFC 8132).

use std::io::Write;

use lowmesh_net::client::{Error, Request, Response};
use lowmesh_wire::coap::Code;

use crate::answer;
use crate::channel::{self, patience};
use crate::console::say;
use crate::failure::Failure;
use crate::observe;
use crate::template::{Args, next_hop, template};

/// Sends the request and shows the answers.
pub fn execute(method: Code, args: &Args, out: &mut impl Write) -> Result<(), Failure> {
    let method = args.message.method.unwrap_or(method);
    if args.observe.is_some() {
        return observe::execute(method, args, None, out);
    }
    args.answer.check()?;
    let (message, next_hop) = (template(method, args)?, next_hop(args)?);
    let client = args.channel.client(patience(args.message.timeout), args.answer.verbose)?;
    channel::wait(async {
        let target = args.channel.target(next_hop).await?;
        let request = client.request(message.code, &target.uri).template(message);
        let group = target.group;
        let asking = async {
            if group { gather(args, request, out).await } else { ask(args, request, out).await }
        };
        // A change that has begun is finished, whether or not anybody reads its result.
        let result = match method {
            Code::GET | Code::FETCH => channel::while_read(asking).await,
            _ => asking.await,
        };
        client.close().await?;
        result
    })
}

/// Shows the one answer.
async fn ask(args: &Args, request: Request<'_>, out: &mut impl Write) -> Result<(), Failure> {
    match request.await {
        Ok(answer) => answer::show(&args.answer, &answer, out),
        // No-Response (RFC 7967) was obeyed.
        Err(Error::Unwanted) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Shows the answers of a group, each as it comes, until the time is over.
async fn gather(args: &Args, request: Request<'_>, out: &mut impl Write) -> Result<(), Failure> {
    if args.answer.output.is_some() {
        let message = "one file cannot hold the responses of a group";
        return Err(Failure::usage(message, "--json prints one response per line"));
    }
    let mut exchange =
        request.begin_group(args.channel.group_patience(args.message.timeout)).await?;
    let (mut answers, mut refusal) = (0, None);
    while let Some(item) = exchange.next().await {
        let Some(answer) = Response::of(item?) else { continue };
        answers += 1;
        say!("from {}", answer.from.address);
        match answer::show_one_of_many(&args.answer, &answer, out) {
            Err(refused @ Failure::Refused { .. }) => refusal = Some(refused),
            shown => shown?,
        }
    }
    match (answers, refusal) {
        (0, _) => Err(Failure::no_member()),
        (_, Some(refusal)) => Err(refusal),
        (_, None) => Ok(()),
    }
}
