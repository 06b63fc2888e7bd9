//! Every section of an RFC that is cited exists: `RFC 7252 s4.2`, `RFC 7641 s3.2 and s4.5`, `RFC 8931 appendix C`. A wrong
//! number sends the reader of a rule to a text that does not have it, and no test would notice.
//!
//! The numbers are in `rfc-sections.txt`; citations of an RFC that has no line there pass. On the pages of
//! `docs/conformance`, a section without an RFC belongs to the RFC of the page or of the heading above it.

use std::collections::{BTreeMap, BTreeSet};

use super::{Breach, TextFile};

/// The table, one RFC on a line.
const TABLE: &str = include_str!("rfc-sections.txt");

/// The pages whose rows cite sections of one RFC.
const CONFORMANCE: &str = "docs/conformance/";

/// Marks of comments, which end no citation that continues on the next line.
const MARKS: &[&str] = &["//", "///", "//!", "#", "*"];

/// Sections of one RFC.
struct Sections<'a> {
    numbers: BTreeSet<&'a str>,
    /// The depth of the table of contents, if the text has deeper sections.
    depth: Option<usize>,
}

/// A word with its line from 1.
type Word<'a> = (&'a str, usize);

/// Breaches of one file.
pub fn breaches(file: &TextFile) -> Vec<Breach> {
    let table = table(TABLE);
    let words: Vec<Word> = (file.text.lines().enumerate())
        .flat_map(|(at, line)| line.split_whitespace().map(move |word| (word, at + 1)))
        .filter(|(word, _)| !MARKS.contains(word))
        .collect();
    let mut found = Vec::new();
    for at in 0..words.len() {
        let Some((rfc, cited, _)) = citation(&words[at..]) else { continue };
        let Some(sections) = table.get(&rfc) else { continue };
        let wrong = cited.iter().filter(|(number, _)| !sections.has(number));
        found.extend(wrong.map(|(number, line)| {
            Breach::error(format!("{}:{line}", file.path), missing(&[rfc], number))
        }));
    }
    if file.path.starts_with(CONFORMANCE) {
        found.extend(rows(file, &table));
    }
    found
}

/// The table by RFC; lines with `#` are comments.
fn table(text: &str) -> BTreeMap<u32, Sections<'_>> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines
        .filter_map(|line| {
            let mut words = line.split_whitespace();
            let rfc = words.next()?.parse().ok()?;
            let mut numbers: BTreeSet<&str> = words.collect();
            let deeper = numbers.remove("...");
            let depth = numbers.iter().map(|number| number.split('.').count()).max();
            Some((rfc, Sections { numbers, depth: depth.filter(|_| deeper) }))
        })
        .collect()
}

impl Sections<'_> {
    /// Whether a section exists, as far as the table tells.
    fn has(&self, number: &str) -> bool {
        let parts: Vec<&str> = number.split('.').collect();
        self.numbers.contains(number)
            || self.depth.is_some_and(|depth| {
                depth < parts.len() && self.numbers.contains(parts[..depth].join(".").as_str())
            })
    }
}

/// A citation that begins with the first word: its RFC, its sections, each with its line, and the words after it. The
/// number of the RFC may be the text of a link.
fn citation<'a, 'w>(words: &'w [Word<'a>]) -> Option<(u32, Vec<Word<'a>>, &'w [Word<'a>])> {
    let [(rfc, _), (number, _), rest @ ..] = words else { return None };
    if bare(rfc) != "RFC" {
        return None;
    }
    let number = match number.split_once("](") {
        Some((number, target)) if target.ends_with(')') => number,
        _ => number.strip_suffix(',').unwrap_or(number),
    };
    let number = number.parse().ok()?;
    let (cited, rest) = chain(rest);
    (!cited.is_empty()).then_some((number, cited, rest))
}

/// The sections at the beginning of `words`: one, or several after commas, `and`, `or` and `to`; and the words after them.
fn chain<'a, 'w>(mut words: &'w [Word<'a>]) -> (Vec<Word<'a>>, &'w [Word<'a>]) {
    let mut found = Vec::new();
    loop {
        let (name, after) = match words {
            [("appendix" | "app.", _), (letter, line), after @ ..] => {
                ((appendix(letter), *line), after)
            }
            [(word, line), after @ ..] => ((section(word), *line), after),
            [] => return (found, words),
        };
        let (Some((number, rest)), line) = name else { return (found, words) };
        found.push((number, line));
        // A range such as s4.1-4.3.
        let end = rest.strip_prefix('-').map(|end| end.strip_prefix('s').unwrap_or(end));
        let end = end.and_then(digits);
        found.extend(end.map(|(number, _)| (number, line)));
        words = match (end.map_or(rest, |(_, rest)| rest), after) {
            (",", after) | ("", [("and" | "or" | "to", _), after @ ..]) => after,
            _ => return (found, after),
        };
    }
}

/// The number of a section such as `s4.8.1`, and what follows it.
fn section(word: &str) -> Option<(&str, &str)> {
    digits(word.strip_prefix('s')?)
}

/// A number with dots at the beginning of a text, and what follows it; a dot at its end is a full stop.
fn digits(text: &str) -> Option<(&str, &str)> {
    let end = text.find(|c: char| c != '.' && !c.is_ascii_digit()).unwrap_or(text.len());
    let number = text[..end].trim_end_matches('.');
    (!number.is_empty()).then(|| (number, &text[number.len()..]))
}

/// The letter of an appendix with the numbers behind it, and what follows it.
fn appendix(word: &str) -> Option<(&str, &str)> {
    let letter = word.chars().next().filter(char::is_ascii_uppercase)?.len_utf8();
    let end = word[letter..].find(|c: char| c != '.' && !c.is_ascii_digit());
    let end = end.map_or(word.len(), |end| letter + end);
    let number = word[..end].trim_end_matches('.');
    Some((number, &word[number.len()..]))
}

/// A word without what opens a clause or a quotation before it.
fn bare(word: &str) -> &str {
    word.trim_start_matches(['(', '[', '"', '\'', '`', '*', '|'])
}

/// Sections without an RFC on a page of `docs/conformance`: in its column of sections and in its text. They pass if the
/// first RFC of the title has no line in the table.
fn rows(file: &TextFile, table: &BTreeMap<u32, Sections<'_>>) -> Vec<Breach> {
    let (mut title, mut heading, mut column) = (Vec::new(), Vec::new(), false);
    let mut found = Vec::new();
    for (at, line) in file.text.lines().enumerate() {
        let named = numbers(line);
        if line.starts_with('#') {
            *(if line.starts_with("# ") { &mut title } else { &mut heading }) = named;
            continue;
        }
        let first = line.strip_prefix('|').and_then(|row| row.split('|').next()).map(str::trim);
        column = first.is_some_and(|cell| column || cell == "section");
        let cell = first.filter(|_| column && named.is_empty()).unwrap_or_default();
        let mut cited: BTreeSet<&str> = cell
            .split([',', ' ', '-'])
            .filter_map(|part| digits(part.strip_prefix('s').unwrap_or(part)))
            .filter_map(|(number, rest)| rest.is_empty().then_some(number))
            .collect();
        cited.extend(without_rfc(line));
        let rfcs = [heading.as_slice(), &title, &named].concat();
        let known: Vec<&Sections> = rfcs.iter().filter_map(|rfc| table.get(rfc)).collect();
        let first_known = title.first().is_none_or(|rfc| table.contains_key(rfc));
        let wrong = cited.iter().filter(|number| !known.iter().any(|one| one.has(number)));
        let wrong = wrong.filter(|_| first_known && !known.is_empty());
        found.extend(wrong.map(|number| {
            Breach::error(format!("{}:{}", file.path, at + 1), missing(&rfcs, number))
        }));
    }
    found
}

/// The sections of a line that belong to no RFC before them.
fn without_rfc(line: &str) -> Vec<&str> {
    let all: Vec<Word> = line.split_whitespace().map(|word| (bare(word), 0)).collect();
    let (mut found, mut words) = (Vec::new(), all.as_slice());
    while !words.is_empty() {
        if let Some((_, _, rest)) = citation(words) {
            words = rest;
            continue;
        }
        let (cited, rest) = chain(words);
        words = if cited.is_empty() { &words[1..] } else { rest };
        found.extend(cited.into_iter().map(|(number, _)| number));
    }
    found
}

/// The RFCs that a line names, also as `RFC 6206, 6551`.
fn numbers(line: &str) -> Vec<u32> {
    let mut found = Vec::new();
    for part in line.split("RFC ").skip(1) {
        for word in part.split_whitespace() {
            let number = word.trim_end_matches(|c: char| !c.is_ascii_digit());
            let Ok(number) = number.parse() else { break };
            found.push(number);
            if !word.ends_with(',') {
                break;
            }
        }
    }
    found
}

fn missing(rfcs: &[u32], number: &str) -> String {
    let rfcs: BTreeSet<String> = rfcs.iter().map(u32::to_string).collect();
    let rfcs = rfcs.into_iter().collect::<Vec<_>>().join(" or ");
    format!("RFC {rfcs} has no section {number}: look it up (`rfc-sections.txt` lists them)")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A text that cites `RFC 7252` in the place of `@`; this file itself has no wrong citation.
    fn found(path: &str, text: &str) -> Vec<String> {
        let text = text.replace('@', "RFC 7252").replace('%', "RFC 8613");
        let file = TextFile { path: path.to_owned(), text };
        let message = |breach: &Breach| {
            let section = breach.message.split(':').next().unwrap_or_default();
            let (rfc, section) = section.split_once(" has no section ").expect("the message");
            format!("{} {rfc} {section}", breach.place)
        };
        breaches(&file).iter().map(message).collect()
    }

    #[test]
    fn sections_that_exist_pass() {
        let text = "//! As in @ s4.2, s4.8.1 and s5.10.8: (@ s4), \"@ appendix A.\"\n\
            // of @ s4.2\n/// to s4.8. See @, s4.1-4.3 and RFC 1 s99; @ says s99.";
        assert_eq!(found("a/src/b.rs", text), [""; 0]);
    }

    #[test]
    fn each_wrong_section_of_a_citation_is_found_at_its_line() {
        let text = "(@ s4.9): one. @\n/// s4.2,\n/// s5.11 and s13.1. @ appendix C; @ s4.1-4.19";
        let expected = [
            "a/src/b.rs:1 RFC 7252 4.9",
            "a/src/b.rs:3 RFC 7252 5.11",
            "a/src/b.rs:3 RFC 7252 13.1",
            "a/src/b.rs:3 RFC 7252 C",
            "a/src/b.rs:3 RFC 7252 4.19",
        ];
        assert_eq!(found("a/src/b.rs", text), expected);
    }

    #[test]
    fn below_the_depth_of_the_table_the_section_above_decides() {
        assert_eq!(found("a/src/b.rs", "% s4.1.3.5.2, % appendix B.1.1"), [""; 0]);
        assert_eq!(
            found("a/src/b.rs", "% s4.9.1, % s9.1"),
            ["a/src/b.rs:1 RFC 8613 4.9.1", "a/src/b.rs:1 RFC 8613 9.1"]
        );
    }

    #[test]
    fn rows_of_a_page_belong_to_the_rfc_of_its_title_or_heading() {
        let page = "# @ and more\n\n| section | state |\n|---|---|\n| 4.2, s4.8.1 | done (s5.2) |\n\
            | 4.9 | done |\n| s2.1-2.5 | done |\n\n## %\n\n| what | state |\n|---|---|\n\
            | 99 (s6.9, s4.8.2) | done |\n| one | s12.8, s12.9 |\n";
        let expected = [
            "docs/conformance/a.md:6 RFC 7252 4.9",
            "docs/conformance/a.md:7 RFC 7252 2.5",
            "docs/conformance/a.md:13 RFC 7252 or 8613 6.9",
            "docs/conformance/a.md:14 RFC 7252 or 8613 12.9",
        ];
        assert_eq!(found("docs/conformance/a.md", page), expected);
        assert_eq!(found("docs/topics/a.md", page), [""; 0]);
    }

    #[test]
    fn the_table_lists_each_rfc_once_and_in_order() {
        let lines = TABLE.lines().filter(|line| !line.starts_with('#'));
        let rfcs: Vec<u32> =
            lines.filter_map(|line| line.split(' ').next()?.parse().ok()).collect();
        assert!(rfcs.is_sorted_by(|a, b| a < b) && rfcs.len() == table(TABLE).len(), "{rfcs:?}");
    }
}
