//! Vectors worked out by hand from the figures of RFC 8480 s3.3, round trips and prefixes.

use super::*;

fn cell(slot: u16, channel_offset: u16) -> Cell {
    Cell { slot, channel_offset }
}
fn request(command: Command) -> Message {
    Message { sfid: 0, seqnum: 5, body: Body::Request { command, metadata: 0x0201 } }
}
fn response(response: Response) -> Message {
    Message { sfid: 0, seqnum: 5, body: Body::Response(response) }
}
fn bytes_of(message: &Message) -> Vec<u8> {
    let mut bytes = Vec::new();
    message.emit(&mut bytes);
    bytes
}

/// Every message with the bytes that the RFC's figures give for it.
fn vectors() -> Vec<(Message, Vec<u8>)> {
    let two = [cell(0x0102, 3), cell(7, 0x0100)];
    let octets = [0x02, 0x01, 3, 0, 7, 0, 0x00, 0x01];
    let with = |head: &[u8]| [head, &octets].concat();
    let (cells, one) = (two.to_vec(), vec![two[0]]);
    vec![
        (
            request(Command::Add { options: 1, count: 1, cells: cells.clone() }),
            with(&[0x00, 1, 0, 5, 1, 2, 1, 1]),
        ),
        (
            request(Command::Delete { options: 2, count: 2, cells }),
            with(&[0x00, 2, 0, 5, 1, 2, 2, 2]),
        ),
        (
            request(Command::Relocate { options: 1, from: one, candidates: vec![two[1]] }),
            with(&[0x00, 3, 0, 5, 1, 2, 1, 1]),
        ),
        (request(Command::Count { options: 3 }), vec![0x00, 4, 0, 5, 1, 2, 3]),
        (
            request(Command::List { options: 1, offset: 0x0304, count_max: 9 }),
            vec![0x00, 5, 0, 5, 1, 2, 1, 0, 4, 3, 9, 0],
        ),
        (request(Command::Signal { payload: vec![8, 9] }), vec![0x00, 6, 0, 5, 1, 2, 8, 9]),
        (request(Command::Clear), vec![0x00, 7, 0, 5, 1, 2]),
        (response(Response::with_cells(ReturnCode::Success, &two)), with(&[0x10, 0, 0, 5])),
        (response(Response::with_count(ReturnCode::Success, 0x0203)), vec![0x10, 0, 0, 5, 3, 2]),
        (response(Response::bare(ReturnCode::SeqNum)), vec![0x10, 6, 0, 5]),
        (
            Message {
                sfid: 0,
                seqnum: 5,
                body: Body::Confirmation(Response::with_cells(ReturnCode::Success, &two)),
            },
            with(&[0x20, 0, 0, 5]),
        ),
    ]
}

#[test]
fn messages_are_the_octets_of_the_rfcs_figures_and_back() {
    for (message, octets) in vectors() {
        assert_eq!(bytes_of(&message), octets, "{message:?}");
        assert_eq!(Message::parse(&octets), Ok(message));
    }
}

#[test]
fn a_prefix_is_an_error_or_a_shorter_list_and_never_something_else() {
    for (_, octets) in vectors() {
        for end in 0..octets.len() {
            // A list has no length of its own: only a cut inside its last cell can be seen.
            if let Ok(message) = Message::parse(&octets[..end]) {
                assert_eq!(bytes_of(&message), &octets[..end]);
            }
        }
        assert!(Message::parse(&octets[..HEADER_OCTETS - 1]).is_err());
    }
}

#[test]
fn a_list_cut_inside_a_cell_is_an_error() {
    let add = request(Command::Add { options: 1, count: 1, cells: vec![cell(1, 2), cell(3, 4)] });
    let octets = bytes_of(&add);
    for cut in 1..CELL_OCTETS {
        assert!(Message::parse(&octets[..octets.len() - cut]).is_err());
    }
    let listed = Response { code: ReturnCode::Success, fields: vec![1, 0, 2] };
    assert!(listed.cells().is_err());
}

#[test]
fn a_relocation_must_hold_the_cells_that_it_announces() {
    assert!(Message::parse(&[0x00, 3, 0, 5, 0, 0, 1, 2, 1, 0, 1, 0]).is_err());
}

#[test]
fn another_version_is_named_but_its_header_can_be_answered() {
    let octets = [0x01, 1, 0, 77];
    let error = Message::parse(&octets).expect_err("version 1 is not spoken");
    assert_eq!((error.field, error.problem), ("Version", Problem::Unsupported));
    let header = Header::parse(&octets).expect("the header reads");
    assert_eq!((header.version, header.kind, header.seqnum), (1, Kind::Request, 77));
}

#[test]
fn reserved_types_commands_and_trailing_octets_are_errors() {
    assert!(Message::parse(&[0x30, 0, 0, 1]).is_err());
    assert!(Message::parse(&[0x00, 8, 0, 1, 0, 0]).is_err());
    assert!(Message::parse(&[0x00, 7, 0, 1, 0, 0, 1]).is_err());
    assert!(Message::parse(&[0x00, 4, 0, 1, 0, 0, 1, 1]).is_err());
}

#[test]
fn return_codes_keep_their_numbers_and_unknown_ones_are_errors() {
    for code in 0..=9 {
        assert_eq!(ReturnCode::from_u8(code) as u8, code);
    }
    assert_eq!(ReturnCode::from_u8(10), ReturnCode::Error);
}

#[test]
fn a_count_is_two_octets_and_no_more() {
    for (fields, ok) in [(vec![1, 2], true), (vec![1], false), (vec![1, 2, 3], false)] {
        let response = Response { code: ReturnCode::Success, fields };
        assert_eq!(response.count().is_ok(), ok);
    }
}
