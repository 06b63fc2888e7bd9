//! The fragmenting end of GNRC beside ours.

use super::*;
use crate::params::StackProfile;

const BOTH: [StackProfile; 2] = [StackProfile::Native, StackProfile::RiotGnrc];

fn sending_as(profile: StackProfile, octets: usize, window: &str, initial: u32) -> Sending {
    sending(octets, &Config { profile, ..config(window, initial) })
}

#[test]
fn a_timeout_that_shrinks_the_window_below_what_asked_ends_the_packet() {
    for profile in BOTH {
        let mut sending = sending_as(profile, 300, "appendix-c", 2);
        assert_eq!(marks(&burst(&mut sending, at(0))), [(0, false), (1, true)]);
        let ending = sending.on_timeout(at(1000));
        match profile {
            StackProfile::Native => {
                assert_eq!(ending, None);
                assert_eq!(marks(&burst(&mut sending, at(1000))), [(1, true)]);
            }
            StackProfile::RiotGnrc => assert_eq!(ending, Some(Ending::Unasked)),
        }
    }
}

#[test]
fn a_fragment_alone_in_the_window_survives_its_timeout() {
    for profile in BOTH {
        let mut sending = sending_as(profile, 230, "appendix-c", 2);
        burst(&mut sending, at(0));
        assert_eq!(sending.on_ack(&ack(&[0, 1]), at(80)), None);
        assert_eq!(marks(&burst(&mut sending, at(80))), [(2, true)], "{profile:?}");
        assert_eq!(sending.on_timeout(at(1080)), None);
        assert_eq!(marks(&burst(&mut sending, at(1080))), [(2, true)], "{profile:?}");
    }
}

#[test]
fn after_a_timeout_the_window_stays_taken() {
    for (profile, sent) in [
        (StackProfile::Native, vec![(2, false), (3, false), (4, true)]),
        (StackProfile::RiotGnrc, vec![(2, true)]),
    ] {
        let mut sending = sending_as(profile, 500, "fixed", 3);
        burst(&mut sending, at(0));
        assert_eq!(sending.on_timeout(at(1000)), None);
        assert_eq!(marks(&burst(&mut sending, at(1000))), sent, "{profile:?}");
    }
}

#[test]
fn a_late_acknowledgement_counts_what_it_cannot_know_as_lost() {
    for (profile, again) in
        [(StackProfile::Native, vec![]), (StackProfile::RiotGnrc, vec![(2, false), (3, true)])]
    {
        let mut sending = sending_as(profile, 500, "fixed", 2);
        burst(&mut sending, at(0));
        assert_eq!(sending.on_ack(&ack(&[0, 1]), at(80)), None);
        assert_eq!(marks(&burst(&mut sending, at(80))), [(2, false), (3, true)]);
        assert_eq!(sending.on_ack(&ack(&[0, 1]), at(90)), None);
        assert_eq!(marks(&burst(&mut sending, at(90))), again, "{profile:?}");
    }
}

#[test]
fn what_a_shrunken_window_gives_back_has_all_its_retries() {
    // Three losses at once take Reno's window of 4 down to 2; the third fragment is as if it had never been sent.
    for (profile, ending) in
        [(StackProfile::Native, Some(Ending::GaveUp)), (StackProfile::RiotGnrc, None)]
    {
        let mut config = Config { profile, ..config("reno", 4) };
        config.recovery.fragment_retries = 1;
        let mut sending = sending(500, &config);
        assert_eq!(burst(&mut sending, at(0)).len(), 4);
        assert_eq!(sending.on_ack(&ack(&[3]), at(80)), None);
        assert_eq!(marks(&burst(&mut sending, at(80))), [(0, false), (1, true)], "{profile:?}");
        assert_eq!(sending.on_ack(&ack(&[0, 1, 3]), at(160)), None);
        let resent = marks(&burst(&mut sending, at(160)));
        assert!(resent.starts_with(&[(2, false)]), "{profile:?}: {resent:?}");
        let last = resent.last().expect("there are more").0;
        assert_eq!(sending.on_ack(&ack(&[0, 1, 3, last]), at(240)), ending, "{profile:?}");
    }
}

#[test]
fn a_mark_reduces_what_was_on_its_way_before_the_bitmap() {
    // Four on their way: .5 of them and .8 of them differ. After the bitmap nothing is, and both end at the least of 2.
    for (profile, windows) in [(StackProfile::Native, [2, 3]), (StackProfile::RiotGnrc, [2, 2])] {
        let after = ["reno", "abe"].map(|window| {
            let mut sending = sending_as(profile, 700, window, 4);
            assert_eq!(burst(&mut sending, at(0)).len(), 4);
            let marked = RfragAck { congestion: true, ..ack(&[0, 1, 2, 3]) };
            assert_eq!(sending.on_ack(&marked, at(80)), None);
            sending.window().window()
        });
        assert_eq!(after, windows, "{profile:?}");
    }
}
