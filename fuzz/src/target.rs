//! What a target is.

/// A decoder, and messages that it accepts.
pub struct Target {
    /// Its name on the command line.
    pub name: &'static str,
    /// Valid messages that cases are made of.
    pub corpus: Vec<Vec<u8>>,
    /// Whether it accepts these octets. It panics if they break what the decoder promises.
    pub accepts: fn(&[u8]) -> bool,
}

/// Octets of hexadecimal digits.
pub fn unhex(digits: &str) -> Vec<u8> {
    let pair = |at: usize| u8::from_str_radix(&digits[at..at + 2], 16).expect("our own file");
    (0..digits.len()).step_by(2).map(pair).collect()
}
