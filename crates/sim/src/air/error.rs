//! Errors of the user's values: a key of a scenario, or a place in a file. What to do about a wrong
//! value is said in the error itself.

use lowmesh_registry::ParameterError;

/// A value of a scenario that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{key} = {value}: {allowed}")]
pub struct ConfigError {
    /// The key as a scenario file writes it.
    pub key: String,
    /// The value given.
    pub value: String,
    /// What would be allowed.
    pub allowed: String,
}

impl ConfigError {
    /// `key` has `value`, which is not `allowed`.
    pub fn new(
        key: impl Into<String>,
        value: &impl core::fmt::Display,
        allowed: impl Into<String>,
    ) -> Self {
        Self { key: key.into(), value: value.to_string(), allowed: allowed.into() }
    }
    /// Passes when `value` lies in [`low`, `high`]; NaN never does.
    pub(crate) fn within(key: &str, value: f64, low: f64, high: f64) -> Result<(), Self> {
        if (low..=high).contains(&value) {
            return Ok(());
        }
        Err(Self::new(key, &value, format!("a number from {low} to {high} is allowed")))
    }
}

/// A place in a text file that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}:{column}: {problem}; {allowed}")]
pub struct TextError {
    /// Name of the file.
    pub file: String,
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// What stands there.
    pub problem: String,
    /// What would be allowed.
    pub allowed: String,
}

/// Why a medium or a topology cannot be built.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BuildError {
    /// A value of the scenario.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A parameter of a medium.
    #[error(transparent)]
    Parameter(#[from] ParameterError),
    /// A place in a file that the scenario names.
    #[error(transparent)]
    Text(#[from] TextError),
    /// A file that cannot be opened or unpacked.
    #[error("{file}: {reason}")]
    File {
        /// Name of the file.
        file: String,
        /// What the system said.
        reason: String,
    },
}
