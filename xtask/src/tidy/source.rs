//! Rust text split into code and comments, line by line the same, so that a rule looks at what it means:
//! a brace inside a string is no brace, and a word inside a comment is no call.

/// The two halves of a file. Both have its length in characters' places per line; what belongs to the
/// other half, and the inside of strings, is blank.
pub struct Split {
    /// Code, with comments and the inside of strings and characters blank.
    pub code: String,
    /// Comments, with everything else blank.
    pub comments: String,
}

/// Where the reader is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Code,
    LineComment,
    /// Depth of nesting: block comments nest in Rust.
    BlockComment(u32),
    Text,
    /// Number of `#` that end it.
    RawText(usize),
}

/// Splits `text`.
pub fn split(text: &str) -> Split {
    let chars: Vec<char> = text.chars().collect();
    let mut split = Split { code: String::new(), comments: String::new() };
    let mut state = State::Code;
    let mut at = 0;
    while at < chars.len() {
        let (width, next) = step(state, &chars, at);
        for &c in &chars[at..(at + width).min(chars.len())] {
            let comment = is_comment(state) || is_comment(next);
            // The quotes themselves stay, so that a string still reads as one operand.
            let inside = matches!(state, State::Text | State::RawText(_)) && next == state;
            let inside = inside || (chars[at] == '\'' && width > 1);
            put(&mut split.code, c, !comment && !inside);
            put(&mut split.comments, c, comment);
        }
        at += width;
        state = next;
    }
    split
}

const fn is_comment(state: State) -> bool {
    matches!(state, State::LineComment | State::BlockComment(_))
}

fn put(half: &mut String, c: char, shown: bool) {
    half.push(if shown || c == '\n' { c } else { ' ' });
}

/// How many characters belong together at `at`, and the state after them.
fn step(state: State, chars: &[char], at: usize) -> (usize, State) {
    let two = (chars[at], chars.get(at + 1).copied().unwrap_or('\0'));
    match state {
        State::Code => code_step(two, chars, at),
        State::LineComment if two.0 == '\n' => (1, State::Code),
        State::BlockComment(depth) if two == ('/', '*') => (2, State::BlockComment(depth + 1)),
        State::BlockComment(1) if two == ('*', '/') => (2, State::Code),
        State::BlockComment(depth) if two == ('*', '/') => (2, State::BlockComment(depth - 1)),
        State::Text if two.0 == '\\' => (2, State::Text),
        State::Text if two.0 == '"' => (1, State::Code),
        State::RawText(hashes) if two.0 == '"' && hashes_at(chars, at + 1) >= hashes => {
            (1 + hashes, State::Code)
        }
        same => (1, same),
    }
}

fn code_step(two: (char, char), chars: &[char], at: usize) -> (usize, State) {
    let after_word = at > 0 && (chars[at - 1].is_alphanumeric() || chars[at - 1] == '_');
    match two {
        ('/', '/') => (2, State::LineComment),
        ('/', '*') => (2, State::BlockComment(1)),
        ('"', _) => (1, State::Text),
        ('b', '"') if !after_word => (2, State::Text),
        ('b', 'r') if !after_word => raw_step(chars, at, 2),
        ('r', '"' | '#') if !after_word => raw_step(chars, at, 1),
        ('\'', _) => (character_width(chars, at), State::Code),
        _ => (1, State::Code),
    }
}

/// A raw string whose `r` or `br` is `prefix` long, or else a plain word (`r#type`, `break`).
fn raw_step(chars: &[char], at: usize, prefix: usize) -> (usize, State) {
    let hashes = hashes_at(chars, at + prefix);
    if chars.get(at + prefix + hashes) == Some(&'"') {
        (prefix + hashes + 1, State::RawText(hashes))
    } else {
        (1, State::Code)
    }
}

fn hashes_at(chars: &[char], at: usize) -> usize {
    chars.get(at..).unwrap_or(&[]).iter().take_while(|&&c| c == '#').count()
}

/// Width of the character literal at `at`; 1 for the quote of a lifetime.
fn character_width(chars: &[char], at: usize) -> usize {
    match (chars.get(at + 1), chars.get(at + 2)) {
        // '\n', '\'', '\u{1f}': up to the closing quote, which is not the escaped character itself.
        (Some('\\'), Some(_)) => {
            let rest = chars.get(at + 3..).unwrap_or(&[]);
            rest.iter().position(|&c| c == '\'').map_or(1, |end| end + 4)
        }
        (Some(_), Some('\'')) => 3,
        _ => 1,
    }
}

/// The part of `code` that ships: everything before the first module of tests.
pub fn without_tests(code: &str) -> &str {
    let mut from = 0;
    while let Some(found) = code[from..].find("#[cfg(test)]") {
        let at = from + found;
        let after = code[at + "#[cfg(test)]".len()..].trim_start();
        // `#[cfg(test)] mod tests;` and `#[cfg(test)] extern crate std;` end nothing.
        let module =
            after.strip_prefix("mod ").and_then(|rest| rest.find(['{', ';']).map(|i| &rest[i..=i]));
        if module == Some("{") {
            return &code[..at];
        }
        from = at + 1;
    }
    code
}

/// True for a file that holds tests only.
pub fn is_test_file(path: &str) -> bool {
    path.contains("/tests/") || path.ends_with("/tests.rs") || path.ends_with("_tests.rs")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_and_comments_are_blank_in_the_code() {
        let split = split("let a = \"{ // no\"; // yes {\nlet b = r#\"\"}\"#; /* } /* } */ */ c");
        assert_eq!(
            split.code,
            "let a = \"       \";         \nlet b = r#\"  \"#;                 c"
        );
        assert_eq!(split.comments.trim_start().lines().next(), Some("// yes {"));
    }

    #[test]
    fn a_brace_as_a_character_is_blank_and_a_lifetime_is_not_a_character() {
        let split =
            split("fn f<'a>(x: &'a str) -> char { if x == \"\" { '\\'' } else { '\\u{7d}' } }");
        assert_eq!(split.code.matches('{').count(), split.code.matches('}').count());
        assert!(split.code.contains("&'a str"));
    }

    #[test]
    fn the_module_of_tests_is_cut_off_but_a_test_only_item_is_not() {
        let code = "#[cfg(test)]\nextern crate std;\nfn f() {}\n#[cfg(test)]\nmod tests {\n}";
        assert_eq!(without_tests(code), "#[cfg(test)]\nextern crate std;\nfn f() {}\n");
        assert_eq!(without_tests("#[cfg(test)]\nmod tests;\nfn f() {}").len(), 33);
    }
}
