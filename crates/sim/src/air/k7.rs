//! K7: connectivity measured on a testbed (format of Mercator and the 6TiSCH simulator), plain or gzip.
//!
//! ```text
//!   {"location": "grenoble", "node_count": 50, "channels": [11, ...], "start_date": ..., ...}
//!   datetime,src,dst,channel,mean_rssi,pdr,tx_count
//!   2018-01-11T16:32:22.0,0,18,11,-69.9,1.0,100
//! ```
//!
//! Playing a trace back is left to [`super::playback`], its means to [`super::link_table`].

use std::io::Read as _;

use lowmesh_units::{Channel, Dbm, Duration, NodeId};
use serde::Deserialize;

use super::error::{BuildError, TextError};
use super::{Fields, without_mark};

/// One row: how one node heard the frames of another on one channel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Row {
    /// Time since the start of the measurement.
    pub at: Duration,
    /// The transmitter.
    pub src: NodeId,
    /// The receiver.
    pub dst: NodeId,
    /// The channel.
    pub channel: Channel,
    /// Mean power of the frames received.
    pub rssi: Dbm,
    /// Frames received of those sent, 0 to 1.
    pub pdr: f64,
}

/// A whole trace.
#[derive(Clone, Debug, PartialEq)]
pub struct K7 {
    /// Where it was measured.
    pub location: String,
    /// How many nodes took part, numbered from 0.
    pub node_count: usize,
    /// The channels measured, ascending.
    pub channels: Vec<Channel>,
    /// The rows in order of time.
    pub rows: Vec<Row>,
}

/// The part of the first line that is used.
#[derive(Deserialize)]
struct Header {
    location: String,
    node_count: u16,
    channels: Vec<u8>,
    start_date: String,
}

const COLUMNS: &str = "datetime,src,dst,channel,mean_rssi,pdr,tx_count";
/// First octets of a gzip member (RFC 1952 s2.3.1).
const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];
/// Most octets a packed trace may unpack to, so that a bad file cannot fill the memory: 1 GiB.
const UNPACKED_MAX: u64 = 1 << 30;

impl K7 {
    /// Reads the trace in `contents`; `file` is its name for errors.
    pub fn parse(file: &str, contents: &[u8]) -> Result<Self, BuildError> {
        let reason = |error: &dyn ToString| BuildError::File {
            file: file.to_owned(),
            reason: error.to_string(),
        };
        let mut unpacked = Vec::new();
        let plain = if contents.starts_with(&GZIP_MAGIC) {
            flate2::read::MultiGzDecoder::new(contents)
                .take(UNPACKED_MAX)
                .read_to_end(&mut unpacked)
                .map_err(|error| reason(&error))?;
            &unpacked[..]
        } else {
            contents
        };
        let text = core::str::from_utf8(plain).map_err(|error| reason(&error))?;
        Ok(Self::parse_text(file, text)?)
    }

    fn parse_text(file: &str, text: &str) -> Result<Self, TextError> {
        let mut lines =
            without_mark(text).lines().enumerate().map(|(index, line)| (index + 1, line));
        let (_, first) = lines.next().unwrap_or((1, ""));
        let (header, channels, start) = parse_header(file, first)?;
        let (_, names) = lines.next().unwrap_or((2, ""));
        if names.trim() != COLUMNS {
            let problem = format!("the columns are `{names}`");
            let allowed = format!("the second line is `{COLUMNS}`");
            return Err(Fields::new(file, 2, names).error(1, problem, &allowed));
        }
        let mut rows: Vec<Row> = Vec::new();
        for (line, text) in lines.filter(|(_, text)| !text.trim().is_empty()) {
            let mut fields = Fields::new(file, line, text);
            let row = parse_row(&mut fields, header.node_count, &channels, start)?;
            if rows.last().is_some_and(|last| last.at > row.at) {
                return Err(fields.error(
                    1,
                    "this row is older than the one before",
                    "rows in order of time",
                ));
            }
            rows.push(row);
        }
        let node_count = usize::from(header.node_count);
        Ok(Self { location: header.location, node_count, channels, rows })
    }
}

fn parse_header(file: &str, text: &str) -> Result<(Header, Vec<Channel>, i64), TextError> {
    let place = Fields::new(file, 1, text);
    let header: Header = serde_json::from_str(text).map_err(|error| {
        let allowed = "a JSON object with location, node_count, channels and start_date";
        place.error(error.column().max(1), format!("no K7 header: {error}"), allowed)
    })?;
    if header.node_count == 0 {
        return Err(place.error(1, "node_count is 0", "1 to 65535 nodes"));
    }
    let start = milliseconds(&header.start_date).ok_or_else(|| {
        let problem = format!("start_date `{}` is not a date", header.start_date);
        place.error(1, problem, DATE_ALLOWED)
    })?;
    let mut channels = Vec::with_capacity(header.channels.len());
    for number in &header.channels {
        let channel = Channel::new(*number);
        channels.push(channel.ok_or_else(|| {
            place.error(1, format!("channel {number} is not in the band"), "channels 11 to 26")
        })?);
    }
    channels.sort_unstable();
    channels.dedup();
    Ok((header, channels, start))
}

fn parse_row(
    fields: &mut Fields,
    node_count: u16,
    channels: &[Channel],
    start: i64,
) -> Result<Row, TextError> {
    let (column, date) = fields.text("datetime")?;
    let since = milliseconds(date).map(|time| time - start).and_then(|ms| u64::try_from(ms).ok());
    let at = since.ok_or_else(|| {
        let problem = format!("`{date}` is not a date at or after start_date");
        fields.error(column, problem, DATE_ALLOWED)
    })?;
    let nodes = format!("a node from 0 to {}", node_count - 1);
    let src = fields.value("src", &nodes, |id: &u16| *id < node_count)?;
    let other = format!("{nodes}, other than src");
    let dst = fields.value("dst", &other, |id: &u16| *id < node_count && *id != src)?;
    let measured =
        |number: &u8| Channel::new(*number).is_some_and(|channel| channels.contains(&channel));
    let number = fields.value("channel", "a channel of the header", measured)?;
    let rssi =
        fields.value("mean_rssi", "-150 to 30 dBm", |x: &f64| (-150.0..=30.0).contains(x))?;
    let pdr = fields.value("pdr", "0 to 1", |pdr: &f64| (0.0..=1.0).contains(pdr))?;
    fields.value("tx_count", "a whole number of frames", |_: &u32| true)?;
    fields.end()?;
    Ok(Row {
        at: Duration::from_nanos(at.saturating_mul(1_000_000)),
        src: NodeId(src),
        dst: NodeId(dst),
        channel: Channel::new(number).expect("just checked to be a channel"),
        rssi: Dbm(rssi),
        pdr,
    })
}

const DATE_ALLOWED: &str = "a date as in 2018-01-11T16:32:22.0";

/// Milliseconds from 1970 to a date of the form `2018-01-11T16:32:22.0`.
fn milliseconds(date: &str) -> Option<i64> {
    let (day, time) = date.trim().split_once(['T', ' '])?;
    let mut day = day.splitn(3, '-').map(|part| part.parse::<i64>().ok());
    let (year, month, day) = (day.next()??, day.next()??, day.next()??);
    let mut time = time.splitn(3, ':');
    let hour = time.next()?.parse::<i64>().ok()?;
    let minute = time.next()?.parse::<i64>().ok()?;
    let second = time.next()?.parse::<f64>().ok()?;
    let valid = (1970..=9999).contains(&year)
        && (1..=12).contains(&month)
        && (1..=31).contains(&day)
        && (0..24).contains(&hour)
        && (0..60).contains(&minute)
        && (0.0..61.0).contains(&second);
    // The year starts in March here, so that the day a leap year adds is its last.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let leap_days = year / 4 - year / 100 + year / 400;
    let days = 365 * year + leap_days + (153 * month + 2) / 5 + day - 1 - DAYS_TO_1970;
    let minutes = (days * 24 + hour) * 60 + minute;
    valid.then(|| minutes * 60_000 + libm::round(second * 1000.0) as i64)
}

/// Days from 1 March of the year 0 to 1 January 1970 (proleptic Gregorian).
const DAYS_TO_1970: i64 = 719_468;

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    const HEADER: &str = "{\"location\": \"here\", \"node_count\": 3, \"channels\": [12, 11], \
        \"start_date\": \"2018-01-11T16:32:22.0\", \"stop_date\": \"2018-01-12T00:00:00.0\"}";
    const GOOD: &str = "2018-01-11T16:32:23.5,0,2,11,-69.9,0.75,100";

    fn parse(header: &str, columns: &str, rows: &str) -> Result<K7, BuildError> {
        K7::parse("t.k7", format!("{header}\n{columns}\n{rows}\n").as_bytes())
    }

    #[test]
    fn a_trace_is_read_plain_and_packed() {
        let plain = parse(HEADER, COLUMNS, GOOD).expect("a good trace");
        let row = plain.rows[0];
        assert_eq!((row.at, row.src, row.dst), (Duration::from_millis(1500), NodeId(0), NodeId(2)));
        assert_eq!(plain.channels.iter().map(|c| c.number()).collect::<Vec<_>>(), [11, 12]);
        let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packer.write_all(format!("{HEADER}\n{COLUMNS}\n{GOOD}\n").as_bytes()).expect("to memory");
        let packed = K7::parse("t.k7.gz", &packer.finish().expect("to memory"));
        assert_eq!(packed, Ok(plain));
    }

    #[test]
    fn a_wrong_row_says_file_line_column_and_what_is_allowed() {
        for (row, expected) in [
            ("2018-13-11T16:32:23.5,0,2,11,-69.9,0.75,100", "t.k7:4:1: "),
            ("2018-01-10T16:32:23.5,0,2,11,-69.9,0.75,100", "t.k7:4:1: "),
            ("2018-01-11T16:32:22.9,0,2,11,-69.9,0.75,100", "t.k7:4:1: this row is older"),
            ("2018-01-11T16:32:23.5,3,2,11,-69.9,0.75,100", "t.k7:4:23: `3` is not a valid src"),
            ("2018-01-11T16:32:23.5,2,2,11,-69.9,0.75,100", "a node from 0 to 2, other than src"),
            ("2018-01-11T16:32:23.5,0,2,13,-69.9,0.75,100", "a channel of the header"),
            ("2018-01-11T16:32:23.5,0,2,11,loud,0.75,100", "t.k7:4:30: `loud`"),
            ("2018-01-11T16:32:23.5,0,2,11,-69.9,1.01,100", "t.k7:4:36: `1.01`"),
            ("2018-01-11T16:32:23.5,0,2,11,-69.9", "the line ends before `pdr`"),
            ("2018-01-11T16:32:23.5,0,2,11,-69.9,0.75,100,1", "t.k7:4:45: `1` follows"),
        ] {
            let error = parse(HEADER, COLUMNS, &format!("{GOOD}\n{row}")).expect_err(row);
            assert!(error.to_string().contains(expected), "{row}: {error}");
        }
    }

    #[test]
    fn a_wrong_head_or_a_broken_file_is_named() {
        for (header, columns, expected) in [
            ("", COLUMNS, "t.k7:1:1: no K7 header"),
            ("{\"location\": 7}", COLUMNS, "t.k7:1:14: no K7 header"),
            (&HEADER.replace("12, 11", "27"), COLUMNS, "channels 11 to 26"),
            (&HEADER.replace(": 3", ": 0"), COLUMNS, "node_count is 0"),
            (&HEADER.replace("2018-01-11T", "Monday "), COLUMNS, "is not a date"),
            (HEADER, "src,dst", "t.k7:2:1: the columns are `src,dst`"),
        ] {
            let error = parse(header, columns, GOOD).expect_err(expected);
            assert!(error.to_string().contains(expected), "{error}");
        }
        let broken = K7::parse("t.k7.gz", &[0x1f, 0x8b, 8, 0, 0]).expect_err("cut off");
        assert!(matches!(broken, BuildError::File { .. }));
    }

    #[test]
    fn every_prefix_of_a_trace_is_read_or_refused() {
        let whole = format!("{HEADER}\n{COLUMNS}\n{GOOD}\n{GOOD}");
        let full = K7::parse("t.k7", whole.as_bytes()).expect("a good trace");
        for end in 0..whole.len() {
            if let Ok(part) = K7::parse("t.k7", &whole.as_bytes()[..end]) {
                assert!(part.rows.len() <= full.rows.len() && end > HEADER.len());
            }
        }
    }

    #[test]
    fn dates_count_leap_days() {
        let day = |date: &str| milliseconds(date).map(|ms| ms / 86_400_000);
        assert_eq!(day("1970-01-01T00:00:00"), Some(0));
        assert_eq!(day("2000-03-01T00:00:00"), Some(11_017));
        assert_eq!(day("2018-01-11T16:32:22.0"), Some(17_542));
        assert_eq!(milliseconds("1970-01-01T00:01:02.5"), Some(62_500));
    }
}
