//! Verdicts as text: how many claims hold, a table of all claims, and a block for each.

use std::io::{self, Write};

use comfy_table::{ColumnConstraint, ContentArrangement, Table, Width, presets};
use lowmesh_lab::build;
use lowmesh_lab::claims::{Answer, Basis, Paper, Summary};

use crate::console::wrapped;

/// Columns of the narrowest terminal in use, so that files and terminals show the same table.
const WIDTH: u16 = 80;
/// Widths of the columns with the claim's name, its place and its verdict; the others share the rest.
const WIDTHS: [u16; 3] = [9, 15, 12];

/// Writes the verdicts on claims of `paper`; verdicts of quick runs are preliminary.
pub fn write(
    paper: &Paper,
    answers: &[Answer],
    quick: bool,
    out: &mut dyn Write,
) -> io::Result<()> {
    let Paper { title, authors, venue, year, .. } = paper;
    writeln!(out, "{title}\n{authors}; {venue}, {year}\n{}\n", build::program())?;
    if quick {
        writeln!(
            out,
            "PRELIMINARY: fewer points and seeds and shorter runs than the claims require.\n"
        )?;
    }
    writeln!(out, "{}\n", Summary::of(answers).words())?;
    let mut before = "";
    for basis in Basis::ALL {
        let some: Vec<&Answer> = answers.iter().filter(|answer| answer.basis == basis).collect();
        if !some.is_empty() {
            writeln!(out, "{before}{}", basis.heading())?;
            write_table(&some, out)?;
            before = "\n";
        }
    }
    for answer in answers {
        writeln!(out)?;
        write_block(answer, out)?;
    }
    Ok(())
}

/// One row for each claim.
fn write_table(answers: &[&Answer], out: &mut dyn Write) -> io::Result<()> {
    let mut table = Table::new();
    table
        .load_style(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_width(WIDTH)
        .set_header(["claim", "place", "verdict", "claimed", "measured ± 95 %"]);
    for answer in answers {
        table.add_row([
            &answer.id,
            &answer.place,
            answer.verdict.word(),
            &answer.claimed,
            &answer.measured_short(),
        ]);
    }
    for (column, width) in table.column_iter_mut().zip(WIDTHS) {
        column.set_constraint(ColumnConstraint::Absolute(Width::Fixed(width)));
    }
    for line in table.lines() {
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}

/// All that is known about one claim.
fn write_block(answer: &Answer, out: &mut dyn Write) -> io::Result<()> {
    let basis = match answer.basis.word() {
        "" => String::new(),
        word => format!(" ({word})"),
    };
    let verdict = answer.verdict.word().to_uppercase();
    writeln!(out, "{}  {verdict}{basis}  {}", answer.id, answer.place)?;
    let mut line = |text: String, indent| {
        writeln!(out, "{}", wrapped(&text, WIDTH.into(), &" ".repeat(indent)))
    };
    line(format!("    {}", answer.text), 4)?;
    line(format!("    claimed   {}", answer.claimed), 14)?;
    line(format!("    measured  {}", answer.measured_words()), 14)?;
    line(format!("    why       {}", answer.why), 14)?;
    if let Some(power) = &answer.power {
        line(format!("    power     {}", power.words()), 14)?;
    }
    if !answer.because.is_empty() {
        line(format!("    because   {}", answer.because), 14)?;
    }
    if let Some(words) = answer.by_its_own_words() {
        line(format!("    its own   {words} by the publication's own criterion"), 14)?;
    }
    if !answer.note.is_empty() {
        line(format!("    note      {}", answer.note), 14)?;
    }
    // A command to copy is one line.
    writeln!(out, "    see       {}", answer.command)
}
