//! What commands print, compared with what a page says that they print.

use similar::{Algorithm, DiffTag, capture_diff_slices};

/// A line that is any number of lines.
pub const ANY_LINES: &str = "...";
/// Digits of the id of a build or of a commit.
const ID_DIGITS: usize = 12;
/// Hexadecimal words of this length vary in a loose output even if they have no decimal digit.
const HEX_DIGITS_MIN: usize = 8;

/// Whether an output is the expected one; `loose` lets numbers differ.
pub fn agree(expected: &[String], actual: &[String], loose: bool) -> bool {
    let same = |expected: &[String], actual: &[String]| {
        let pairs = expected.iter().zip(actual);
        expected.len() == actual.len()
            && pairs.into_iter().all(|(a, b)| masked(a, loose) == masked(b, loose))
    };
    let Some(at) = expected.iter().position(|line| line.trim() == ANY_LINES) else {
        return same(expected, actual);
    };
    let (head, tail) = (&expected[..at], &expected[at + 1..]);
    actual.len() >= head.len() + tail.len()
        && same(head, &actual[..head.len()])
        && same(tail, &actual[actual.len() - tail.len()..])
}

/// The output as a page shows it: as many lines around [`ANY_LINES`] as before.
pub fn refreshed(expected: &[String], actual: &[String]) -> Vec<String> {
    let at = expected.iter().position(|line| line.trim() == ANY_LINES);
    let Some(at) = at.filter(|_| actual.len() >= expected.len()) else { return actual.to_vec() };
    let tail = actual.len() - (expected.len() - at - 1);
    [&actual[..at], &[ANY_LINES.to_owned()], &actual[tail..]].concat()
}

/// Whether a line says how far a sweep is, such as "5/60 runs, 11 %, about 72 s left". A terminal erases it.
pub fn is_progress(line: &str) -> bool {
    let is_count = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_digit());
    let counts = line.split_once(" runs, ").and_then(|(counts, _)| counts.split_once('/'));
    counts.is_some_and(|(done, all)| is_count(done) && is_count(all))
}

/// The lines of both, with `-` before a line that only the page has, and `+` before one that only the output has.
pub fn difference(expected: &[String], actual: &[String], loose: bool) -> String {
    let actual = refreshed(expected, actual);
    let masks = |lines: &[String]| lines.iter().map(|line| masked(line, loose)).collect::<Vec<_>>();
    let mut shown = Vec::new();
    for operation in capture_diff_slices(Algorithm::Myers, &masks(expected), &masks(&actual)) {
        let (tag, old, new) = operation.as_tag_tuple();
        if tag == DiffTag::Equal {
            shown.extend(actual[new].iter().map(|line| format!("  {line}")));
            continue;
        }
        shown.extend(expected[old].iter().map(|line| format!("- {line}")));
        shown.extend(actual[new].iter().map(|line| format!("+ {line}")));
    }
    shown.join("\n")
}

/// A line with `#` in place of each word that may differ.
pub fn masked(line: &str, loose: bool) -> String {
    let mut out = String::with_capacity(line.len());
    let mut rest = line.trim_end();
    while !rest.is_empty() {
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '.';
        let length = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
        let (word, tail) = rest.split_at(length);
        out.push_str(if varies(word, loose) { "#" } else { word });
        let gap = tail.find(is_word).unwrap_or(tail.len());
        let (between, tail) = tail.split_at(gap);
        // The columns of a table move with its numbers.
        out.push_str(if loose && between.trim().is_empty() && gap > 0 { " " } else { between });
        rest = tail;
    }
    out
}

/// Whether a word may differ.
fn varies(word: &str, loose: bool) -> bool {
    let hexadecimal = word.chars().all(|c| c.is_ascii_hexdigit());
    let has_digit = word.contains(|c: char| c.is_ascii_digit());
    if hexadecimal && word.len() == ID_DIGITS {
        return true;
    }
    let number = word.chars().all(|c| c.is_ascii_hexdigit() || c == '.') && has_digit;
    loose && (number || (hexadecimal && word.len() >= HEX_DIGITS_MIN))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<String> {
        text.lines().map(str::to_owned).collect()
    }

    #[test]
    fn numbers_differ_only_in_loose_outputs() {
        let (old, new) =
            (lines("<- ACK mid 547 token 44f0\nhello"), lines("<- ACK mid 9 token ab2\nhello"));
        assert!(agree(&old, &new, true) && !agree(&old, &new, false));
        assert!(!agree(&lines("2 pings, 0 lost"), &lines("2 pings, none lost"), true));
        assert!(agree(&lines(" state  9:05:01"), &lines(" state 15:57:27"), true));
    }

    #[test]
    fn ids_of_builds_always_differ() {
        let line = |build: &str| lines(&format!("lowmesh 0.1.0, build {build} (commit {build})"));
        assert!(agree(&line("cf387a1cb6bb"), &line("0123456789ab"), false));
        assert!(!agree(&line("cf387a1cb6bb"), &line("none"), false));
        assert!(!agree(&lines("tdr 0.998"), &lines("tdr 0.999"), false));
    }

    #[test]
    fn dots_are_any_number_of_lines() {
        let expected = lines("a\n...\nz");
        for actual in ["a\nz", "a\nb\nz", "a\nb\nc\nz"] {
            assert!(agree(&expected, &lines(actual), false), "{actual}");
        }
        for actual in ["a", "z", "a\nb", "b\nz", "a\nz\nb", ""] {
            assert!(!agree(&expected, &lines(actual), false), "{actual}");
        }
    }

    #[test]
    fn a_refreshed_output_keeps_its_dots() {
        let new = refreshed(&lines("a\n...\ny\nz"), &lines("1\n2\n3\n4\n5"));
        assert_eq!(new, lines("1\n...\n4\n5"));
        assert_eq!(refreshed(&lines("a\nb"), &lines("c")), lines("c"));
        assert_eq!(refreshed(&lines("a\n...\nb"), &lines("c")), lines("c"));
    }

    #[test]
    fn lines_of_progress_are_no_output() {
        assert!(is_progress("5/60 runs, 11 %, about 72 s left"));
        assert!(!is_progress("load: 12 points, 60 runs; means") && !is_progress("12/x runs, 1"));
    }

    #[test]
    fn a_difference_shows_the_lines_that_differ() {
        let shown = difference(&lines("a\n...\nz"), &lines("a\nx\ny"), false);
        assert_eq!(shown, "  a\n  ...\n- z\n+ y");
    }
}
