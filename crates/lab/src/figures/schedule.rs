//! The negotiated cells of a network: slots by channel offsets.

use std::collections::BTreeMap;

use lowmesh_sixtop::params::MsfParams;

use super::grid::WIDTH;
use super::sheet::{Anchor, Area, Sheet};
use super::{Data, Figure};
use crate::detail::Cell;
use crate::results::PointResult;
use crate::scenario::Scenario;

/// Channel offsets of IEEE 802.15.4 at 2.4 GHz: one for each of its 16 channels.
const CHANNEL_OFFSETS: u16 = 16;
/// Schedules drawn at most.
const SCHEDULES_MAX: usize = 3;
const LEFT: f64 = 62.0;
const ROW: f64 = 17.0;
const HEAD: f64 = 40.0;
const FOOT: f64 = 56.0;

/// The cells of the first run of the first few points that have some.
pub fn draw(slice: &[(String, &PointResult)]) -> Vec<Figure> {
    let with_cells = slice.iter().filter_map(|(words, point)| {
        let run = point.runs.iter().find(|run| !run.detail.cells.is_empty())?;
        Some((words, *point, run))
    });
    let figure = |(index, (words, point, run)): (
        usize,
        (&String, &PointResult, &crate::runner::Run),
    )| {
        let cells = &run.detail.cells;
        let reach = cells.iter().map(|cell| cell.slot + 1).max().unwrap_or(1);
        let slots = slots(&point.point.scenario).unwrap_or(reach).max(reach);
        let comma = if words.is_empty() { "" } else { ", " };
        Figure {
            name: format!("schedule-{}", index + 1),
            title: format!("Negotiated cells{comma}{words}, seed {}", run.seed.0),
            caption: format!(
                "{} cells of all nodes at the end of the run, each counted at its sender. A darker field has several \
                 cells, whose links may disturb each other; the number is the number of cells.",
                cells.len()
            ),
            sheet: matrix(cells, slots),
            data: data(&point.anchor(), cells),
        }
    };
    with_cells.take(SCHEDULES_MAX).enumerate().map(figure).collect()
}

/// Slots of the slotframe that holds negotiated cells.
fn slots(scenario: &Scenario) -> Option<u16> {
    MsfParams::of(&scenario.schedule).map(|params| params.negotiated_length)
}

fn matrix(cells: &[Cell], slots: u16) -> Sheet {
    let mut fields: BTreeMap<(u16, u16), Vec<&Cell>> = BTreeMap::new();
    for cell in cells {
        fields.entry((cell.slot, cell.channel_offset)).or_default().push(cell);
    }
    let width = (WIDTH - LEFT - 14.0) / f64::from(slots.max(1));
    let height = f64::from(CHANNEL_OFFSETS) * ROW;
    let mut sheet = Sheet::new(WIDTH, HEAD + height + FOOT);
    legend(&mut sheet);
    for offset in 0..=CHANNEL_OFFSETS {
        let y = HEAD + f64::from(offset) * ROW;
        sheet.line(&[(LEFT, y), (WIDTH - 14.0, y)], "grid");
        if offset < CHANNEL_OFFSETS && offset % 3 == 0 {
            sheet.text((LEFT - 8.0, y + ROW - 4.0), &offset.to_string(), Anchor::End, "small");
        }
    }
    let every = if slots <= 32 { 2 } else { slots.div_ceil(20).next_multiple_of(5) };
    for slot in 0..=slots {
        let x = LEFT + f64::from(slot) * width;
        sheet.line(&[(x, HEAD), (x, HEAD + height)], "grid");
        if slot < slots && slot % every == 0 {
            let at = (x + width / 2.0, HEAD + height + 18.0);
            sheet.text(at, &slot.to_string(), Anchor::Middle, "small");
        }
    }
    for ((slot, offset), here) in fields {
        let area = Area {
            left: LEFT + f64::from(slot) * width + 1.0,
            top: HEAD + f64::from(offset.min(CHANNEL_OFFSETS - 1)) * ROW + 1.0,
            width: (width - 2.0).max(1.0),
            height: ROW - 2.0,
        };
        let links: Vec<_> =
            here.iter().map(|cell| format!("{} to {}", cell.node, cell.peer)).collect();
        sheet.rectangle(area, class(here.len()), &links.join(", "));
        if here.len() > 1 && width > 12.0 {
            let at = (area.left + area.width / 2.0, area.top + ROW - 5.0);
            sheet.text(at, &here.len().to_string(), Anchor::Middle, "tiny inv");
        }
    }
    sheet.text(
        (LEFT + (WIDTH - LEFT) / 2.0, HEAD + height + 42.0),
        "slot",
        Anchor::Middle,
        "small",
    );
    sheet.upward((18.0, HEAD + height / 2.0), "channel offset", "small");
    sheet
}

/// One cell, two, or more in one field.
const fn class(cells: usize) -> &'static str {
    match cells {
        0 | 1 => "f5",
        2 => "f0",
        _ => "f3",
    }
}

fn legend(sheet: &mut Sheet) {
    for (index, words) in ["one cell", "two cells", "three or more"].into_iter().enumerate() {
        let left = LEFT + index as f64 * 150.0;
        let swatch = Area { left, top: 12.0, width: 20.0, height: 15.0 };
        sheet.rectangle(swatch, class(index + 1), "");
        sheet.text((left + 28.0, 25.0), words, Anchor::Start, "small");
    }
}

fn data(anchor: &str, cells: &[Cell]) -> Data {
    let mut data = Data::new(&["node", "peer", "slot", "channel_offset", "shared"]);
    for cell in cells {
        let numbers = [cell.node, cell.peer, cell.slot, cell.channel_offset];
        let mut row: Vec<String> = numbers.iter().map(ToString::to_string).collect();
        row.push(cell.shared.to_string());
        data.push(anchor, row);
    }
    data
}
