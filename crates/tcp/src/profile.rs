//! What a connection does where implementations differ, under three names.

use lowmesh_congestion::Window;
use lowmesh_congestion::window::newreno;
use lowmesh_registry::Row;
use lowmesh_units::Duration;

use crate::params::{
    BUFFER_OCTETS, INITIAL_WINDOW_SEGMENTS, KEEP_ALIVE_IDLE, KEEP_ALIVE_INTERVAL,
    KEEP_ALIVE_PROBES, LLN_BUFFER_OCTETS, LLN_MSS, MSS_DEFAULT_V6, MSS_MIN, RETRIES, SYN_RETRIES,
    WINDOW_SCALE_MAX,
};

/// The settings of one end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Profile {
    /// Offers selective acknowledgements (RFC 2018); in use when both ends offer them. With them losses are found by
    /// RACK-TLP (RFC 8985), without them by duplicate acknowledgements.
    pub sack: bool,
    /// Offers timestamps (RFC 7323).
    pub timestamps: bool,
    /// Offers window scaling (RFC 7323).
    pub window_scale: bool,
    /// The congestion window.
    pub window: &'static Row<dyn Window>,
    /// The window in segments at the start.
    pub initial_window_segments: u32,
    /// The largest segment that this end accepts and sends, in octets, with the timestamps option in it as RFC 6691
    /// counts. 256 for an MTU of 296 over IPv4.
    pub mss: u16,
    /// The largest segment that is sent to a peer that announces none; it depends on the IP below (RFC 9293 MUST-15), see
    /// [`params`](crate::params).
    pub mss_default: u16,
    /// Timeouts of a segment without an answer after which the connection is over (R2 of RFC 9293 s3.8.3).
    pub retries: u8,
    /// Retransmissions of a SYN that back off (R2 of a SYN). An active open sends four more before them, one a second; a
    /// program that wants to give up sooner aborts.
    pub syn_retries: u8,
    /// Octets that the application may have written and the peer not acknowledged.
    pub send_buffer_octets: u32,
    /// Octets that may have arrived and the application not read.
    pub receive_buffer_octets: u32,
    /// The most that the receive window offers. Below the size of the buffer, unread data does not move the window at
    /// once, and duplicate acknowledgements look alike.
    pub receive_window_octets: u32,
    /// Delays acknowledgements as Linux does; otherwise each segment is acknowledged at once.
    pub delayed_acks: bool,
    /// Holds a short segment back while another one is not acknowledged (RFC 1122 s4.2.3.4, with Minshall's rule).
    pub nagle: bool,
    /// F-RTO (RFC 5682): looks whether a timeout was spurious.
    pub frto: bool,
    /// Loss probes at the tail of a flight (RFC 8985 s7); with `sack` only.
    pub loss_probes: bool,
    /// Asks a peer that has been silent whether it is still there; never if unset (RFC 9293 s3.8.4: off by default).
    pub keep_alive: Option<KeepAlive>,
    /// Starts from the initial window after an idle RTO (RFC 5681 s4.1).
    pub slow_start_after_idle: bool,
}

/// When an idle connection probes its peer, and when it gives up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeepAlive {
    /// Time since the last segment of the peer.
    pub idle: Duration,
    /// Time from one probe to the next.
    pub interval: Duration,
    /// Probes without an answer after which the connection is over.
    pub probes: u32,
}

impl KeepAlive {
    /// The numbers of Linux, once a program asks for keep-alive.
    pub const LINUX: Self =
        Self { idle: KEEP_ALIVE_IDLE, interval: KEEP_ALIVE_INTERVAL, probes: KEEP_ALIVE_PROBES };
}

/// A profile with impossible values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{key}: {value} is not allowed; {allowed}")]
pub struct ConfigError {
    /// The field of [`Profile`].
    pub key: &'static str,
    /// Its value.
    pub value: u64,
    /// What is allowed.
    pub allowed: &'static str,
}

impl Profile {
    /// A host with the defaults of Linux 6.
    pub const LINUX: Self = Self {
        sack: true,
        timestamps: true,
        window_scale: true,
        window: &newreno::ROW,
        initial_window_segments: INITIAL_WINDOW_SEGMENTS,
        mss: 1_440,
        mss_default: MSS_DEFAULT_V6,
        retries: RETRIES,
        syn_retries: SYN_RETRIES,
        send_buffer_octets: BUFFER_OCTETS,
        receive_buffer_octets: BUFFER_OCTETS,
        receive_window_octets: BUFFER_OCTETS / 2,
        delayed_acks: true,
        nagle: true,
        frto: true,
        loss_probes: true,
        keep_alive: None,
        slow_start_after_idle: true,
    };
    /// The ends of Pesola 2020, as far as measurements show: Linux without SACK, with timestamps, over an MTU of 296.
    pub const PESOLA: Self = Self { sack: false, mss: 256, nagle: false, ..Self::LINUX };
    /// A node of a low-power network: four segments of buffer, a window that fills them, no window scaling.
    pub const LLN: Self = Self {
        window_scale: false,
        initial_window_segments: 4,
        mss: LLN_MSS,
        send_buffer_octets: LLN_BUFFER_OCTETS,
        receive_buffer_octets: LLN_BUFFER_OCTETS,
        receive_window_octets: LLN_BUFFER_OCTETS,
        ..Self::LINUX
    };
    /// The profiles with their names.
    pub const NAMED: [(&'static str, Self); 3] =
        [("linux", Self::LINUX), ("pesola", Self::PESOLA), ("lln", Self::LLN)];

    /// The shift by which our window fits into 16 bits (RFC 7323 s2.3).
    pub(crate) fn window_shift(&self) -> u8 {
        (0..WINDOW_SCALE_MAX)
            .find(|shift| u16::try_from(self.receive_window_octets >> shift).is_ok())
            .unwrap_or(WINDOW_SCALE_MAX)
    }
    /// Checks the values of the profile.
    pub fn check(&self) -> Result<(), ConfigError> {
        let error =
            |key, value: u32, allowed| Err(ConfigError { key, value: value.into(), allowed });
        if self.mss < MSS_MIN {
            return error("mss", self.mss.into(), "a segment has at least 48 octets");
        }
        if self.mss_default < MSS_MIN {
            return error(
                "mss_default",
                self.mss_default.into(),
                "a segment has at least 48 octets",
            );
        }
        if self.initial_window_segments == 0 {
            return error("initial_window_segments", 0, "a window starts with at least 1 segment");
        }
        if self.send_buffer_octets < u32::from(self.mss) {
            return error(
                "send_buffer_octets",
                self.send_buffer_octets,
                "a buffer holds one MSS at least",
            );
        }
        if self.receive_buffer_octets < u32::from(self.mss) || self.receive_buffer_octets > 1 << 30
        {
            let allowed = "a buffer holds one MSS at least and 2^30 octets at most (RFC 7323 s2.3)";
            return error("receive_buffer_octets", self.receive_buffer_octets, allowed);
        }
        let window = u32::from(self.mss)..=self.receive_buffer_octets;
        if !window.contains(&self.receive_window_octets) {
            let allowed = "a window offers one MSS at least and the whole buffer at most";
            return error("receive_window_octets", self.receive_window_octets, allowed);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_named_profiles_are_valid_and_errors_name_key_value_and_remedy() {
        for (name, profile) in Profile::NAMED {
            assert_eq!(profile.check(), Ok(()), "{name}");
        }
        let key = |profile: Profile| profile.check().map_err(|error| error.key);
        assert_eq!(key(Profile { mss: 47, ..Profile::LINUX }), Err("mss"));
        assert_eq!(key(Profile { mss_default: 47, ..Profile::LINUX }), Err("mss_default"));
        let profile = Profile { initial_window_segments: 0, ..Profile::LINUX };
        assert_eq!(key(profile), Err("initial_window_segments"));
        let profile = Profile { receive_buffer_octets: 100, ..Profile::LINUX };
        assert_eq!(key(profile), Err("receive_buffer_octets"));
        let profile = Profile { receive_window_octets: 1 << 20, ..Profile::LINUX };
        assert_eq!(key(profile), Err("receive_window_octets"));
        let error = Profile { send_buffer_octets: 1, ..Profile::LINUX }.check();
        let text = error.expect_err("one octet holds no segment").to_string();
        assert_eq!(text, "send_buffer_octets: 1 is not allowed; a buffer holds one MSS at least");
    }
}
