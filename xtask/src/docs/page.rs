//! A page of the manual as a script: files to write, commands to run, and what these must print.

use std::ops::Range;

use anyhow::{Context, Result, bail, ensure};

use super::output::ANY_LINES;

/// One page.
#[derive(Debug)]
pub struct Page {
    /// Path from the root of the project.
    pub path: String,
    /// What happens, in the order of the page.
    pub steps: Vec<Step>,
    text: String,
}

/// One code block that means something.
#[derive(Debug, PartialEq, Eq)]
pub enum Step {
    /// A file that the reader saves.
    File {
        /// Its name.
        name: String,
        /// Its content.
        text: String,
    },
    /// Commands that the reader types.
    Run(Commands),
    /// Commands that do not run here.
    Skipped {
        /// Line of the page, from 1.
        line: usize,
        /// Why they do not run.
        reason: String,
    },
}

/// A block of commands.
#[derive(Debug, PartialEq, Eq)]
pub struct Commands {
    /// Line of the first command, from 1.
    pub line: usize,
    /// The commands.
    pub script: String,
    /// Whether the page continues while they run.
    pub background: bool,
    /// Whether they run in the root of the project, not in the reader's folder.
    pub project: bool,
    /// Exit code of the last one.
    pub exit: i32,
    /// What they print.
    pub expected: Option<Expected>,
}

/// An output as the page shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expected {
    /// Its lines.
    pub text: Vec<String>,
    /// Whether numbers may differ.
    pub loose: bool,
    /// Its lines in the page, from 0.
    lines: Range<usize>,
    /// Spaces before each line.
    indent: usize,
}

/// A code block of any language.
struct Block {
    language: String,
    words: String,
    text: Vec<String>,
    lines: Range<usize>,
    indent: usize,
}

impl Block {
    /// The lines as one text.
    fn text(&self) -> String {
        self.text.iter().flat_map(|line| [line.as_str(), "\n"]).collect()
    }
}

impl Page {
    /// Reads a page.
    pub fn parse(path: String, text: &str) -> Result<Self> {
        let mut steps = Vec::new();
        // Whether the last block of commands still waits for its output.
        let mut open = false;
        for block in blocks(text).with_context(|| path.clone())? {
            let place = format!("{path}:{}", block.lines.start);
            match block.language.as_str() {
                "sh" => {
                    steps.push(commands(&block).with_context(|| place)?);
                    open = true;
                }
                "text" if block.words.starts_with("norun:") => {}
                "text" => {
                    ensure!(
                        open,
                        "{place}: this output follows no commands; else say `text norun: REASON`"
                    );
                    open = false;
                    let expected = expected(block).with_context(|| place)?;
                    if let Some(Step::Run(commands)) = steps.last_mut() {
                        commands.expected = Some(expected);
                    }
                }
                _ => {
                    open = false;
                    if let Some(name) = block.words.strip_prefix("file=") {
                        let plain = !name.is_empty() && !name.contains(['/', '\\', ' ']);
                        ensure!(
                            plain,
                            "{place}: file={name:?} is not the name of a file in the page's folder"
                        );
                        let text = block.text();
                        steps.push(Step::File { name: name.to_owned(), text });
                    }
                }
            }
        }
        let page = Self { path, steps, text: text.to_owned() };
        page.require_signs()?;
        Ok(page)
    }

    /// Without its output nobody can say when a server is ready.
    fn require_signs(&self) -> Result<()> {
        for step in &self.steps {
            if let Step::Run(commands) = step {
                ensure!(
                    !commands.background || commands.expected.is_some(),
                    "{}:{}: a background block needs the output that says it is ready, as `text` behind it",
                    self.path,
                    commands.line
                );
            }
        }
        Ok(())
    }

    /// Whether a command of the page has this name.
    pub fn names(&self, program: &str) -> bool {
        let names = |script: &str| {
            let words =
                script.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-' || c == '_'));
            words.into_iter().any(|word| word == program)
        };
        self.steps.iter().any(|step| matches!(step, Step::Run(commands) if names(&commands.script)))
    }

    /// The page with other outputs, given in its order.
    pub fn with_outputs(&self, outputs: &[(Expected, Vec<String>)]) -> String {
        let mut lines: Vec<String> = self.text.lines().map(str::to_owned).collect();
        for (old, new) in outputs.iter().rev() {
            let indent = " ".repeat(old.indent);
            let indented = new.iter().map(|line| format!("{indent}{line}").trim_end().to_owned());
            lines.splice(old.lines.clone(), indented);
        }
        lines.join("\n") + "\n"
    }
}

/// All code blocks of a text.
fn blocks(text: &str) -> Result<Vec<Block>> {
    let mut blocks = Vec::new();
    let mut open: Option<Block> = None;
    for (at, line) in text.lines().enumerate() {
        let fence = line.trim_start().strip_prefix("```");
        match (&mut open, fence) {
            (None, Some(info)) => {
                let (language, words) = info.trim().split_once(' ').unwrap_or((info.trim(), ""));
                open = Some(Block {
                    language: language.to_owned(),
                    words: words.trim().to_owned(),
                    text: Vec::new(),
                    lines: at + 1..at + 1,
                    indent: line.len() - line.trim_start().len(),
                });
            }
            (Some(block), Some("")) => {
                block.lines.end = at;
                blocks.extend(open.take());
            }
            (Some(block), _) => {
                let spaces = line.len() - line.trim_start().len();
                block.text.push(line[spaces.min(block.indent)..].to_owned());
            }
            (None, None) => {}
        }
    }
    ensure!(open.is_none(), "the last code block does not end");
    Ok(blocks)
}

/// The step of a block of commands.
fn commands(block: &Block) -> Result<Step> {
    let line = block.lines.start + 1;
    if let Some(reason) = block.words.strip_prefix("norun:") {
        let reason = reason.trim().to_owned();
        ensure!(!reason.is_empty(), "norun: needs a reason");
        return Ok(Step::Skipped { line, reason });
    }
    let mut script = block.text();
    let (mut background, mut project, mut exit) = (false, false, 0);
    if let Some(server) = script.trim_end().strip_suffix('&') {
        background = true;
        script = format!("{}\n", server.trim_end());
    }
    for word in block.words.split_whitespace() {
        match word.split_once('=') {
            None if word == "background" => background = true,
            None if word == "project" => project = true,
            Some(("exit", code)) => {
                exit = code.parse().with_context(|| format!("{word:?} has no exit code"))?;
            }
            _ => bail!("{word:?} after `sh`; allowed: exit=N, background, project, norun: REASON"),
        }
    }
    Ok(Step::Run(Commands { line, script, background, project, exit, expected: None }))
}

/// The output that a block shows.
fn expected(block: Block) -> Result<Expected> {
    let Block { words, mut text, lines, indent, .. } = block;
    let loose = match words.as_str() {
        "" => false,
        "loose" => true,
        other => bail!("{other:?} after `text`; allowed: loose, norun: REASON"),
    };
    while text.last().is_some_and(|line| line.trim().is_empty()) {
        text.pop();
    }
    let dots = text.iter().filter(|line| line.trim() == ANY_LINES).count();
    ensure!(dots <= 1, "an output has one line `...` at most");
    Ok(Expected { text, loose, lines, indent })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        format!("{:#}", Page::parse("p.md".to_owned(), text).expect_err("refused"))
    }

    #[test]
    fn blocks_become_steps() {
        let text = "1. Item:\n\n   ```sh background\n   serve\n   ```\n\n   ```text loose\n   ready 1\n   ```\n\
                    ```toml file=a.toml\nx = 1\n\n```\n```toml\nnot a file\n```\n```sh norun: no cluster\nsbatch\n```\n\
                    ```text\njob 1\n```\n```sh exit=4\nget\n```\n";
        let page = Page::parse("p.md".to_owned(), text).expect("a page");
        let [Step::Run(serve), file, skipped, Step::Run(get)] = &page.steps[..] else {
            panic!("{:?}", page.steps)
        };
        assert_eq!((serve.script.as_str(), serve.line, serve.background), ("serve\n", 4, true));
        let ready = serve.expected.as_ref().expect("it says when it is ready");
        assert_eq!((&ready.text[..], ready.loose), (&["ready 1".to_owned()][..], true));
        assert_eq!(*file, Step::File { name: "a.toml".to_owned(), text: "x = 1\n\n".to_owned() });
        assert_eq!(*skipped, Step::Skipped { line: 18, reason: "no cluster".to_owned() });
        assert_eq!((get.exit, &get.expected), (4, &None));
        assert!(page.names("serve") && !page.names("sbatch") && !page.names("serv"));
    }

    #[test]
    fn a_refreshed_output_keeps_its_indent() {
        let text = "- a\n  ```sh\n  x\n  ```\n  ```text\n  old\n  ```\nz\n";
        let page = Page::parse("p.md".to_owned(), text).expect("a page");
        let Some(Step::Run(commands)) = page.steps.first() else { panic!("{:?}", page.steps) };
        let old = commands.expected.clone().expect("an output");
        let new = vec!["one".to_owned(), String::new(), "two".to_owned()];
        assert_eq!(page.with_outputs(&[(old, new)]), text.replace("  old", "  one\n\n  two"));
    }

    #[test]
    fn a_page_that_could_pass_without_a_check_is_refused() {
        assert!(error("```text\nx\n```\n").contains("p.md:1: this output follows no commands"));
        assert!(error("```sh\nx\n```\n```text\na\n```\n```text\nb\n```\n").contains("p.md:7"));
        assert!(error("```sh background\nx\n```\n").contains("p.md:2: a background block needs"));
        assert!(error("```sh exit=no\nx\n```\n").contains("has no exit code"));
        assert!(error("```sh quick\nx\n```\n").contains("allowed: exit=N"));
        assert!(error("```sh norun:\nx\n```\n").contains("needs a reason"));
        assert!(error("```sh\nx\n```\n```text losse\nx\n```\n").contains("allowed: loose"));
        assert!(error("```sh\nx\n```\n```text\n...\na\n...\n```\n").contains("one line `...`"));
        assert!(error("```csv file=../a\nx\n```\n").contains("in the page's folder"));
        assert!(error("```sh\nx\n").contains("does not end"));
    }
}
