//! Names of nodes, networks, channels and quantities, each a type of its own.

use core::cmp::Ordering;
use core::fmt;

/// Index of a node in a run, 0 for the root; never on the air.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct NodeId(pub u16);

impl NodeId {
    /// The index into a table of nodes.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
    /// The EUI-64 of a node whose network counts its addresses up
    /// ([`Addressing::Consecutive`](crate::Addressing)): locally administered (bit 1 of the first octet), the letters
    /// "LM", then the index.
    pub const fn eui64(self) -> Eui64 {
        let [high, low] = self.0.to_be_bytes();
        Eui64([0x02, b'L', b'M', 0, 0, 0, high, low])
    }
}
impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// IEEE EUI-64, most significant octet first (the air has it reversed).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Eui64(pub [u8; 8]);

/// The order of the octets. Tables of neighbours are sorted by it, and one comparison of numbers is faster than eight of
/// octets.
impl Ord for Eui64 {
    fn cmp(&self, other: &Self) -> Ordering {
        self.as_u64().cmp(&other.as_u64())
    }
}
impl PartialOrd for Eui64 {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Eui64 {
    /// The IPv6 interface identifier: the EUI-64 with the universal/local bit inverted (RFC 4291 app. A).
    pub const fn interface_identifier(self) -> [u8; 8] {
        let mut iid = self.0;
        iid[0] ^= 0x02;
        iid
    }
    /// The inverse of [`Eui64::interface_identifier`].
    pub const fn from_interface_identifier(iid: [u8; 8]) -> Self {
        let mut eui = iid;
        eui[0] ^= 0x02;
        Self(eui)
    }
    /// The number that the eight octets spell, for hashing.
    pub const fn as_u64(self) -> u64 {
        u64::from_be_bytes(self.0)
    }
}
impl fmt::Display for Eui64 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, octet) in self.0.iter().enumerate() {
            let dash = if i == 0 { "" } else { "-" };
            write!(f, "{dash}{octet:02x}")?;
        }
        Ok(())
    }
}
impl fmt::Debug for Eui64 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// IEEE 802.15.4 short address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ShortAddr(pub u16);

impl ShortAddr {
    /// All nodes in range.
    pub const BROADCAST: Self = Self(0xffff);
    /// A node that is in the network and has no short address (IEEE 802.15.4-2015 s8.4.2, macShortAddress).
    pub const NONE: Self = Self(0xfffe);

    /// The EUI-64 that stands for this address: its interface identifier is `0000:00ff:fe00` and the short address, as in
    /// RFC 6282 s3.2.2. No device has this EUI-64.
    pub const fn eui64(self) -> Eui64 {
        let [high, low] = self.0.to_be_bytes();
        Eui64([0x02, 0, 0, 0xff, 0xfe, 0, high, low])
    }
    /// The short address for which this EUI-64 stands, as made by [`ShortAddr::eui64`]. None for 0xffff and 0xfffe, which
    /// name no node: nobody can be made to send to all by the address `fe80::ff:fe00:ffff`.
    pub const fn from_eui64(eui: Eui64) -> Option<Self> {
        match eui.0 {
            [0x02, 0, 0, 0xff, 0xfe, 0, 0xff, 0xfe | 0xff] => None,
            [0x02, 0, 0, 0xff, 0xfe, 0, high, low] => Some(Self(u16::from_be_bytes([high, low]))),
            _ => None,
        }
    }
}

/// IEEE 802.15.4 PAN identifier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PanId(pub u16);

impl PanId {
    /// Every PAN.
    pub const BROADCAST: Self = Self(0xffff);
}

/// Radio channel of the 2.4 GHz O-QPSK PHY, 11 to 26.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Channel(u8);

impl Channel {
    /// How many channels the band has.
    pub const COUNT: usize = 16;

    /// The channel numbered `number`, if the band has it.
    pub const fn new(number: u8) -> Option<Self> {
        if matches!(number, 11..=26) { Some(Self(number)) } else { None }
    }
    /// Its number, 11 to 26.
    pub const fn number(self) -> u8 {
        self.0
    }
    /// Its place in a table of channels, 0 to 15.
    pub const fn index(self) -> usize {
        self.0 as usize - 11
    }
}
impl fmt::Display for Channel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// RPL rank (RFC 6550 s3.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rank(pub u16);

impl Rank {
    /// Advertised by a node that poisons its sub-DODAG (RFC 6550 s17).
    pub const INFINITE: Self = Self(0xffff);
}

/// Power in dB over one milliwatt.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Dbm(pub f64);

impl Dbm {
    /// The power in milliwatts.
    pub fn milliwatts(self) -> f64 {
        libm::pow(10.0, self.0 / 10.0)
    }
    /// The level of a power in milliwatts.
    pub fn from_milliwatts(mw: f64) -> Self {
        Self(10.0 * libm::log10(mw))
    }
}
impl fmt::Display for Dbm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.1} dBm", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interface_identifiers_turn_back_into_addresses() {
        let eui = NodeId(0x1234).eui64();
        assert_eq!(eui.interface_identifier()[0], 0x00);
        assert_eq!(Eui64::from_interface_identifier(eui.interface_identifier()), eui);
    }

    #[test]
    fn only_the_sixteen_channels_of_the_band_exist() {
        assert_eq!(Channel::new(10), None);
        assert_eq!(Channel::new(27), None);
        assert_eq!(Channel::new(26).map(Channel::index), Some(15));
    }

    #[test]
    fn power_converts_both_ways() {
        let level = Dbm::from_milliwatts(Dbm(-90.0).milliwatts());
        assert!((level.0 + 90.0).abs() < 1e-9);
    }
}
