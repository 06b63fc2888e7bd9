//! What is wrong with a scenario: where, which key, which value, and what would be right.
//!
//! A scenario is read to its end and all its errors are reported at once, in the order of the file. The alternate form
//! (`{:#}`) also shows the line with a caret under the place.

use std::fmt;

pub use lowmesh_registry::similar;

/// Where a value was written.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// In the scenario's text.
    Text(Place),
    /// On the command line, by this `--set` flag.
    Flag(String),
    /// Nowhere: a key is missing, or two values do not go together.
    Whole,
}

/// A place in the text of a scenario.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// Characters of the value or key that stand there.
    pub width: usize,
    /// The whole line.
    pub text: String,
}

/// Characters of a line that an error shows.
const EXCERPT_MAX: usize = 64;

impl Place {
    /// The line, indented, and a caret under the place.
    fn excerpt(&self) -> String {
        let letters: Vec<char> = self.text.chars().collect();
        let column = self.column - 1;
        // Of a long line, the part around the place is enough.
        let last = letters.len().saturating_sub(EXCERPT_MAX);
        let first = if last == 0 { 0 } else { column.saturating_sub(EXCERPT_MAX / 2).min(last) };
        let shown = letters.iter().skip(first).take(EXCERPT_MAX);
        let shown: String = shown.map(|c| if c.is_control() { ' ' } else { *c }).collect();
        let indent = column - first;
        let carets = self.width.clamp(1, EXCERPT_MAX.saturating_sub(indent).max(1));
        let (line, margin) = (self.line, " ".repeat(self.line.to_string().len()));
        let (blank, carets) = (" ".repeat(indent), "^".repeat(carets));
        format!("  {line} | {}\n  {margin} | {blank}{carets}", shown.trim_end())
    }
}

/// One thing wrong with a scenario.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// The scenario: a file name, or the name of a built-in.
    pub source: String,
    /// Where in it.
    pub origin: Origin,
    /// The dotted key, empty when the text is not TOML.
    pub key: String,
    /// What is wrong.
    pub fault: Fault,
}

/// The faults that a scenario can have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The text is not TOML.
    Syntax(String),
    /// There is no such key.
    UnknownKey {
        /// A known key with a similar name.
        similar: Option<String>,
        /// The keys that are known here.
        known: Vec<String>,
    },
    /// The key exists, but not with this choice of kind.
    ForeignKey {
        /// The choice that was made, as `kind = "grid"`.
        choice: String,
        /// The keys that go with this choice.
        known: Vec<String>,
    },
    /// The key exists, but its section has no effect with the choice that another section makes.
    ForeignSection {
        /// The key that makes the choice.
        selector: &'static str,
        /// The choice that was made.
        choice: &'static str,
        /// The choice that the section is for.
        other: &'static str,
    },
    /// A key without which nothing can run is absent.
    Missing {
        /// What it must be.
        allowed: String,
    },
    /// The value is not one of those allowed.
    Value {
        /// The value as it was written.
        found: String,
        /// What it must be.
        allowed: String,
        /// An allowed value with a similar name.
        similar: Option<String>,
    },
    /// Two values do not go together.
    Conflict(String),
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.origin {
            Origin::Text(Place { line, column, .. }) => {
                write!(f, "{}:{line}:{column}: ", self.source)?;
            }
            Origin::Flag(flag) => write!(f, "--set {flag}: ")?,
            Origin::Whole => write!(f, "{}: ", self.source)?,
        }
        let key = &self.key;
        match &self.fault {
            Fault::Syntax(message) => write!(f, "not valid TOML: {message}"),
            Fault::UnknownKey { similar, known } => {
                write!(f, "{key}: there is no such key")?;
                write_similar(f, similar.as_deref())?;
                write!(f, "; known here: {}", known.join(", "))
            }
            Fault::ForeignKey { choice, known } => {
                write!(f, "{key}: does not apply to {choice}, whose keys are {}", list(known))
            }
            Fault::ForeignSection { selector, choice, other } => {
                let section = key.split('.').next().unwrap_or_default();
                write!(
                    f,
                    "{key}: has no effect with {selector} = \"{choice}\"; write {selector} = \"{other}\", or leave \
                     [{section}] out"
                )
            }
            Fault::Missing { allowed } => write!(f, "{key} is missing: it must be {allowed}"),
            Fault::Value { found, allowed, similar } => {
                write!(f, "{key} = {found}: must be {allowed}")?;
                write_similar(f, similar.as_deref())
            }
            Fault::Conflict(message) => write!(f, "{key}: {message}"),
        }?;
        match &self.origin {
            Origin::Text(place) if f.alternate() => write!(f, "\n{}", place.excerpt()),
            _ => Ok(()),
        }
    }
}

fn write_similar(f: &mut fmt::Formatter<'_>, similar: Option<&str>) -> fmt::Result {
    similar.map_or(Ok(()), |name| write!(f, "; did you mean `{name}`?"))
}

fn list(known: &[String]) -> String {
    if known.is_empty() { "none".to_owned() } else { known.join(", ") }
}

/// Everything wrong with a scenario, in the order of its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigErrors(pub Vec<ConfigError>);

impl fmt::Display for ConfigErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, error) in self.0.iter().enumerate() {
            if i > 0 {
                writeln!(f)?;
            }
            // Passes the alternate form on.
            error.fmt(f)?;
        }
        Ok(())
    }
}

impl std::error::Error for ConfigErrors {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_alternate_form_has_a_caret_under_the_place() {
        let place = |line: usize, column, width, text: &str| Place {
            line,
            column,
            width,
            text: text.to_owned(),
        };
        let short = place(7, 11, 3, "retries = 999");
        assert_eq!(short.excerpt(), "  7 | retries = 999\n    |           ^^^");
        let letters = place(12, 9, 3, "\tname = \"é\"");
        assert_eq!(letters.excerpt(), "  12 |  name = \"é\"\n     |         ^^^");
        // Of a long line the part with the place is shown, within 80 columns.
        let long = format!("matrix = [{}x]", "0.5, ".repeat(60));
        let excerpt = place(1, 311, 1, &long).excerpt();
        let [text, carets] = excerpt.lines().collect::<Vec<_>>()[..] else { panic!("{excerpt}") };
        assert_eq!(text.find('x'), carets.find('^'), "{excerpt}");
        assert!(text.len() <= 80, "{excerpt}");
    }
}
