//! `[fragments]`: how packets larger than a frame go.

use lowmesh_congestion::window::{Limits, fixed};
use lowmesh_congestion::{Window, WindowSpec};
use lowmesh_lowpan::params;
use lowmesh_lowpan::{Config, FragmentMode};
use lowmesh_registry::Row;
use lowmesh_units::Duration;

use super::section::{section, variants};
use super::value::{Any, Within, choice};

const HOUR: Duration = Duration::from_secs(3600);

variants! {
    /// How nodes carry packets larger than a frame.
    Fragments by "mode" {
        /// Every hop reassembles the packet and fragments it again (RFC 4944).
        "hwr" => HopWise,
        /// Nodes forward fragments as they arrive (RFC 8930).
        "ff" => Forwarded,
        /// Nodes forward fragments as they arrive, and the ends recover lost ones (RFC 8931).
        "sfr" => Recovered,
        /// The source splits packets into IPv6 fragments that fit into one frame (RFC 8200).
        "e2e" => EndToEnd,
    }
}

choice! {
    /// Behaviour that the RFCs leave open.
    StackProfile {
        /// A packet that can no longer be completed frees its memory.
        Native = "native",
        /// Behaviour of RIOT's stack.
        RiotGnrc = "riot-gnrc",
    }
}

section! {
    /// Every hop reassembles.
    HopWise {
        /// Maximum number of fragments of one packet in the MAC's queue; all of them with `profile = "riot-gnrc"`.
        in_flight: u8 = params::FRAGMENTS_IN_FLIGHT as u8, Within(1, 64);
        /// Behaviour that the RFCs leave open.
        profile: StackProfile = StackProfile::Native, Any;
    }
}

section! {
    /// Fragments go on as they come.
    Forwarded {
        /// Maximum number of fragments of one packet in the source's queue; all of them with `profile = "riot-gnrc"`.
        in_flight: u8 = params::FRAGMENTS_IN_FLIGHT as u8, Within(1, 64);
        /// Behaviour that the RFCs leave open.
        profile: StackProfile = StackProfile::Native, Any;
        /// Packets that one node forwards in fragments at a time (RIOT: 16); it reassembles further ones.
        entries: u16 = params::FORWARDED_DATAGRAMS as u16, Within(1, 1024);
    }
}

section! {
    /// The ends recover what is lost.
    Recovered {
        /// Packets that one node forwards in fragments at a time (RIOT: 16); it reassembles further ones.
        entries: u16 = params::FORWARDED_DATAGRAMS as u16, Within(1, 1024);
        /// Behaviour that the RFCs leave open.
        profile: StackProfile = StackProfile::Native, Any;
        /// Congestion window of the fragments of one packet.
        window: &'static Row<dyn Window> = &fixed::ROW, Any;
        /// Fragments that a source may send before the first acknowledgement (RFC 8931 s7.1: OptWindowSize).
        window_fragments: u8 = params::WINDOW_FRAGMENTS as u8, Within(1, 32);
        /// How long a source waits for an acknowledgement (RFC 8931 s7.1: OptARQTimeOut; Lenders et al. 2021: 2.5 s).
        arq_timeout: Duration = params::ARQ_TIMEOUT, Within(Duration::from_millis(1), HOUR);
        /// Retries of a fragment (RFC 8931 s7.1: MaxFragRetries; Lenders et al. 2021: 4).
        fragment_retries: u8 = params::FRAGMENT_RETRIES, Within(0, 255);
        /// Retries of a whole packet (RFC 8931 s7.1: MaxDatagramRetries).
        datagram_retries: u8 = params::DATAGRAM_RETRIES, Within(0, 255);
        /// Time between two fragments of one node (RFC 8931 s4.2; RIOT: 0.1 ms).
        inter_frame_gap: Duration = params::INTER_FRAME_GAP, Within(Duration::ZERO, HOUR);
        /// Number of frames in a node's queues at which it marks the fragments that it forwards as congested.
        mark_frames: u16 = params::MARK_FRAMES as u16, Within(1, 1024);
    }
}

section! {
    /// The source cuts packets to fit a frame.
    EndToEnd {
        /// Behaviour that the RFCs leave open.
        profile: StackProfile = StackProfile::Native, Any;
    }
}

impl Fragments {
    /// Puts the choice into 6LoWPAN's settings.
    pub fn apply(&self, config: &mut Config) {
        match self {
            Self::HopWise(hop_wise) => {
                config.mode = FragmentMode::HopWise;
                config.fragments_in_flight = hop_wise.in_flight.into();
                config.profile = hop_wise.profile.into();
            }
            Self::Forwarded(forwarded) => {
                config.mode = FragmentMode::Forwarded;
                config.fragments_in_flight = forwarded.in_flight.into();
                config.profile = forwarded.profile.into();
                config.forwarded_datagrams = forwarded.entries.into();
            }
            Self::Recovered(recovered) => {
                config.mode = FragmentMode::Recovered;
                config.forwarded_datagrams = recovered.entries.into();
                config.profile = recovered.profile.into();
                recovered.apply(&mut config.recovery);
            }
            Self::EndToEnd(end_to_end) => {
                config.mode = FragmentMode::EndToEnd;
                config.profile = end_to_end.profile.into();
            }
        }
    }
}

impl From<StackProfile> for params::StackProfile {
    fn from(profile: StackProfile) -> Self {
        match profile {
            StackProfile::Native => Self::Native,
            StackProfile::RiotGnrc => Self::RiotGnrc,
        }
    }
}

impl Recovered {
    fn apply(&self, recovery: &mut params::Recovery) {
        let initial = u32::from(self.window_fragments);
        recovery.window = if *self.window == fixed::ROW {
            WindowSpec::fixed(initial)
        } else {
            WindowSpec::new(self.window, Limits::messages(initial, WINDOW_MAX))
        };
        recovery.arq = params::Arq::fixed(self.arq_timeout);
        recovery.fragment_retries = self.fragment_retries;
        recovery.datagram_retries = self.datagram_retries;
        recovery.inter_frame_gap = self.inter_frame_gap;
        recovery.mark_frames = self.mark_frames.into();
    }
}

/// MaxWindowSize: RFC 8931 s7.1, at most the 32 fragments of a datagram.
const WINDOW_MAX: u32 = 32;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Scenario;

    fn applied(lines: &str) -> Config {
        let text = format!("name = \"x\"\n[fragments]\n{lines}");
        let scenario = Scenario::parse("x", &text, &[]).expect("a scenario");
        let mut config = Config::default();
        scenario.fragments.apply(&mut config);
        config
    }

    #[test]
    fn every_mode_has_its_name_in_scenarios() {
        let names: Vec<&str> = FragmentMode::ALL.into_iter().map(FragmentMode::name).collect();
        assert_eq!(Fragments::NAMES, names);
        for mode in FragmentMode::ALL {
            assert_eq!(applied(&format!("mode = {:?}", mode.name())).mode, mode);
        }
    }

    #[test]
    fn every_window_can_be_chosen() {
        for name in lowmesh_registry::Registry::<dyn Window>::builtin().names() {
            let config =
                applied(&format!("mode = \"sfr\"\nwindow = {name:?}\nwindow_fragments = 2"));
            assert_eq!(config.recovery.window.name(), name);
            assert_eq!(config.recovery.window.limits().initial, 2);
        }
    }

    #[test]
    fn the_numbers_of_a_mode_reach_its_settings() {
        let config = applied("mode = \"ff\"\nentries = 7\nin_flight = 3\nprofile = \"riot-gnrc\"");
        assert_eq!((config.forwarded_datagrams, config.fragments_in_flight), (7, 3));
        assert_eq!(config.profile, params::StackProfile::RiotGnrc);
        let config =
            applied("mode = \"sfr\"\narq_timeout = \"1200ms\"\ninter_frame_gap = \"170ms\"");
        assert_eq!(config.recovery.arq.timeout(), Duration::from_millis(1200));
        assert_eq!(config.recovery.inter_frame_gap, Duration::from_millis(170));
    }

    #[test]
    fn what_nothing_is_said_of_is_as_it_was() {
        assert_eq!(applied(""), Config::default());
    }

    #[test]
    fn keys_of_one_mode_do_not_apply_to_another() {
        let text = "name = \"x\"\n[fragments]\nmode = \"hwr\"\nwindow = \"quic\"\n";
        let errors = Scenario::parse("x", text, &[]).expect_err("HWR has no window").to_string();
        assert!(errors.contains("fragments.window: does not apply to mode = \"hwr\""), "{errors}");
    }
}
