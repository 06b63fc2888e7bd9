//! The parts of the manual that the program makes: lists of algorithms and tables of their parameters from their rows, and
//! tables of recorded verdicts on publications.
//!
//! A part stands between the lines `<!-- rows: NAME -->` and `<!-- end -->`; a test compares it, `cargo xtask manual --write` writes it.

use lowmesh_registry::{Declaration, Domain, Kind, Parameter, Scale, Search};

use crate::claims;
use crate::scenario::{Rows, literal};
use crate::tune::space;

const BEGIN: &str = "<!-- rows: ";
const END: &str = "<!-- end -->";

/// Pages outside of `docs/topics` that have such parts.
pub const PAGES: [&str; 2] = ["README.md", "docs/overview.md"];

/// `text` with every generated part renewed.
pub fn filled(text: &str) -> Result<String, String> {
    let (mut made, mut rest) = (String::new(), text);
    while let Some((before, after)) = rest.split_once(BEGIN) {
        let (name, after) = after.split_once(" -->\n").ok_or("a part without a name")?;
        let (_, after) = after.split_once(END).ok_or_else(|| format!("{name} has no end"))?;
        let part = part(name).ok_or_else(|| format!("there are no rows {name}"))?;
        made.extend([before, BEGIN, name, " -->\n\n", &part, "\n", END]);
        rest = after;
    }
    Ok(made + rest)
}

/// The part called `name`: a scenario key such as `coap.congestion` for the list of its rows, the same with the name of a
/// row for the table of its parameters or with `each` for the tables of all; `tune`; `publications FOLDER`,
/// `totals PUBLICATION`, and `findings PUBLICATION`, or `calibrations` or `settings`.
fn part(name: &str) -> Option<String> {
    if let Some((kind, of)) = name.split_once(' ') {
        let made = match kind {
            "publications" => Some(claims::publications(of)),
            "totals" => claims::totals(of),
            kind => claims::verdicts(kind, of),
        };
        if made.is_some() {
            return made;
        }
    }
    let rows = Rows::default();
    if name == "tune" {
        return Some(searched(rows.timers.row("cocoa").ok()?.declaration()));
    }
    rows.kinds().iter().find_map(|kind| of(kind, name))
}

fn of(kind: &Kind, name: &str) -> Option<String> {
    Some(match name.strip_prefix(kind.key)?.trim_start() {
        "" => list(kind),
        "each" => each(kind),
        row => parameters(kind.row(row)?),
    })
}

fn list(kind: &Kind) -> String {
    let lines = kind.rows.iter().map(|row| format!("- `{}`: {}.", row.name, row.summary));
    let mut list = lines.collect::<Vec<_>>().join("\n");
    list.push('\n');
    list
}

/// The key that names a row, and one heading for each row.
fn each(kind: &Kind) -> String {
    let (_, key) = kind.chooser();
    let names: Vec<String> = kind.rows.iter().map(|row| format!("`{}`", row.name)).collect();
    let first = kind.rows.first().map_or("", |row| row.name);
    let one = |row: &Declaration| {
        let table = match row.parameters {
            [] => "No keys of its own.\n".to_owned(),
            _ => parameters(*row),
        };
        format!("\n### `{key} = \"{}\"`\n\n{}.\n\n{table}", row.name, row.summary)
    };
    let sections: String = kind.rows.iter().map(one).collect();
    format!(
        "| key | default | allowed | meaning |\n|---|---|---|---|\n\
         | `{key}` | `\"{first}\"` | {} | which of the following |\n{sections}",
        names.join(", ")
    )
}

fn parameters(row: Declaration) -> String {
    let line = |one: &Parameter| {
        let default =
            one.default().map_or("required".to_owned(), |it| format!("`{}`", literal(&it)));
        let (key, allowed) = (one.key, one.allowed());
        format!("| `{key}` | {default} | {allowed} | {}. | {} |\n", one.summary, one.source)
    };
    let lines: String = row.parameters.iter().map(line).collect();
    format!("| key | default | allowed | meaning | source |\n|---|---|---|---|---|\n{lines}")
}

/// What `lowmesh tune` searches.
fn searched(row: Declaration) -> String {
    let line = |key: String, unit: &str, search: Search| {
        let Search { low, high, scale, why } = search;
        let spread = if scale == Scale::Logarithmic { "evenly in the logarithm" } else { "evenly" };
        format!("| `{key}` | {low}{unit} | {high}{unit} | {spread} | {why} |\n")
    };
    let own = row.parameters.iter().filter_map(|one| {
        let unit = if matches!(one.domain, Domain::Time(_)) { " s" } else { "" };
        Some(line(format!("{}.{}", row.section, one.key), unit, one.search?))
    });
    let lines: String = own.collect();
    let start = line("coap.ack_timeout".to_owned(), " s", space::ACK_TIMEOUT);
    format!(
        "| parameter | from | to | drawn | why these bounds |\n|---|---|---|---|---|\n{lines}{start}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_made_again_and_the_rest_stays() {
        let text = "a\n<!-- rows: fragments.window -->\nold\n<!-- end -->\nb\n";
        let made = filled(text).expect("known rows");
        assert!(made.starts_with("a\n<!-- rows: fragments.window -->\n\n- `fixed`: "), "{made}");
        assert!(made.ends_with("with pacing.\n\n<!-- end -->\nb\n") && !made.contains("old"));
        assert_eq!(filled(&made).as_ref(), Ok(&made));
    }

    #[test]
    fn the_pages_have_what_the_rows_say() {
        let root = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
        let mut parts = 0;
        let topics = std::fs::read_dir(root.join("docs/topics"));
        let topics = topics.expect("the manual is in the repository");
        let topics = topics.map(|page| page.expect("readable").path());
        for page in topics.chain(PAGES.map(|page| root.join(page))) {
            let text = std::fs::read_to_string(&page).expect("text");
            parts += text.matches(BEGIN).count();
            let made = filled(&text).expect("known rows");
            assert!(made == text, "`cargo xtask manual --write` changes {}", page.display());
        }
        assert!(parts > 3, "{parts}");
    }

    #[test]
    fn parts_without_an_end_or_without_rows_are_refused() {
        assert!(filled("<!-- rows: fragments.window -->\n").is_err());
        assert!(filled("<!-- rows: fragments.door -->\n<!-- end -->").is_err());
    }
}
