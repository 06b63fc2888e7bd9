//! What a verb's help and manual page say after its options: notes, examples, exit status.

use roff::{Roff, roman};

use crate::exit::Exit;

/// A command line and what it does.
#[derive(Clone, Copy, Debug)]
pub struct Example {
    /// What it does, without a full stop.
    pub what: &'static str,
    /// The command line; lines after the first are indented, and a backslash ends the line before.
    pub line: &'static str,
}

/// The page of one verb.
#[derive(Clone, Copy, Debug)]
pub struct Page {
    /// The words after `lowmesh`.
    pub verb: &'static str,
    /// Paragraphs about what no option says.
    pub notes: &'static [&'static str],
    /// Command lines to copy.
    pub examples: &'static [Example],
    /// How the verb can end.
    pub exits: &'static [Exit],
}

impl Page {
    /// The page as the end of a help text.
    pub fn help(&self) -> String {
        let mut blocks: Vec<String> = self.notes.iter().map(|note| (*note).to_owned()).collect();
        let mut examples = "EXAMPLES".to_owned();
        for Example { what, line } in self.examples {
            examples.extend(["\n  ", *what, ":\n      ", &line.replace('\n', "\n      ")]);
        }
        blocks.push(examples);
        let mut exits = "EXIT STATUS".to_owned();
        for exit in self.exits {
            exits.extend([format!("\n  {:<4}{}", exit.code(), exit.meaning())]);
        }
        blocks.push(exits);
        blocks.join("\n\n")
    }

    /// The page as sections of a manual page.
    pub fn roff(&self) -> Roff {
        let mut roff = Roff::new();
        if !self.notes.is_empty() {
            roff.control("SH", ["NOTES"]);
        }
        for note in self.notes {
            roff.control("PP", []).text([roman(*note)]);
        }
        roff.control("SH", ["EXAMPLES"]);
        for Example { what, line } in self.examples {
            roff.control("PP", []).text([roman(format!("{what}:"))]);
            roff.control("PP", []).control("RS", ["4"]).control("nf", []);
            for line in line.lines() {
                roff.text([roman(line)]);
            }
            roff.control("fi", []).control("RE", []);
        }
        roff.control("SH", ["EXIT STATUS"]);
        for exit in self.exits {
            let code = exit.code().to_string();
            roff.control("TP", ["6"]).text([roman(code)]).text([roman(exit.meaning())]);
        }
        roff
    }
}
