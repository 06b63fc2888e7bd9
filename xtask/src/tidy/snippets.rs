//! Programs that README shows are those of `examples/`, which the gate builds and runs.

use super::{Breach, TextFile};

/// The page whose programs are examples.
const PAGE: &str = "README.md";

/// Blocks of Rust and of manifests on the page that no example contains.
pub fn breaches(page: &TextFile, examples: &[TextFile]) -> Vec<Breach> {
    if page.path != PAGE {
        return Vec::new();
    }
    let mut breaches = Vec::new();
    for (line, language, block) in blocks(&page.text) {
        let ending = match language {
            "rust" => ".rs",
            "toml" if block.contains("[dependencies]") => "Cargo.toml",
            _ => continue,
        };
        let shows = |file: &&TextFile| file.path.ends_with(ending) && file.text.contains(block);
        if !examples.iter().any(|file| shows(&file)) {
            let place = format!("{PAGE}:{line}");
            breaches.push(Breach::error(place, "no program in examples/ contains this block"));
        }
    }
    breaches
}

/// The code blocks of a page: line, language and text.
fn blocks(text: &str) -> Vec<(usize, &str, &str)> {
    let (mut blocks, mut at, mut line) = (Vec::new(), 0, 1);
    while let Some(start) = text[at..].find("```") {
        let open = at + start;
        line += text[at..open].matches('\n').count();
        let Some(length) = text[open..].find('\n') else { break };
        let body = open + length + 1;
        let Some(end) = text[body..].find("```") else { break };
        let language = text[open + 3..body - 1].split(' ').next().unwrap_or_default();
        blocks.push((line, language, &text[body..body + end]));
        line += text[open..body + end].matches('\n').count();
        at = body + end + 3;
    }
    blocks
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> TextFile {
        TextFile { path: path.to_owned(), text: text.to_owned() }
    }

    #[test]
    fn a_program_that_no_example_has_is_a_breach() {
        let examples = [
            file("examples/a/src/main.rs", "//! A.\n\nfn main() {}\n"),
            file("examples/a/Cargo.toml", "[workspace]\n\n[dependencies]\na = \"1\"\n"),
        ];
        let good = "```rust\nfn main() {}\n```\n\n```toml\n[dependencies]\na = \"1\"\n```\n```sh\nx\n```\n";
        assert_eq!(breaches(&file("README.md", good), &examples), []);
        let other = "text\n```rust\nfn main() { }\n```\n";
        let found = breaches(&file("README.md", other), &examples);
        assert_eq!(found.iter().map(|one| one.place.as_str()).collect::<Vec<_>>(), ["README.md:2"]);
        assert_eq!(breaches(&file("docs/a.md", other), &examples), []);
    }
}
