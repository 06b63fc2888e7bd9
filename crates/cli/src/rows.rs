//! Lists of algorithms for flags: help, completion and errors read the rows.

use std::fmt::Write as _;

use clap::builder::{PossibleValue, PossibleValuesParser};
use lowmesh_group::gate::Gate;
use lowmesh_lab::scenario::{CHOICES, Key, Rows};
use lowmesh_registry::{Algorithm, Choice, Registry};

use crate::failure::Failure;

/// The longest line of the list in the help of `--set`, which stands ten columns from the left.
const COLUMNS: usize = 70;
/// The width of the names in it.
const NAME_COLUMNS: usize = 18;

/// The names of the retransmission timers.
pub fn timers() -> PossibleValuesParser {
    names(&Rows::default().timers)
}

/// The names of the congestion windows.
pub fn windows() -> PossibleValuesParser {
    names(&Rows::default().windows)
}

/// The names of the gates of groups.
pub fn gates() -> PossibleValuesParser {
    names(&Registry::<dyn Gate>::builtin())
}

/// The gate of this name.
pub fn gate(name: &str) -> Result<Choice<dyn Gate>, Failure> {
    let chosen = Registry::<dyn Gate>::builtin().choose(name);
    chosen.map_err(|error| Failure::usage(error, "see --gate"))
}

fn names<A: Algorithm + ?Sized>(registry: &Registry<A>) -> PossibleValuesParser {
    let values = registry.rows().map(|row| PossibleValue::new(row.name).help(row.summary));
    PossibleValuesParser::new(values)
}

/// The long help of `--set`: every key that chooses between algorithms, with their names.
pub fn set_help() -> String {
    let mut text = "Replace one value of the scenario, such as traffic.period=2s (repeatable).\n\n\
        `lowmesh show` prints every key with its meaning. These keys choose between\nalgorithms:"
        .to_owned();
    for key in choices() {
        _ = write!(text, "\n\n{}", key.name);
        for value in &key.values {
            let name = format!("  {:<width$}", value.name, width = NAME_COLUMNS - 2);
            text.push('\n');
            text.push_str(&wrapped(&name, value.summary));
        }
    }
    text
}

/// The keys that choose between algorithms.
fn choices() -> Vec<Key> {
    let rows = Rows::default();
    let mut names: Vec<&str> = rows.kinds().iter().map(|kind| kind.key).collect();
    names.extend(CHOICES.into_iter().filter(|choice| !names.contains(choice)).collect::<Vec<_>>());
    let keys = rows.keys();
    names.iter().filter_map(|name| keys.iter().find(|key| key.name == *name).cloned()).collect()
}

/// `name` and the words of `summary` in a column of its own.
fn wrapped(name: &str, summary: &str) -> String {
    let mut lines = vec![name.to_owned()];
    for word in summary.split_whitespace() {
        let last = lines.last_mut().expect("there is a first line");
        if last.chars().count() + 1 + word.chars().count() > COLUMNS {
            lines.push(" ".repeat(NAME_COLUMNS - 1));
        }
        let last = lines.last_mut().expect("there is a first line");
        last.push(' ');
        last.push_str(word);
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_help_of_set_names_every_row_in_narrow_lines() {
        let help = set_help();
        for kind in Rows::default().kinds() {
            assert!(help.contains(&format!("\n\n{}\n", kind.key)), "{}", kind.key);
            for row in kind.rows {
                assert!(help.contains(&format!("\n  {} ", row.name)), "{}", row.name);
            }
        }
        for choice in CHOICES {
            assert!(help.contains(&format!("\n\n{choice}\n")), "{choice}");
        }
        for line in help.lines() {
            assert!(line.len() <= COLUMNS + 5, "{line}");
        }
    }

    #[test]
    fn long_summaries_continue_in_their_column() {
        let text = wrapped("  name            ", &"word ".repeat(15));
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 2, "{text}");
        assert!(lines[0].starts_with("  name             word"), "{text}");
        assert!(lines[1].starts_with("                  word"), "{text}");
    }
}
