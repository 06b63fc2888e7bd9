//! Which cells are offered, accepted and put into the schedule (RFC 8480 s3.3).
//!
//! A request speaks of cells as its sender sees them, so the responder turns transmit and receive round.
//! All negotiated cells of a node lie in one slotframe, the scheduling function's. Who may ask when is
//! [`crate::transaction`]'s business.

use alloc::vec::Vec;

use lowmesh_mac::tsch::cell::{Cell, CellId, CellKind, CellOptions, CellSpec, Placement};
use lowmesh_mac::tsch::schedule::Schedule;
use lowmesh_units::{Asn, Eui64, Rng};
use lowmesh_wire::sixp::{Cell as Place, Command, Response, ReturnCode};

use crate::params::{CHANNEL_OFFSETS, LIST_CELLS_MAX};
use crate::transaction::Commit;

/// The same cell seen from its other end: transmit is receive (RFC 8480 s6.2.6).
pub(crate) fn mirrored(options: CellOptions) -> CellOptions {
    let mut other = CellOptions(options.0 & CellOptions::SHARED.0);
    if options.has(CellOptions::TX) {
        other = other.with(CellOptions::RX);
    }
    if options.has(CellOptions::RX) {
        other = other.with(CellOptions::TX);
    }
    other
}

/// Where a cell that does not move lies.
pub(crate) fn place_of(cell: &Cell) -> Option<Place> {
    match cell.placement {
        Placement::Fixed { slot, channel_offset } => Some(Place { slot, channel_offset }),
        Placement::Hashed { .. } => None,
    }
}

/// The negotiated cells with `peer` that have exactly `options`.
pub(crate) fn cells_with(
    schedule: &Schedule,
    slotframe: u8,
    peer: Eui64,
    options: CellOptions,
) -> impl Iterator<Item = &Cell> {
    all_with(schedule, slotframe, peer).filter(move |c| c.options == options)
}

/// The negotiated cells with `peer`, whatever they are for.
pub(crate) fn all_with(
    schedule: &Schedule,
    slotframe: u8,
    peer: Eui64,
) -> impl Iterator<Item = &Cell> {
    let is_with = move |c: &&Cell| c.kind == CellKind::Negotiated && c.peer == Some(peer);
    schedule.cells_in(slotframe).filter(is_with)
}

/// True when there are negotiated cells with `peer`, including TX|RX and shared ones (RFC 8480 s6.2.6), which no
/// function here requests.
pub(crate) fn has_cells(schedule: &Schedule, slotframe: u8, peer: Eui64) -> bool {
    all_with(schedule, slotframe, peer).next().is_some()
}

/// The cells that COUNT and LIST select by `options`, as their sender sees the cells.
fn selected(
    schedule: &Schedule,
    slotframe: u8,
    peer: Eui64,
    options: u8,
) -> impl Iterator<Item = &Cell> {
    let wanted = mirrored(CellOptions(options));
    all_with(schedule, slotframe, peer).filter(move |cell| match wanted {
        // RFC 8480 s6.2.6: without TX and RX all cells count, or all shared ones.
        CellOptions(0) => true,
        CellOptions::SHARED => cell.options.has(CellOptions::SHARED),
        _ => cell.options == wanted,
    })
}

/// RFC 8480 s6.2.6: a cell that is added, deleted or moved sends or listens.
const fn has_direction(options: u8) -> bool {
    options & CellOptions::TX.with(CellOptions::RX).0 != 0
}

/// Up to `count` places that are free and not locked, in a random order (RFC 9033 s8).
pub(crate) fn candidates(
    schedule: &Schedule,
    slotframe: u8,
    locked: &[u16],
    count: usize,
    rng: &mut Rng,
) -> Vec<Place> {
    let length = schedule.slotframe(slotframe).map_or(0, |s| s.length);
    let mut free: Vec<u16> =
        (0..length).filter(|s| is_usable(schedule, slotframe, locked, *s)).collect();
    let mut places = Vec::with_capacity(count);
    while places.len() < count && !free.is_empty() {
        // RFC 9033 s8: each candidate has another slotOffset; the channelOffset is drawn at random.
        let slot = free.swap_remove(rng.below(free.len() as u32) as usize);
        let channel_offset = rng.below(u32::from(CHANNEL_OFFSETS)) as u16;
        places.push(Place { slot, channel_offset });
    }
    places
}

/// RFC 9033 s8: slot 0 is left to the shared cell of slotframe 0, whatever the lengths are.
fn is_usable(schedule: &Schedule, slotframe: u8, locked: &[u16], slot: u16) -> bool {
    slot != 0 && schedule.is_free(slotframe, slot) && !locked.contains(&slot)
}

/// The request, with NumCells of an ADD limited to what is left of the share of `from`: `cells_max` in one direction.
/// RFC 8480 s3.3.1: a responder may give fewer cells than it was asked for, and without a bound one neighbour takes the
/// whole slotframe.
pub(crate) fn within_share(
    schedule: &Schedule,
    slotframe: u8,
    from: Eui64,
    mut command: Command,
    cells_max: u16,
) -> Command {
    if let Command::Add { options, count, .. } = &mut command {
        // Shared cells, and those for both directions, count in each direction that they have.
        let direction = mirrored(CellOptions(*options & !CellOptions::SHARED.0)).0;
        let held = all_with(schedule, slotframe, from).filter(|c| c.options.0 & direction != 0);
        let left = usize::from(cells_max).saturating_sub(held.count());
        *count = (*count).min(u8::try_from(left).unwrap_or(u8::MAX));
    }
    command
}

/// Answers a request of two steps whose sequence number is right: what to say, and what to do once it has been heard.
pub(crate) fn answer(
    schedule: &Schedule,
    slotframe: u8,
    locked: &[u16],
    from: Eui64,
    command: &Command,
) -> (Response, Commit) {
    match command {
        Command::Add { options, .. }
        | Command::Delete { options, .. }
        | Command::Relocate { options, .. }
            if !has_direction(*options) =>
        {
            (Response::bare(ReturnCode::Error), Commit::Nothing)
        }
        Command::Add { options, count, cells } => {
            let options = mirrored(CellOptions(*options));
            let chosen = choose(schedule, slotframe, locked, cells, usize::from(*count));
            let Some(chosen) = chosen else {
                return (Response::bare(ReturnCode::Locked), Commit::Nothing);
            };
            let response = Response::with_cells(ReturnCode::Success, &chosen);
            (response, Commit::Add { options, cells: chosen })
        }
        Command::Delete { options, count, cells } => {
            let options = mirrored(CellOptions(*options));
            // RFC 8480 s3.3.2: a list with a cell that is not there is an error.
            if !are_there(schedule, slotframe, from, options, cells) {
                return (Response::bare(ReturnCode::CellList), Commit::Nothing);
            }
            let count = usize::from(*count).min(cells.len());
            let chosen: Vec<Place> = cells[..count].to_vec();
            let response = Response::with_cells(ReturnCode::Success, &chosen);
            (response, Commit::Delete { options, cells: chosen })
        }
        Command::Relocate { options, from: old, candidates } => {
            let options = mirrored(CellOptions(*options));
            // RFC 8480 s3.3.3: as for DELETE.
            if !are_there(schedule, slotframe, from, options, old) {
                return (Response::bare(ReturnCode::CellList), Commit::Nothing);
            }
            let Some(to) = choose(schedule, slotframe, locked, candidates, old.len()) else {
                return (Response::bare(ReturnCode::Locked), Commit::Nothing);
            };
            let old = old[..to.len()].to_vec();
            let response = Response::with_cells(ReturnCode::Success, &to);
            (response, Commit::Relocate { options, from: old, to })
        }
        Command::Count { options } => {
            let count = selected(schedule, slotframe, from, *options).count() as u16;
            (Response::with_count(ReturnCode::Success, count), Commit::Nothing)
        }
        Command::List { options, offset, count_max } => {
            let all: Vec<Place> =
                selected(schedule, slotframe, from, *options).filter_map(place_of).collect();
            (list(all, *offset, *count_max), Commit::Nothing)
        }
        // No function here gives SIGNAL a meaning; CLEAR never comes this far.
        Command::Signal { .. } | Command::Clear => {
            (Response::bare(ReturnCode::Error), Commit::Nothing)
        }
    }
}

/// True of a request that leaves the choice of cells to its responder: it begins three steps (RFC 8480 s3.1.2).
pub(crate) const fn is_open(command: &Command) -> bool {
    match command {
        Command::Add { cells, .. } | Command::Delete { cells, .. } => cells.is_empty(),
        Command::Relocate { candidates, .. } => candidates.is_empty(),
        _ => false,
    }
}

/// What a responder offers for a request of three steps, as this node sees the cells: up to `list` of them, and at least
/// as many as were asked for if there are so many. The requester chooses among them in its confirmation.
pub(crate) fn offer(
    schedule: &Schedule,
    slotframe: u8,
    locked: &[u16],
    from: Eui64,
    command: &Command,
    list: usize,
    rng: &mut Rng,
) -> Result<Command, ReturnCode> {
    let at_least = |count: usize| list.max(count).min(LIST_CELLS_MAX);
    let mut free = |count: usize| {
        let found = candidates(schedule, slotframe, locked, count, rng);
        let all_locked = found.is_empty()
            && count > 0
            && !candidates(schedule, slotframe, &[], 1, rng).is_empty();
        // RFC 8480 s3.4.3, as in `answer`.
        if all_locked { Err(ReturnCode::Locked) } else { Ok(found) }
    };
    match command {
        Command::Add { options, .. }
        | Command::Delete { options, .. }
        | Command::Relocate { options, .. }
            if !has_direction(*options) =>
        {
            Err(ReturnCode::Error)
        }
        Command::Add { options, count, .. } => {
            let options = mirrored(CellOptions(*options)).0;
            // Nothing is offered to a neighbour that has its share, see `within_share`.
            let most = if *count == 0 { 0 } else { at_least(usize::from(*count)) };
            Ok(Command::Add { options, count: *count, cells: free(most)? })
        }
        Command::Delete { options, count, .. } => {
            let options = mirrored(CellOptions(*options));
            let held = cells_with(schedule, slotframe, from, options).filter_map(place_of);
            let mut cells: Vec<Place> = held.collect();
            // As in this node's own requests, the youngest go first.
            cells.reverse();
            cells.truncate(at_least(usize::from(*count)));
            Ok(Command::Delete { options: options.0, count: *count, cells })
        }
        Command::Relocate { options, from: old, .. } => {
            let options = mirrored(CellOptions(*options));
            // RFC 8480 s3.3.3: as for DELETE.
            if !are_there(schedule, slotframe, from, options, old) {
                return Err(ReturnCode::CellList);
            }
            let candidates = free(at_least(old.len()))?;
            Ok(Command::Relocate { options: options.0, from: old.clone(), candidates })
        }
        _ => Err(ReturnCode::Error),
    }
}

/// The cells that a command offers to choose from.
pub(crate) fn offered(command: &Command) -> &[Place] {
    match command {
        Command::Add { cells, .. } | Command::Delete { cells, .. } => cells,
        Command::Relocate { candidates, .. } => candidates,
        _ => &[],
    }
}

/// RFC 8480 s3.3.5: cells in the order of RFC 9033 s10, by slot, then channel offset; EOL with the last one.
fn list(mut all: Vec<Place>, offset: u16, count_max: u16) -> Response {
    all.sort_unstable();
    let rest = all.get(usize::from(offset)..).unwrap_or_default();
    let count = usize::from(count_max).min(LIST_CELLS_MAX).min(rest.len());
    let code = if count == rest.len() { ReturnCode::EndOfList } else { ReturnCode::Success };
    Response::with_cells(code, &rest[..count])
}

/// The first `count` candidates that are free here too, no slot twice; `None` if only locked ones are (RFC 8480 s3.4.3).
fn choose(
    schedule: &Schedule,
    slotframe: u8,
    locked: &[u16],
    candidates: &[Place],
    count: usize,
) -> Option<Vec<Place>> {
    let mut chosen: Vec<Place> = Vec::new();
    let mut some_locked = false;
    for place in candidates {
        if chosen.len() == count || place.channel_offset >= CHANNEL_OFFSETS {
            continue;
        }
        if locked.contains(&place.slot) {
            some_locked = true;
        } else if is_usable(schedule, slotframe, &[], place.slot)
            && chosen.iter().all(|c| c.slot != place.slot)
        {
            chosen.push(*place);
        }
    }
    (!chosen.is_empty() || !some_locked).then_some(chosen)
}

fn are_there(
    schedule: &Schedule,
    slotframe: u8,
    peer: Eui64,
    options: CellOptions,
    places: &[Place],
) -> bool {
    places.iter().enumerate().all(|(i, place)| {
        find(schedule, slotframe, peer, options, *place).is_some() && !places[..i].contains(place)
    })
}

/// The negotiated cell that lies at `place`.
fn find(
    schedule: &Schedule,
    slotframe: u8,
    peer: Eui64,
    options: CellOptions,
    place: Place,
) -> Option<CellId> {
    cells_with(schedule, slotframe, peer, options)
        .find(|c| place_of(c) == Some(place))
        .map(|c| c.id)
}

/// The schedule changes of a committed transaction, as lists of cells gone and cells made.
pub(crate) fn apply(
    schedule: &mut Schedule,
    now: Asn,
    slotframe: u8,
    peer: Eui64,
    commit: &Commit,
) -> (Vec<Cell>, Vec<CellId>) {
    let (mut gone, mut made) = (Vec::new(), Vec::new());
    let (options, old, new): (_, &[Place], &[Place]) = match commit {
        Commit::Nothing => return (gone, made),
        Commit::Add { options, cells } => (*options, &[], cells),
        Commit::Delete { options, cells } => (*options, cells, &[]),
        Commit::Relocate { options, from, to } => (*options, from, to),
    };
    for place in old {
        let id = find(schedule, slotframe, peer, options, *place);
        gone.extend(id.and_then(|id| schedule.remove(id)));
    }
    for Place { slot, channel_offset } in new.iter().copied() {
        let spec = CellSpec {
            slotframe,
            placement: Placement::Fixed { slot, channel_offset },
            options,
            kind: CellKind::Negotiated,
            peer: Some(peer),
        };
        // A slot beyond the slotframe's end is refused by the schedule, and then there is no cell.
        made.extend(schedule.add(now, spec));
    }
    (gone, made)
}

/// What the side that offered the cells of `command` does when the other side names `places` of them; `None` when it names a
/// cell that was never offered, one twice, or more than NumCells.
pub(crate) fn agreed(command: &Command, places: Vec<Place>) -> Option<Commit> {
    let list = offered(command);
    let is_choice = places.iter().enumerate().all(|(i, place)| {
        list.contains(place) && places[..i].iter().all(|other| other.slot != place.slot)
    });
    let most = match command {
        Command::Add { count, .. } | Command::Delete { count, .. } => usize::from(*count),
        Command::Relocate { from, .. } => from.len(),
        _ => return None,
    };
    if !is_choice || places.len() > most {
        return None;
    }
    match command {
        Command::Add { options, .. } => {
            Some(Commit::Add { options: CellOptions(*options), cells: places })
        }
        Command::Delete { options, .. } => {
            Some(Commit::Delete { options: CellOptions(*options), cells: places })
        }
        Command::Relocate { options, from, .. } => {
            let from = from[..places.len()].to_vec();
            Some(Commit::Relocate { options: CellOptions(*options), from, to: places })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowmesh_units::{NodeId, Purpose, Seed};

    const PEER: Eui64 = NodeId(1).eui64();

    fn place(slot: u16) -> Place {
        Place { slot, channel_offset: 3 }
    }
    fn schedule_with(slots: &[u16]) -> Schedule {
        let mut schedule = Schedule::new();
        schedule.add_slotframe(2, 29).expect("new handle");
        let cells = slots.iter().map(|s| place(*s)).collect();
        let commit = Commit::Add { options: CellOptions::RX, cells };
        apply(&mut schedule, Asn(0), 2, PEER, &commit);
        schedule
    }

    #[test]
    fn transmit_and_receive_change_places_and_shared_stays() {
        assert_eq!(mirrored(CellOptions::TX), CellOptions::RX);
        let shared = CellOptions::RX.with(CellOptions::SHARED);
        assert_eq!(mirrored(shared), CellOptions::TX.with(CellOptions::SHARED));
    }

    #[test]
    fn candidates_are_distinct_free_and_as_many_as_there_can_be() {
        let schedule = schedule_with(&[4, 5]);
        let mut rng = Rng::stream(Seed(1), NodeId(0), Purpose::Scheduling);
        let mut slots: Vec<u16> =
            candidates(&schedule, 2, &[6], 100, &mut rng).iter().map(|c| c.slot).collect();
        slots.sort_unstable();
        let expected: Vec<u16> = (1..29).filter(|s| ![4, 5, 6].contains(s)).collect();
        assert_eq!(slots, expected);
    }

    #[test]
    fn an_add_takes_only_what_is_free_here_and_mirrors_it() {
        let schedule = schedule_with(&[4]);
        let cells = [4, 4, 9, 9, 400, 10, 11].map(place).to_vec();
        let command = Command::Add { options: CellOptions::TX.0, count: 2, cells };
        let (response, commit) = answer(&schedule, 2, &[], PEER, &command);
        assert_eq!(response.cells(), Ok([9, 10].map(place).to_vec()));
        let cells = [9, 10].map(place).to_vec();
        assert_eq!(commit, Commit::Add { options: CellOptions::RX, cells });
    }

    #[test]
    fn deleting_or_moving_a_cell_that_is_not_there_is_an_error_in_the_list() {
        let schedule = schedule_with(&[4]);
        let options = CellOptions::TX.0;
        let delete = Command::Delete { options, count: 1, cells: vec![place(5)] };
        let twice = Command::Delete { options, count: 2, cells: vec![place(4), place(4)] };
        let from = vec![place(5)];
        let relocate = Command::Relocate { options, from, candidates: vec![place(6)] };
        for command in [delete, twice, relocate] {
            let (response, commit) = answer(&schedule, 2, &[], PEER, &command);
            assert_eq!((response.code, commit), (ReturnCode::CellList, Commit::Nothing));
        }
    }

    #[test]
    fn counting_and_listing_tell_the_cells_in_order_and_the_end() {
        let schedule = schedule_with(&[8, 4, 6]);
        let options = CellOptions::TX.0;
        let (count, _) = answer(&schedule, 2, &[], PEER, &Command::Count { options });
        assert_eq!(count.count(), Ok(3));
        let list = |offset, count_max| {
            let command = Command::List { options, offset, count_max };
            let (response, _) = answer(&schedule, 2, &[], PEER, &command);
            (response.code, response.cells().expect("whole cells"))
        };
        assert_eq!(list(0, 2), (ReturnCode::Success, [4, 6].map(place).to_vec()));
        assert_eq!(list(2, 2), (ReturnCode::EndOfList, [8].map(place).to_vec()));
        assert_eq!(list(9, 2), (ReturnCode::EndOfList, vec![]));
    }

    #[test]
    fn cells_that_neither_send_nor_listen_are_an_error_in_each_request_for_cells() {
        let schedule = schedule_with(&[4]);
        for options in [0, CellOptions::SHARED.0, CellOptions::TIMEKEEPING.0] {
            let add = Command::Add { options, count: 1, cells: vec![place(9)] };
            let delete = Command::Delete { options, count: 1, cells: vec![] };
            let relocate = Command::Relocate { options, from: vec![], candidates: vec![place(9)] };
            for command in [add, delete, relocate] {
                let (response, commit) = answer(&schedule, 2, &[], PEER, &command);
                assert_eq!((response.code, commit), (ReturnCode::Error, Commit::Nothing));
                assert!(response.fields.is_empty());
            }
        }
    }

    #[test]
    fn counting_and_listing_select_all_cells_without_options_and_all_shared_ones_with_that_alone() {
        let mut schedule = schedule_with(&[4]);
        let (tx, shared) = (CellOptions::TX, CellOptions::SHARED);
        for (slot, options) in [(5, tx), (6, tx.with(shared)), (7, CellOptions::RX.with(shared))] {
            let commit = Commit::Add { options, cells: vec![place(slot)] };
            apply(&mut schedule, Asn(0), 2, PEER, &commit);
        }
        let selected = |options: CellOptions| {
            let options = options.0;
            let (count, _) = answer(&schedule, 2, &[], PEER, &Command::Count { options });
            let command = Command::List { options, offset: 0, count_max: 9 };
            let (list, _) = answer(&schedule, 2, &[], PEER, &command);
            let slots: Vec<u16> =
                list.cells().expect("whole cells").iter().map(|c| c.slot).collect();
            assert_eq!(count.count(), Ok(slots.len() as u16));
            slots
        };
        assert_eq!(selected(CellOptions(0)), [4, 5, 6, 7]);
        assert_eq!(selected(shared), [6, 7]);
        assert_eq!(selected(tx), [4], "cells to listen in here");
        assert_eq!(selected(tx.with(shared)), [7]);
    }

    #[test]
    fn a_response_with_cells_that_were_not_offered_is_not_agreed() {
        let command = Command::Add { options: 1, count: 1, cells: vec![place(3)] };
        assert_eq!(agreed(&command, vec![place(4)]), None);
        assert!(agreed(&command, vec![place(3)]).is_some());
    }
}
