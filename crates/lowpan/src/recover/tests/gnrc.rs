//! The fragmenting end of GNRC beside ours.

use super::*;
use crate::params::Manner;

const BOTH: [Manner; 2] = [Manner::Own, Manner::Gnrc];

fn sending_as(manner: Manner, octets: usize, window: &str, initial: u32) -> Sending {
    sending(octets, &Config { manner, ..config(window, initial) })
}

#[test]
fn a_timeout_that_shrinks_the_window_below_what_asked_ends_the_packet() {
    for manner in BOTH {
        let mut sending = sending_as(manner, 300, "appendix-c", 2);
        assert_eq!(marks(&burst(&mut sending, at(0))), [(0, false), (1, true)]);
        let ending = sending.on_timeout(at(1000));
        match manner {
            Manner::Own => {
                assert_eq!(ending, None);
                assert_eq!(marks(&burst(&mut sending, at(1000))), [(1, true)]);
            }
            Manner::Gnrc => assert_eq!(ending, Some(Ending::Unasked)),
        }
    }
}

#[test]
fn a_fragment_alone_in_the_window_survives_its_timeout() {
    for manner in BOTH {
        let mut sending = sending_as(manner, 230, "appendix-c", 2);
        burst(&mut sending, at(0));
        assert_eq!(sending.on_ack(&ack(&[0, 1]), at(80)), None);
        assert_eq!(marks(&burst(&mut sending, at(80))), [(2, true)], "{manner:?}");
        assert_eq!(sending.on_timeout(at(1080)), None);
        assert_eq!(marks(&burst(&mut sending, at(1080))), [(2, true)], "{manner:?}");
    }
}

#[test]
fn after_a_timeout_the_window_stays_taken() {
    for (manner, sent) in
        [(Manner::Own, vec![(2, false), (3, false), (4, true)]), (Manner::Gnrc, vec![(2, true)])]
    {
        let mut sending = sending_as(manner, 500, "fixed", 3);
        burst(&mut sending, at(0));
        assert_eq!(sending.on_timeout(at(1000)), None);
        assert_eq!(marks(&burst(&mut sending, at(1000))), sent, "{manner:?}");
    }
}

#[test]
fn a_late_acknowledgement_counts_what_it_cannot_know_as_lost() {
    for (manner, again) in [(Manner::Own, vec![]), (Manner::Gnrc, vec![(2, false), (3, true)])] {
        let mut sending = sending_as(manner, 500, "fixed", 2);
        burst(&mut sending, at(0));
        assert_eq!(sending.on_ack(&ack(&[0, 1]), at(80)), None);
        assert_eq!(marks(&burst(&mut sending, at(80))), [(2, false), (3, true)]);
        assert_eq!(sending.on_ack(&ack(&[0, 1]), at(90)), None);
        assert_eq!(marks(&burst(&mut sending, at(90))), again, "{manner:?}");
    }
}

#[test]
fn what_a_shrunken_window_gives_back_has_all_its_retries() {
    // Three losses at once take Reno's window of 4 down to 2; the third fragment is as if it had never been sent.
    for (manner, ending) in [(Manner::Own, Some(Ending::GaveUp)), (Manner::Gnrc, None)] {
        let mut config = Config { manner, ..config("reno", 4) };
        config.recovery.fragment_retries = 1;
        let mut sending = sending(500, &config);
        assert_eq!(burst(&mut sending, at(0)).len(), 4);
        assert_eq!(sending.on_ack(&ack(&[3]), at(80)), None);
        assert_eq!(marks(&burst(&mut sending, at(80))), [(0, false), (1, true)], "{manner:?}");
        assert_eq!(sending.on_ack(&ack(&[0, 1, 3]), at(160)), None);
        let resent = marks(&burst(&mut sending, at(160)));
        assert!(resent.starts_with(&[(2, false)]), "{manner:?}: {resent:?}");
        let last = resent.last().expect("there are more").0;
        assert_eq!(sending.on_ack(&ack(&[0, 1, 3, last]), at(240)), ending, "{manner:?}");
    }
}
