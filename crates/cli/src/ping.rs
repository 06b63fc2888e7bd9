//! `lowmesh ping`: whether an endpoint is there, by an empty CON that is answered with RST (RFC 7252 s4.3), or
//! over connections by 7.02 and 7.03 (RFC 8323 s5.4).

use std::fmt::Display;
use std::io::Write;

use lowmesh_net::client::{Client, Pong};
use lowmesh_units::Duration;

use crate::channel::{self, Target, patience};
use crate::console::reader_gone;
use crate::duration;
use crate::failure::Failure;

/// The command line of `ping`
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Host or URI
    #[arg(value_name = "HOST|URI")]
    target: String,
    #[command(flatten)]
    pace: Pace,
    /// Print one JSON object at the end
    #[arg(long)]
    json: bool,
    /// Show timers on stderr
    #[arg(short, long)]
    verbose: bool,
    #[command(flatten)]
    channel: channel::Args,
}

/// How many pings there are, and when.
#[derive(Debug, clap::Args)]
#[group(id = "pace")]
pub struct Pace {
    /// Number of pings
    #[arg(short, long, value_name = "NUMBER", default_value_t = 4,
          value_parser = clap::value_parser!(u64).range(1..))]
    pub count: u64,
    /// Time from a reply to the next ping
    #[arg(short, long, value_name = "TIME", default_value = "1s", value_parser = duration::wait)]
    pub interval: Duration,
    /// Time to wait for each reply
    #[arg(short = 'B', long, value_name = "TIME", default_value = "10s", value_parser = duration::wait)]
    pub timeout: Duration,
}

/// The results of all pings.
#[derive(Default)]
pub struct Tally {
    /// Milliseconds there and back of each ping; `None` for those that were lost.
    pub rtts_ms: Vec<Option<f64>>,
}

/// Pings, and sums up.
pub fn execute(args: &Args, out: &mut impl Write) -> Result<(), Failure> {
    let uri = channel::host_or_uri(&args.target)?;
    let client = args.channel.client(patience(Some(args.pace.timeout)), args.verbose)?;
    channel::wait(async {
        let target = args.channel.target(uri).await?;
        if target.group {
            // RFC 7252 s8.1: no CON goes to a group.
            let hint = "`lowmesh discover` finds its members";
            return Err(Failure::usage("a group cannot be pinged; ping each of its members", hint));
        }
        let (mut tally, mut loss) = (Tally::default(), None);
        let result = tokio::select! {
            result = ping(args, &client, &target, (&mut tally, &mut loss), out) => result,
            () = reader_gone() => Err(Failure::EnoughRead),
            interrupted = tokio::signal::ctrl_c() => interrupted.map_err(Failure::own),
        };
        result?;
        tally.sum_up(&target.address, args.json, out)?;
        client.close().await?;
        loss.filter(|_| tally.answered() == 0).map_or(Ok(()), Err)
    })
}

/// Pings, and keeps the failure of the newest ping that was lost.
async fn ping(
    args: &Args,
    client: &Client,
    target: &Target,
    (tally, loss): (&mut Tally, &mut Option<Failure>),
    out: &mut impl Write,
) -> Result<(), Failure> {
    for number in 1..=args.pace.count {
        let pong = client.ping(&target.uri).await;
        let rtt_ms = pong.as_ref().ok().map(|pong| pong.rtt.as_secs_f64() * 1000.0);
        tally.rtts_ms.push(rtt_ms);
        if !args.json {
            writeln!(out, "{}: {}", target.address, line(number, pong.as_ref().ok()))?;
            out.flush()?;
        }
        *loss = pong.err().map(Failure::from).or(loss.take());
        if matches!(loss, Some(Failure::Security { .. })) {
            return Ok(());
        }
        if number < args.pace.count {
            tokio::time::sleep(args.pace.interval.into()).await;
        }
    }
    Ok(())
}

fn line(number: u64, pong: Option<&Pong>) -> String {
    let Some(Pong { rtt, retransmissions }) = pong else { return format!("ping {number}: lost") };
    let time = rtt.as_secs_f64() * 1000.0;
    match retransmissions {
        0 => format!("ping {number}: {time:.3} ms"),
        copies => format!("ping {number}: {time:.3} ms, after {copies} retransmissions"),
    }
}

impl Tally {
    /// Pings that were answered.
    pub fn answered(&self) -> usize {
        self.rtts_ms.iter().flatten().count()
    }

    /// Prints how many pings were answered, and how fast.
    pub fn sum_up(
        &self,
        peer: &impl Display,
        json: bool,
        out: &mut impl Write,
    ) -> Result<(), Failure> {
        let answered = || self.rtts_ms.iter().copied().flatten();
        let (sent, count) = (self.rtts_ms.len(), self.answered());
        let least = answered().reduce(f64::min);
        let most = answered().reduce(f64::max);
        let mean = (count > 0).then(|| answered().sum::<f64>() / count as f64);
        if json {
            let object = serde_json::json!({
                "schema": 1,
                "peer": peer.to_string(),
                "sent": sent,
                "answered": count,
                "lost": sent - count,
                "rtts_ms": self.rtts_ms,
                "rtt_min_ms": least,
                "rtt_mean_ms": mean,
                "rtt_max_ms": most,
            });
            writeln!(out, "{object}")?;
            return Ok(());
        }
        write!(out, "{sent} sent, {count} answered, {} lost", sent - count)?;
        if sent > 0 {
            write!(out, " ({:.0} %)", 100.0 * (sent - count) as f64 / sent as f64)?;
        }
        if let (Some(least), Some(mean), Some(most)) = (least, mean, most) {
            write!(out, "; min {least:.3}, mean {mean:.3}, max {most:.3} ms")?;
        }
        Ok(writeln!(out)?)
    }
}
