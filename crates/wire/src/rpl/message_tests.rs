//! Round trips, prefixes and random bytes over all RPL messages and options.

use super::*;
use crate::rpl::{
    DodagConfiguration, Metric, PrefixInformation, RouteInformation, SolicitedInformation, Target,
    TransitInformation,
};

const HOST: Address = [0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9];

fn configuration() -> DodagConfiguration {
    DodagConfiguration {
        flags: DodagConfiguration::RPI_0X23 | 0b1000,
        authentication: true,
        path_control_size: 5,
        interval_doublings: 8,
        interval_min: 12,
        redundancy: 10,
        max_rank_increase: 1024,
        min_hop_rank_increase: 128,
        objective_code_point: 1,
        default_lifetime: 30,
        lifetime_unit: 60,
    }
}

fn transit(parent: Option<Address>) -> TransitInformation {
    TransitInformation {
        external: true,
        invalidates: true,
        path_control: 0xc0,
        path_sequence: 241,
        path_lifetime: 30,
        parent,
    }
}

fn every_option() -> Vec<RplOption> {
    let mut prefix = HOST;
    prefix[8..].fill(0);
    vec![
        RplOption::Pad1,
        RplOption::PadN(0),
        RplOption::PadN(3),
        RplOption::MetricContainer(vec![Metric::etx(300), Metric::etx(128)]),
        RplOption::RouteInformation(RouteInformation {
            prefix_length: 64,
            preference: 3,
            lifetime: 600,
            prefix,
        }),
        RplOption::DodagConfiguration(configuration()),
        RplOption::Target(Target::host(HOST)),
        RplOption::Target(Target { prefix_length: 0, prefix: [0; 16] }),
        RplOption::TransitInformation(transit(None)),
        RplOption::TransitInformation(transit(Some(HOST))),
        RplOption::SolicitedInformation(SolicitedInformation {
            version: Some(3),
            instance: None,
            dodag_id: Some(HOST),
        }),
        RplOption::PrefixInformation(PrefixInformation {
            prefix_length: 64,
            on_link: false,
            autonomous: true,
            router_address: true,
            valid_lifetime: u32::MAX,
            preferred_lifetime: 7200,
            prefix: HOST,
        }),
        RplOption::TargetDescriptor(0xdead_beef),
        RplOption::Other { kind: 0x0a, data: vec![1, 2, 3] },
    ]
}

fn dio(options: Vec<RplOption>) -> Message {
    Message::Dio(Dio {
        instance: 0x1e,
        version: 240,
        rank: Rank(256),
        grounded: true,
        mode: Mode::Storing,
        preference: 5,
        dtsn: 241,
        dodag_id: HOST,
        options,
    })
}

fn every_message() -> Vec<Message> {
    let options = every_option();
    let dao = |dodag_id| {
        let options = options.clone();
        Message::Dao(Dao { instance: 1, ack_wanted: true, sequence: 7, dodag_id, options })
    };
    let ack = |dodag_id| {
        let status = DaoStatus::REJECTED;
        Message::DaoAck(DaoAck { instance: 1, sequence: 7, status, dodag_id, options: Vec::new() })
    };
    let dco = |dodag_id| {
        let (options, status) = (options.clone(), 195);
        Message::Dco(Dco { instance: 1, ack_wanted: true, status, sequence: 7, dodag_id, options })
    };
    let dco_ack =
        |dodag_id| Message::DcoAck(DcoAck { instance: 1, sequence: 7, status: 130, dodag_id });
    vec![
        Message::Dis(Dis::default()),
        Message::Dis(Dis { options: options.clone() }),
        dio(Vec::new()),
        dio(options.clone()),
        dao(None),
        dao(Some(HOST)),
        ack(None),
        ack(Some(HOST)),
        dco(None),
        dco(Some(HOST)),
        dco_ack(None),
        dco_ack(Some(HOST)),
    ]
}

fn bytes_of(message: &Message) -> Vec<u8> {
    let mut bytes = Vec::new();
    message.emit(&mut bytes);
    bytes
}

#[test]
fn every_message_comes_back_as_it_was() {
    for message in every_message() {
        assert_eq!(Message::parse(message.code(), &bytes_of(&message)), Ok(message));
    }
}

#[test]
fn a_prefix_fails_or_ends_between_two_options() {
    for message in every_message() {
        let bytes = bytes_of(&message);
        for end in 0..bytes.len() {
            if let Ok(shorter) = Message::parse(message.code(), &bytes[..end]) {
                assert_eq!(bytes_of(&shorter), bytes[..end], "what was read is what was there");
            }
        }
    }
}

#[test]
fn a_message_without_options_has_no_valid_prefix() {
    for message in [&every_message()[0], &every_message()[2], &every_message()[7]] {
        let bytes = bytes_of(message);
        for end in 0..bytes.len() {
            assert!(Message::parse(message.code(), &bytes[..end]).is_err());
        }
    }
}

#[test]
fn a_dio_has_its_fields_where_the_rfc_puts_them() {
    let bytes = bytes_of(&dio(vec![RplOption::DodagConfiguration(configuration())]));
    assert_eq!(bytes[..8], [0x1e, 240, 1, 0, 0x80 | 2 << 3 | 5, 241, 0, 0]);
    assert_eq!(bytes[24..], [4, 14, 0x9d, 8, 12, 10, 4, 0, 0, 128, 0, 1, 0, 30, 0, 60]);
}

#[test]
fn a_dco_has_its_fields_where_the_rfc_puts_them() {
    let options = vec![RplOption::TransitInformation(transit(None))];
    let dco =
        Dco { instance: 1, ack_wanted: false, status: 195, sequence: 7, dodag_id: None, options };
    let bytes = bytes_of(&Message::Dco(dco));
    // E and I are the two highest bits of a transit.
    assert_eq!(bytes, [1, 0, 195, 7, 6, 4, 0xc0, 0xc0, 241, 30]);
}

#[test]
fn only_the_ranges_of_the_rfc_are_modes() {
    let mut bytes = bytes_of(&dio(Vec::new()));
    bytes[4] = 4 << 3;
    let error = Message::parse(DIO, &bytes).expect_err("mode 4 is unassigned");
    assert_eq!((error.field, error.problem), ("mode of operation", Problem::Unsupported));
}

#[test]
fn an_option_longer_than_its_content_is_refused() {
    let mut bytes = bytes_of(&Message::Dis(Dis::default()));
    bytes.extend_from_slice(&[9, 5, 0, 0, 0, 0, 0]);
    let error = Message::parse(DIS, &bytes).expect_err("a descriptor has four octets");
    assert_eq!(error.problem, Problem::Length);
}

#[test]
fn bits_after_a_prefix_are_ignored() {
    let bytes = [0, 0, 5, 4, 0, 9, 0xff, 0xff];
    let target = Target {
        prefix_length: 9,
        prefix: {
            let mut p = [0; 16];
            p[0] = 0xff;
            p[1] = 0x80;
            p
        },
    };
    let dis = Dis { options: vec![RplOption::Target(target)] };
    assert_eq!(Message::parse(DIS, &bytes), Ok(Message::Dis(dis)));
}

#[test]
fn a_prefix_longer_than_an_address_is_refused() {
    let mut bytes = vec![0, 0, 5, 19, 0, 129];
    bytes.extend_from_slice(&[0; 17]);
    assert_eq!(Message::parse(DIS, &bytes).map_err(|e| e.problem), Err(Problem::Value));
}

#[test]
fn the_etx_object_keeps_its_value() {
    assert_eq!(Metric::etx(384).as_etx(), Some(384));
    assert_eq!(Metric { kind: 3, flags: 0, data: vec![1, 2] }.as_etx(), None);
}

#[test]
fn random_bytes_never_panic() {
    proptest::proptest!(|(code in 0u8..10, bytes: Vec<u8>)| {
        if let Ok(message) = Message::parse(code, &bytes) {
            let again = bytes_of(&message);
            proptest::prop_assert_eq!(Message::parse(code, &again), Ok(message));
        }
    });
}
