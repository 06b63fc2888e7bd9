//! `lowmesh get`, `put`, `post`, `delete`, `fetch`, `patch` and `ipatch`: one request, and its answer or, from
//! a group, all its answers (RFC 7252 s5.8 and s8, RFC 8132).

use std::io::Write;

use lowmesh_coap::{Input, Output, RequestTemplate};
use lowmesh_machine::Handle;
use lowmesh_wire::coap::Code;
use lowmesh_wire::coap::uri::Uri;

use crate::answer;
use crate::channel::{self, Channel, group_patience, patience, refused};
use crate::failure::Failure;
use crate::observe;
use crate::template::{Args, next_hop, template};

/// The one thing that is asked for.
const HANDLE: Handle = Handle(1);

/// Asks, and shows what comes.
pub fn execute(method: Code, args: &Args, out: &mut impl Write) -> Result<(), Failure> {
    let method = args.method.unwrap_or(method);
    if args.observe.is_some() {
        return observe::execute(method, args, None, out);
    }
    let (message, next_hop) = (template(method, args)?, next_hop(args)?);
    channel::wait(ask(args, &next_hop, message, out))
}

async fn ask(
    args: &Args,
    uri: &Uri,
    message: RequestTemplate,
    out: &mut impl Write,
) -> Result<(), Failure> {
    let limit = patience(args.timeout);
    let mut channel = Channel::open(&args.channel, uri, limit).await?;
    let (peer, handle) = (channel.peer, HANDLE);
    if peer.is_group() {
        if args.answer.output.is_some() {
            let message = "the answers of a group do not go into one file";
            return Err(Failure::usage(message, "--json prints them one a line"));
        }
        let wait = group_patience(args.timeout);
        channel
            .handle(Input::RequestGroup { group: peer, message, wait, handle })
            .map_err(refused)?;
        return gather(args, channel, out).await;
    }
    channel.handle(Input::Request { peer, message, handle }).map_err(refused)?;
    let answered = tokio::time::timeout(limit, follow(args, &mut channel, out)).await;
    let result = answered.unwrap_or_else(|_| Err(channel.silence(limit)));
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
            Output::Failed { reason, .. } => return Err(channel.failure(reason)),
            other => answer::tell(args.answer.verbose, &other),
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
                match answer::show_one_of_many(&args.answer, &message, from, Some(rtt), out) {
                    Err(refused @ Failure::Refused { .. }) => error = Some(refused),
                    shown => shown?,
                }
            }
            Output::Over { .. } if answers == 0 => return Err(Failure::no_member()),
            Output::Over { .. } => return error.map_or(Ok(()), Err),
            Output::Failed { reason, .. } => return Err(channel.failure(reason)),
            other => answer::tell(args.answer.verbose, &other),
        }
    }
}
