//! The columns of a link table: which there are, and one line under them.

use lowmesh_units::{Channel, Dbm, NodeId};

use super::LinkMean;
use crate::air::Fields;
use crate::air::error::TextError;
use crate::air::pister_hack::{pdr_of_rssi, rssi_of_pdr};

/// A column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Column {
    Src,
    Dst,
    Channel,
    Rssi,
    Pdr,
    Etx,
}

use Column::{Dst, Etx, Pdr, Rssi, Src};

/// Every column with its name in the first line.
const NAMES: [(&str, Column); 6] = [
    ("src", Src),
    ("dst", Dst),
    ("channel", Column::Channel),
    ("rssi_dbm", Rssi),
    ("pdr", Pdr),
    ("etx", Etx),
];

/// The first line that an error shows.
const EXPECTED: &str = "expected header `src,dst,pdr`";
/// What else that line may be.
const ALLOWED: &str = "the third column is pdr, etx or rssi_dbm; rssi_dbm and channel can follow; \
     commas separate columns";

/// Reads the names of the columns out of `line`, whose `fields` are untouched.
pub(super) fn read(fields: &mut Fields<'_>, line: &str) -> Result<Vec<Column>, TextError> {
    let line = line.trim();
    let named = |name: &str| NAMES.iter().find(|(known, _)| *known == name.trim());
    let columns: Option<Vec<Column>> =
        line.split(',').map(|name| named(name).map(|(_, column)| *column)).collect();
    let fits = |columns: &Vec<Column>| {
        let count = |wanted| columns.iter().filter(|column| **column == wanted).count();
        let once = NAMES.iter().all(|(_, column)| count(*column) <= 1);
        let ends = count(Src) + count(Dst) == 2;
        once && ends && (count(Pdr) + count(Etx) == 1 || (count(Rssi) == 1 && count(Etx) == 0))
    };
    columns.filter(fits).ok_or_else(|| {
        let found = if line.is_empty() { "nothing".to_owned() } else { format!("`{line}`") };
        fields.error(1, format!("{EXPECTED}, found {found}"), ALLOWED)
    })
}

/// One line of a table.
pub(super) struct LinkRow {
    pub src: NodeId,
    pub dst: NodeId,
    /// `None` means all channels.
    pub channel: Option<Channel>,
    pub mean: LinkMean,
}

impl LinkRow {
    /// Reads a line with these columns.
    pub(super) fn read(columns: &[Column], fields: &mut Fields<'_>) -> Result<Self, TextError> {
        let (mut ends, mut second) = ([0; 2], 1);
        let (mut channel, mut rssi, mut pdr) = (None, None, None);
        for column in columns {
            match column {
                Src | Dst => {
                    let (index, name) = if *column == Src { (0, "src") } else { (1, "dst") };
                    second = fields.column();
                    let is_node = |id: &u16| *id < u16::MAX;
                    ends[index] = fields.value(name, "a node from 0 to 65534", is_node)?;
                }
                Column::Channel => {
                    let is_channel = |number: &u8| Channel::new(*number).is_some();
                    channel = Channel::new(fields.value("channel", "11 to 26", is_channel)?);
                }
                Rssi => {
                    let heard = |dbm: &f64| (-150.0..=30.0).contains(dbm);
                    rssi = Some(fields.value("rssi_dbm", "-150 to 30", heard)?);
                }
                Pdr => {
                    let share = |pdr: &f64| (0.0..=1.0).contains(pdr);
                    pdr = Some(fields.value("pdr", "0 to 1; divide per cent by 100", share)?);
                }
                Etx => {
                    let copies = |etx: &f64| (1.0..=1e6).contains(etx);
                    pdr = Some(
                        1.0 / fields.value("etx", "copies for each delivery, 1 or more", copies)?,
                    );
                }
            }
        }
        fields.end()?;
        let [src, dst] = ends;
        if src == dst {
            return Err(fields.error(
                second,
                format!("node {src} twice"),
                "source and destination must differ",
            ));
        }
        // The table of the Pister-hack relates the two where only one is given.
        let pdr = pdr.unwrap_or_else(|| rssi.map_or(0.0, pdr_of_rssi));
        let mean = LinkMean { rssi: Dbm(rssi.unwrap_or_else(|| rssi_of_pdr(pdr))), pdr };
        Ok(Self { src: NodeId(src), dst: NodeId(dst), channel, mean })
    }
}
