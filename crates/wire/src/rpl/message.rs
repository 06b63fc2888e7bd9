//! DIS, DIO, DAO and DAO-ACK (RFC 6550 s6.2 to s6.5), DCO and DCO-ACK (RFC 9009 s4.3). Consistency checks (RFC 6550 s6.6)
//! have no sender here.

use alloc::vec::Vec;

use lowmesh_units::Rank;

use super::{Address, RplOption};
use crate::{DecodeError, Problem, Reader};

// ICMPv6 codes: RFC 6550 s6.
const DIS: u8 = 0x00;
const DIO: u8 = 0x01;
const DAO: u8 = 0x02;
const DAO_ACK: u8 = 0x03;
// RFC 9009 s6.
const DCO: u8 = 0x07;
const DCO_ACK: u8 = 0x08;

/// A RPL control message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// DODAG Information Solicitation.
    Dis(Dis),
    /// DODAG Information Object.
    Dio(Dio),
    /// Destination Advertisement Object.
    Dao(Dao),
    /// Destination Advertisement Object Acknowledgement.
    DaoAck(DaoAck),
    /// Destination Cleanup Object.
    Dco(Dco),
    /// Destination Cleanup Object Acknowledgement.
    DcoAck(DcoAck),
}

/// Mode of operation: RFC 6550 s6.3.1, figure 15.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Mode {
    /// No downward routes.
    NoDownward = 0,
    /// The root knows all routes and routes by source.
    NonStoring = 1,
    /// Every router keeps the routes of its sub-DODAG.
    Storing = 2,
    /// Storing, with multicast routes.
    StoringMulticast = 3,
}

/// Asks neighbours for a DIO: RFC 6550 s6.2.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Dis {
    /// Solicited Information, if not every DODAG will do.
    pub options: Vec<RplOption>,
}

/// Tells of a DODAG and of the sender's place in it: RFC 6550 s6.3.
///
/// ```text
///   | instance      | version       | rank                          |
///   |G|0| MOP |Prf  | DTSN          | flags = 0     | reserved = 0  |
///   | DODAGID (16 octets)
///   | options ...
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dio {
    /// RPLInstanceID.
    pub instance: u8,
    /// DODAGVersionNumber.
    pub version: u8,
    /// The sender's rank.
    pub rank: Rank,
    /// G: the DODAG reaches the application's goal.
    pub grounded: bool,
    /// Mode of operation.
    pub mode: Mode,
    /// DODAGPreference, 0 to 7.
    pub preference: u8,
    /// Destination Advertisement Trigger Sequence Number.
    pub dtsn: u8,
    /// DODAGID, an address of the root.
    pub dodag_id: Address,
    /// Configuration, prefixes, metrics.
    pub options: Vec<RplOption>,
}

/// Tells of destinations below the sender: RFC 6550 s6.4.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dao {
    /// RPLInstanceID.
    pub instance: u8,
    /// K: the sender wants a DAO-ACK.
    pub ack_wanted: bool,
    /// DAOSequence, to match the DAO-ACK.
    pub sequence: u8,
    /// DODAGID, present when the instance is local (D).
    pub dodag_id: Option<Address>,
    /// Targets and transits.
    pub options: Vec<RplOption>,
}

/// Answers a DAO: RFC 6550 s6.5.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DaoAck {
    /// RPLInstanceID.
    pub instance: u8,
    /// DAOSequence of the DAO.
    pub sequence: u8,
    /// Whether the receiver took it.
    pub status: DaoStatus,
    /// DODAGID, present when the instance is local (D).
    pub dodag_id: Option<Address>,
    /// None are in use.
    pub options: Vec<RplOption>,
}

/// Ends routes that lead over a former path: RFC 9009 s4.3.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dco {
    /// RPLInstanceID.
    pub instance: u8,
    /// K: the sender wants a DCO-ACK.
    pub ack_wanted: bool,
    /// Why; passed on as it came.
    pub status: u8,
    /// DCOSequence, to match the DCO-ACK.
    pub sequence: u8,
    /// DODAGID, present when the instance is local (D).
    pub dodag_id: Option<Address>,
    /// Targets and transits.
    pub options: Vec<RplOption>,
}

/// Answers a DCO: RFC 9009 s4.3.4.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DcoAck {
    /// RPLInstanceID.
    pub instance: u8,
    /// DCOSequence of the DCO.
    pub sequence: u8,
    /// 0 if the receiver took it.
    pub status: u8,
    /// DODAGID, present when the instance is local (D).
    pub dodag_id: Option<Address>,
}

/// Status of a DAO-ACK: RFC 6550 s6.5.1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DaoStatus(pub u8);

impl DaoStatus {
    /// Unqualified acceptance.
    pub const ACCEPTED: Self = Self(0);
    /// Rejection for want of room: the first value of the range of rejections.
    pub const REJECTED: Self = Self(128);

    /// True from 128 on: the sender of the DAO-ACK is unwilling to act as a parent.
    pub const fn is_rejection(self) -> bool {
        self.0 >= 128
    }
}

impl Message {
    /// Reads the message whose ICMPv6 code is `code` from what follows the ICMPv6 checksum.
    pub fn parse(code: u8, bytes: &[u8]) -> Result<Self, DecodeError> {
        match code {
            DIS => Dis::parse(bytes).map(Self::Dis),
            DIO => Dio::parse(bytes).map(Self::Dio),
            DAO => Dao::parse(bytes).map(Self::Dao),
            DAO_ACK => DaoAck::parse(bytes).map(Self::DaoAck),
            DCO => Dco::parse(bytes).map(Self::Dco),
            DCO_ACK => DcoAck::parse(bytes).map(Self::DcoAck),
            _ => Err(Reader::new("RPL", bytes).error("code", Problem::Unsupported)),
        }
    }
    /// Appends what follows the ICMPv6 checksum.
    pub fn emit(&self, out: &mut Vec<u8>) {
        match self {
            Self::Dis(dis) => dis.emit(out),
            Self::Dio(dio) => dio.emit(out),
            Self::Dao(dao) => dao.emit(out),
            Self::DaoAck(ack) => ack.emit(out),
            Self::Dco(dco) => dco.emit(out),
            Self::DcoAck(ack) => ack.emit(out),
        }
    }
    /// The ICMPv6 code.
    pub const fn code(&self) -> u8 {
        match self {
            Self::Dis(_) => DIS,
            Self::Dio(_) => DIO,
            Self::Dao(_) => DAO,
            Self::DaoAck(_) => DAO_ACK,
            Self::Dco(_) => DCO,
            Self::DcoAck(_) => DCO_ACK,
        }
    }
    /// The name that users see in records and captures.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Dis(_) => "dis",
            Self::Dio(_) => "dio",
            Self::Dao(_) => "dao",
            Self::DaoAck(_) => "dao_ack",
            Self::Dco(_) => "dco",
            Self::DcoAck(_) => "dco_ack",
        }
    }
}

impl Mode {
    /// The mode of `number`, if RFC 6550 gives it one.
    pub const fn from_number(number: u8) -> Option<Self> {
        match number {
            0 => Some(Self::NoDownward),
            1 => Some(Self::NonStoring),
            2 => Some(Self::Storing),
            3 => Some(Self::StoringMulticast),
            _ => None,
        }
    }
}

impl Dis {
    fn parse(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new("DIS", bytes);
        reader.u8("flags")?;
        reader.u8("reserved")?;
        Ok(Self { options: RplOption::parse_all(&mut reader)? })
    }
    fn emit(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&[0, 0]);
        RplOption::emit_all(&self.options, out);
    }
}

impl Dio {
    fn parse(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new("DIO", bytes);
        let instance = reader.u8("RPLInstanceID")?;
        let version = reader.u8("version number")?;
        let rank = Rank(reader.u16_be("rank")?);
        let unknown_mode = reader.error("mode of operation", Problem::Unsupported);
        let flags = reader.u8("G, MOP, Prf")?;
        let mode = Mode::from_number(flags >> 3 & 0x07).ok_or(unknown_mode)?;
        let dtsn = reader.u8("DTSN")?;
        reader.u8("flags")?;
        reader.u8("reserved")?;
        let dodag_id = reader.array("DODAGID")?;
        let options = RplOption::parse_all(&mut reader)?;
        let (grounded, preference) = (flags & 0x80 != 0, flags & 0x07);
        Ok(Self { instance, version, rank, grounded, mode, preference, dtsn, dodag_id, options })
    }
    fn emit(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&[self.instance, self.version]);
        out.extend_from_slice(&self.rank.0.to_be_bytes());
        let flags =
            u8::from(self.grounded) << 7 | (self.mode as u8) << 3 | (self.preference & 0x07);
        out.extend_from_slice(&[flags, self.dtsn, 0, 0]);
        out.extend_from_slice(&self.dodag_id);
        RplOption::emit_all(&self.options, out);
    }
}

impl Dao {
    fn parse(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new("DAO", bytes);
        let instance = reader.u8("RPLInstanceID")?;
        let flags = reader.u8("K, D, flags")?;
        reader.u8("reserved")?;
        let sequence = reader.u8("DAOSequence")?;
        let dodag_id = if flags & 0x40 != 0 { Some(reader.array("DODAGID")?) } else { None };
        let options = RplOption::parse_all(&mut reader)?;
        Ok(Self { instance, ack_wanted: flags & 0x80 != 0, sequence, dodag_id, options })
    }
    fn emit(&self, out: &mut Vec<u8>) {
        let flags = u8::from(self.ack_wanted) << 7 | u8::from(self.dodag_id.is_some()) << 6;
        out.extend_from_slice(&[self.instance, flags, 0, self.sequence]);
        out.extend_from_slice(self.dodag_id.as_ref().map_or(&[][..], |id| &id[..]));
        RplOption::emit_all(&self.options, out);
    }
}

impl DaoAck {
    fn parse(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new("DAO-ACK", bytes);
        let instance = reader.u8("RPLInstanceID")?;
        let flags = reader.u8("D, reserved")?;
        let sequence = reader.u8("DAOSequence")?;
        let status = DaoStatus(reader.u8("status")?);
        let dodag_id = if flags & 0x80 != 0 { Some(reader.array("DODAGID")?) } else { None };
        let options = RplOption::parse_all(&mut reader)?;
        Ok(Self { instance, sequence, status, dodag_id, options })
    }
    fn emit(&self, out: &mut Vec<u8>) {
        let flags = u8::from(self.dodag_id.is_some()) << 7;
        out.extend_from_slice(&[self.instance, flags, self.sequence, self.status.0]);
        out.extend_from_slice(self.dodag_id.as_ref().map_or(&[][..], |id| &id[..]));
        RplOption::emit_all(&self.options, out);
    }
}

impl Dco {
    fn parse(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new("DCO", bytes);
        let instance = reader.u8("RPLInstanceID")?;
        let flags = reader.u8("K, D, flags")?;
        let status = reader.u8("status")?;
        let sequence = reader.u8("DCOSequence")?;
        let dodag_id = if flags & 0x40 != 0 { Some(reader.array("DODAGID")?) } else { None };
        let options = RplOption::parse_all(&mut reader)?;
        Ok(Self { instance, ack_wanted: flags & 0x80 != 0, status, sequence, dodag_id, options })
    }
    fn emit(&self, out: &mut Vec<u8>) {
        let flags = u8::from(self.ack_wanted) << 7 | u8::from(self.dodag_id.is_some()) << 6;
        out.extend_from_slice(&[self.instance, flags, self.status, self.sequence]);
        out.extend_from_slice(self.dodag_id.as_ref().map_or(&[][..], |id| &id[..]));
        RplOption::emit_all(&self.options, out);
    }
}

impl DcoAck {
    fn parse(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new("DCO-ACK", bytes);
        let instance = reader.u8("RPLInstanceID")?;
        let flags = reader.u8("D, flags")?;
        let sequence = reader.u8("DCOSequence")?;
        let status = reader.u8("status")?;
        let dodag_id = if flags & 0x80 != 0 { Some(reader.array("DODAGID")?) } else { None };
        Ok(Self { instance, sequence, status, dodag_id })
    }
    fn emit(&self, out: &mut Vec<u8>) {
        let flags = u8::from(self.dodag_id.is_some()) << 7;
        out.extend_from_slice(&[self.instance, flags, self.sequence, self.status]);
        out.extend_from_slice(self.dodag_id.as_ref().map_or(&[][..], |id| &id[..]));
    }
}

#[cfg(test)]
#[path = "message_tests.rs"]
mod tests;
