//! The medium named `k7`: a trace played back in time, as the 6TiSCH simulator does.
//!
//! At the start every row before the first repeated (transmitter, receiver, channel) holds: one round of
//! the measurement. Each later row replaces its link when its time comes. A link that falls silent keeps
//! its last values, since silence leaves no row; after the last row nothing changes any more.

use std::collections::BTreeSet;

use lowmesh_registry::{Parameter, Row as MediumRow};
use lowmesh_units::{Dbm, Instant, NodeId};

use super::k7::{K7, Row};
use super::links::{Link, Links, Spectrum};
use super::params::PISTER_HACK_NOISE_DBM;
use super::row::{MakeMedium, Needs, SECTION, read};
use super::{Medium, Overlap};

/// The row of [`Playback`].
pub static ROW: MediumRow<dyn Medium> = MediumRow {
    name: "k7",
    summary: "A connectivity trace in the K7 format",
    section: SECTION,
    parameters: &[Parameter::file(
        "file",
        EXAMPLE,
        "The file, plain or gzip, relative to the scenario's folder",
    )],
    make: MakeMedium {
        needs: Needs::Table(|_| None),
        build: |choice, _, _| {
            let file = choice.text("file");
            Ok(Box::new(Playback::new(K7::parse(&file, &read(&file)?)?)))
        },
    },
};

/// A trace of two nodes with a change at 20 s.
const EXAMPLE: &str = "\
{\"location\":\"x\",\"node_count\":2,\"channels\":[11],\"start_date\":\"2018-01-11T00:00:00\"}
datetime,src,dst,channel,mean_rssi,pdr,tx_count
2018-01-11T00:00:00,0,1,11,-60,1.0,100
2018-01-11T00:00:10,1,0,11,-62,1.0,100
2018-01-11T00:00:20,0,1,11,-66,0.5,100
";

/// A trace being played back.
#[derive(Clone, Debug)]
pub struct Playback {
    links: Links,
    rows: Vec<Row>,
    /// The first row that does not hold yet.
    next: usize,
}

impl Playback {
    /// `trace` at the start of a run.
    pub fn new(trace: K7) -> Self {
        let mut heard = vec![BTreeSet::new(); trace.node_count];
        for row in &trace.rows {
            heard[row.src.index()].insert(row.dst);
        }
        let receivers: Vec<Vec<NodeId>> =
            heard.into_iter().map(|row| row.into_iter().collect()).collect();
        let links = Links::silent(&receivers, Spectrum::PerChannel);
        let first_round = first_repeated(&trace.rows);
        let mut playback = Self { links, rows: trace.rows, next: 0 };
        playback.apply(first_round);
        playback
    }

    /// Makes the rows before index `end` hold.
    fn apply(&mut self, end: usize) {
        for row in &self.rows[self.next..end] {
            let link = Link::dictated(row.rssi, row.pdr);
            let known = self.links.set(row.src, row.dst, row.channel, Some(link));
            debug_assert!(known, "the table was made for every pair of the trace");
        }
        self.next = end;
    }
}

/// Index of the first row whose link and channel stood before.
fn first_repeated(rows: &[Row]) -> usize {
    let mut seen = BTreeSet::new();
    let fresh = |row: &Row| seen.insert((row.src, row.dst, row.channel));
    rows.iter().map(fresh).position(|fresh| !fresh).unwrap_or(rows.len())
}

impl Medium for Playback {
    fn name(&self) -> &'static str {
        ROW.name
    }
    fn links(&self) -> &Links {
        &self.links
    }
    fn overlap(&self) -> Overlap {
        Overlap::DictatedPdr
    }
    fn noise(&self) -> Dbm {
        Dbm(PISTER_HACK_NOISE_DBM)
    }
    fn next_change(&self) -> Option<Instant> {
        self.rows.get(self.next).map(|row| Instant::ZERO + row.at)
    }
    fn advance(&mut self, now: Instant) {
        let due = self.rows[self.next..].partition_point(|row| Instant::ZERO + row.at <= now);
        self.apply(self.next + due);
    }
}

#[cfg(test)]
mod tests {
    use lowmesh_units::{Channel, Duration};

    use super::*;

    #[test]
    fn the_first_round_holds_at_once_and_later_rows_at_their_time() {
        let channel = Channel::new(11).expect("a channel of the band");
        let row = |s: u64, src: u16, dst: u16, pdr: f64| Row {
            at: Duration::from_secs(s),
            src: NodeId(src),
            dst: NodeId(dst),
            channel,
            rssi: Dbm(-70.0),
            pdr,
        };
        let rows =
            vec![row(0, 0, 1, 0.9), row(5, 1, 0, 0.8), row(9, 0, 1, 0.7), row(12, 1, 2, 0.6)];
        let trace = K7 { location: "here".into(), node_count: 3, channels: vec![channel], rows };
        let mut medium = Playback::new(trace);
        let percent = |medium: &Playback, tx, rx| {
            let p = medium.reception_probability(NodeId(tx), NodeId(rx), channel, 50);
            libm::round(p * 100.0) as u8
        };
        assert_eq!(
            [percent(&medium, 0, 1), percent(&medium, 1, 0), percent(&medium, 1, 2)],
            [90, 80, 0]
        );
        assert_eq!(medium.next_change(), Some(Instant::from_secs(9)));
        medium.advance(Instant::from_secs(8));
        assert_eq!(medium.next_change(), Some(Instant::from_secs(9)));
        medium.advance(Instant::from_secs(9));
        assert_eq!([percent(&medium, 0, 1), percent(&medium, 1, 2)], [70, 0]);
        medium.advance(Instant::from_secs(100));
        assert_eq!([percent(&medium, 0, 1), percent(&medium, 1, 2)], [70, 60]);
        assert_eq!(medium.next_change(), None);
    }
}
