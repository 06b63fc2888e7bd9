//! How a file is written: its size, the size of its functions, its opening, its words, and what a device
//! crate may name.

use super::source::{self, Split};
use super::{Breach, TextFile};

const FILE_LINES_MAX: usize = 800;
const FILE_LINES_ASK: usize = 600;
const FUNCTION_LINES_MAX: usize = 70;

/// Names that say nothing about what is inside.
const EMPTY_NAMES: &[&str] = &["util", "utils", "common", "misc", "helper", "helpers"];

/// Code that says "later".
const UNFINISHED_CODE: &[&str] = &["todo!", "unimplemented!", "#[ignore"];

/// Notes that say "later"; split so that this file does not find itself.
const UNFINISHED_NOTES: &[&str] = &[concat!("FIX", "ME"), concat!("XX", "X"), concat!("TO", "DO")];

/// Breaches of one file.
pub fn breaches(file: &TextFile) -> Vec<Breach> {
    let mut found = Vec::new();
    let path = file.path.as_str();
    let split = source::split(&file.text);
    let lines = file.text.lines().count();
    if lines > FILE_LINES_MAX {
        found.push(Breach::error(path, format!("{lines} lines; the limit is {FILE_LINES_MAX}")));
    } else if lines > FILE_LINES_ASK {
        found.push(Breach::warning(path, format!("{lines} lines: which two things is this?")));
    }
    if !file.text.trim_start().starts_with("//!") {
        found.push(Breach::error(path, "opens without `//!` saying what it is"));
    }
    let names = path.split('/').filter(|name| EMPTY_NAMES.contains(&name.trim_end_matches(".rs")));
    found.extend(names.map(|name| Breach::error(path, format!("{name:?} names nothing"))));
    found.extend(unfinished(path, &split));
    if !source::is_test_file(path) {
        let product = source::without_tests(&split.code);
        found.extend(long_functions(path, product));
        found.extend(occurrences(product, ".unwrap()").map(|line| {
            Breach::error(
                format!("{path}:{line}"),
                "unwrap outside tests: say why it holds with expect",
            )
        }));
    }
    found
}

fn unfinished(path: &str, split: &Split) -> Vec<Breach> {
    let words = UNFINISHED_CODE.iter().map(|word| (&split.code, word));
    let words =
        words.flat_map(|(half, word)| occurrences(half, word).map(move |line| (line, word)));
    let notes = UNFINISHED_NOTES
        .iter()
        .flat_map(|note| whole_words(&split.comments, note).map(move |line| (line, note)));
    words
        .chain(notes)
        .map(|(line, word)| {
            Breach::error(format!("{path}:{line}"), format!("{word} is unfinished work"))
        })
        .collect()
}

/// Lines, from 1, in which `word` occurs.
fn occurrences<'a>(text: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    text.lines().enumerate().filter(move |(_, line)| line.contains(word)).map(|(i, _)| i + 1)
}

/// The same, but not as a part of a longer word.
fn whole_words<'a>(text: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    let has = move |line: &str| line.split(|c: char| !c.is_alphanumeric()).any(|part| part == word);
    text.lines().enumerate().filter(move |(_, line)| has(line)).map(|(i, _)| i + 1)
}

/// Functions above the limit, found by counting braces from the word `fn`.
fn long_functions(path: &str, code: &str) -> Vec<Breach> {
    let lines: Vec<&str> = code.lines().collect();
    let mut found = Vec::new();
    for (start, line) in lines.iter().enumerate() {
        let Some(name) = function_name(line) else { continue };
        let Some(length) = body_lines(&lines[start..]) else { continue };
        if length > FUNCTION_LINES_MAX {
            let place = format!("{path}:{}", start + 1);
            let message =
                format!("fn {name} has {length} lines; the limit is {FUNCTION_LINES_MAX}");
            found.push(Breach::error(place, message));
        }
    }
    found
}

fn function_name(line: &str) -> Option<&str> {
    let at = line.find("fn ")?;
    let starts_word = at == 0 || line[..at].ends_with([' ', '(']);
    let name = line[at + 3..].split(['(', '<']).next()?.trim();
    let is_name = !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_');
    (starts_word && is_name).then_some(name)
}

/// Lines up to the brace that closes the first one; `None` for a declaration without a body.
fn body_lines(lines: &[&str]) -> Option<usize> {
    let (mut braces, mut brackets) = (0_i32, 0_i32);
    for (number, line) in lines.iter().enumerate() {
        for c in line.chars() {
            match c {
                '(' | '[' => brackets += 1,
                ')' | ']' => brackets -= 1,
                ';' if braces == 0 && brackets == 0 => return None,
                '{' => braces += 1,
                '}' => {
                    braces -= 1;
                    if braces == 0 {
                        return Some(number + 1);
                    }
                }
                _ => {}
            }
        }
    }
    None
}

/// What keeps a crate off a device: a missing `no_std`, or a name out of `std` in what ships.
pub fn std_breaches(files: &[TextFile]) -> Vec<Breach> {
    let mut found = Vec::new();
    for file in files.iter().filter(|file| file.path.contains("/src/")) {
        let code = source::split(&file.text).code;
        let root = file.path.ends_with("/src/lib.rs");
        if root && !code.contains("#![no_std]") && !code.contains("#![cfg_attr(not(test), no_std)]")
        {
            found.push(Breach::error(
                &file.path,
                "a device crate says #![cfg_attr(not(test), no_std)]",
            ));
        }
        if source::is_test_file(&file.path) {
            continue;
        }
        let product = source::without_tests(&code);
        found.extend(occurrences(product, "std::").map(|line| {
            Breach::error(
                format!("{}:{line}", file.path),
                "a device crate names core or alloc, not std",
            )
        }));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> TextFile {
        TextFile { path: path.to_owned(), text: text.to_owned() }
    }

    fn messages(path: &str, text: &str) -> Vec<String> {
        breaches(&file(path, text)).into_iter().map(|breach| breach.message).collect()
    }

    #[test]
    fn a_clean_file_has_no_breach() {
        assert!(messages("a/src/cell.rs", "//! Cells.\nfn f() { g(\"todo!\") }\n").is_empty());
    }

    #[test]
    fn long_files_are_asked_about_and_then_refused() {
        let lines = |n: usize| format!("//! Long.\n{}", "\n".repeat(n - 1));
        assert!(messages("a/src/a.rs", &lines(600)).is_empty());
        assert_eq!(
            breaches(&file("a/src/a.rs", &lines(601)))[0].weight,
            super::super::Weight::Warning
        );
        assert_eq!(
            breaches(&file("a/src/a.rs", &lines(801)))[0].weight,
            super::super::Weight::Error
        );
    }

    #[test]
    fn a_function_of_seventy_lines_passes_and_one_more_does_not() {
        let text = |n: usize| format!("//! F.\nfn f(a: [u8; 2]) {{\n{}}}\n", "a;\n".repeat(n - 2));
        assert!(messages("a/src/a.rs", &text(70)).is_empty());
        assert!(messages("a/src/a.rs", &text(71))[0].contains("fn f has 71 lines"));
    }

    #[test]
    fn a_missing_opening_an_empty_name_and_unfinished_work_are_found() {
        assert!(messages("a/src/a.rs", "fn f() {}")[0].contains("opens without"));
        assert!(messages("a/src/util.rs", "//! U.")[0].contains("names nothing"));
        let unfinished = concat!("//! A.\nfn f() { to", "do!() }");
        assert!(messages("a/src/a.rs", unfinished)[0].contains("unfinished"));
        let note = format!("//! A.\n// {} later", UNFINISHED_NOTES[0]);
        assert!(messages("a/src/a.rs", &note)[0].contains("unfinished"));
        assert!(messages("a/src/a.rs", &format!("//! {}X", UNFINISHED_NOTES[1])).is_empty());
    }

    #[test]
    fn unwrap_is_for_tests_only() {
        let text =
            "//! A.\nfn f() { g().unwrap() }\n#[cfg(test)]\nmod tests { fn t() { g().unwrap() } }";
        assert_eq!(messages("a/src/a.rs", text).len(), 1);
        assert!(messages("a/tests/a.rs", text).is_empty());
    }

    #[test]
    fn a_device_crate_must_not_name_std() {
        let root = file("a/src/lib.rs", "//! A.\n#![no_std]\n");
        let part = file("a/src/b.rs", "//! B.\nuse std::vec::Vec;\n");
        assert_eq!(std_breaches(&[root, part]).len(), 1);
        assert_eq!(std_breaches(&[file("a/src/lib.rs", "//! A.\n")]).len(), 1);
    }
}
