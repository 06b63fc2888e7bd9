//! Numbers of 6P and of the scheduling functions, each with its source, unit and bounds.

use lowmesh_units::Duration;

/// First handle of 6P frames, so that the stack can tell them from its own: handles count up from here.
pub const HANDLE_FIRST: u64 = 1 << 62;

/// Most neighbours with 6P state: a bound of ours, as many as a dense mesh has in radio range.
pub const PEERS_MAX: usize = 128;

/// Cells in the list of one message that fit into a 127-octet frame: a bound of ours. RFC 8480 s3.2.4 has none.
pub const LIST_CELLS_MAX: usize = 20;

/// Identifier of MSF (RFC 9033 s7 and s17).
pub const SFID_MSF: u8 = 0;

/// Identifier of B-MSF: none is assigned, so a number of ours, far from the assigned ones.
pub const SFID_BMSF: u8 = 0xf0;

/// NUM_CH_OFFSET: RFC 9033 s14, 16 channel offsets at 2.4 GHz; 1 to 16.
pub const CHANNEL_OFFSETS: u16 = 16;

/// h0, l_bit and r_bit of the SAX hash: RFC 9033 app. A.
pub const SAX: (u32, u32, u32) = (0, 0, 1);

/// Slotframe of the shared cell (RFC 9033 s2, Slotframe 0).
pub const SLOTFRAME_MINIMAL: u8 = 0;
/// Slotframe of autonomous cells (RFC 9033 s2, Slotframe 1).
pub const SLOTFRAME_AUTONOMOUS: u8 = 1;
/// Slotframe of negotiated cells (RFC 9033 s2, Slotframe 2).
pub const SLOTFRAME_NEGOTIATED: u8 = 2;

/// What the time that a message takes depends on in the MAC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MacTiming {
    /// Length of a timeslot.
    pub slot: Duration,
    /// Copies of a frame after the first (macMaxFrameRetries).
    pub retries_max: u8,
    /// Largest backoff exponent in shared cells (macMaxBe).
    pub backoff_exponent_max: u8,
}

/// Longest slotframe, in slots: its length is two octets on the air (IEEE 802.15.4-2015 s7.4.4.3).
pub const SLOTS_MAX: u16 = u16::MAX;

/// Slots in the slotframe of the minimal schedule: RFC 8180 s4.1 leaves it to the beacons; Contiki-NG
/// (TSCH_SCHEDULE_DEFAULT_LENGTH): 7. The usual 101 slots of 6TiSCH are for networks whose unicast has cells of its own:
/// with one cell a second, beacons and RPL alone fill it in a network of 26 nodes. 1 or more.
pub const MINIMAL_SLOTFRAME_LENGTH: u16 = 7;

/// What MSF and its two variants have in common; they differ in their values only.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MsfParams {
    /// The name by which a scenario chooses the function.
    pub name: &'static str,
    /// Identifier in 6P messages.
    pub sfid: u8,
    /// Slots of slotframe 0 (the shared cell): RFC 9033 s14 SLOTFRAME_LENGTH 101.
    pub minimal_length: u16,
    /// Slots of slotframe 1 (autonomous cells): RFC 9033 s14 SLOTFRAME_LENGTH 101; 2 or more.
    pub autonomous_length: u16,
    /// Slots of slotframe 2 (negotiated cells): RFC 9033 s14 SLOTFRAME_LENGTH 101.
    pub negotiated_length: u16,
    /// MAX_NUM_CELLS: RFC 9033 s14, 100 cells; Righetti 2023 table 1 MAX_NEC, 48.
    pub cells_elapsed_max: u64,
    /// LIM_NUMCELLSUSED_HIGH: RFC 9033 s14, 75 of 100; Righetti 2023 table 1, 36 of 48.
    pub cells_used_high: u64,
    /// LIM_NUMCELLSUSED_LOW: RFC 9033 s14, 25 of 100; Righetti 2023 table 1, 12 of 48.
    pub cells_used_low: u64,
    /// LIM_NUMCELLSUSED_HIGH while the AutoRxCell is the only Rx cell: RFC 9033 s5.1 has no other limit there. In
    /// `msf/backlog` a quarter of `cells_elapsed_max`: senders back off in this shared cell after each loss, so it saturates
    /// well below three quarters.
    pub shared_used_high: u64,
    /// Frames sent to a neighbour before the share of them that was acknowledged lowers the upper limit of Rx cells, because
    /// a receiver does not count what is lost: ours, 16; `None` for never, as in RFC 9033.
    pub judged_after: Option<u64>,
    /// Does a node keep cells towards its children too (B-MSF, Righetti 2023 algorithm 1 lines 6-12)?
    pub downward: bool,
    /// Does a node ask its parent for cells to receive in (RFC 9033 s5.1)?
    pub receive_cells: bool,
    /// Slotframes of negotiated cells after which frames that wait for the parent or a child without a break make a node
    /// request one more Tx cell to it: ours, 4; 0 for never. RFC 9033 s5.1 counts used cells only, and only the child
    /// requests cells for downward traffic.
    pub backlog_slotframes: u16,
    /// How long a cell stays that a rule of ours added, at first and at most: ours, 1 h and 8 h. The time doubles with
    /// each release after which the cell was missing. Without it s5.1 releases what a backlog has added, and frames wait
    /// again.
    pub hold: (Duration, Duration),
    /// Cells in a candidate list: RFC 9033 s8 recommends 5 (CELL_LIST_SIZE); 1 to [`LIST_CELLS_MAX`].
    pub cell_list: usize,
    /// Most cells to one neighbour in one direction: a bound of ours, below the slotframe's length.
    pub cells_per_peer_max: u16,
    /// MAX_NUMTX: RFC 9033 s14, 256 frames; the counters of a cell are halved there.
    pub sent_max: u32,
    /// RELOCATE_PDRTHRES: RFC 9033 s14, 50 %: so much below the best cell is too bad.
    pub relocate_percent: u32,
    /// HOUSEKEEPINGCOLLISION_PERIOD: RFC 9033 s14, 1 min.
    pub housekeeping: Duration,
    /// QUARANTINE_DURATION: RFC 9033 s14, 5 min.
    pub quarantine: Duration,
    /// WAIT_DURATION_MIN and _MAX: RFC 9033 s14, 30 s to 60 s. After RC_ERR_BUSY and RC_ERR_LOCKED (s12, table 1), and
    /// while this node itself has no cell to offer.
    pub wait_retry: (Duration, Duration),
    /// Pause after a request that nobody answered, or for which none of the cells offered was free at the other
    /// end; the RFC leaves both open, 5 s to 10 s is ours.
    pub wait_lost: (Duration, Duration),
    /// How often a CLEAR is sent before the peer is taken for gone: ours.
    pub clear_attempts: u8,
    /// A peer whose cells stay silent so long is taken for gone: ours, above RPL's refreshing of routes.
    pub silence_max: Duration,
    /// A child whose route is gone keeps its cells so long, an old parent while cells are asked of the new one: ours.
    pub leave_after: Duration,
    /// A transmit cell without a single acknowledgement after so many frames is not listened to: ours.
    pub deaf_after: u32,
}

impl MsfParams {
    /// RFC 9033 as it stands.
    pub const MSF: Self = Self {
        name: "msf",
        sfid: SFID_MSF,
        minimal_length: 101,
        autonomous_length: 101,
        negotiated_length: 101,
        cells_elapsed_max: 100,
        cells_used_high: 75,
        cells_used_low: 25,
        shared_used_high: 75,
        judged_after: None,
        downward: false,
        receive_cells: true,
        backlog_slotframes: 0,
        hold: (Duration::ZERO, Duration::ZERO),
        cell_list: 5,
        cells_per_peer_max: 40,
        sent_max: 256,
        relocate_percent: 50,
        housekeeping: Duration::from_secs(60),
        quarantine: Duration::from_secs(300),
        wait_retry: (Duration::from_secs(30), Duration::from_secs(60)),
        wait_lost: (Duration::from_secs(5), Duration::from_secs(10)),
        clear_attempts: 8,
        silence_max: Duration::from_secs(1200),
        leave_after: Duration::from_secs(300),
        deaf_after: 16,
    };

    /// MSF with rules of ours for what s5.1 does not see: frames that wait, and a full AutoRxCell.
    pub const BACKLOG: Self = Self {
        name: "msf/backlog",
        shared_used_high: 25,
        judged_after: Some(16),
        backlog_slotframes: 4,
        hold: (Duration::from_secs(3600), Duration::from_secs(28_800)),
        ..Self::MSF
    };

    /// B-MSF: Righetti et al. 2023, algorithm 1 and table 1 (L0, L1, L2 = 101, 31, 29).
    pub const BMSF: Self = Self {
        name: "b-msf",
        sfid: SFID_BMSF,
        autonomous_length: 31,
        negotiated_length: 29,
        cells_elapsed_max: 48,
        cells_used_high: 36,
        cells_used_low: 12,
        shared_used_high: 36,
        downward: true,
        receive_cells: false,
        cells_per_peer_max: 12,
        ..Self::MSF
    };

    /// The 6P timeout: RFC 9033 s9, (2^MAXBE - 1) x MAXRETRIES slotframes, the longest that so many tries can take over this
    /// MAC. Without retries or backoff the one try still takes a slotframe.
    pub fn timeout(&self, mac: MacTiming) -> Duration {
        let waits = (1_u64 << mac.backoff_exponent_max.min(16)) - 1;
        let slotframes = waits.max(1) * u64::from(mac.retries_max.max(1));
        mac.slot * u64::from(self.autonomous_length) * slotframes
    }
}

/// ALICE: Kim, Kim, Paek, Bahk, IPSN 2019.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AliceParams {
    /// Slots of the beacon slotframe: Contiki-NG Orchestra, 397, prime and far above the others.
    pub beacon_length: u16,
    /// Slots of the broadcast slotframe: Contiki-NG Orchestra, 31.
    pub broadcast_length: u16,
    /// Slots of the unicast slotframe: 29 here; the paper tries 20 and more.
    pub unicast_length: u16,
    /// Channel offsets for unicast: 15, all but the broadcast cell's (0).
    pub channel_offsets: u16,
    /// Do senders back off in unicast cells? True in the authors' code (skimskimskim/ALICE, LINK_OPTION_SHARED), as two
    /// links may share a cell.
    pub unicast_shared: bool,
}

impl AliceParams {
    /// The numbers above.
    pub const PUBLISHED: Self = Self {
        beacon_length: 397,
        broadcast_length: 31,
        unicast_length: 29,
        channel_offsets: 15,
        unicast_shared: true,
    };
}

/// Orchestra: Duquennoy, Al Nahas, Landsiedel, Watteyne, SenSys 2015; numbers of Contiki-NG (orchestra-conf.h).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrchestraParams {
    /// Slots of the beacon slotframe: 397.
    pub beacon_length: u16,
    /// Slots of the unicast slotframe: 17.
    pub unicast_length: u16,
    /// Slots of the common slotframe: 31.
    pub common_length: u16,
    /// Channel offset of beacon cells: ORCHESTRA_EB_CHANNEL_OFFSET, 0.
    pub beacon_channel_offset: u16,
    /// Channel offset of the common cell: ORCHESTRA_DEFAULT_COMMON_CHANNEL_OFFSET, 1.
    pub common_channel_offset: u16,
    /// First and last channel offset of unicast cells: ORCHESTRA_UNICAST_MIN_ and _MAX_CHANNEL_OFFSET, 2 and 255. The
    /// receiver's address chooses one of them.
    pub unicast_channel_offsets: (u16, u16),
    /// Slots of the slotframe for frames to the root (special_for_root), in which the root listens all the time; 0 is no
    /// such slotframe. The rule is not among Contiki-NG's default ones.
    pub root_length: u16,
}

impl OrchestraParams {
    /// The numbers above.
    pub const CONTIKI: Self = Self {
        beacon_length: 397,
        unicast_length: 17,
        common_length: 31,
        beacon_channel_offset: 0,
        common_channel_offset: 1,
        unicast_channel_offsets: (2, 255),
        root_length: 0,
    };
}

/// Channel offset of the shared cell: RFC 8180 s4.1, 0.
pub const MINIMAL_CHANNEL_OFFSET: u16 = 0;
/// Channel offset of beacon cells in ALICE: ours, 1, next to the shared cell's. The paper leaves it open.
pub const ALICE_BEACON_CHANNEL_OFFSET: u16 = 1;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_timeout_is_the_rfcs_formula() {
        // (2^5 - 1) x 3 x 101 slots of 10 ms = 93.93 s, and with 31 slots 28.83 s.
        let slot = Duration::from_millis(10);
        let mac = |retries_max, backoff_exponent_max| MacTiming {
            slot,
            retries_max,
            backoff_exponent_max,
        };
        assert_eq!(MsfParams::MSF.timeout(mac(3, 5)), Duration::from_millis(93_930));
        assert_eq!(MsfParams::BMSF.timeout(mac(3, 5)), Duration::from_millis(28_830));
        assert_eq!(MsfParams::MSF.timeout(mac(7, 3)), Duration::from_millis(49_490));
        assert_eq!(MsfParams::MSF.timeout(mac(0, 0)), Duration::from_millis(1010));
    }

    #[test]
    fn b_msf_has_the_thresholds_of_its_table() {
        let MsfParams { cells_elapsed_max: all, cells_used_high, cells_used_low, .. } =
            MsfParams::BMSF;
        assert_eq!((all * 3 / 4, all / 4), (cells_used_high, cells_used_low));
    }
}
