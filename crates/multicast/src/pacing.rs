//! Times above a MAC that has cells for broadcasts.
//!
//! Neighbours that hear a packet in one cell and forward it in the same later cell always collide: a broadcast has no
//! back-off. So waits are whole numbers of cells, and Trickle intervals span enough of them.

use lowmesh_trickle::Settings;
use lowmesh_units::{Duration, Rng};

use crate::params::LATENCIES_OF_IMIN;

/// A wait of 0 to `cells` - 1 cells, by chance.
pub(crate) fn wait(rng: &mut Rng, period: Duration, cells: u32) -> Duration {
    let cells = if cells < 2 { 0 } else { rng.below(cells) };
    period.saturating_mul(u64::from(cells))
}

/// The settings of a timer whose shortest interval has ten broadcast cells at least.
pub(crate) fn spread(settings: Settings, period: Option<Duration>) -> Settings {
    let Some(period) = period else { return settings };
    // RFC 7731 s5.4: Imin is ten times the latency of the link layer.
    let least = period.saturating_mul(LATENCIES_OF_IMIN);
    Settings { imin: settings.imin.max(least), ..settings }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowmesh_units::{NodeId, Purpose, Seed};

    #[test]
    fn a_wait_is_a_whole_number_of_cells() {
        let mut rng = Rng::stream(Seed(1), NodeId(0), Purpose::Multicast);
        let period = Duration::from_millis(310);
        let waits: Vec<_> = (0..100).map(|_| wait(&mut rng, period, 4)).collect();
        assert!((0..4).all(|cells| waits.contains(&(period * cells))), "{waits:?}");
        assert!(waits.iter().all(|wait| *wait <= period * 3), "{waits:?}");
        assert_eq!(wait(&mut rng, period, 1), Duration::ZERO);
    }

    #[test]
    fn an_interval_has_ten_cells_where_there_are_cells() {
        let settings = Settings { imin: Duration::from_millis(100), doublings: 0, redundancy: 1 };
        assert_eq!(spread(settings, None), settings);
        let imin = spread(settings, Some(Duration::from_millis(310))).imin;
        assert_eq!(imin, Duration::from_millis(3100));
        assert_eq!(spread(settings, Some(Duration::from_millis(1))), settings);
    }
}
