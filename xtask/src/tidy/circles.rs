//! No circle of files inside a crate: if `a` names `b` in a `use`, then `b` does not lead back to `a`.
//!
//! A file's module is taken from its path. A `use` of a name that a module only hands on (`pub use
//! child::Name`) counts as a use of the file it comes from, so that a crate's front door is no circle; and
//! a module may name its own parts (a trait's file lists the implementations in its folder).
//! Test modules do not count: they may look at everything.

use std::collections::{BTreeMap, BTreeSet};

use super::source;
use super::{Breach, TextFile};

/// The names of a module, from the crate's root.
pub type Path = Vec<String>;

/// The modules of a crate.
pub type Modules = BTreeMap<Path, Module>;

/// One module of a crate.
pub struct Module {
    /// The file that it stands in.
    pub file: String,
    /// Names it hands on, with the full path they come from.
    hands_on: BTreeMap<String, Path>,
    /// Full paths it uses for itself.
    pub uses: Vec<Path>,
}

/// The modules of these files.
pub fn modules(files: &[TextFile]) -> Modules {
    let mut modules = Modules::new();
    for file in files {
        let Some(path) = module_path(&file.path) else { continue };
        let code = source::split(&file.text).code;
        modules.insert(path.clone(), module(&path, &file.path, source::without_tests(&code)));
    }
    modules
}

/// One breach for each circle's first file.
pub fn breaches(files: &[TextFile]) -> Vec<Breach> {
    let modules = modules(files);
    let edges: BTreeMap<&Path, BTreeSet<Path>> = modules
        .iter()
        .map(|(path, module)| {
            let targets = module.uses.iter().filter_map(|used| resolve(&modules, used, 0));
            (path, targets.filter(|target| !target.starts_with(path)).collect())
        })
        .collect();
    let mut breaches = Vec::new();
    let mut told = BTreeSet::new();
    for start in modules.keys() {
        let Some(circle) = circle_through(start, &edges) else { continue };
        let members: BTreeSet<_> = circle.iter().cloned().collect();
        if told.insert(members) {
            let names: Vec<_> = circle.iter().map(shown).collect();
            let message = format!("circle of files: {} -> {}", names.join(" -> "), names[0]);
            breaches.push(Breach::error(modules[start].file.clone(), message));
        }
    }
    breaches
}

/// A module as people read it.
pub fn shown(path: &Path) -> String {
    if path.is_empty() { "crate".to_owned() } else { path.join("::") }
}

/// `crates/mac/src/tsch/schedule.rs` is `tsch::schedule`; the crate's root is the empty path.
pub fn module_path(file: &str) -> Option<Path> {
    let inside = file.split_once("src/")?.1.strip_suffix(".rs")?;
    if source::is_test_file(file) || inside.starts_with("bin/") {
        return None;
    }
    let inside = inside.strip_suffix("/mod").unwrap_or(inside);
    let root = matches!(inside, "lib" | "main" | "mod");
    Some(if root { Path::new() } else { inside.split('/').map(str::to_owned).collect() })
}

fn module(path: &Path, file: &str, code: &str) -> Module {
    let mut module = Module { file: file.to_owned(), hands_on: BTreeMap::new(), uses: Vec::new() };
    for (public, tree) in statements(code) {
        for leaf in leaves(&tree) {
            let Some(full) = absolute(path, &leaf, code) else { continue };
            if public {
                let name = full.last().cloned().unwrap_or_default();
                module.hands_on.insert(name, full);
            } else {
                module.uses.push(full);
            }
        }
    }
    module
}

/// The `use` statements of a file: whether they hand on, and their tree without blanks.
fn statements(code: &str) -> Vec<(bool, String)> {
    let mut found = Vec::new();
    let mut rest = code;
    while let Some(at) = rest.find("use ") {
        let before = &rest[..at];
        let line = before.rsplit('\n').next().unwrap_or(before).trim();
        rest = &rest[at + 4..];
        let public = line == "pub" || line.starts_with("pub(");
        if !line.is_empty() && !public {
            continue;
        }
        let Some(end) = rest.find(';') else { break };
        found.push((public, rest[..end].split_whitespace().collect::<Vec<_>>().join(" ")));
        rest = &rest[end..];
    }
    found
}

/// `a::{b, c::{d, self}}` is `a::b`, `a::c::d` and `a::c`.
fn leaves(tree: &str) -> Vec<Path> {
    let Some(open) = tree.find('{') else {
        let plain = tree.split(" as ").next().unwrap_or(tree);
        let mut path: Path = plain.split("::").map(|name| name.trim().to_owned()).collect();
        if path.len() > 1 && path.last().is_some_and(|name| name == "self") {
            path.pop();
        }
        return vec![path];
    };
    let prefix = tree[..open].trim().trim_end_matches("::");
    let inner = &tree[open + 1..];
    let inner = &inner[..closing(inner)];
    let mut found = Vec::new();
    for part in parts(inner) {
        let joined = if prefix.is_empty() { part } else { format!("{prefix}::{part}") };
        found.extend(leaves(&joined));
    }
    found
}

/// Where the brace closes that was opened just before `text`.
pub fn closing(text: &str) -> usize {
    let mut depth = 1;
    for (at, c) in text.char_indices() {
        depth += match c {
            '{' => 1,
            '}' => -1,
            _ => 0,
        };
        if depth == 0 {
            return at;
        }
    }
    text.len()
}

/// Splits at the commas of the outer level.
fn parts(inner: &str) -> Vec<String> {
    let mut depth = 0;
    let mut found = vec![String::new()];
    for c in inner.chars() {
        depth += match c {
            '{' => 1,
            '}' => -1,
            _ => 0,
        };
        if c == ',' && depth == 0 {
            found.push(String::new());
        } else if let Some(last) = found.last_mut() {
            last.push(c);
        }
    }
    found.into_iter().map(|part| part.trim().to_owned()).filter(|part| !part.is_empty()).collect()
}

/// The path from the crate's root; `None` for another crate's.
fn absolute(here: &Path, leaf: &Path, code: &str) -> Option<Path> {
    let first = leaf.first()?.as_str();
    let child = format!("mod {first};");
    match first {
        "crate" => Some(leaf[1..].to_vec()),
        "self" => Some([here.as_slice(), &leaf[1..]].concat()),
        "super" => {
            let ups = leaf.iter().take_while(|name| *name == "super").count();
            let parent = here.get(..here.len().checked_sub(ups)?)?;
            Some([parent, &leaf[ups..]].concat())
        }
        _ if code.contains(&child) => Some([here.as_slice(), leaf].concat()),
        _ => None,
    }
}

/// The file in which the thing at `path` stands, looking through what modules hand on.
pub fn resolve(modules: &Modules, path: &Path, depth: usize) -> Option<Path> {
    let known = (0..=path.len()).rev().find(|&length| modules.contains_key(&path[..length]))?;
    let (owner, rest) = path.split_at(known);
    let owner = owner.to_vec();
    let handed = rest.first().and_then(|name| modules[&owner].hands_on.get(name));
    match handed {
        // Two modules that hand a name to each other would not compile; the bound is for text that does not.
        Some(origin) if depth < 8 && origin != path => {
            resolve(modules, &[origin.as_slice(), &rest[1..]].concat(), depth + 1)
        }
        _ => Some(owner),
    }
}

/// The shortest way from `start` back to itself.
pub fn circle_through(start: &Path, edges: &BTreeMap<&Path, BTreeSet<Path>>) -> Option<Vec<Path>> {
    let mut ways = vec![vec![start.clone()]];
    let mut seen = BTreeSet::new();
    while !ways.is_empty() {
        let mut longer = Vec::new();
        for way in ways {
            let Some(targets) = way.last().and_then(|last| edges.get(last)) else { continue };
            for target in targets {
                if target == start {
                    return Some(way);
                }
                if seen.insert(target.clone()) {
                    longer.push([way.as_slice(), std::slice::from_ref(target)].concat());
                }
            }
        }
        ways = longer;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn circles(files: &[(&str, &str)]) -> Vec<String> {
        let files: Vec<_> = files
            .iter()
            .map(|(path, text)| TextFile {
                path: format!("crates/a/src/{path}"),
                text: (*text).to_owned(),
            })
            .collect();
        breaches(&files).into_iter().map(|breach| breach.message).collect()
    }

    #[test]
    fn two_files_that_use_each_other_are_a_circle() {
        let found = circles(&[
            ("lib.rs", ""),
            ("a.rs", "use crate::b::B;"),
            ("b.rs", "use super::a::{A};"),
        ]);
        assert_eq!(found, ["circle of files: a -> b -> a"]);
    }

    #[test]
    fn a_front_door_that_hands_on_is_no_circle() {
        let door = "mod a; mod b;\npub use a::A;\npub use b::{B, C as D};";
        assert!(circles(&[("lib.rs", door), ("a.rs", "use crate::B;"), ("b.rs", "")]).is_empty());
    }

    #[test]
    fn a_circle_through_the_front_door_is_found() {
        let door = "mod a;\npub use a::A;\npub use b::B;\nmod b;";
        let found =
            circles(&[("lib.rs", door), ("a.rs", "use crate::B;"), ("b.rs", "use crate::{A};")]);
        assert_eq!(found, ["circle of files: a -> b -> a"]);
    }

    #[test]
    fn a_folder_may_name_its_own_part_but_two_parts_must_not_name_each_other() {
        let front = ("m/mod.rs", "mod c;\nmod d;\nuse c::C;\nstruct M;");
        assert!(circles(&[front, ("m/c.rs", "use super::M;")]).is_empty());
        let found =
            circles(&[front, ("m/c.rs", "use super::d::D;"), ("m/d.rs", "use super::c::C;")]);
        assert_eq!(found, ["circle of files: m::c -> m::d -> m::c"]);
    }

    #[test]
    fn a_use_in_a_test_module_does_not_count() {
        let b = "#[cfg(test)]\nmod tests {\nuse crate::a::A;\n}";
        assert!(circles(&[("a.rs", "use crate::b::B;"), ("b.rs", b)]).is_empty());
    }
}
