//! The measured link qualities that belong to the scenario drawn.

use std::collections::BTreeMap;

use anyhow::{Context, Result};

use super::trace::Node;

/// Channels of the band; one on which nothing was ever heard has no line and counts as 0.
const CHANNELS: f64 = 16.0;

/// Share of frames that arrive, for each directed link, as mean over the channels.
#[derive(Debug)]
pub struct Qualities(BTreeMap<(Node, Node), f64>);

impl Qualities {
    /// Reads lines of `src,dst,channel,rssi_dbm,pdr`.
    pub fn parse(text: &str) -> Result<Self> {
        let mut sums = BTreeMap::new();
        let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
        for line in lines.skip(1) {
            let row = || {
                let mut fields = line.split(',');
                let link = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
                let pdr: f64 = fields.nth(2)?.parse().ok()?;
                Some((link, pdr))
            };
            let (link, pdr) = row().with_context(|| format!("not a link: {line}"))?;
            *sums.entry(link).or_default() += pdr / CHANNELS;
        }
        Ok(Self(sums))
    }

    /// Quality from `from` to `to`.
    pub fn get(&self, from: Node, to: Node) -> f64 {
        self.0.get(&(from, to)).copied().unwrap_or(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn channels_without_a_line_count_as_zero() {
        let text = "# head\nsrc,dst,channel,rssi_dbm,pdr\n1,0,11,-70,1.0\n1,0,12,-70,0.6\n";
        let links = Qualities::parse(text).expect("a good table");
        assert!((links.get(1, 0) - 0.1).abs() < 1e-12);
        assert!(links.get(0, 1) < f64::EPSILON, "never heard");
        assert!(Qualities::parse("head\n1,0,11").is_err());
    }
}
