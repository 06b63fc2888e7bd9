//! No circle between the files of one type: if a method in `a.rs` calls `self.b()`, and `b` stands in an `impl` block in
//! `b.rs`, then no method in `b.rs` leads back to `a.rs`. Such a type is one object cut into files; parts with their own
//! state can be read one at a time.
//!
//! `owners.txt` lists the types that still have such a circle, each with the reason. The list only shrinks: a listed type
//! without a circle is a breach too.

use std::collections::{BTreeMap, BTreeSet};

use super::circles::{self, Modules, Path};
use super::{Breach, TextFile, source};

/// The types that may have a circle: crate, module of the type, name, reason.
const LIST: &str = include_str!("owners.txt");

/// The type that an `impl` block belongs to: the module where it stands, and its name.
type Owner = (Path, String);

/// The `impl` blocks of one type, by the module that they stand in.
#[derive(Default)]
struct Blocks {
    /// The module of each method.
    methods: BTreeMap<String, Path>,
    /// The methods that each module calls on `self`.
    calls: BTreeMap<Path, BTreeSet<String>>,
}

/// Breaches of one package.
pub fn breaches(package: &str, files: &[TextFile]) -> Vec<Breach> {
    breaches_of(LIST, package, files)
}

/// Breaches of one package against a list.
fn breaches_of(list: &str, package: &str, files: &[TextFile]) -> Vec<Breach> {
    let modules = circles::modules(files);
    let mut listed: BTreeSet<String> = entries(list, package).collect();
    let mut found = Vec::new();
    for (owner, blocks) in owners(&modules, files) {
        let Some(circle) = circle(&blocks) else { continue };
        let mut name = owner.0;
        name.push(owner.1);
        let name = name.join("::");
        if !listed.remove(&name) {
            let names: Vec<String> = circle.iter().map(circles::shown).collect();
            let way = format!("{} -> {}", names.join(" -> "), names[0]);
            let message = format!("files of `{name}` call each other through `self.`: {way}");
            found.push(Breach::error(modules[&circle[0]].file.clone(), message));
        }
    }
    let gone = listed.into_iter().map(|name| {
        let message = format!("{package} {name} has no circle any more: remove its line");
        Breach::error("xtask/src/tidy/owners.txt", message)
    });
    found.extend(gone);
    found
}

/// The types that a list names in a package.
fn entries<'a>(list: &'a str, package: &'a str) -> impl Iterator<Item = String> + 'a {
    let lines = list.lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(move |line| {
        let (entry, _reason) = line.split_once(" = ").expect("owners.txt has ` = ` in each line");
        let (crate_name, name) =
            entry.split_once(' ').expect("owners.txt has a crate and a type in each line");
        (crate_name == package).then(|| name.to_owned())
    })
}

/// All types of a package that have methods.
fn owners(modules: &Modules, files: &[TextFile]) -> BTreeMap<Owner, Blocks> {
    let mut found: BTreeMap<Owner, Blocks> = BTreeMap::new();
    let mut of_traits = Vec::new();
    for file in files {
        let Some(here) = circles::module_path(&file.path) else { continue };
        let code = source::split(&file.text).code;
        let code = source::without_tests(&code);
        for (header, body) in impl_blocks(code) {
            let (is_of_trait, name) = subject(header);
            let Some(owner) = owner(modules, &here, code, name) else { continue };
            let blocks = found.entry(owner.clone()).or_default();
            blocks.calls.entry(here.clone()).or_default().extend(calls(body));
            for method in methods(body) {
                if is_of_trait {
                    of_traits.push((owner.clone(), method, here.clone()));
                } else {
                    blocks.methods.insert(method, here.clone());
                }
            }
        }
    }
    // A call finds a method of the type itself before one of a trait.
    for (owner, method, here) in of_traits {
        found.entry(owner).or_default().methods.entry(method).or_insert(here);
    }
    found
}

/// The shortest circle of files.
fn circle(blocks: &Blocks) -> Option<Vec<Path>> {
    let edges: BTreeMap<&Path, BTreeSet<Path>> = blocks
        .calls
        .iter()
        .map(|(here, calls)| {
            let targets = calls.iter().filter_map(|call| blocks.methods.get(call));
            (here, targets.filter(|target| *target != here).cloned().collect())
        })
        .collect();
    let circles = blocks.calls.keys().filter_map(|start| circles::circle_through(start, &edges));
    circles.min_by_key(Vec::len)
}

/// The `impl` blocks of a file: what stands before the brace, and what is inside.
fn impl_blocks(code: &str) -> Vec<(&str, &str)> {
    let mut found = Vec::new();
    let mut at = 0;
    for line in code.split_inclusive('\n') {
        let start = at;
        at += line.len();
        let Some(rest) = line.trim_start().strip_prefix("impl") else { continue };
        if !rest.starts_with([' ', '<']) {
            continue;
        }
        let Some(open) = code[start..].find('{') else { continue };
        let (header, body) = (&code[start..start + open], &code[start + open + 1..]);
        found.push((header, &body[..circles::closing(body)]));
    }
    found
}

/// Whether a block belongs to a trait, and the name of its type: `impl<T: A> b::B for C<T>` is about `C`.
fn subject(header: &str) -> (bool, &str) {
    let header = header.trim_start().trim_start_matches("impl");
    let header = header.split(" where ").next().unwrap_or(header);
    let header = header.split("\nwhere").next().unwrap_or(header);
    let rest = if header.starts_with('<') { &header[angle_end(header)..] } else { header };
    let (is_of_trait, name) = match rest.rsplit_once(" for ") {
        Some((_, name)) => (true, name),
        None => (false, rest),
    };
    (is_of_trait, name.split('<').next().unwrap_or(name).trim())
}

/// Where the angle bracket closes that `text` begins with.
fn angle_end(text: &str) -> usize {
    let mut depth = 0;
    let mut before = ' ';
    for (at, c) in text.char_indices() {
        match c {
            '<' => depth += 1,
            '>' if before != '-' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at + 1;
        }
        before = c;
    }
    text.len()
}

/// The type that a name means in a file; `None` for one of another crate.
fn owner(modules: &Modules, here: &Path, code: &str, name: &str) -> Option<Owner> {
    let last = name.rsplit("::").next().unwrap_or(name).to_owned();
    let defined = ["struct", "enum", "union"].iter().any(|kind| {
        let definition = format!("{kind} {last}");
        let mut places = code.match_indices(&definition).map(|(at, _)| at + definition.len());
        places.any(|end| !code[end..].starts_with(|c: char| c.is_alphanumeric() || c == '_'))
    });
    if defined {
        return Some((here.clone(), last));
    }
    let used = modules.get(here)?.uses.iter().find(|used| used.last() == Some(&last))?;
    Some((circles::resolve(modules, used, 0)?, last))
}

/// The names of the functions in a block.
fn methods(body: &str) -> impl Iterator<Item = String> + '_ {
    words_before(body, "fn ", &['(', '<'])
}

/// The methods that a block calls on `self`.
fn calls(body: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (at, _) in body.match_indices("self") {
        let before = body[..at].chars().next_back();
        if before.is_some_and(|c| c.is_alphanumeric() || c == '_') {
            continue;
        }
        let Some(rest) = body[at + 4..].trim_start().strip_prefix('.') else { continue };
        let rest = rest.trim_start();
        let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        if rest[end..].starts_with(['(', ':']) {
            found.push(rest[..end].to_owned());
        }
    }
    found
}

/// The names that follow `before` and end with one of `ends`.
fn words_before<'a>(
    text: &'a str,
    before: &'a str,
    ends: &'a [char],
) -> impl Iterator<Item = String> + 'a {
    text.match_indices(before).filter_map(move |(at, _)| {
        let rest = &text[at + before.len()..];
        let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_')?;
        (end > 0 && rest[end..].starts_with(ends)).then(|| rest[..end].to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWNER: (&str, &str) = (
        "owner/mod.rs",
        "mod a;\nmod b;\nstruct Owner;\nimpl Owner {\n  fn run(&mut self) { self.send(); }\n}",
    );
    const A: (&str, &str) = (
        "owner/a.rs",
        "use super::Owner;\nimpl Owner {\n  fn send(&self) { self.queue.push(1); self\n .close() }\n}",
    );

    fn found(list: &str, files: &[(&str, &str)]) -> Vec<String> {
        let files: Vec<_> = files
            .iter()
            .map(|(path, text)| TextFile {
                path: format!("crates/a/src/{path}"),
                text: (*text).to_owned(),
            })
            .collect();
        breaches_of(list, "a", &files).into_iter().map(|breach| breach.message).collect()
    }

    #[test]
    fn two_files_of_a_type_that_call_each_other_are_a_circle() {
        let b = "use super::Owner;\nimpl<T: Fn() -> u8> Close for Owner<T> {\n  fn close(&self) { self.send() }\n}";
        assert_eq!(
            found("", &[OWNER, A, ("owner/b.rs", b)]),
            [
                "files of `owner::Owner` call each other through `self.`: owner::a -> owner::b -> owner::a"
            ]
        );
    }

    #[test]
    fn calls_in_one_direction_and_calls_of_another_type_are_no_circle() {
        let b = "use super::Owner;\nimpl Owner {\n  fn close(&self) { self.outbox.send() }\n}";
        assert!(found("", &[OWNER, A, ("owner/b.rs", b)]).is_empty());
        let b = "struct Owner;\nimpl Owner {\n  fn close(&self) { self.send() }\n  fn send(&self) {}\n}";
        assert!(found("", &[OWNER, A, ("owner/b.rs", b)]).is_empty());
    }

    #[test]
    fn a_listed_type_passes_until_it_has_no_circle() {
        let b = "use super::Owner;\nimpl Owner {\n  fn close(&self) { self.send() }\n}";
        let list = "# list\na owner::Owner = reason\nother owner::Owner = reason";
        assert!(found(list, &[OWNER, A, ("owner/b.rs", b)]).is_empty());
        assert_eq!(
            found(list, &[OWNER, A]),
            ["a owner::Owner has no circle any more: remove its line"]
        );
    }
}
