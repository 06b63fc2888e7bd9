//! Every row of a crate is in the list of its kind, so that users find it and the conformance suite runs over it; and each
//! kind has a test that runs this suite.

use super::{Breach, TextFile, source};

/// Breaches of one package.
pub fn breaches(files: &[TextFile]) -> Vec<Breach> {
    let code: Vec<(&TextFile, String)> = files
        .iter()
        .filter(|file| file.path.contains("/src/") && !source::is_test_file(&file.path))
        .map(|file| (file, source::without_tests(&source::split(&file.text).code).to_owned()))
        .collect();
    let declared: Vec<(&str, &str)> = code
        .iter()
        .flat_map(|(file, code)| rows(code).map(|kind| (kind, file.path.as_str())))
        .collect();
    let mut found = Vec::new();
    for (file, code) in &code {
        for (kind, listed) in kinds(code) {
            let of_kind = declared.iter().filter(|(one, _)| *one == kind);
            let places: Vec<&str> = of_kind.map(|(_, path)| *path).collect();
            if places.len() != listed {
                let (count, places) = (places.len(), places.join(", "));
                let message = format!(
                    "{count} rows of `dyn {kind}` are declared, and BUILTIN lists {listed}: {places}"
                );
                found.push(Breach::error(file.path.clone(), message));
            }
            let suite = format!("Registry::<dyn {kind}>::builtin().breaches()");
            if !files.iter().any(|file| file.text.contains(&suite)) {
                let message =
                    format!("no test runs the suite of all rows: assert `{suite}` is empty");
                found.push(Breach::error(file.path.clone(), message));
            }
        }
    }
    found
}

/// The kinds of the rows that `code` declares, one entry for each row.
fn rows(code: &str) -> impl Iterator<Item = &str> {
    code.split("static ").skip(1).filter_map(|rest| {
        let (declared, _) = rest.split_once('=')?;
        let (name, kind) = declared.split_once(": ")?;
        let kind = kind.trim().strip_suffix('>')?.split_once("Row<dyn ")?.1;
        let is_name =
            name.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_');
        is_name.then_some(kind)
    })
}

/// The kinds of rows that `code` declares, with the number of rows in their lists.
fn kinds(code: &str) -> impl Iterator<Item = (&str, usize)> {
    code.split("impl Algorithm for dyn ").skip(1).filter_map(|rest| {
        let (kind, body) = rest.split_once(" {")?;
        let (_, list) = body.split_once("const BUILTIN")?;
        let (_, list) = list.split_once('=')?;
        let (list, _) = list.split_once(';')?;
        Some((kind, list.matches('&').count() - 1))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = "impl Algorithm for dyn Greeter {\n    const NOUN: &'static str = \"greeter\";\n    \
        const BUILTIN: &'static [&'static Row<Self>] =\n        &[&polite::ROW, &rude::ROW];\n}\n";
    const TEST: &str = "assert_eq!(Registry::<dyn Greeter>::builtin().breaches(), []);";

    fn check(files: &[(&str, &str)]) -> Vec<String> {
        let file = |(path, text): &(&str, &str)| TextFile {
            path: (*path).to_owned(),
            text: (*text).to_owned(),
        };
        let files: Vec<TextFile> = files.iter().map(file).collect();
        breaches(&files).iter().map(ToString::to_string).collect()
    }

    const POLITE: &str = "pub static ROW: Row<dyn Greeter> = Row {\n};\n";
    const RUDE: &str = "pub static ROW: Row<dyn Greeter> =\n    Row::<dyn Greeter>::plain();\n";

    #[test]
    fn rows_in_their_list_pass_if_a_test_runs_the_suite() {
        let files = [
            ("crates/a/src/lib.rs", LIST),
            ("crates/a/src/polite.rs", POLITE),
            ("crates/a/src/rude.rs", RUDE),
            ("crates/a/tests/conformance.rs", TEST),
        ];
        assert_eq!(check(&files), [""; 0]);
        let without = check(&files[..3]);
        assert!(without.len() == 1 && without[0].contains("no test runs"), "{without:?}");
    }

    #[test]
    fn a_row_that_is_in_no_list_is_found() {
        let files = [
            ("crates/a/src/lib.rs", LIST),
            ("crates/a/src/polite.rs", POLITE),
            ("crates/a/src/rude.rs", RUDE),
            ("crates/a/src/shy.rs", POLITE),
            ("crates/a/tests/conformance.rs", TEST),
        ];
        let found = check(&files);
        assert!(found[0].contains("3 rows of `dyn Greeter` are declared"), "{found:?}");
        assert!(found[0].contains("BUILTIN lists 2") && found[0].contains("shy.rs"), "{found:?}");
    }

    #[test]
    fn rows_of_tests_do_not_count() {
        let spoilt = format!("{POLITE}#[cfg(test)]\nmod tests {{\n    {RUDE}}}\n");
        let files = [
            ("crates/a/src/lib.rs", LIST),
            ("crates/a/src/polite.rs", spoilt.as_str()),
            ("crates/a/src/rude.rs", RUDE),
            ("crates/a/tests/conformance.rs", TEST),
        ];
        assert_eq!(check(&files), [""; 0]);
    }
}
