//! Words that a reader has to read twice: comments, docs and messages use plain ones. The list is `words.txt`.
//!
//! Rust files are searched in their comments and, up to their tests, in everything else too: help and messages are
//! text of the product. A name such as `sent_anew` is one word, so names of tests are free.

use super::source::{self, is_test_file};
use super::{Breach, TextFile};

/// The list, one phrase on a line.
const LIST: &str = include_str!("words.txt");

/// What ends a clause; in phrases and texts alike it becomes [`END`].
const CLAUSE_ENDS: &str = ".,;:|!?()";

/// The word that stands for the end of a clause.
const END: &str = ".";

/// A refused phrase.
struct Phrase<'a> {
    words: Vec<String>,
    instead: &'a str,
}

/// Breaches of one file.
pub fn breaches(file: &TextFile) -> Vec<Breach> {
    breaches_of(LIST, file)
}

/// Breaches of one file against a list.
pub fn breaches_of(list: &str, file: &TextFile) -> Vec<Breach> {
    let text = if file.is_rust() { searched(file) } else { file.text.clone() };
    let words = words(&text);
    let mut found = Vec::new();
    for Phrase { words: phrase, instead } in phrases(list) {
        let places = words.windows(phrase.len());
        let places = places.filter(|place| place.iter().map(|(word, _)| word).eq(&phrase));
        found.extend(places.map(|place| {
            let shown: Vec<&str> =
                phrase.iter().map(String::as_str).filter(|word| *word != END).collect();
            let message = format!("\"{}\": write \"{instead}\" instead", shown.join(" "));
            Breach::error(format!("{}:{}", file.path, place[0].1), message)
        }));
    }
    found
}

fn phrases(list: &str) -> impl Iterator<Item = Phrase<'_>> {
    let lines = list.lines().filter(|line| !line.starts_with('#'));
    lines.map(|line| {
        let (phrase, instead) = line.split_once(" = ").expect("words.txt has ` = ` in each line");
        Phrase { words: words(phrase).into_iter().map(|(word, _)| word).collect(), instead }
    })
}

/// A Rust file without the code and the strings of its tests, line by line the same.
fn searched(file: &TextFile) -> String {
    let split = source::split(&file.text);
    let shipped = source::without_tests(&split.code).lines().count();
    let shipped = if is_test_file(&file.path) { 0 } else { shipped };
    let lines = file.text.lines().zip(split.comments.lines()).enumerate();
    let lines = lines.map(|(at, (whole, comment))| if at < shipped { whole } else { comment });
    lines.collect::<Vec<_>>().join("\n")
}

/// The words of a text in lower case and the ends of its clauses, each with its line from 1.
fn words(text: &str) -> Vec<(String, usize)> {
    let mut found: Vec<(String, usize)> = Vec::new();
    for (line, text) in text.lines().enumerate() {
        let mut word = String::new();
        // The blank ends the last word of the line.
        for c in text.chars().chain([' ']) {
            if c.is_alphanumeric() || c == '_' {
                word.extend(c.to_lowercase());
                continue;
            }
            if !word.is_empty() {
                found.push((std::mem::take(&mut word), line + 1));
            }
            if CLAUSE_ENDS.contains(c) {
                found.push((END.to_owned(), line + 1));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Invented phrases: the real ones would be refused here too.
    const INVENTED: &str = "frobbed = changed\nlies behind = follows\nby rule. = always";

    /// The places and messages of breaches in a file.
    fn found(path: &str, text: &str) -> Vec<String> {
        let file = TextFile { path: path.to_owned(), text: text.to_owned() };
        breaches_of(INVENTED, &file).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_refused_word_is_found_in_docs_comments_help_and_messages_with_its_line() {
        let refused =
            |place: &str| vec![format!("error: {place}: \"frobbed\": write \"changed\" instead")];
        assert_eq!(found("docs/a.md", "# A\n\nIt is Frobbed."), refused("docs/a.md:3"));
        assert_eq!(found("s/a.toml", "# is frobbed\n"), refused("s/a.toml:1"));
        assert_eq!(found("a/src/a.rs", "//! A.\n/// Is frobbed.\n"), refused("a/src/a.rs:2"));
        assert_eq!(found("a/src/a.rs", "f(\"it is frobbed\")"), refused("a/src/a.rs:1"));
        assert_eq!(found("a/tests/a.rs", "//! A.\n// is frobbed\n"), refused("a/tests/a.rs:2"));
    }

    #[test]
    fn names_strings_of_tests_and_longer_words_are_free() {
        assert!(found("a/src/a.rs", "fn is_frobbed() {}\nfn frobbedly() {}").is_empty());
        assert!(found("a/tests/a.rs", "//! A.\nassert_eq!(text, \"frobbed\");").is_empty());
        let own_tests = "//! A.\n#[cfg(test)]\nmod tests { const A: &str = \"frobbed\"; }";
        assert!(found("a/src/a.rs", own_tests).is_empty());
    }

    #[test]
    fn a_phrase_is_found_across_lines_but_not_across_clauses() {
        assert_eq!(found("a.md", "the port lies\nbehind it").len(), 1);
        assert_eq!(found("a/src/a.rs", "/// It lies\n/// behind.").len(), 1);
        assert!(found("a.md", "where it lies, behind it").is_empty());
    }

    #[test]
    fn a_phrase_may_ask_for_the_end_of_a_clause() {
        for bad in ["It is kept by rule.", "By rule; always", "| by rule |"] {
            assert_eq!(found("a.md", bad).len(), 1, "{bad}");
        }
        assert!(found("a.md", "It is kept by rule seven.").is_empty());
    }

    #[test]
    fn the_list_says_what_to_write_instead() {
        assert!(phrases(LIST).all(|phrase| !phrase.words.is_empty() && !phrase.instead.is_empty()));
        assert!(phrases(LIST).count() > 5);
    }
}
