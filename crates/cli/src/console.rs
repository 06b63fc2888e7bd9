//! Messages on stderr with their colours, the width of stdout, and whether anybody still reads it.
//!
//! A pipe without a reader, as after `| head -1`, is no error of ours: messages on stderr are lost, and no task ends. A
//! verb that only shows things ends as soon as the reader of stdout goes away, not with its next line.

use std::fmt;
use std::future::pending;
use std::io::{self, Write as _};
use std::os::fd::AsFd as _;

use anstream::{AutoStream, ColorChoice};
use clap::builder::styling::AnsiColor;
use nix::sys::stat::{SFlag, fstat};
use terminal_size::terminal_size_of;
use tokio::io::Interest;
use tokio::net::unix::pipe::Sender;

/// Writes one line to stderr, as `eprintln!` does, and never panics.
macro_rules! say {
    ($($words:tt)*) => { $crate::console::write(format_args!($($words)*)) };
}
pub(crate) use say;

/// Columns of a file or a pipe, so that they have the same tables as the narrowest terminal in use.
const WIDTH: usize = 80;
/// The narrowest width that tables are laid out for.
const WIDTH_MIN: usize = 40;

/// The columns of stdout: those of `COLUMNS`, else of the terminal, else 80.
pub fn width() -> usize {
    let told = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    let terminal = || terminal_size_of(io::stdout()).map(|(width, _)| usize::from(width.0));
    told.or_else(terminal).unwrap_or(WIDTH).max(WIDTH_MIN)
}

/// `text` in lines of at most `width` columns; lines after the first have `indent` before them.
pub fn wrapped(text: &str, width: usize, indent: &str) -> String {
    let body = text.trim_start_matches(' ');
    let (mut lines, mut line) = (String::new(), " ".repeat(text.len() - body.len()));
    for (index, word) in body.split(' ').enumerate() {
        let is_full = line.chars().count() + 1 + word.chars().count() > width;
        if is_full && line.trim() != "" {
            lines.extend([line.as_str(), "\n"]);
            indent.clone_into(&mut line);
        } else if index > 0 {
            line.push(' ');
        }
        line.push_str(word);
    }
    lines + &line
}

/// The marks before a message, with their colours.
const MARKS: [(&str, AnsiColor); 3] =
    [("error:", AnsiColor::Red), ("warning:", AnsiColor::Yellow), ("hint:", AnsiColor::Cyan)];

/// A line with its mark, or the carets below an excerpt, in colour.
fn painted(line: &str) -> String {
    let paint = |color: AnsiColor, text: &str| {
        let style = color.on_default().bold();
        format!("{style}{text}{style:#}")
    };
    let caret = line.find('^').filter(|_| line.trim_start().starts_with('|'));
    if let Some(at) = caret {
        let (margin, carets) = line.split_at(at);
        return format!("{margin}{}", paint(AnsiColor::Red, carets));
    }
    let marked =
        MARKS.iter().find_map(|(mark, color)| Some((line.strip_prefix(mark)?, mark, color)));
    marked.map_or_else(|| line.to_owned(), |(rest, mark, color)| paint(*color, mark) + rest)
}

/// Whether stderr takes colours: on a terminal, unless `NO_COLOR`, `CLICOLOR` or `CLICOLOR_FORCE` say otherwise.
fn is_colourful() -> bool {
    AutoStream::choice(&io::stderr()) != ColorChoice::Never
}

/// Writes one line to stderr in one piece, if anybody reads it.
pub fn write(line: fmt::Arguments<'_>) {
    let line = line.to_string();
    let line = if is_colourful() { painted(&line) } else { line } + "\n";
    if cfg!(test) {
        // The test harness captures what `eprint!` writes.
        return eprint!("{line}");
    }
    let _unread = io::stderr().write_all(line.as_bytes());
}

/// Waits until nobody reads stdout any more; only a pipe reports that.
pub async fn reader_gone() {
    // If stdout cannot be watched, the next write fails instead.
    let Some(stdout) = watched() else { return pending().await };
    if stdout.ready(Interest::ERROR).await.is_err() {
        pending::<()>().await;
    }
}

/// Stdout, if it is a pipe. It is only watched; [`io::stdout`] writes to it.
fn watched() -> Option<Sender> {
    let about = fstat(io::stdout()).ok()?;
    let is_pipe = SFlag::from_bits_truncate(about.st_mode) & SFlag::S_IFMT == SFlag::S_IFIFO;
    let stdout = is_pipe.then(|| io::stdout().as_fd().try_clone_to_owned().ok()).flatten()?;
    Sender::from_owned_fd_unchecked(stdout).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_and_a_caret_are_painted_and_nothing_else() {
        assert_eq!(painted("error: bad"), "\u{1b}[1m\u{1b}[31merror:\u{1b}[0m bad");
        assert_eq!(painted("  3 | error: x"), "  3 | error: x");
        assert_eq!(painted("    |   ^^"), "    |   \u{1b}[1m\u{1b}[31m^^\u{1b}[0m");
        assert_eq!(painted("2^16 | 3"), "2^16 | 3");
    }

    #[test]
    fn a_text_is_cut_at_blanks_and_continues_below_its_beginning() {
        assert_eq!(wrapped("drops: aa bb cc", 10, "  "), "drops: aa\n  bb cc");
        assert_eq!(wrapped("  a  b cccccc", 10, "    "), "  a  b\n    cccccc");
        assert_eq!(wrapped("averyverylongword x", 10, " "), "averyverylongword\n x");
    }
}
