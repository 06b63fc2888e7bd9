//! 6P messages, RFC 8480 s3.2: the content of the 6top information element.
//!
//! ```text
//!    bit 0       4   6   8              16              24
//!    | Version | T | R |      Code     |      SFID     |    SeqNum     |  other fields ...
//! ```
//!
//! All numbers have their least significant octet and bit first (RFC 8480 s3.2.1). A response does not say
//! which command it answers, so its fields stay bytes here until [`Response::cells`] or
//! [`Response::count`] reads them for the side that asked. The framing of the information element is the
//! business of [`crate::ie`]; who may say what when is crate `sixtop`'s.

use alloc::vec::Vec;

use crate::{DecodeError, Problem, Reader};

const HEADER: &str = "6P";

/// The version of 6P (RFC 8480 s6.2.2).
pub const VERSION: u8 = 0;
/// Octets of the header that all messages share.
pub const HEADER_OCTETS: usize = 4;
/// Octets of one cell in a list (RFC 8480 s3.2.4).
pub const CELL_OCTETS: usize = 4;

/// Which step of a transaction a message is (RFC 8480 s6.2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The first step.
    Request,
    /// The second step.
    Response,
    /// The third step of a three-step transaction.
    Confirmation,
}

/// How a transaction ended (RFC 8480 s6.2.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum ReturnCode {
    /// The operation succeeded.
    Success = 0,
    /// The end of a list was reached.
    EndOfList = 1,
    /// A generic error.
    Error = 2,
    /// A critical error: both ends should start again.
    Reset = 3,
    /// The version is not supported.
    Version = 4,
    /// The scheduling function is not supported.
    Sfid = 5,
    /// The sequence number is not the expected one.
    SeqNum = 6,
    /// The cell list is not acceptable.
    CellList = 7,
    /// The node has another transaction with this neighbour.
    Busy = 8,
    /// The cells are locked by another transaction.
    Locked = 9,
}

impl ReturnCode {
    /// The code numbered `code`; an unassigned one is a generic error.
    pub const fn from_u8(code: u8) -> Self {
        match code {
            0 => Self::Success,
            1 => Self::EndOfList,
            3 => Self::Reset,
            4 => Self::Version,
            5 => Self::Sfid,
            6 => Self::SeqNum,
            7 => Self::CellList,
            8 => Self::Busy,
            9 => Self::Locked,
            _ => Self::Error,
        }
    }
    /// Its name in the RFC's table.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Success => "RC_SUCCESS",
            Self::EndOfList => "RC_EOL",
            Self::Error => "RC_ERR",
            Self::Reset => "RC_RESET",
            Self::Version => "RC_ERR_VERSION",
            Self::Sfid => "RC_ERR_SFID",
            Self::SeqNum => "RC_ERR_SEQNUM",
            Self::CellList => "RC_ERR_CELLLIST",
            Self::Busy => "RC_ERR_BUSY",
            Self::Locked => "RC_ERR_LOCKED",
        }
    }
}

/// One cell of a list: where it lies in the negotiated slotframe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cell {
    /// Slot in the slotframe.
    pub slot: u16,
    /// Channel offset.
    pub channel_offset: u16,
}

/// The first four octets, readable whatever follows: enough to answer a message that is not understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Version of 6P.
    pub version: u8,
    /// Which step.
    pub kind: Kind,
    /// Command of a request, return code of the others.
    pub code: u8,
    /// The scheduling function that speaks.
    pub sfid: u8,
    /// Number of the transaction.
    pub seqnum: u8,
}

impl Header {
    /// Reads the header alone; any version is accepted.
    pub fn parse(bytes: &[u8]) -> Result<Self, DecodeError> {
        Self::read(&mut Reader::new(HEADER, bytes))
    }
    fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let type_error = reader.error("T", Problem::Value);
        let first = reader.u8("Version")?;
        let kind = match first >> 4 & 0b11 {
            0 => Kind::Request,
            1 => Kind::Response,
            2 => Kind::Confirmation,
            _ => return Err(type_error),
        };
        let (code, sfid) = (reader.u8("Code")?, reader.u8("SFID")?);
        Ok(Self { version: first & 0xf, kind, code, sfid, seqnum: reader.u8("SeqNum")? })
    }
    fn emit(self, out: &mut Vec<u8>) {
        let kind = match self.kind {
            Kind::Request => 0,
            Kind::Response => 1,
            Kind::Confirmation => 2,
        };
        out.extend([self.version | kind << 4, self.code, self.sfid, self.seqnum]);
    }
}

/// What a request asks for (RFC 8480 s3.3). `options` are CellOptions bits (s6.2.6) as the *sender* sees the
/// cells: 1 transmit, 2 receive, 4 shared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Add `count` cells out of the candidates.
    Add {
        /// CellOptions bits.
        options: u8,
        /// How many.
        count: u8,
        /// Candidates; empty leaves the choice to the responder (three steps).
        cells: Vec<Cell>,
    },
    /// Delete `count` cells out of the list.
    Delete {
        /// CellOptions bits.
        options: u8,
        /// How many.
        count: u8,
        /// Cells that may go; empty leaves the choice to the responder (three steps).
        cells: Vec<Cell>,
    },
    /// Move the cells `from` to some of the candidates.
    Relocate {
        /// CellOptions bits.
        options: u8,
        /// Cells to move; their number is NumCells.
        from: Vec<Cell>,
        /// Where they may go; empty leaves the choice to the responder (three steps).
        candidates: Vec<Cell>,
    },
    /// How many cells are there?
    Count {
        /// CellOptions bits that the counted cells have.
        options: u8,
    },
    /// Which cells are there?
    List {
        /// CellOptions bits that the listed cells have.
        options: u8,
        /// Cells to leave out at the start of the list.
        offset: u16,
        /// Most cells to list.
        count_max: u16,
    },
    /// Opaque to 6P, between scheduling functions.
    Signal {
        /// Its payload.
        payload: Vec<u8>,
    },
    /// Remove every negotiated cell between the two and start again.
    Clear,
}

impl Command {
    /// Its identifier (RFC 8480 s6.2.3).
    pub const fn code(&self) -> u8 {
        match self {
            Self::Add { .. } => 1,
            Self::Delete { .. } => 2,
            Self::Relocate { .. } => 3,
            Self::Count { .. } => 4,
            Self::List { .. } => 5,
            Self::Signal { .. } => 6,
            Self::Clear => 7,
        }
    }
    /// Its name in the RFC's table.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Add { .. } => "ADD",
            Self::Delete { .. } => "DELETE",
            Self::Relocate { .. } => "RELOCATE",
            Self::Count { .. } => "COUNT",
            Self::List { .. } => "LIST",
            Self::Signal { .. } => "SIGNAL",
            Self::Clear => "CLEAR",
        }
    }
    fn read(code: u8, reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(match code {
            1 => {
                let (options, count) = (reader.u8("CellOptions")?, reader.u8("NumCells")?);
                Self::Add { options, count, cells: read_cells(reader)? }
            }
            2 => {
                let (options, count) = (reader.u8("CellOptions")?, reader.u8("NumCells")?);
                Self::Delete { options, count, cells: read_cells(reader)? }
            }
            3 => {
                let (options, count) = (reader.u8("CellOptions")?, reader.u8("NumCells")?);
                let octets = usize::from(count) * CELL_OCTETS;
                let mut list = Reader::new(HEADER, reader.take(octets, "Relocation CellList")?);
                let from = read_cells(&mut list)?;
                Self::Relocate { options, from, candidates: read_cells(reader)? }
            }
            4 => Self::Count { options: reader.u8("CellOptions")? },
            5 => {
                let options = reader.u8("CellOptions")?;
                reader.u8("Reserved")?;
                let (offset, count_max) = (reader.u16_le("Offset")?, reader.u16_le("MaxNumCells")?);
                Self::List { options, offset, count_max }
            }
            6 => Self::Signal { payload: reader.rest().to_vec() },
            7 => Self::Clear,
            _ => return Err(reader.error("Code", Problem::Unsupported)),
        })
    }
    fn emit(&self, out: &mut Vec<u8>) {
        match self {
            Self::Add { options, count, cells } | Self::Delete { options, count, cells } => {
                out.extend([*options, *count]);
                emit_cells(cells, out);
            }
            Self::Relocate { options, from, candidates } => {
                out.extend([*options, from.len() as u8]);
                emit_cells(from, out);
                emit_cells(candidates, out);
            }
            Self::Count { options } => out.push(*options),
            Self::List { options, offset, count_max } => {
                out.extend([*options, 0]);
                out.extend(offset.to_le_bytes());
                out.extend(count_max.to_le_bytes());
            }
            Self::Signal { payload } => out.extend(payload),
            Self::Clear => {}
        }
    }
}

/// The second or third step: a return code and fields that only the asking side can tell apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    /// How it went.
    pub code: ReturnCode,
    /// The fields after the header.
    pub fields: Vec<u8>,
}

impl Response {
    /// A response with nothing but a code.
    pub const fn bare(code: ReturnCode) -> Self {
        Self { code, fields: Vec::new() }
    }
    /// A response that lists cells (ADD, DELETE, RELOCATE, LIST).
    pub fn with_cells(code: ReturnCode, cells: &[Cell]) -> Self {
        let mut fields = Vec::with_capacity(cells.len() * CELL_OCTETS);
        emit_cells(cells, &mut fields);
        Self { code, fields }
    }
    /// A response that counts cells (COUNT).
    pub fn with_count(code: ReturnCode, count: u16) -> Self {
        Self { code, fields: count.to_le_bytes().to_vec() }
    }
    /// The fields as a list of cells.
    pub fn cells(&self) -> Result<Vec<Cell>, DecodeError> {
        read_cells(&mut Reader::new(HEADER, &self.fields))
    }
    /// The fields as a count of cells.
    pub fn count(&self) -> Result<u16, DecodeError> {
        let mut reader = Reader::new(HEADER, &self.fields);
        let count = reader.u16_le("NumCells")?;
        if reader.is_empty() { Ok(count) } else { Err(reader.error("NumCells", Problem::Length)) }
    }
}

/// What follows the header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    /// The first step: a command and metadata, whose meaning is the scheduling function's.
    Request {
        /// What is asked.
        command: Command,
        /// Metadata.
        metadata: u16,
    },
    /// The second step.
    Response(Response),
    /// The third step.
    Confirmation(Response),
}

/// A whole 6P message.
///
/// ```
/// use lowmesh_wire::sixp::{Body, Command, Message};
///
/// let clear = Message { sfid: 0, seqnum: 9, body: Body::Request { command: Command::Clear, metadata: 0 } };
/// let mut bytes = Vec::new();
/// clear.emit(&mut bytes);
/// assert_eq!(bytes, [0x00, 7, 0, 9, 0, 0]);
/// assert_eq!(Message::parse(&bytes), Ok(clear));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// The scheduling function that speaks.
    pub sfid: u8,
    /// Number of the transaction.
    pub seqnum: u8,
    /// What it says.
    pub body: Body,
}

impl Message {
    /// Reads the content of a 6top information element.
    pub fn parse(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(HEADER, bytes);
        let header = Header::read(&mut reader)?;
        if header.version != VERSION {
            let start = Reader::new(HEADER, bytes);
            return Err(start.error("Version", Problem::Unsupported));
        }
        let body = match header.kind {
            Kind::Request => {
                let metadata = reader.u16_le("Metadata")?;
                let command = Command::read(header.code, &mut reader)?;
                if !reader.is_empty() {
                    return Err(reader.error("end", Problem::Length));
                }
                Body::Request { command, metadata }
            }
            Kind::Response => Body::Response(read_response(header.code, &mut reader)),
            Kind::Confirmation => Body::Confirmation(read_response(header.code, &mut reader)),
        };
        Ok(Self { sfid: header.sfid, seqnum: header.seqnum, body })
    }

    /// Appends the message to `out`.
    pub fn emit(&self, out: &mut Vec<u8>) {
        let (sfid, seqnum) = (self.sfid, self.seqnum);
        let header = |kind, code| Header { version: VERSION, kind, code, sfid, seqnum };
        match &self.body {
            Body::Request { command, metadata } => {
                header(Kind::Request, command.code()).emit(out);
                out.extend(metadata.to_le_bytes());
                command.emit(out);
            }
            Body::Response(response) => {
                header(Kind::Response, response.code as u8).emit(out);
                out.extend(&response.fields);
            }
            Body::Confirmation(response) => {
                header(Kind::Confirmation, response.code as u8).emit(out);
                out.extend(&response.fields);
            }
        }
    }
}

fn read_response(code: u8, reader: &mut Reader<'_>) -> Response {
    Response { code: ReturnCode::from_u8(code), fields: reader.rest().to_vec() }
}

/// The rest of the bytes as cells.
fn read_cells(reader: &mut Reader<'_>) -> Result<Vec<Cell>, DecodeError> {
    let mut cells = Vec::with_capacity(reader.remaining() / CELL_OCTETS);
    while !reader.is_empty() {
        let (slot, channel_offset) =
            (reader.u16_le("slotOffset")?, reader.u16_le("channelOffset")?);
        cells.push(Cell { slot, channel_offset });
    }
    Ok(cells)
}

fn emit_cells(cells: &[Cell], out: &mut Vec<u8>) {
    for cell in cells {
        out.extend(cell.slot.to_le_bytes());
        out.extend(cell.channel_offset.to_le_bytes());
    }
}

#[cfg(test)]
mod tests;
