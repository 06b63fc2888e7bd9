//! What is wrong with bytes from the air.

/// Bytes that are not what they should be: which header, which field, at which octet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{header}: {field} at octet {offset}: {problem}")]
pub struct DecodeError {
    /// The header that was being read, by its RFC name.
    pub header: &'static str,
    /// The field in it.
    pub field: &'static str,
    /// Octets from the start of that header.
    pub offset: usize,
    /// What is wrong.
    pub problem: Problem,
}

/// What can be wrong with a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// The bytes end before the field does.
    #[error("the bytes end too early")]
    Truncated,
    /// A value that the RFC does not allow here.
    #[error("the value is not allowed")]
    Value,
    /// A version or type that this codec does not know.
    #[error("not supported")]
    Unsupported,
    /// A length that disagrees with another one.
    #[error("the length disagrees with the bytes")]
    Length,
    /// A checksum that does not match.
    #[error("the checksum does not match")]
    Checksum,
}
