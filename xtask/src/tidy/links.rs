//! Links between pages: each relative link leads to a file, each anchor to a heading, and every page below `docs/` is
//! in `docs/SUMMARY.md` exactly once.

use std::collections::{BTreeMap, BTreeSet};

use super::{Breach, TextFile};

const SUMMARY: &str = "docs/SUMMARY.md";

/// Breaches of all pages together; `exists` says whether a path from the root of the workspace is there.
pub fn breaches(pages: &[TextFile], exists: impl Fn(&str) -> bool) -> Vec<Breach> {
    let headings: BTreeMap<&str, BTreeSet<String>> =
        pages.iter().map(|page| (page.path.as_str(), anchors(&page.text))).collect();
    let mut found = Vec::new();
    for page in pages {
        for (line, target) in links(&page.text) {
            if let Some(message) = broken(&page.path, &target, &headings, &exists) {
                found.push(Breach::error(format!("{}:{line}", page.path), message));
            }
        }
    }
    found.extend(unlisted(pages));
    found
}

/// What is wrong with a link, if anything.
fn broken(
    from: &str,
    target: &str,
    headings: &BTreeMap<&str, BTreeSet<String>>,
    exists: &impl Fn(&str) -> bool,
) -> Option<String> {
    if target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
    let path = if path.is_empty() { from.to_owned() } else { resolved(from, path) };
    if !exists(&path) {
        return Some(format!("the link {target:?} leads to {path}, which does not exist"));
    }
    let known = headings.get(path.as_str())?;
    let lost = !anchor.is_empty() && !known.contains(anchor);
    lost.then(|| format!("the link {target:?} names no heading of {path}"))
}

/// Pages that the table of contents lacks or has twice.
fn unlisted(pages: &[TextFile]) -> Vec<Breach> {
    let Some(summary) = pages.iter().find(|page| page.path == SUMMARY) else {
        return vec![Breach::error(SUMMARY, "does not exist; it lists every page of the manual")];
    };
    let mut listed: BTreeMap<String, usize> = BTreeMap::new();
    for (_, target) in links(&summary.text) {
        *listed.entry(resolved(SUMMARY, &target)).or_default() += 1;
    }
    let manual = pages.iter().filter(|page| page.path.starts_with("docs/") && page.path != SUMMARY);
    manual
        .filter_map(|page| {
            let message = match listed.get(&page.path).copied().unwrap_or(0) {
                0 => "is not in docs/SUMMARY.md: add a line for it",
                1 => return None,
                _ => "is in docs/SUMMARY.md more than once",
            };
            Some(Breach::error(&page.path, message))
        })
        .collect()
}

/// The targets of links outside of code, each with its line from 1.
fn links(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut code = false;
    for (at, line) in text.lines().enumerate() {
        let fence = line.trim_start().starts_with("```");
        code ^= fence;
        if code || fence {
            continue;
        }
        // Every second part is a code span.
        for part in line.split('`').step_by(2) {
            let targets = part.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
            found.extend(targets.map(|(target, _)| (at + 1, target.to_owned())));
        }
        // A link whose text is a code span begins in one part and ends in another.
        for rest in line.split("`](").skip(1) {
            if let Some((target, _)) = rest.split_once(')') {
                let link = (at + 1, target.to_owned());
                if !found.contains(&link) {
                    found.push(link);
                }
            }
        }
    }
    found
}

/// The anchors of the headings of a page, as the usual renderers make them.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut code = false;
    for line in text.lines() {
        code ^= line.trim_start().starts_with("```");
        let title = line.trim_start_matches('#');
        if code || title == line || !title.starts_with(' ') {
            continue;
        }
        let anchor = slug(title.trim());
        let mut repeated = (1..).map(|n| format!("{anchor}-{n}"));
        let free = if found.contains(&anchor) {
            repeated.find(|name| !found.contains(name)).expect("the numbers do not end")
        } else {
            anchor
        };
        found.insert(free);
    }
    found
}

fn slug(title: &str) -> String {
    let kept = title.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.flat_map(char::to_lowercase).map(|c| if c == ' ' { '-' } else { c }).collect()
}

/// A relative path from the folder of a page, as a path from the root of the workspace.
fn resolved(from: &str, path: &str) -> String {
    let path = path.split('#').next().unwrap_or_default();
    let folder = from.rsplit_once('/').map_or("", |(folder, _)| folder);
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => _ = parts.pop(),
            name => parts.push(name),
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(path: &str, text: &str) -> TextFile {
        TextFile { path: path.to_owned(), text: text.to_owned() }
    }

    fn found(pages: &[TextFile]) -> Vec<String> {
        let all = |path: &str| path == "src/a.rs" || pages.iter().any(|page| page.path == path);
        breaches(pages, all).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn links_and_anchors_that_exist_pass() {
        let pages = [
            page(SUMMARY, "- [A](a/a.md)\n- [B](b.md)\n"),
            page(
                "docs/a/a.md",
                "# A `x`\n[b](../b.md#two-words) [self](#a-x) [`a.rs`](../../src/a.rs)",
            ),
            page(
                "docs/b.md",
                "# Two words\n[web](https://a.example/b) `[no](link.md)`\n```\n[no](l.md)\n```",
            ),
        ];
        assert_eq!(found(&pages), [""; 0]);
    }

    #[test]
    fn a_missing_file_and_a_missing_heading_are_named() {
        let pages = [
            page(SUMMARY, "- [A](a.md)\n"),
            page("docs/a.md", "# A\n\n[b](b.md)\n[`c`](c.md#d)\n[e](#f)\n"),
        ];
        assert_eq!(
            found(&pages),
            [
                "error: docs/a.md:3: the link \"b.md\" leads to docs/b.md, which does not exist",
                "error: docs/a.md:4: the link \"c.md#d\" leads to docs/c.md, which does not exist",
                "error: docs/a.md:5: the link \"#f\" names no heading of docs/a.md",
            ]
        );
    }

    #[test]
    fn every_page_is_in_the_summary_once() {
        let twice = page(SUMMARY, "- [A](a.md)\n- [A again](a.md)\n");
        let pages = [twice, page("docs/a.md", ""), page("docs/b.md", ""), page("README.md", "")];
        assert_eq!(
            found(&pages),
            [
                "error: docs/a.md: is in docs/SUMMARY.md more than once",
                "error: docs/b.md: is not in docs/SUMMARY.md: add a line for it",
            ]
        );
        assert_eq!(found(&[page("docs/a.md", "")]).len(), 1);
    }

    #[test]
    fn repeated_headings_have_numbered_anchors() {
        let anchors = anchors("# A\n## `[[b.c]]`\n## A\n```sh\n# no heading\n```\n");
        assert_eq!(anchors.into_iter().collect::<Vec<_>>(), ["a", "a-1", "bc"]);
    }
}
