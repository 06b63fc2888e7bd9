//! Transactions in three steps at their responder (RFC 8480 s3.1.2), octet by octet from the figures of s3.3, and cells
//! that an open transaction locks (s3.4.3).

use lowmesh_mac::tsch::cell::Placement;
use lowmesh_machine::Handle;
use lowmesh_registry::Registry;
use lowmesh_sixtop::functions::conformance::net::{Net, eui};
use lowmesh_sixtop::functions::{Children, make};
use lowmesh_sixtop::{Change, SixtopEvent};
use lowmesh_units::Duration;
use lowmesh_wire::sixp::Cell;

/// The first octet of a request, response and confirmation of version 0, and commands and codes.
const REQUEST: u8 = 0x00;
const RESPONSE: u8 = 0x10;
const CONFIRMATION: u8 = 0x20;
const ADD: u8 = 1;
const DELETE: u8 = 2;
const RELOCATE: u8 = 3;
const COUNT: u8 = 4;
const SUCCESS: u8 = 0;
const ERROR: u8 = 2;
const CELL_LIST: u8 = 7;
const BUSY: u8 = 8;
const LOCKED: u8 = 9;
/// CellOptions of a cell in which the asking node sends.
const TX: u8 = 1;

/// Three nodes with MSF, the MAC of which finds no slot: the test says what becomes of each frame.
fn network() -> Net {
    let choice = Registry::builtin().choose("msf").expect("a built-in function");
    let mut net = Net::new(3, 0.0, 13, || make(&choice, Children::Known));
    net.stuck = true;
    net
}

fn octets(cells: &[Cell]) -> Vec<u8> {
    let low_first = |cell: &Cell| {
        let (slot, offset) = (cell.slot.to_le_bytes(), cell.channel_offset.to_le_bytes());
        [slot, offset].concat()
    };
    cells.iter().flat_map(low_first).collect()
}

/// A request with SFID 0 and Metadata 0; `fields` follow CellOptions and NumCells.
fn request(command: u8, seqnum: u8, count: u8, fields: &[u8]) -> Vec<u8> {
    [&[REQUEST, command, 0, seqnum, 0, 0, TX, count], fields].concat()
}
fn confirmation(code: u8, seqnum: u8, cells: &[Cell]) -> Vec<u8> {
    [vec![CONFIRMATION, code, 0, seqnum], octets(cells)].concat()
}

/// Node 0 gets `bytes` from `peer`, and hands over an answer; returns its handle and its octets after the SeqNum.
fn answered(net: &mut Net, peer: usize, bytes: &[u8], code: u8) -> (Handle, Vec<u8>) {
    let before = net.nodes[0].handed.clone();
    net.handle(0, SixtopEvent::Message { from: eui(peer), bytes });
    let answer = net.nodes[0].sent.last().expect("an answer");
    assert_eq!(answer[..4], [RESPONSE, code, 0, bytes[3]]);
    let handle = net.nodes[0].handed.difference(&before).next().expect("it is handed over");
    (*handle, answer[4..].to_vec())
}

fn cells_of(fields: &[u8]) -> Vec<Cell> {
    let number = |low: u8, high: u8| u16::from_le_bytes([low, high]);
    let cell = |c: &[u8]| Cell { slot: number(c[0], c[1]), channel_offset: number(c[2], c[3]) };
    assert_eq!(fields.len() % 4, 0);
    fields.chunks(4).map(cell).collect()
}

/// Node 1 sends a request without cells, and the response arrives: the cells that it offers.
fn offered(net: &mut Net, bytes: &[u8]) -> Vec<Cell> {
    let (handle, fields) = answered(net, 1, bytes, SUCCESS);
    net.nodes[0].handed.remove(&handle);
    net.handle(0, SixtopEvent::FrameDone { handle, acked: true });
    cells_of(&fields)
}

fn confirm(net: &mut Net, bytes: &[u8]) {
    net.handle(0, SixtopEvent::Message { from: eui(1), bytes });
}

/// Where node 0 listens to node 1.
fn listening(net: &Net) -> Vec<Cell> {
    let place = |cell: lowmesh_mac::tsch::cell::Cell| match cell.placement {
        Placement::Fixed { slot, channel_offset } => Cell { slot, channel_offset },
        Placement::Hashed { .. } => panic!("negotiated cells do not move"),
    };
    net.rx(0, 1).into_iter().map(place).collect()
}

fn is_inconsistent(net: &Net) -> bool {
    net.nodes[0].changes.iter().any(|change| matches!(change, Change::Inconsistent(_)))
}

/// A network in which node 0 listens to node 1 in two cells, and the next request has number 1.
fn with_two_cells() -> (Net, Vec<Cell>) {
    let mut net = network();
    let cells = offered(&mut net, &request(ADD, 0, 2, &[]))[..2].to_vec();
    confirm(&mut net, &confirmation(SUCCESS, 0, &cells));
    assert_eq!(listening(&net), cells);
    (net, cells)
}

#[test]
fn cells_are_added_once_the_confirmation_has_chosen_among_those_offered() {
    let mut net = network();
    let offer = offered(&mut net, &request(ADD, 0, 2, &[]));
    assert_eq!(offer.len(), 5, "RFC 9033 s8");
    assert_eq!(listening(&net), []);
    let chosen = [offer[3], offer[1]];
    confirm(&mut net, &confirmation(SUCCESS, 0, &chosen));
    assert_eq!(listening(&net), chosen);
    assert!(!is_inconsistent(&net));
    // Both sides have counted: the next transaction has number 1.
    answered(&mut net, 1, &request(COUNT, 1, 0, &[])[..7], SUCCESS);
}

#[test]
fn at_least_as_many_cells_are_offered_as_were_asked_for() {
    let mut net = network();
    assert_eq!(offered(&mut net, &request(ADD, 0, 9, &[])).len(), 9);
}

#[test]
fn the_requester_chooses_which_cell_is_deleted() {
    let (mut net, cells) = with_two_cells();
    let offer = offered(&mut net, &request(DELETE, 1, 1, &[]));
    assert_eq!(offer, [cells[1], cells[0]], "the youngest first");
    confirm(&mut net, &confirmation(SUCCESS, 1, &cells[..1]));
    assert_eq!(listening(&net), [cells[1]]);
}

#[test]
fn cells_move_pairwise_to_those_that_the_confirmation_names() {
    let (mut net, cells) = with_two_cells();
    let offer = offered(&mut net, &request(RELOCATE, 1, 2, &octets(&cells)));
    assert!(offer.len() >= 2);
    // One of two: the second cell stays.
    confirm(&mut net, &confirmation(SUCCESS, 1, &[offer[1]]));
    let mut expected = vec![cells[1], offer[1]];
    expected.sort_unstable();
    let mut left = listening(&net);
    left.sort_unstable();
    assert_eq!(left, expected);
}

#[test]
fn cells_to_move_that_are_not_there_are_an_error_in_the_list() {
    let mut net = network();
    let cell = Cell { slot: 9, channel_offset: 1 };
    answered(&mut net, 1, &request(RELOCATE, 0, 1, &octets(&[cell])), CELL_LIST);
}

#[test]
fn a_confirmation_with_an_error_changes_nothing() {
    let mut net = network();
    offered(&mut net, &request(ADD, 0, 1, &[]));
    confirm(&mut net, &confirmation(ERROR, 0, &[]));
    assert_eq!(listening(&net), []);
    assert!(!is_inconsistent(&net));
    answered(&mut net, 1, &request(ADD, 1, 1, &[]), SUCCESS);
}

#[test]
fn a_confirmation_of_cells_that_were_not_offered_adds_none_and_is_cleared() {
    let mut net = network();
    let offer = offered(&mut net, &request(ADD, 0, 1, &[]));
    let other = (1..101).find(|slot| offer.iter().all(|cell| cell.slot != *slot)).expect("free");
    let foreign = [Cell { slot: other, channel_offset: 1 }];
    for wrong in [&foreign[..], &offer[..2], &[offer[0], offer[0]]] {
        let mut net = network();
        assert_eq!(offered(&mut net, &request(ADD, 0, 1, &[])), offer);
        confirm(&mut net, &confirmation(SUCCESS, 0, wrong));
        assert_eq!(listening(&net), [], "{wrong:?}");
        assert!(is_inconsistent(&net), "{wrong:?}");
    }
}

#[test]
fn without_a_confirmation_nothing_changes_and_the_offered_cells_are_free_again() {
    let mut net = network();
    let offer = offered(&mut net, &request(ADD, 0, 1, &[]));
    // RFC 9033 s9 with three retries and a largest exponent of 5: 93.93 s.
    net.run_for(Duration::from_secs(93));
    answered(&mut net, 1, &request(COUNT, 1, 0, &[])[..7], BUSY);
    net.run_for(Duration::from_secs(1));
    assert_eq!(listening(&net), []);
    assert!(!is_inconsistent(&net));
    answered(&mut net, 2, &request(ADD, 0, 5, &octets(&offer)), SUCCESS);
    // The peer commits when its confirmation is acknowledged: one that comes too late is repaired.
    confirm(&mut net, &confirmation(SUCCESS, 0, &offer[..1]));
    assert_eq!(listening(&net), []);
    assert!(is_inconsistent(&net));
}

#[test]
fn a_confirmation_proves_that_the_response_came() {
    let mut net = network();
    let (handle, fields) = answered(&mut net, 1, &request(ADD, 0, 1, &[]), SUCCESS);
    confirm(&mut net, &confirmation(SUCCESS, 0, &cells_of(&fields)[..1]));
    assert_eq!(listening(&net).len(), 1);
    assert!(!net.nodes[0].handed.contains(&handle), "no copy of the response is sent any more");
}

#[test]
fn a_neighbour_is_offered_no_more_than_its_share() {
    let mut net = network();
    let offer = offered(&mut net, &request(ADD, 0, 20, &[]));
    confirm(&mut net, &confirmation(SUCCESS, 0, &offer));
    let offer = offered(&mut net, &request(ADD, 1, 18, &[]));
    confirm(&mut net, &confirmation(SUCCESS, 1, &offer));
    assert_eq!(listening(&net).len(), 38);
    assert_eq!(offered(&mut net, &request(ADD, 2, 4, &[])).len(), 2, "40 with MSF");
}

#[test]
fn cells_of_another_open_transaction_are_locked() {
    let cells: Vec<Cell> = (9..14).map(|slot| Cell { slot, channel_offset: 1 }).collect();
    // The response to the first request is on its way.
    let mut net = network();
    answered(&mut net, 1, &request(ADD, 0, 5, &octets(&cells)), SUCCESS);
    answered(&mut net, 2, &request(ADD, 0, 1, &octets(&cells[2..])), LOCKED);
    // Cells that were offered are locked until they are confirmed.
    let mut net = network();
    let offer = offered(&mut net, &request(ADD, 0, 1, &[]));
    answered(&mut net, 2, &request(ADD, 0, 2, &octets(&offer)), LOCKED);
    // So are those that a cell may move to.
    let (mut net, held) = with_two_cells();
    answered(&mut net, 2, &request(ADD, 0, 5, &octets(&cells)), SUCCESS);
    let fields = [octets(&held[..1]), octets(&cells)].concat();
    answered(&mut net, 1, &request(RELOCATE, 1, 1, &fields), LOCKED);
}

#[test]
fn one_cell_that_is_not_locked_is_enough_for_a_success() {
    let cells: Vec<Cell> = (9..14).map(|slot| Cell { slot, channel_offset: 1 }).collect();
    let mut net = network();
    answered(&mut net, 1, &request(ADD, 0, 4, &octets(&cells)), SUCCESS);
    let (_, fields) = answered(&mut net, 2, &request(ADD, 0, 2, &octets(&cells)), SUCCESS);
    assert_eq!(cells_of(&fields), cells[4..]);
}
