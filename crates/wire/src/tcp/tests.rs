//! Segments of a Linux 6.18 kernel, random segments, and damaged ones.

use super::*;
use proptest::prelude::{Strategy, any, prop, prop_assert_eq, prop_assume, proptest};

const CLIENT: [u8; 4] = [10, 9, 0, 2];
const SERVER: [u8; 4] = [10, 9, 0, 1];
const UP: Ends = Ends::V4(CLIENT, SERVER);
const DOWN: Ends = Ends::V4(SERVER, CLIENT);
const V6: Ends = Ends::V6(Address([0x20; 16]), Address([0xfd; 16]));

/// Captured behind a TUN device with an MTU of 296.
const SYN: &str =
    "a2261633ecd2a7a200000000a002ffffac370000020401000402080a3d8c020a000000000103030a";
const SYN_ACK: &str =
    "1633a2265e050602ecd2a7a3a012ff7021d80000020401000402080a48aade2b3d8c020a0103030a";
const DATA: &str = "1633a2265e0506f7ecd2a89780180040bc5000000101080a48aae0e13d8c049e\
                    646464646464646464646464646464646464";
const TWO_BLOCKS: &str = "a2261633ecd2b7435e051519d0100040ea9900000101080a3d8c0e2f48aae489\
                          010105125e0519a15e051a895e0516015e0516e9";
const FIN: &str = "a2261633ecd2b7435e05d2b380110046c79800000101080a3d8c570f48ab3059";

fn octets(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> =
        hex.bytes().filter_map(|c| (c as char).to_digit(16)).map(|digit| digit as u8).collect();
    digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}

/// Reads a captured segment and checks that we would write the same octets.
fn captured(ends: Ends, hex: &str) -> Header {
    let bytes = octets(hex);
    let segment = Segment::parse(&ends, &bytes).expect("the kernel's segment is valid");
    let mut again = Vec::new();
    segment.emit(&ends, &mut again);
    assert_eq!(again, bytes);
    segment.header
}

#[test]
fn the_syn_of_a_kernel_reads_and_writes_back() {
    let header = captured(UP, SYN);
    assert_eq!((header.source_port, header.destination_port), (41_510, 5_683));
    assert_eq!((header.sequence, header.window), (0xecd2_a7a2, 65_535));
    assert_eq!(header.control, Control { syn: true, ..Control::default() });
    let options = header.options;
    assert_eq!(
        (options.mss, options.window_scale, options.sack_permitted),
        (Some(256), Some(10), true)
    );
    assert_eq!(options.timestamps, Some(Timestamps { value: 0x3d8c_020a, echo: 0 }));
    let header = captured(DOWN, SYN_ACK);
    assert_eq!(header.control, Control { syn: true, ack: true, ..Control::default() });
}

#[test]
fn data_sack_and_fin_of_a_kernel_read_and_write_back() {
    let header = captured(DOWN, DATA);
    assert_eq!(header.control, Control { psh: true, ack: true, ..Control::default() });
    assert_eq!(header.octets(), 32);
    let header = captured(UP, TWO_BLOCKS);
    let blocks = [(0x5e05_19a1, 0x5e05_1a89), (0x5e05_1601, 0x5e05_16e9)];
    let blocks = blocks.map(|(left, right)| SackBlock { left, right });
    assert_eq!(header.options.sack.as_slice(), blocks);
    assert!(captured(UP, FIN).control.fin);
}

#[test]
fn every_prefix_and_every_flipped_octet_is_an_error() {
    for hex in [SYN, SYN_ACK, DATA, TWO_BLOCKS, FIN] {
        let bytes = octets(hex);
        let ends = if bytes[0] == 0xa2 { UP } else { DOWN };
        for end in 0..bytes.len() {
            assert!(Segment::parse(&ends, &bytes[..end]).is_err(), "{hex} to {end}");
            let mut bent = bytes.clone();
            bent[end] ^= 0x10;
            assert!(Segment::parse(&ends, &bent).is_err(), "{hex} bent at {end}");
        }
    }
}

/// A segment with these octets of options and a valid checksum.
fn with_options(options: &[u8]) -> Vec<u8> {
    let segment = Segment { header: Header::default(), payload: options };
    let mut out = Vec::new();
    segment.emit(&V6, &mut out);
    out[12] = (((HEADER_OCTETS + options.len()) / 4) << 4) as u8;
    out[CHECKSUM_OFFSET..CHECKSUM_OFFSET + 2].fill(0);
    let sum = V6.checksum(&out);
    out[CHECKSUM_OFFSET..CHECKSUM_OFFSET + 2].copy_from_slice(&sum.to_be_bytes());
    out
}

#[test]
fn options_that_are_unknown_are_skipped_and_those_of_a_wrong_length_are_named() {
    let read = |options: &[u8]| {
        Segment::parse(&V6, &with_options(options))
            .map(|segment| segment.header.options.mss)
            .map_err(|error| (error.field, error.problem))
    };
    assert_eq!(read(&[254, 4, 1, 2, 2, 4, 1, 0]), Ok(Some(256)));
    assert_eq!(read(&[0, 2, 4, 9]), Ok(None), "nothing counts behind the end of the list");
    assert_eq!(read(&[2, 0, 0, 0]), Err(("length", Problem::Value)));
    assert_eq!(read(&[2, 9, 0, 0]), Err(("value", Problem::Truncated)));
    assert_eq!(read(&[1, 1, 1, 2]), Err(("length", Problem::Truncated)));
    assert_eq!(read(&[2, 3, 0, 0]), Err(("maximum segment size", Problem::Length)));
    assert_eq!(read(&[3, 4, 0, 0]), Err(("window scale", Problem::Length)));
    assert_eq!(read(&[4, 3, 0, 0]), Err(("SACK permitted", Problem::Length)));
    assert_eq!(read(&[5, 3, 0, 0]), Err(("SACK", Problem::Length)));
    assert_eq!(read(&[8, 4, 0, 0]), Err(("timestamps", Problem::Length)));
}

#[test]
fn a_data_offset_inside_the_fixed_header_is_an_error() {
    let mut bytes = with_options(&[]);
    bytes[12] = 0x40;
    let error = Segment::parse(&V6, &bytes).expect_err("four words are no header");
    assert_eq!((error.field, error.problem), ("data offset", Problem::Value));
}

#[test]
fn blocks_of_sack_that_do_not_fit_next_to_timestamps_are_left_out() {
    let mut options =
        Options { timestamps: Some(Timestamps { value: 1, echo: 2 }), ..Options::default() };
    for block in 0..4 {
        assert!(options.sack.push(SackBlock { left: block, right: block + 1 }));
    }
    assert!(!options.sack.push(SackBlock::default()), "the header holds no fifth block");
    assert_eq!(options.octets(), OPTIONS_OCTETS_MAX);
    let mut out = Vec::new();
    options.emit(&mut out);
    assert_eq!(Options::parse(&out).expect("own octets").sack.as_slice().len(), 3);
}

fn any_options() -> impl Strategy<Value = Options> {
    let timestamps = any::<(u32, u32)>().prop_map(|(value, echo)| Timestamps { value, echo });
    (
        prop::option::of(any::<u16>()),
        prop::option::of(0u8..15),
        any::<bool>(),
        prop::option::of(timestamps),
        prop::collection::vec(any::<(u32, u32)>(), 0..5),
    )
        .prop_map(|(mss, window_scale, sack_permitted, timestamps, blocks)| {
            let mut sack = SackBlocks::default();
            for (left, right) in blocks {
                sack.push(SackBlock { left, right });
            }
            Options { mss, window_scale, sack_permitted, timestamps, sack }
        })
}

proptest! {
    #[test]
    fn what_is_written_reads_back(
        ports in any::<(u16, u16)>(),
        numbers in any::<(u32, u32)>(),
        control in any::<u8>(),
        window in any::<(u16, u16)>(),
        options in any_options(),
        payload in prop::collection::vec(any::<u8>(), 0..64),
        v4 in any::<bool>(),
    ) {
        prop_assume!(options.blocks_that_fit().len() == options.sack.as_slice().len());
        let header = Header {
            source_port: ports.0,
            destination_port: ports.1,
            sequence: numbers.0,
            acknowledgment: numbers.1,
            control: Control::from_octet(control),
            window: window.0,
            urgent: window.1,
            options,
        };
        let segment = Segment { header, payload: &payload };
        let ends = if v4 { UP } else { V6 };
        let mut out = Vec::new();
        segment.emit(&ends, &mut out);
        prop_assert_eq!(Segment::parse(&ends, &out), Ok(segment));
    }

    #[test]
    fn no_octets_make_the_codec_panic(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
        if let Ok(options) = Options::parse(&bytes) {
            let mut again = Vec::new();
            options.emit(&mut again);
            prop_assert_eq!(again.len() % 4, 0);
        }
    }
}
