//! The error for values that make no link.

/// A value that makes no link.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[error("{key}: {value} is not allowed; {allowed}")]
pub struct ConfigError {
    /// The field of [`Config`](crate::Config) or [`Loss`](crate::Loss).
    pub key: &'static str,
    /// Its value, in the unit of the field; spans are in seconds.
    pub value: f64,
    /// What is allowed.
    pub allowed: &'static str,
}
