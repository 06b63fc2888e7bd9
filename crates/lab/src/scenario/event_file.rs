//! Events in a CSV file: the keys of `[[event]]` as columns, one event in each line.

use std::cell::RefCell;
use std::path::Path;

use lowmesh_sim::air::error::{BuildError, TextError};

use super::error::{ConfigError, Fault};
use super::event::Event;
use super::section::{Cursor, Section as _};
use super::source::{Source, UTF8_MARK};
use super::value::quoted;

/// Reads events from a CSV file: its first line names the columns as the keys of `[[event]]`, and a row has no value in a
/// column that its kind does not have.
pub(super) fn read_file(file: &str) -> Result<Vec<Event>, BuildError> {
    let text = std::fs::read_to_string(file)
        .map_err(|error| BuildError::File { file: file.to_owned(), reason: error.to_string() })?;
    let mut lines = text
        .trim_start_matches(UTF8_MARK)
        .lines()
        .enumerate()
        .filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#'));
    let (place, header) = lines.next().unwrap_or((0, ""));
    let columns = columns(file, place + 1, header)?;
    let name = Path::new(file).file_name().map_or(file.into(), |name| name.to_string_lossy());
    let mut events = Vec::new();
    for (place, line) in lines {
        let fields: Vec<&str> = line.split(',').map(str::trim).collect();
        let refuse = |problem: String, allowed: String| TextError {
            file: file.to_owned(),
            line: place + 1,
            column: 1,
            problem,
            allowed,
        };
        if fields.len() != columns.len() {
            let problem = format!("the line has {} fields", fields.len());
            return Err(refuse(problem, format!("the first line names {}", columns.len())).into());
        }
        let event =
            row(&name, &columns, &fields).map_err(|(problem, allowed)| refuse(problem, allowed))?;
        events.push(event);
    }
    Ok(events)
}

/// The names of columns that other tools write, and ours.
const OTHER_NAMES: [(&str, &str); 5] =
    [("time", "at"), ("event", "kind"), ("x", "x_m"), ("y", "y_m"), ("z", "z_m")];

/// The columns that a file of events can have, besides `at` and `kind`.
const COLUMNS: [&str; 14] = [
    "node",
    "peer",
    "memory",
    "dark",
    "pdr",
    "loss_db",
    "one_way",
    "x_m",
    "y_m",
    "z_m",
    "period",
    "power_dbm",
    "channels",
    "kind",
];

fn columns<'a>(file: &str, line: usize, header: &'a str) -> Result<Vec<&'a str>, TextError> {
    let ours = |name: &'a str| {
        let known = OTHER_NAMES.iter().find(|(other, _)| *other == name);
        known.map_or(name, |(_, own)| own)
    };
    let columns: Vec<&str> = header.split(',').map(|name| ours(name.trim())).collect();
    let unknown = columns.iter().find(|name| **name != "at" && !COLUMNS.contains(name));
    let problem = match unknown {
        Some(name) => format!("there is no column `{name}`"),
        None if !columns.contains(&"at") => "no column is `at`, the time".to_owned(),
        None => return Ok(columns),
    };
    let allowed =
        "the first line names the columns, as `at,kind,node,peer,memory` or `time,node,x,y`";
    let file = file.to_owned();
    Err(TextError { file, line, column: 1, problem, allowed: allowed.to_owned() })
}

/// The event of one row, read by the rules of `[[event]]`; an error says what is wrong and what is allowed.
fn row(name: &str, columns: &[&str], fields: &[&str]) -> Result<Event, (String, String)> {
    let mut text = String::new();
    // Positions alone are moves.
    if !columns.contains(&"kind") && columns.contains(&"x_m") {
        text.push_str("kind = \"move\"\n");
    }
    for (column, field) in columns.iter().zip(fields).filter(|(_, field)| !field.is_empty()) {
        let is_bare = field.parse::<f64>().is_ok() || ["true", "false"].contains(field);
        let literal = match *column {
            // A list has spaces, since commas part the columns.
            "channels" | "node" | "peer" if field.contains(' ') => {
                format!("[{}]", field.split_whitespace().collect::<Vec<_>>().join(", "))
            }
            "channels" if is_bare => format!("[{field}]"),
            _ if is_bare => (*field).to_owned(),
            _ => quoted(field),
        };
        text.extend([column, " = ", &literal, "\n"]);
    }
    let shown =
        |errors: Vec<ConfigError>| errors.into_iter().next().map_or_else(Default::default, told);
    let source = Source::new(name, &text, &[]).map_err(|errors| shown(errors.0))?;
    let table = source.table().map_err(|errors| shown(errors.0))?;
    let faults = RefCell::new(Vec::new());
    let mut cursor = Cursor::new(&source, String::new(), Some(&table), &faults);
    let event = Event::read(&mut cursor);
    cursor.finish();
    let errors = faults.into_inner();
    if errors.is_empty() { Ok(event) } else { Err(shown(errors)) }
}

/// What is wrong with a row, and what is allowed.
fn told(error: ConfigError) -> (String, String) {
    let key = error.key;
    match error.fault {
        Fault::Value { found, allowed, .. } => {
            (format!("{key} = {found}"), format!("must be {allowed}"))
        }
        Fault::Missing { allowed } => {
            (format!("{key} is missing"), format!("it must be {allowed}"))
        }
        Fault::ForeignKey { choice, known } => (
            format!("{key} does not apply to {choice}"),
            format!("its keys are {}", known.join(", ")),
        ),
        Fault::ForeignSection { .. } => {
            (format!("{key} has no effect"), "leave the column out".to_owned())
        }
        Fault::UnknownKey { known, .. } => {
            (format!("there is no column `{key}`"), format!("known here: {}", known.join(", ")))
        }
        Fault::Syntax(message) | Fault::Conflict(message) => {
            (format!("the line is not valid: {message}"), "write plain values".to_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use lowmesh_units::Duration;

    use super::*;
    use crate::scenario::What;
    use crate::scenario::event::{Cut, Move, Nodes, Off, State};

    fn file(test: &str, text: &str) -> Result<Vec<Event>, String> {
        let path =
            std::env::temp_dir().join(format!("lowmesh-events-{test}-{}.csv", std::process::id()));
        std::fs::write(&path, text).expect("the system's folder for temporary files is writable");
        let read = read_file(&path.to_string_lossy());
        _ = std::fs::remove_file(&path);
        read.map_err(|error| error.to_string())
    }

    #[test]
    fn a_file_has_the_keys_of_events_as_columns() {
        let events = file(
            "good",
            "at,kind,node,peer,memory\n# comment\n10,off,2,,kept\n1min,on,2,,\n70,cut,1,2 3,\n",
        );
        let events = events.expect("good");
        assert_eq!(events.len(), 3);
        let off = Off { node: Nodes(vec![2]), memory: State::Kept };
        assert_eq!(events[0], Event { at: Duration::from_secs(10), what: What::Off(off) });
        assert_eq!(events[1].at, Duration::from_secs(60));
        let cut = Cut { node: Nodes(vec![1]), peer: Nodes(vec![2, 3]) };
        assert_eq!(events[2].what, What::Cut(cut));
        let moves = file("moves", "time,node,x,y\n0.5,4,3,-2.5\n").expect("good");
        let at = Duration::from_millis(500);
        let place = Move { node: Nodes(vec![4]), x_m: 3.0, y_m: -2.5, z_m: 0.0 };
        assert_eq!(moves, [Event { at, what: What::Move(place) }]);
    }

    #[test]
    fn a_wrong_row_says_its_line() {
        for (test, text, expected) in [
            ("a", "kind,node\non,2\n", ":1:1: no column is `at`, the time; the first line names"),
            ("b", "at,node,speed\n", ":1:1: there is no column `speed`"),
            (
                "c",
                "at,kind,node\n1,on,2\n2,off\n",
                ":3:1: the line has 2 fields; the first line names 3",
            ),
            ("d", "at,kind,node\n1,on,x\n", ":2:1: node = \"x\"; must be the number of a node"),
            ("e", "at,kind,node\n1,up,2\n", ":2:1: kind = \"up\"; must be one of off, on"),
            ("f", "at,kind,node,pdr\n1,on,2,0.5\n", ":2:1: pdr does not apply to kind = \"on\""),
        ] {
            let error = file(test, text).expect_err(text);
            assert!(error.contains(expected), "{error}");
        }
    }
}
