//! The values of a link on the command line: one for both directions, or two with a comma.

use std::str::FromStr;

use lowmesh_realtime::emulate::OpenError;
use lowmesh_units::Duration;
use lowmesh_wired::{Config, Loss};

use crate::failure::Failure;

/// How the link is.
#[derive(Debug, clap::Args)]
#[group(id = "link")]
pub struct Options {
    /// Bits per second, as in 30k or 1.5M
    #[arg(long, value_name = "RATE[,RATE]", value_parser = pair::<Rate>)]
    rate: Pair<Rate>,
    /// Time from one end to the other after serialisation
    #[arg(long, value_name = "TIME[,TIME]", default_value = "0s", value_parser = pair::<Duration>)]
    delay: Pair<Duration>,
    /// Time added to the delay of each packet, uniform up to TIME or from TIME to TIME; packets keep their order
    #[arg(long, value_name = "TIME[..TIME][,..]", default_value = "0s", value_parser = pair::<Jitter>)]
    jitter: Pair<Jitter>,
    /// Octets that may wait in the queue; further packets are dropped
    #[arg(long, value_name = "OCTETS[,OCTETS]", default_value = "64k", value_parser = pair::<Octets>)]
    queue: Pair<Octets>,
    /// Share of packets that are lost, as in 2% or 0.02, or bursts (Gilbert-Elliott) as ge:GOOD:BAD:MEAN-GOOD:MEAN-BAD,
    /// with the loss in both states and their mean times: ge:2%:50%:8s:1.5s
    #[arg(long, value_name = "LOSS[,LOSS]", default_value = "0", value_parser = pair::<LossValue>)]
    loss: Pair<LossValue>,
}

impl Options {
    /// The links from a to b and from b to a.
    pub fn configs(&self) -> Result<[Config; 2], Failure> {
        let config = |direction: usize| Config {
            rate_bits_per_second: self.rate.0[direction].0,
            delay: self.delay.0[direction],
            jitter: self.jitter.0[direction].0,
            queue_octets_max: self.queue.0[direction].0,
            loss: self.loss.0[direction].0,
            samples_max: 0,
        };
        let configs = [config(0), config(1)];
        for config in &configs {
            config.check().map_err(OpenError::from)?;
        }
        Ok(configs)
    }
}

/// A value for each direction.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Pair<T>([T; 2]);

fn pair<T: FromStr + Copy>(text: &str) -> Result<Pair<T>, String>
where
    T::Err: ToString,
{
    let read = |part: &str| part.trim().parse::<T>().map_err(|error| error.to_string());
    match text.split_once(',') {
        Some((forth, back)) => Ok(Pair([read(forth)?, read(back)?])),
        None => read(text).map(|value| Pair([value; 2])),
    }
}

/// Bits per second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Rate(u64);

impl FromStr for Rate {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let plain = text.strip_suffix("bit/s").or(text.strip_suffix("bit")).unwrap_or(text);
        number(plain).filter(|rate| *rate > 0).map(Self).ok_or_else(|| {
            format!("`{text}` is not a rate: write bits per second, as in 30k, 1.5M or 250000")
        })
    }
}

/// A length of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Octets(u64);

impl FromStr for Octets {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        number(text)
            .map(Self)
            .ok_or_else(|| format!("`{text}` is not a length: write octets, as in 2500 or 64k"))
    }
}

/// A number with k, M or G behind it.
fn number(text: &str) -> Option<u64> {
    let factors = [('k', 1e3), ('M', 1e6), ('G', 1e9)];
    let factor = factors.iter().find(|(letter, _)| text.ends_with(*letter));
    let digits = factor.map_or(text, |(letter, _)| text.trim_end_matches(*letter));
    let is_plain = digits.chars().all(|c| c.is_ascii_digit() || c == '.');
    let value = digits.parse::<f64>().ok().filter(|_| is_plain)?;
    let value = (value * factor.map_or(1.0, |(_, factor)| *factor)).round();
    (value < 1e18).then_some(value as u64)
}

/// The least and the largest jitter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Jitter((Duration, Duration));

impl FromStr for Jitter {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let read = |part: &str| part.parse::<Duration>().map_err(|error| error.to_string());
        match text.split_once("..") {
            Some((least, most)) => Ok(Self((read(least)?, read(most)?))),
            None => Ok(Self((Duration::ZERO, read(text)?))),
        }
    }
}

/// A loss process.
#[derive(Clone, Copy, Debug, PartialEq)]
struct LossValue(Loss);

impl FromStr for LossValue {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(parts) = text.strip_prefix("ge:") {
            let parts: Vec<&str> = parts.split(':').collect();
            let [good, bad, mean_good, mean_bad] = parts[..] else {
                return Err(format!("`{text}` does not have four values, as in ge:2%:50%:8s:1.5s"));
            };
            let span = |part: &str| part.parse::<Duration>().map_err(|error| error.to_string());
            let (good, bad) = (share(good)?, share(bad)?);
            let (mean_good, mean_bad) = (span(mean_good)?, span(mean_bad)?);
            return Ok(Self(Loss::GilbertElliott { good, bad, mean_good, mean_bad }));
        }
        let probability = share(text)?;
        let loss = if probability > 0.0 { Loss::Independent { probability } } else { Loss::None };
        Ok(Self(loss))
    }
}

fn share(text: &str) -> Result<f64, String> {
    let (digits, unit) = text.strip_suffix('%').map_or((text, 1.0), |digits| (digits, 0.01));
    let value = digits.parse::<f64>().ok().map(|value| value * unit);
    value.filter(|value| (0.0..=1.0).contains(value)).ok_or_else(|| {
        format!("`{text}` is not a share: write 0 to 1 or 0% to 100%, or ge:2%:50%:8s:1.5s")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_value_counts_for_both_directions_and_two_for_one_each() {
        assert_eq!(pair::<Rate>("30k"), Ok(Pair([Rate(30_000); 2])));
        assert_eq!(pair::<Rate>("60kbit/s,1.5M"), Ok(Pair([Rate(60_000), Rate(1_500_000)])));
        let span = Duration::from_millis;
        assert_eq!(pair::<Duration>("200ms,400ms"), Ok(Pair([span(200), span(400)])));
        assert_eq!(
            pair::<Jitter>("10ms..20ms,5ms"),
            Ok(Pair([Jitter((span(10), span(20))), Jitter((span(0), span(5)))]))
        );
        assert_eq!(pair::<Octets>("2500,1.41M"), Ok(Pair([Octets(2_500), Octets(1_410_000)])));
    }

    #[test]
    fn loss_is_a_share_or_bursts() {
        let loss = |text: &str| text.parse::<LossValue>().map(|value| value.0);
        assert_eq!(loss("0"), Ok(Loss::None));
        assert_eq!(loss("2%"), Ok(Loss::Independent { probability: 0.02 }));
        assert_eq!(
            loss("ge:2%:0.5:8s:1500ms"),
            Ok(Loss::GilbertElliott {
                good: 0.02,
                bad: 0.5,
                mean_good: Duration::from_secs(8),
                mean_bad: Duration::from_millis(1_500),
            })
        );
    }

    #[test]
    fn a_wrong_value_says_what_is_right() {
        for (error, right) in [
            (pair::<Rate>("fast").map(|_| ()), "as in 30k"),
            (pair::<Rate>("0").map(|_| ()), "bits per second"),
            (pair::<Rate>("-3k").map(|_| ()), "bits per second"),
            (pair::<Duration>("soon").map(|_| ()), "not a duration"),
            (pair::<Octets>("2500B").map(|_| ()), "write octets"),
            (pair::<LossValue>("200%").map(|_| ()), "0% to 100%"),
            (pair::<LossValue>("ge:2%:50%").map(|_| ()), "four values"),
        ] {
            let error = error.expect_err("a wrong value");
            assert!(error.contains(right), "{error}");
        }
    }
}
