//! Media given as a table: `fixed` (a matrix of PDRs) and `link-table` (mean RSSI and PDR of each
//! directed link and channel), with the Grenoble measurement built in.
//!
//! # From a trace to means
//!
//! In a K7 trace a node sends 100 frames on one channel (a transaction); each node that heard any writes
//! one row, the others write nothing. The nodes send in turn, channel by channel: a run of rows on one
//! channel in which no link repeats is a sweep, and every transmitter in it has one transaction.
//!
//! - `pdr` is the sum over the link's rows divided by the transactions of (transmitter, channel): a
//!   silence counts as 0.
//! - Transactions after the last sweep in which the receiver reported anything, from anyone on any
//!   channel, do not count: a receiver that went mute for good is missing data and not a bad link. In
//!   Grenoble this is so for node 7 after 3 of 19 rounds and node 35 after 8; both kept sending.
//! - `rssi_dbm` is the mean over the frames received, since the others have none.
//! - A transaction that nobody at all heard leaves no trace and cannot count; in Grenoble every
//!   transmitter was heard in all 19 rounds on all 16 channels.

mod columns;

use core::fmt::Write as _;
use std::collections::{BTreeMap, BTreeSet};

use lowmesh_registry::{Parameter, Row as MediumRow};
use lowmesh_units::{Channel, Dbm, NodeId};

use super::error::{ConfigError, TextError};
use super::k7::{K7, Row};
use super::links::{Link, Links, Spectrum};
use super::params::{GRENOBLE_NODES, PISTER_HACK_NOISE_DBM};
use super::pister_hack::rssi_of_pdr;
use super::row::{MakeMedium, Needs, SECTION, read, unreadable};
use super::{Fields, Medium, Overlap, data_lines};
use columns::LinkRow;

/// A directed link on one channel: transmitter, receiver, channel.
type LinkKey = (NodeId, NodeId, Channel);

/// Mean values of one directed link on one channel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinkMean {
    /// Mean received power of the frames received.
    pub rssi: Dbm,
    /// Frames received of all sent, 0 to 1.
    pub pdr: f64,
}

/// Mean values of all links of a deployment.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkTable {
    nodes: usize,
    means: BTreeMap<LinkKey, LinkMean>,
}

impl LinkTable {
    /// The built-in measurement of 50 nodes in Grenoble (FIT IoT-LAB, January 2018).
    pub fn grenoble() -> Self {
        Self::parse("grenoble.csv", include_str!("../../data/grenoble.csv"))
            .expect("the built-in table is checked by a test")
    }

    /// Reads lines such as `src,dst,pdr` under a line that names the columns; `#` starts a comment.
    ///
    /// The columns are `src`, `dst` and at least one of `pdr`, `etx` and `rssi_dbm`, in any order. Without the column
    /// `channel`, a line is about all channels.
    ///
    /// ```
    /// use lowmesh_sim::air::link_table::LinkTable;
    ///
    /// let table = LinkTable::parse("links.csv", "src,dst,pdr\n0,1,0.9\n1,0,0.8\n")?;
    /// assert_eq!((table.nodes(), table.means().len()), (2, 2 * 16));
    /// # Ok::<(), lowmesh_sim::air::error::TextError>(())
    /// ```
    pub fn parse(file: &str, text: &str) -> Result<Self, TextError> {
        let mut lines = data_lines(text);
        let (line, names) = lines.next().unwrap_or((1, ""));
        let columns = columns::read(&mut Fields::new(file, line, names), names)?;
        let mut means = BTreeMap::new();
        let mut nodes = 0;
        for (line, text) in lines {
            let mut fields = Fields::new(file, line, text);
            let LinkRow { src, dst, channel, mean } = LinkRow::read(&columns, &mut fields)?;
            nodes = nodes.max(src.index() + 1).max(dst.index() + 1);
            let channels = channel.map_or_else(all_channels, |one| vec![one]);
            for channel in channels {
                if means.insert((src, dst, channel), mean).is_some() {
                    let problem = format!("the link from {src} to {dst} is listed twice");
                    return Err(fields.error(1, problem, "one line for each link and channel"));
                }
            }
        }
        Ok(Self { nodes, means })
    }

    /// The table in which a link that has one direction only has the same values in the other.
    pub fn symmetric(mut self) -> Self {
        for ((src, dst, channel), mean) in self.means.clone() {
            self.means.entry((dst, src, channel)).or_insert(mean);
        }
        self
    }

    /// Refuses a table in which no frame could ever reach the root and be acknowledged.
    fn check(&self, file: &str) -> Result<(), ConfigError> {
        let keys = || self.means.keys();
        if !keys().any(|(src, dst, _)| src.index() == 0 || dst.index() == 0) {
            let allowed = "node 0, the root, has no link; nodes count from 0, so subtract 1 from each if yours count from 1";
            return Err(ConfigError::new("radio.file", &file, allowed));
        }
        let linked: BTreeSet<usize> =
            keys().flat_map(|(src, dst, _)| [src.index(), dst.index()]).collect();
        if let Some(missing) = (0..self.nodes).find(|node| !linked.contains(node)) {
            let allowed =
                format!("node {missing} has no link and can never join; number nodes without gaps");
            return Err(ConfigError::new("radio.file", &file, allowed));
        }
        let both = |(src, dst, channel): &LinkKey| self.means.contains_key(&(*dst, *src, *channel));
        if !keys().any(both) {
            let allowed = format!(
                "every link of {file} has one direction only, so no frame is acknowledged; \
                 add `--set radio.symmetric=true` if each line is for both directions"
            );
            return Err(ConfigError::new("radio.symmetric", &false, allowed));
        }
        Ok(())
    }

    /// The means over a whole trace (see the module's head for how silences count).
    pub fn from_k7(trace: &K7) -> Self {
        let mut sweeps = Sweeps::default();
        let mut transactions: BTreeMap<(NodeId, Channel), Vec<u32>> = BTreeMap::new();
        let mut last_report = vec![0; trace.node_count];
        let mut sums: BTreeMap<LinkKey, (f64, f64)> = BTreeMap::new();
        for row in &trace.rows {
            let sweep = sweeps.of(row);
            let sent = transactions.entry((row.src, row.channel)).or_default();
            if sent.last() != Some(&sweep) {
                sent.push(sweep);
            }
            last_report[row.dst.index()] = sweep;
            let (pdr, weighted) = sums.entry((row.src, row.dst, row.channel)).or_default();
            *pdr += row.pdr;
            *weighted += row.pdr * row.rssi.0;
        }
        let mean = |(key, (pdr, weighted)): (LinkKey, (f64, f64))| {
            let (src, dst, channel) = key;
            let last = last_report[dst.index()];
            // Not 0: the sweep of the link's own first row is at or before the last report.
            let rounds = transactions[&(src, channel)].partition_point(|sweep| *sweep <= last);
            let rssi = Dbm(if pdr > 0.0 { weighted / pdr } else { PISTER_HACK_NOISE_DBM });
            (key, LinkMean { rssi, pdr: pdr / rounds as f64 })
        };
        Self { nodes: trace.node_count, means: sums.into_iter().map(mean).collect() }
    }

    /// The table as text that [`LinkTable::parse`] reads; 0.1 dB and 0.0001 of PDR are kept.
    pub fn to_csv(&self, comment: &str) -> String {
        let mut csv = String::new();
        for line in comment.lines() {
            csv.push_str("# ");
            csv.push_str(line);
            csv.push('\n');
        }
        csv.push_str("src,dst,channel,rssi_dbm,pdr");
        csv.push('\n');
        for ((src, dst, channel), LinkMean { rssi, pdr }) in &self.means {
            writeln!(csv, "{src},{dst},{channel},{:.1},{pdr:.4}", rssi.0)
                .expect("a string takes all text");
        }
        csv
    }

    /// How many nodes there are, from 0 to the highest that is named.
    pub fn nodes(&self) -> usize {
        self.nodes
    }
    /// All links by transmitter, receiver and channel.
    pub fn means(&self) -> &BTreeMap<LinkKey, LinkMean> {
        &self.means
    }
}

fn all_channels() -> Vec<Channel> {
    (0..=u8::MAX).filter_map(Channel::new).collect()
}

/// Counts the sweeps of a trace, row by row.
#[derive(Default)]
struct Sweeps {
    number: u32,
    channel: Option<Channel>,
    links: BTreeSet<(NodeId, NodeId)>,
}

impl Sweeps {
    /// The sweep of the next row.
    fn of(&mut self, row: &Row) -> u32 {
        let repeated = !self.links.insert((row.src, row.dst));
        if repeated || self.channel != Some(row.channel) {
            self.number += 1;
            self.channel = Some(row.channel);
            self.links.clear();
            self.links.insert((row.src, row.dst));
        }
        self.number
    }
}

/// Delivery ratios written in the scenario.
pub static PDR_MATRIX: MediumRow<dyn Medium> = MediumRow {
    name: "pdr-matrix",
    summary: "A fixed delivery ratio for each link",
    section: SECTION,
    parameters: &[Parameter::matrix(
        "matrix",
        "Delivery ratios, one row for each sender and one column for each receiver",
    )],
    make: MakeMedium {
        needs: Needs::Table(|choice| Some(choice.matrix("matrix").len())),
        build: |choice, _, _| Ok(Box::new(Tabled::fixed(&choice.matrix("matrix"))?)),
    },
};

/// A table of links in a file.
pub static ROW: MediumRow<dyn Medium> = MediumRow {
    name: "link-table",
    summary: "Mean delivery ratio and power by link and channel, from a file",
    section: SECTION,
    parameters: &[
        Parameter::file("file", EXAMPLE, "The CSV file, relative to the scenario's folder"),
        Parameter::flag(
            "symmetric",
            false,
            "Whether a link that is listed in one direction exists in both",
        )
        .source("ours"),
    ],
    make: MakeMedium {
        needs: Needs::Table(|_| None),
        build: |choice, _, _| {
            let file = choice.text("file");
            let contents = read(&file)?;
            let text =
                core::str::from_utf8(&contents).map_err(|error| unreadable(&file, &error))?;
            let table = LinkTable::parse(&file, text)?;
            let table = if choice.flag("symmetric") { table.symmetric() } else { table };
            table.check(&file)?;
            Ok(Box::new(Tabled::link_table(ROW.name, &table)))
        },
    },
};

/// Two nodes that hear each other on one channel.
const EXAMPLE: &str = "src,dst,channel,rssi_dbm,pdr\n0,1,11,-60.0,0.9\n1,0,11,-62.0,0.8\n";

/// The built-in measurement of Grenoble.
pub static GRENOBLE: MediumRow<dyn Medium> = MediumRow::<dyn Medium>::plain(
    "grenoble",
    "Real link qualities of the FIT IoT-LAB site in Grenoble, built in",
    MakeMedium {
        needs: Needs::Table(|_| Some(GRENOBLE_NODES)),
        build: |_, _, _| Ok(Box::new(Tabled::link_table(GRENOBLE.name, &LinkTable::grenoble()))),
    },
);

/// The media named `pdr-matrix`, `link-table` and `grenoble`.
#[derive(Clone, Debug)]
pub struct Tabled {
    name: &'static str,
    links: Links,
}

impl Tabled {
    /// The medium of a link table, called `name`.
    pub fn link_table(name: &'static str, table: &LinkTable) -> Self {
        let mut receivers = vec![Vec::new(); table.nodes];
        for (src, dst, _) in table.means.keys() {
            // The keys ascend, so the channels of one link stand together.
            if receivers[src.index()].last() != Some(dst) {
                receivers[src.index()].push(*dst);
            }
        }
        let mut links = Links::silent(&receivers, Spectrum::PerChannel);
        for ((src, dst, channel), mean) in &table.means {
            links.set(*src, *dst, *channel, Some(Link::dictated(mean.rssi, mean.pdr)));
        }
        Self { name, links }
    }

    /// The medium in which a frame of i reaches j with chance `matrix[i][j]`, on all channels; its RSSI
    /// is the lowest that the Pister-hack table gives that PDR.
    pub fn fixed(matrix: &[Vec<f64>]) -> Result<Self, ConfigError> {
        for (tx, row) in matrix.iter().enumerate() {
            if row.len() != matrix.len() {
                let allowed = format!("{} numbers are allowed, one for each node", matrix.len());
                return Err(ConfigError::new(format!("radio.matrix[{tx}]"), &row.len(), allowed));
            }
            for (rx, pdr) in row.iter().enumerate() {
                ConfigError::within(&format!("radio.matrix[{tx}][{rx}]"), *pdr, 0.0, 1.0)?;
            }
        }
        let links = Links::flat(matrix.len(), |tx, rx| {
            let pdr = matrix[tx.index()][rx.index()];
            (pdr > 0.0).then(|| Link::dictated(Dbm(rssi_of_pdr(pdr)), pdr))
        });
        Ok(Self { name: PDR_MATRIX.name, links })
    }
}

impl Medium for Tabled {
    fn name(&self) -> &'static str {
        self.name
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
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(src: u16, dst: u16, number: u8) -> LinkKey {
        (NodeId(src), NodeId(dst), Channel::new(number).expect("a channel of the band"))
    }

    /// The means over rows of `src,dst,channel,rssi,pdr`.
    fn means(rows: &[&str]) -> LinkTable {
        let mut text = "{\"location\":\"x\",\"node_count\":3,\"channels\":[11,12],\
            \"start_date\":\"2018-01-11T00:00:00\"}\n\
            datetime,src,dst,channel,mean_rssi,pdr,tx_count\n"
            .to_owned();
        for row in rows {
            writeln!(text, "2018-01-11T00:00:00,{row},100").expect("a string takes all text");
        }
        LinkTable::from_k7(&K7::parse("t.k7", text.as_bytes()).expect("a good trace"))
    }

    #[test]
    fn a_silence_counts_as_nothing_received_and_leaves_the_rssi_alone() {
        // Two sweeps on channel 11; node 2 hears node 0 only in the first, and node 1 in both.
        let table = means(&[
            "0,1,11,-60,1.0",
            "0,2,11,-90,0.4",
            "1,2,11,-62,1.0",
            "0,1,11,-66,0.5",
            "1,2,11,-62,1.0",
        ]);
        let near = table.means()[&link(0, 1, 11)];
        assert!((near.pdr - 0.75).abs() < 1e-9);
        assert!((near.rssi.0 + 62.0).abs() < 1e-9);
        let far = table.means()[&link(0, 2, 11)];
        assert!((far.pdr - 0.2).abs() < 1e-9);
        assert!((far.rssi.0 + 90.0).abs() < 1e-9);
    }

    #[test]
    fn what_is_sent_after_a_receiver_went_mute_does_not_count() {
        // Node 2 reports until the first sweep on channel 12; the second on 11 is missing to it.
        let table = means(&[
            "0,1,11,-60,1.0",
            "0,2,11,-70,0.8",
            "0,1,12,-60,1.0",
            "1,2,12,-60,1.0",
            "0,1,11,-60,1.0",
        ]);
        assert!((table.means()[&link(0, 2, 11)].pdr - 0.8).abs() < 1e-9);
        assert!((table.means()[&link(0, 1, 11)].pdr - 1.0).abs() < 1e-9);
    }

    #[test]
    fn a_table_reads_its_own_text() {
        let table = LinkTable::grenoble();
        let again = LinkTable::parse("again.csv", &table.to_csv("a comment\nof two lines"));
        assert_eq!(again, Ok(table));
    }

    #[test]
    fn a_wrong_table_says_line_and_column() {
        let head = "src,dst,channel,rssi_dbm,pdr\n0,1,11,-60,1\n";
        for (line, place) in [
            ("0,1,27,-60,1", ":3:5:"),
            ("0,0,11,-60,1", ":3:3:"),
            ("0,1,12,-60,1.5", ":3:12:"),
            ("0,1,12,-60", ":3:11:"),
            ("0,1,12,-60,1,9", ":3:14:"),
            ("0,1,11,-60,1", ":3:1:"),
        ] {
            let error = LinkTable::parse("t.csv", &format!("{head}{line}\n")).expect_err(line);
            assert!(error.to_string().contains(place), "{line}: {error}");
        }
        assert_eq!(LinkTable::parse("t.csv", "").expect_err("no header").line, 1);
    }

    #[test]
    fn three_columns_are_enough_and_their_order_is_free() {
        let one = |text: &str, number| {
            LinkTable::parse("t.csv", text).expect(text).means()[&link(0, 1, number)]
        };
        for number in [11, 26] {
            assert_eq!(one("src,dst,pdr\n0,1,0.8\n", number).pdr.to_bits(), 0.8f64.to_bits());
            assert_eq!(one("pdr,dst,src\n0.8,1,0\n", number), one("src,dst,pdr\n0,1,0.8", number));
            assert_eq!(one("src, dst, etx\n0, 1, 1.25\n", number).pdr.to_bits(), 0.8f64.to_bits());
        }
        // Pister-hack: the PDR of an RSSI, and the RSSI of a PDR, come from one table.
        let of_rssi = one("src,dst,rssi_dbm\n0,1,-70\n", 15);
        assert_eq!((of_rssi.rssi, of_rssi.pdr), (Dbm(-70.0), 1.0));
        let of_pdr = one("src,dst,pdr\n0,1,0.5\n", 15);
        assert!((-97.0..-90.0).contains(&of_pdr.rssi.0), "{}", of_pdr.rssi.0);
        let given = one("src,dst,channel,rssi_dbm,pdr\n0,1,11,-60,0.1\n", 11);
        assert_eq!((given.rssi, given.pdr), (Dbm(-60.0), 0.1));
    }

    #[test]
    fn a_wrong_header_says_what_is_expected_and_what_is_there() {
        for (text, found) in [
            ("0,1,0.99\n", "found `0,1,0.99`"),
            ("src;dst;pdr\n", "found `src;dst;pdr`"),
            ("src,dst\n", "found `src,dst`"),
            ("src,dst,pdr,etx\n", "found `src,dst,pdr,etx`"),
            ("src,src,pdr\n", "found `src,src,pdr`"),
            ("", "found nothing"),
        ] {
            let error = LinkTable::parse("t.csv", text).expect_err(text).to_string();
            assert!(error.starts_with("t.csv:1:1: expected header `src,dst,pdr`"), "{error}");
            assert!(error.contains(found), "{error}");
        }
    }

    #[test]
    fn a_line_is_for_both_directions_if_the_user_says_so() {
        let table = LinkTable::parse("t.csv", "src,dst,pdr\n0,1,0.9\n1,0,0.4\n1,2,0.7\n");
        let table = table.expect("a good table").symmetric();
        let pdr = |src, dst| table.means()[&link(src, dst, 20)].pdr;
        assert_eq!((pdr(0, 1), pdr(1, 0), pdr(1, 2), pdr(2, 1)), (0.9, 0.4, 0.7, 0.7));
    }

    #[test]
    fn a_table_that_can_deliver_nothing_is_refused() {
        let check = |text: &str| {
            let table = LinkTable::parse("t.csv", text).expect(text);
            table.check("t.csv").map_err(|error| error.to_string())
        };
        let one_way = check("src,dst,pdr\n0,1,0.9\n1,2,0.9\n").expect_err("one way");
        assert!(one_way.starts_with("radio.symmetric = false: every link of t.csv"), "{one_way}");
        let rootless = check("src,dst,pdr\n1,2,0.9\n2,1,0.9\n").expect_err("no root");
        assert!(rootless.starts_with("radio.file = t.csv: node 0, the root, has"), "{rootless}");
        let gap = check("src,dst,pdr\n0,1,0.9\n1,0,0.9\n1,4,0.9\n4,1,0.9\n").expect_err("a gap");
        assert!(gap.starts_with("radio.file = t.csv: node 2 has no link"), "{gap}");
        assert_eq!(check("src,dst,pdr\n0,1,0.9\n1,0,0.9\n"), Ok(()));
    }

    #[test]
    fn a_fixed_matrix_must_be_square_and_hold_chances() {
        let medium = Tabled::fixed(&[vec![0.0, 0.7], vec![0.0, 0.0]]).expect("a good matrix");
        let channel = Channel::new(15).expect("a channel of the band");
        let p = medium.reception_probability(NodeId(0), NodeId(1), channel, 100);
        assert!((p - 0.7).abs() < 1e-12);
        assert_eq!(medium.neighbours(NodeId(1)), []);
        let ragged = Tabled::fixed(&[vec![0.0], vec![0.0, 0.0]]).expect_err("not square");
        assert_eq!(ragged.key, "radio.matrix[0]");
        let wrong = Tabled::fixed(&[vec![0.0, 1.7], vec![0.0, 0.0]]).expect_err("not a chance");
        assert_eq!(wrong.key, "radio.matrix[0][1]");
    }
}
