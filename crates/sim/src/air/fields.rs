//! Reading comma-separated lines so that every error names its line and column.

use core::str::FromStr;

use super::error::TextError;

/// The fields of one line, taken from left to right.
#[derive(Debug)]
pub(crate) struct Fields<'a> {
    file: &'a str,
    line: usize,
    column: usize,
    rest: Option<&'a str>,
}

impl<'a> Fields<'a> {
    /// The fields of `text`, which is line `line` (from 1) of `file`.
    pub(crate) fn new(file: &'a str, line: usize, text: &'a str) -> Self {
        Self { file, line, column: 1, rest: Some(text) }
    }

    /// The next field, its column, or an error that names what is missing.
    pub(crate) fn text(&mut self, what: &str) -> Result<(usize, &'a str), TextError> {
        let column = self.column;
        let Some(rest) = self.rest else {
            let problem = format!("the line ends before `{what}`");
            // No comma stands where the line ended, so the place is one back.
            return Err(self.error(column - 1, problem, "every line has the same fields"));
        };
        let (field, after) = match rest.split_once(',') {
            Some((field, after)) => (field, Some(after)),
            None => (rest, None),
        };
        self.column += field.chars().count() + 1;
        self.rest = after;
        Ok((column, field.trim()))
    }

    /// The next field as a value that passes `valid`.
    pub(crate) fn value<T: FromStr>(
        &mut self,
        what: &str,
        allowed: &str,
        valid: impl Fn(&T) -> bool,
    ) -> Result<T, TextError> {
        let (column, field) = self.text(what)?;
        field
            .parse::<T>()
            .ok()
            .filter(valid)
            .ok_or_else(|| self.error(column, format!("`{field}` is not a valid {what}"), allowed))
    }

    /// Passes when nothing is left.
    pub(crate) fn end(&self) -> Result<(), TextError> {
        match self.rest {
            None => Ok(()),
            Some(rest) => Err(self.error(
                self.column,
                format!("`{rest}` follows the last field"),
                "the line ends here",
            )),
        }
    }

    /// The column of the next field, from 1.
    pub(crate) fn column(&self) -> usize {
        self.column
    }

    /// An error at `column` of this line.
    pub(crate) fn error(
        &self,
        column: usize,
        problem: impl Into<String>,
        allowed: &str,
    ) -> TextError {
        TextError {
            file: self.file.to_owned(),
            line: self.line,
            column,
            problem: problem.into(),
            allowed: allowed.to_owned(),
        }
    }
}

/// The text without the mark with which some programs begin a file in UTF-8. It is no part of the first name.
pub(crate) fn without_mark(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}

/// The lines that carry data: numbered from 1, without empty ones and `#` comments.
pub(crate) fn data_lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    without_mark(text)
        .lines()
        .enumerate()
        .map(|(index, line)| (index + 1, line))
        .filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#'))
}
