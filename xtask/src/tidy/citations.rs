//! What pages cite of this project exists: tests and items on the pages of `docs/conformance`, files and folders on every
//! page, and the commands of `cargo xtask` in every file. A row that says "done" is worth nothing if its test is gone,
//! and a compiler does not see a test that changes its name.
//!
//! A test is a code span such as `a_reset_ends_the_exchange`, and may have its modules before it. A file is named from the
//! root of the workspace, or by the end of its path (`recover/tests/gnrc.rs`), with several names in braces if need be.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::{Breach, TextFile, source};

/// The pages whose rows name tests.
const CONFORMANCE: &str = "docs/conformance/";

/// The folders at the root: a code span that begins with one names a file or a folder.
const FOLDERS: &[&str] =
    &[".ci", "crates", "docs", "examples", "fuzz", "papers", "scenarios", "tests", "xtask"];

/// The Rust files of the workspace, as far as citations need them.
pub struct Tree {
    paths: Vec<String>,
    /// The files that declare a function.
    functions: BTreeMap<String, BTreeSet<usize>>,
    /// The files that have a word, also in their texts: keys of scenarios are words of texts.
    words: BTreeMap<String, BTreeSet<usize>>,
}

impl Tree {
    /// Reads the files.
    pub fn new(files: &[TextFile]) -> Self {
        let paths = files.iter().map(|file| file.path.clone()).collect();
        let mut tree = Self { paths, functions: BTreeMap::new(), words: BTreeMap::new() };
        for (at, file) in files.iter().enumerate() {
            let code = source::split(&file.text).code;
            for (before, name) in names(&code).zip(names(&code).skip(1)) {
                if before == "fn" {
                    tree.functions.entry(name.to_owned()).or_default().insert(at);
                }
            }
            for word in names(&file.text) {
                tree.words.entry(word.to_owned()).or_default().insert(at);
            }
        }
        tree
    }

    /// Whether a test, or another item, exists: `name`, or `modules::name` in a file below these modules.
    fn has_item(&self, span: &str) -> bool {
        let segments: Vec<&str> = span.split("::").collect();
        let Some((name, above)) = segments.split_last() else { return false };
        let modules: Vec<&str> = (above.iter().copied())
            .map(|module| module.strip_prefix("lowmesh_").unwrap_or(module))
            .filter(|module| *module != "tests" && module.starts_with(|c: char| c.is_lowercase()))
            .collect();
        // The name of a test is a sentence; fields and modules have fewer words.
        let declared = if is_sentence(name) { &self.functions } else { &self.words };
        let files = declared.get(*name).into_iter().flatten();
        let mut paths = files.map(|at| self.paths[*at].as_str());
        paths.any(|path| is_within(path, &modules))
            || (!is_sentence(name) && {
                let all = [modules.as_slice(), &[*name]].concat();
                self.paths.iter().any(|path| is_within(path, &all))
            })
    }

    /// Whether a file or a folder is there, by the end of the path of a file or of the folders above it.
    fn has_path(&self, path: &str) -> bool {
        let wanted: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
        let parts = |path: &String| path.split('/').map(str::to_owned).collect::<Vec<_>>();
        let is_file = |part: &str| Path::new(part).extension().is_some();
        self.paths.iter().map(parts).any(|parts| {
            let mut places = parts.windows(wanted.len()).enumerate();
            let end = parts.len() - wanted.len().min(parts.len());
            places.any(|(at, place)| {
                place == wanted && (at == end || !is_file(wanted[wanted.len() - 1]))
            })
        })
    }
}

/// Breaches of one page; `exists` says whether a path from the root of the workspace is there.
pub fn breaches(page: &TextFile, tree: &Tree, exists: impl Fn(&str) -> bool) -> Vec<Breach> {
    let conformance = page.path.starts_with(CONFORMANCE);
    let mut found = Vec::new();
    let mut fenced = false;
    for (at, line) in page.text.lines().enumerate() {
        let fence = line.trim_start().starts_with("```");
        fenced ^= fence;
        if fenced || fence {
            continue;
        }
        let mut error = |message: String| {
            found.push(Breach::error(format!("{}:{}", page.path, at + 1), message));
        };
        for span in line.split('`').skip(1).step_by(2) {
            let top = span.split('/').next().unwrap_or_default();
            let named = FOLDERS.contains(&top) && span.contains('/');
            if named || (is_path(span) && (conformance || is_rust(span))) {
                let there = |path: &String| exists(path) || tree.has_path(path);
                if let Some(lost) = alternatives(span).iter().find(|path| !there(path)) {
                    error(format!("`{lost}` does not exist: write the present path"));
                }
            } else if conformance && is_item(span) && !tree.has_item(span) {
                error(format!("`{span}` does not exist: name the test that checks this now"));
            }
        }
        // Files that a row names without a code span.
        let outside = line.split('`').step_by(2).flat_map(str::split_whitespace);
        let outside = outside.map(|word| word.trim_matches(|c: char| !is_name(c)));
        let outside = outside.filter(|word| conformance && is_rust(word));
        for file in outside.filter(|file| !tree.has_path(file)) {
            error(format!("{file} does not exist: write the present name of the file"));
        }
    }
    found
}

/// Commands of `cargo xtask` that do not exist, in a file of any kind.
pub fn commands(file: &TextFile, known: &BTreeSet<&str>) -> Vec<Breach> {
    let lines = file.text.lines().enumerate();
    let cited = lines.flat_map(|(at, line)| {
        let rest = line.split("cargo xtask ").skip(1);
        rest.map(move |rest| {
            let end = rest.find(|c: char| c != '-' && !c.is_ascii_lowercase());
            (at + 1, rest[..end.unwrap_or(rest.len())].trim_end_matches('-'))
        })
    });
    cited
        .filter(|(_, command)| !command.is_empty() && !known.contains(command))
        .map(|(line, command)| {
            let message = format!("`cargo xtask {command}` does not exist");
            Breach::error(format!("{}:{line}", file.path), message)
        })
        .collect()
}

/// The names and numbers of a text, in order.
fn names(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !is_name(c)).filter(|word| !word.is_empty())
}

fn is_name(c: char) -> bool {
    c == '_' || c.is_ascii_alphanumeric()
}

/// Whether a name has five words or more.
fn is_sentence(name: &str) -> bool {
    name.matches('_').count() >= 4
}

/// Whether a span is a path of modules and items, or the name of a test: no shorter word, which can be anything.
fn is_item(span: &str) -> bool {
    let segments = span.split("::");
    let names = segments.clone().all(|name| !name.is_empty() && name.chars().all(is_name));
    let lower = |c: char| c == '_' || c.is_ascii_lowercase() || c.is_ascii_digit();
    names && (segments.count() > 1 || (span.matches('_').count() >= 2 && span.chars().all(lower)))
}

/// Whether a span is a path of the tree: names with `/` between them, none of an option, a template or a URI.
fn is_path(span: &str) -> bool {
    let plain = |c: char| is_name(c) || matches!(c, '/' | '.' | '-' | '{' | '}' | ',');
    let folders = span.contains('/') && !span.starts_with('/');
    (folders || is_rust(span)) && span.chars().all(plain)
}

fn is_rust(path: &str) -> bool {
    Path::new(path).extension().is_some_and(|extension| extension == "rs")
}

/// The paths that a span with braces names: `a/{b,c}.rs` is two.
fn alternatives(span: &str) -> Vec<String> {
    let parts = span.split_once('{').and_then(|(before, rest)| {
        rest.split_once('}').map(|(inside, after)| (before, inside, after))
    });
    let Some((before, inside, after)) = parts else { return vec![span.to_owned()] };
    inside.split(',').map(|name| format!("{before}{name}{after}")).collect()
}

/// Whether the modules are in a path in this order.
fn is_within(path: &str, modules: &[&str]) -> bool {
    let path = path.strip_suffix(".rs").unwrap_or(path);
    let mut parts = path.split('/');
    modules.iter().all(|module| parts.any(|part| part == *module))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TESTS: &str = "#[test]\nfn a_reset_ends_the_exchange() {\n    // fn a_comment_is_no_test_at_all()\n}\n\
        struct Limits { incoming_per_source: u32 }\n";

    fn file(path: &str, text: &str) -> TextFile {
        TextFile { path: path.to_owned(), text: text.to_owned() }
    }

    fn found(path: &str, text: &str) -> Vec<String> {
        let rust =
            [file("crates/coap/src/exchange/tests.rs", TESTS), file("crates/coap/src/lib.rs", "")];
        let tree = Tree::new(&rust);
        let exists = |path: &str| ["scenarios/grid-25.toml", "docs/a.md"].contains(&path);
        let breaches = breaches(&file(path, text), &tree, exists);
        let lost = |breach: &Breach| {
            let (lost, _) = breach.message.split_once(" does not exist").expect("the message");
            format!("{} {lost}", breach.place)
        };
        breaches.iter().map(lost).collect()
    }

    #[test]
    fn what_exists_passes() {
        let row = "| done: `a_reset_ends_the_exchange`, `exchange::tests::a_reset_ends_the_exchange`, \
            tests.rs `incoming_per_source`, `lowmesh_coap::exchange`, `exchange::Limits` | x:`coap/src`";
        assert_eq!(found("docs/conformance/a.md", row), [""; 0]);
        let page = "`crates/coap/src/{exchange/tests,lib}.rs` `exchange/tests.rs` `scenarios/grid-25.toml` \
            `a/b` `no_such_test_is_there_at_all`\n```sh\n`crates/none.rs`\n```\n";
        assert_eq!(found("docs/topics/a.md", page), [""; 0]);
    }

    #[test]
    fn tests_and_items_that_are_gone_are_named() {
        let page = "`a_reset_ends_the_request_of_it`\n`a_comment_is_no_test_at_all`\n\
            `host::a_reset_ends_the_exchange` `exchange::Bounds` `outgoing_per_source`\n";
        let expected = [
            "docs/conformance/a.md:1 `a_reset_ends_the_request_of_it`",
            "docs/conformance/a.md:2 `a_comment_is_no_test_at_all`",
            "docs/conformance/a.md:3 `host::a_reset_ends_the_exchange`",
            "docs/conformance/a.md:3 `exchange::Bounds`",
            "docs/conformance/a.md:3 `outgoing_per_source`",
        ];
        assert_eq!(found("docs/conformance/a.md", page), expected);
    }

    #[test]
    fn files_that_are_gone_are_named() {
        let page =
            "`crates/coap/src/{lib,gone}.rs`, `docs/gone.md` and `exchange/gone.rs`; gone.rs";
        let expected = [
            "README.md:1 `crates/coap/src/gone.rs`",
            "README.md:1 `docs/gone.md`",
            "README.md:1 `exchange/gone.rs`",
        ];
        assert_eq!(found("README.md", page), expected);
        let row = "done: gone.rs `a_reset_ends_the_exchange` in `coap/gone`";
        let expected = ["docs/conformance/a.md:1 `coap/gone`", "docs/conformance/a.md:1 gone.rs"];
        assert_eq!(found("docs/conformance/a.md", row), expected);
    }

    #[test]
    fn a_command_that_does_not_exist_is_named() {
        let (before, known) = ("cargo xtask", BTreeSet::from(["no-std", "test"]));
        let text =
            format!("`{before} no-std`, `{before} test --x`\n{before} COMMAND or {before} tests.");
        let breaches = commands(&file("a.rs", &text), &known);
        assert_eq!(breaches.len(), 1);
        assert_eq!(breaches[0].place, "a.rs:2");
        assert!(breaches[0].message.contains("xtask tests`"), "{breaches:?}");
        assert!(crate::commands().is_superset(&known));
    }
}
