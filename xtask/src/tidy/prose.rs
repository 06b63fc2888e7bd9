//! The pages that people read: no sentence over [`SENTENCE_WORDS_MAX`] words, no line over [`COLUMNS_MAX`] columns,
//! and none of the phrases in [`LIST`], which is for pages only.
//!
//! Code blocks, generated parts and headings are free. A table is free of the column limit, and each cell is
//! a text of its own, where a semicolon or a colon ends a sentence too. A code span counts as one word.

use super::words::breaches_of;
use super::{Breach, TextFile};

const SENTENCE_WORDS_MAX: usize = 40;
const COLUMNS_MAX: usize = 140;
/// Two screens.
const README_LINES_MAX: usize = 100;

/// Phrases that pages avoid outside of quotations, each with what to write instead.
const LIST: &str = "\
told = says or reports, in the active voice
the one that = the noun
the one which = the noun
has it. = says or writes
lest = so that not";

/// Words with a dot that end no sentence.
const ABBREVIATIONS: &[&str] = &["al.", "e.g.", "i.e.", "cf.", "vs.", "approx."];

/// Files that are pages, besides everything below [`FOLDERS`].
const TOP: &[&str] =
    &["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md"];

/// The manual, and the histories of reproductions.
const FOLDERS: &[&str] = &["docs/", "crates/lab/papers/"];

/// Whether a file is a page.
pub fn is_page(path: &str) -> bool {
    let text = path.rsplit_once('.').is_some_and(|(_, end)| end == "md");
    TOP.contains(&path) || (text && FOLDERS.iter().any(|folder| path.starts_with(folder)))
}

/// Breaches of one page.
pub fn breaches(file: &TextFile) -> Vec<Breach> {
    let mut found = long_lines(file);
    let lines = file.text.lines().count();
    if file.path == "README.md" && lines > README_LINES_MAX {
        let message = format!("{lines} lines: move some to docs/; the limit is {README_LINES_MAX}");
        found.push(Breach::error(&file.path, message));
    }
    found.extend(long_sentences(file));
    let text = prose(&file.text).map(Option::unwrap_or_default).collect::<Vec<_>>();
    let unquoted = TextFile { path: file.path.clone(), text: without_quotations(&text.join("\n")) };
    found.extend(breaches_of(LIST, &unquoted));
    found
}

/// Each line as prose, `None` for lines of code, of generated parts and for markers.
fn prose(text: &str) -> impl Iterator<Item = Option<String>> + '_ {
    let (mut code, mut generated) = (false, false);
    text.lines().map(move |line| {
        let fence = line.trim_start().starts_with("```");
        code ^= fence;
        generated |= line.starts_with("<!-- rows") || line.starts_with("<!-- begin");
        let free = code || fence || generated || line.starts_with("<!--") || is_indented_code(line);
        generated &= !line.starts_with("<!-- end");
        (!free).then(|| simple(line))
    })
}

/// A drawing or a formula; continued items of lists are indented by less.
fn is_indented_code(line: &str) -> bool {
    line.starts_with("    ") && !line.trim_start().starts_with(['-', '*', '|'])
}

/// A line with code spans as one word each and links as their texts.
fn simple(line: &str) -> String {
    let mut out = String::new();
    let mut rest = line;
    while let Some(at) = rest.find(['`', ']']) {
        out.push_str(&rest[..at]);
        let tail = &rest[at + 1..];
        rest = if rest[at..].starts_with('`') {
            out.push_str("code");
            tail.find('`').map_or(tail, |end| &tail[end + 1..])
        } else if let Some(target) = tail.strip_prefix('(') {
            target.find(')').map_or(target, |end| &target[end + 1..])
        } else {
            tail
        };
    }
    out + rest
}

/// Lines that could be wrapped and are not.
fn long_lines(file: &TextFile) -> Vec<Breach> {
    let lines = file.text.lines().zip(prose(&file.text)).enumerate();
    let long = lines.filter(|(_, (line, prose))| {
        let wraps = prose.is_some() && !line.starts_with('|') && !line.starts_with('#');
        wraps && line.trim().contains(' ') && line.chars().count() > COLUMNS_MAX
    });
    long.map(|(at, (line, _))| {
        let columns = line.chars().count();
        let message = format!("{columns} columns: wrap the line; the limit is {COLUMNS_MAX}");
        Breach::error(format!("{}:{}", file.path, at + 1), message)
    })
    .collect()
}

/// Sentences that are too long.
fn long_sentences(file: &TextFile) -> Vec<Breach> {
    let mut sentences = Sentences::default();
    for (at, line) in prose(&file.text).enumerate() {
        let line = line.unwrap_or_default();
        let text = line.trim_start();
        if let Some(row) = text.strip_prefix('|') {
            for cell in row.split('|') {
                sentences.end();
                sentences.read(cell, at + 1, true);
            }
            sentences.end();
            continue;
        }
        if text.is_empty() || text.starts_with(['#', '!']) || begins_item(text) {
            sentences.end();
        }
        if !text.starts_with(['#', '!']) {
            sentences.read(text, at + 1, false);
        }
    }
    sentences.end();
    let long = sentences.done.into_iter().filter(|sentence| sentence.words > SENTENCE_WORDS_MAX);
    long.map(|Sentence { line, words, start }| {
        let message = format!(
            "a sentence of {words} words, \"{start}...\": split it; the limit is {SENTENCE_WORDS_MAX}"
        );
        Breach::error(format!("{}:{line}", file.path), message)
    })
    .collect()
}

/// Whether a line begins an item of a list.
fn begins_item(text: &str) -> bool {
    let number = text.trim_start_matches(|c: char| c.is_ascii_digit());
    text.starts_with("- ") || text.starts_with("* ") || (number != text && number.starts_with(". "))
}

/// One sentence: its line, its number of words and its first words.
#[derive(Default)]
struct Sentence {
    line: usize,
    words: usize,
    start: String,
}

/// Sentences found so far, and the one under way.
#[derive(Default)]
struct Sentences {
    done: Vec<Sentence>,
    open: Sentence,
}

impl Sentences {
    /// Reads words of a line; in a cell of a table a semicolon and a colon end a sentence too.
    fn read(&mut self, text: &str, line: usize, cell: bool) {
        for word in text.split_whitespace() {
            if word.contains(char::is_alphanumeric) {
                if self.open.words == 0 {
                    self.open.line = line;
                }
                self.open.words += 1;
                if self.open.words <= 4 {
                    self.open.start += if self.open.start.is_empty() { "" } else { " " };
                    self.open.start += word;
                }
            }
            let word = word.trim_end_matches(['"', ')', '*', '_', '”']);
            let abbreviated = ABBREVIATIONS.contains(&word.trim_start_matches('('));
            let ended = word.ends_with(['.', '!', '?']) && !abbreviated && word != "...";
            if ended || (cell && word.ends_with([';', ':'])) {
                self.end();
            }
        }
    }

    /// Ends the sentence under way.
    fn end(&mut self) {
        let open = std::mem::take(&mut self.open);
        if open.words > 0 {
            self.done.push(open);
        }
    }
}

/// A text without what stands in double quotation marks, line by line the same.
fn without_quotations(text: &str) -> String {
    let mut quoted = false;
    let mut out = String::new();
    for paragraph in text.split("\n\n") {
        if !out.is_empty() {
            out.push_str("\n\n");
        }
        for c in paragraph.chars() {
            quoted ^= c == '"';
            if !quoted || c == '\n' {
                out.push(c);
            }
        }
        quoted = false;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<String> {
        let file = TextFile { path: "docs/a.md".to_owned(), text: text.to_owned() };
        breaches(&file).iter().map(ToString::to_string).collect()
    }

    /// A sentence of so many words, with its dot.
    fn sentence(words: usize) -> String {
        format!("{}end.", "a ".repeat(words - 1))
    }

    #[test]
    fn a_sentence_over_the_limit_is_named_with_its_first_line() {
        let long = sentence(41).replacen("a a a a a ", "a a a a a\n", 1);
        let text = format!("# {}\n\n{}\n{long}\n", sentence(60), sentence(40));
        let message =
            "error: docs/a.md:4: a sentence of 41 words, \"a a a a...\": split it; the limit is 40";
        assert_eq!(found(&text), [message]);
    }

    #[test]
    fn items_cells_and_paragraphs_end_a_sentence() {
        let half = "a ".repeat(30);
        for parts in [
            format!("- {half}\n- {half}"),
            format!("1. {half}\n2. {half}"),
            format!("| {half} | {half} |"),
            format!("| {half}; {half} |"),
            format!("{half}\n\n{half}"),
        ] {
            assert!(found(&parts).is_empty(), "{parts}");
        }
        assert_eq!(found(&format!("{half}; {half}")).len(), 1);
        assert_eq!(found(&format!("- {half}\n  {half}")).len(), 1);
    }

    #[test]
    fn code_spans_count_as_a_word_and_links_as_their_text() {
        let code = format!("`{}`\n{}", "b ".repeat(50), sentence(39));
        assert!(found(&code).is_empty());
        let link = format!("[text](b.md#{}) {}", "c".repeat(9), sentence(40));
        assert_eq!(found(&link).len(), 1);
        assert!(found(&format!("Lenders et al. 2021 {}", sentence(37))).len() == 1);
    }

    #[test]
    fn a_line_over_the_limit_is_found_outside_of_code_and_tables() {
        let line = format!("a {}", "b".repeat(139));
        assert_eq!(
            found(&line),
            ["error: docs/a.md:1: 141 columns: wrap the line; the limit is 140"]
        );
        for free in [
            format!("```sh\n{line}\n```"),
            format!("| {line} |"),
            "b".repeat(200),
            format!("<!-- rows: x -->\n{line}\n<!-- end -->"),
        ] {
            assert!(found(&free).is_empty(), "{free}");
        }
        assert_eq!(found(&format!("<!-- rows: x -->\n<!-- end -->\n{line}")).len(), 1);
    }

    #[test]
    fn the_readme_fits_two_screens() {
        let readme = |lines| TextFile { path: "README.md".to_owned(), text: "a\n\n".repeat(lines) };
        assert!(breaches(&readme(README_LINES_MAX / 2)).is_empty());
        assert_eq!(breaches(&readme(README_LINES_MAX / 2 + 1)).len(), 1);
    }

    #[test]
    fn phrases_are_refused_outside_of_code_and_quotations() {
        let message = "error: docs/a.md:2: \"lest\": write \"so that not\" instead";
        assert_eq!(found("A frame waits\nlest it collides."), [message]);
        for free in ["The paper says \"wait\nlest it collides\".", "`lest`", "```text\nlest\n```"] {
            assert!(found(free).is_empty(), "{free}");
        }
    }

    #[test]
    fn pages_are_the_manual_the_histories_and_the_files_at_the_top() {
        for page in
            ["docs/topics/a.md", "crates/lab/papers/a/HISTORY.md", "README.md", "SECURITY.md"]
        {
            assert!(is_page(page), "{page}");
        }
        for other in ["examples/a/README.md", "docs/book.toml", "crates/lab/papers/a/claims.toml"] {
            assert!(!is_page(other), "{other}");
        }
    }
}
