//! `lowmesh ping`: whether an endpoint is there, by an empty CON that is answered with RST (RFC 7252 s4.3), or
//! over connections by 7.02 and 7.03 (RFC 8323 s5.4).

use std::io::Write;
use std::time::Duration;

use lowmesh_coap::{Input, Output};
use lowmesh_machine::Handle;

use crate::answer;
use crate::channel::{self, Channel, patience, refused};
use crate::failure::Failure;
use crate::template::seconds;

/// The command line of `ping`
#[derive(Debug, clap::Args)]
#[command(after_help = "Exit codes: 0 somebody is there, 2 usage, 3 no answer, 6 security.")]
pub struct Args {
    /// A host, or a URI
    #[arg(value_name = "HOST|URI")]
    target: String,
    /// How often to ask
    #[arg(short, long, value_name = "NUMBER", default_value_t = 4,
          value_parser = clap::value_parser!(u64).range(1..))]
    count: u64,
    /// Seconds from an answer to the next question
    #[arg(short, long, value_name = "SECONDS", default_value = "1", value_parser = seconds)]
    interval: f64,
    /// Seconds to wait for each answer
    #[arg(short = 'B', long, value_name = "SECONDS", default_value = "10", value_parser = seconds)]
    timeout: f64,
    /// One JSON object at the end
    #[arg(long)]
    json: bool,
    /// Show timers on stderr
    #[arg(short, long)]
    verbose: bool,
    #[command(flatten)]
    channel: channel::Args,
}

/// What came of all pings.
#[derive(Default)]
struct Tally {
    /// Milliseconds there and back of each ping; `None` for those that were lost.
    rtts_ms: Vec<Option<f64>>,
    /// Why the newest lost one was.
    loss: Option<Failure>,
}

/// Pings, and sums up.
pub fn execute(args: &Args, out: &mut impl Write) -> Result<(), Failure> {
    let uri = channel::host_or_uri(&args.target)?;
    channel::wait(async {
        let limit = patience(Some(args.timeout));
        let mut channel = Channel::open(&args.channel, &uri, limit).await?;
        if channel.peer.is_group() {
            // RFC 7252 s8.1: no CON goes to a group.
            let hint = "`lowmesh discover` finds its members";
            return Err(Failure::usage("a group is not pinged, but each of its members", hint));
        }
        let mut tally = Tally::default();
        let result = tokio::select! {
            result = ping(args, &mut channel, &mut tally, out) => result,
            interrupted = tokio::signal::ctrl_c() => interrupted.map_err(Failure::own),
        };
        result?;
        sum_up(args, &channel, &tally, out)?;
        channel.close().await;
        let answered = tally.rtts_ms.iter().any(Option::is_some);
        tally.loss.filter(|_| !answered).map_or(Ok(()), Err)
    })
}

async fn ping(
    args: &Args,
    channel: &mut Channel,
    tally: &mut Tally,
    out: &mut impl Write,
) -> Result<(), Failure> {
    let limit = patience(Some(args.timeout));
    for number in 1..=args.count {
        let handle = Handle(number);
        channel.handle(Input::Ping { peer: channel.peer, handle }).map_err(refused)?;
        let answered = tokio::time::timeout(limit, pong(args, channel, handle)).await;
        let pong = if let Ok(pong) = answered {
            pong?
        } else {
            channel.handle(Input::Cancel { handle }).map_err(refused)?;
            Err(channel.silence(limit))
        };
        let rtt_ms = pong.as_ref().ok().map(|(rtt, _)| rtt.as_secs_f64() * 1000.0);
        tally.rtts_ms.push(rtt_ms);
        if !args.json {
            writeln!(out, "{}: {}", channel.peer, line(number, &pong))?;
            out.flush()?;
        }
        tally.loss = pong.err().or(tally.loss.take());
        if matches!(tally.loss, Some(Failure::Security { .. })) {
            return Ok(());
        }
        if number < args.count {
            // The other end may want something meanwhile.
            let pause = Duration::from_secs_f64(args.interval);
            let _over = tokio::time::timeout(pause, listen(args, channel)).await;
        }
    }
    Ok(())
}

type Pong = Result<(lowmesh_units::Duration, u8), Failure>;

async fn pong(args: &Args, channel: &mut Channel, wanted: Handle) -> Result<Pong, Failure> {
    loop {
        match channel.next().await? {
            Output::Pong { handle, rtt, retransmissions } if handle == wanted => {
                return Ok(Ok((rtt, retransmissions)));
            }
            Output::Failed { handle, reason } if handle == wanted => {
                return Ok(Err(channel.failure(reason)));
            }
            other => answer::tell(args.verbose, &other),
        }
    }
}

/// Until somebody has heard enough.
async fn listen(args: &Args, channel: &mut Channel) -> Result<(), Failure> {
    loop {
        answer::tell(args.verbose, &channel.next().await?);
    }
}

fn line(number: u64, pong: &Pong) -> String {
    match pong {
        Ok((rtt, 0)) => format!("ping {number}: {:.3} ms", rtt.as_secs_f64() * 1000.0),
        Ok((rtt, copies)) => {
            let time = rtt.as_secs_f64() * 1000.0;
            format!("ping {number}: {time:.3} ms, after {copies} retransmissions")
        }
        Err(_) => format!("ping {number}: lost"),
    }
}

fn sum_up(
    args: &Args,
    channel: &Channel,
    tally: &Tally,
    out: &mut impl Write,
) -> Result<(), Failure> {
    let answered: Vec<f64> = tally.rtts_ms.iter().copied().flatten().collect();
    let (sent, count) = (tally.rtts_ms.len(), answered.len());
    let least = answered.iter().copied().reduce(f64::min);
    let most = answered.iter().copied().reduce(f64::max);
    let mean = (count > 0).then(|| answered.iter().sum::<f64>() / count as f64);
    if args.json {
        let object = serde_json::json!({
            "schema": 1,
            "peer": channel.peer.to_string(),
            "sent": sent,
            "answered": count,
            "rtts_ms": tally.rtts_ms,
            "rtt_min_ms": least,
            "rtt_mean_ms": mean,
            "rtt_max_ms": most,
        });
        writeln!(out, "{object}")?;
        return Ok(());
    }
    write!(out, "{sent} sent, {count} answered")?;
    if let (Some(least), Some(mean), Some(most)) = (least, mean, most) {
        write!(out, "; min {least:.3}, mean {mean:.3}, max {most:.3} ms")?;
    }
    Ok(writeln!(out)?)
}
