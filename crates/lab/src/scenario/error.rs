//! What is wrong with a scenario: where, which key, which value, and what would be right.
//!
//! A scenario is read to its end and all its errors are told at once, in the order of the file.

use std::fmt;

/// Where a value was written.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// In the scenario's text, at this line (counted from 1).
    Line(usize),
    /// On the command line, by this `--set` flag.
    Flag(String),
    /// Nowhere: a key is missing, or two values do not go together.
    Whole,
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
            Origin::Line(line) => write!(f, "{}:{line}: ", self.source)?,
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
            Fault::Missing { allowed } => write!(f, "{key} is missing: it must be {allowed}"),
            Fault::Value { found, allowed, similar } => {
                write!(f, "{key} = {found}: must be {allowed}")?;
                write_similar(f, similar.as_deref())
            }
            Fault::Conflict(message) => write!(f, "{key}: {message}"),
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
            write!(f, "{error}")?;
        }
        Ok(())
    }
}

impl std::error::Error for ConfigErrors {}

/// The one of `names` that `wrong` most looks like, if any is near enough to be a slip of the pen.
pub fn similar<'n>(wrong: &str, names: impl IntoIterator<Item = &'n str>) -> Option<String> {
    let letters = wrong.chars().count();
    let near = |name: &str, distance: usize| {
        // A third of the letters wrong, or another ending of the same word.
        let stem = wrong.chars().zip(name.chars()).take_while(|(a, b)| a == b).count();
        distance <= letters.max(3) / 3 || (stem >= 3 && stem * 4 >= letters * 3)
    };
    names
        .into_iter()
        .map(|name| (strsim::damerau_levenshtein(wrong, name), name))
        .filter(|(distance, name)| near(name, *distance))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_near_names_are_suggested() {
        assert_eq!(similar("gird", ["grid", "line", "star"]).as_deref(), Some("grid"));
        assert_eq!(similar("retry", ["retries", "kind"]).as_deref(), Some("retries"));
        assert_eq!(similar("spaceing_m", ["spacing_m", "rows"]).as_deref(), Some("spacing_m"));
        assert_eq!(similar("zebra", ["grid", "line", "star"]), None);
        assert_eq!(similar("x", []), None);
    }
}
