//! The notation of octets on the command line, and the pre-shared keys that it gives (RFC 4279 s5.4).
//!
//! ```text
//!   0x00ff      octets, as hexadecimal digits
//!   @FILE       the octets of a file; of a text file its first line, in the same notation
//!   other       text, in UTF-8
//! ```

use std::path::Path;

use lowmesh_net::dtls::{KeyError, Keys};

use crate::failure::Failure;
use crate::secret_file;

const KEY_HINT: &str = "a key is text, 0x and hexadecimal digits, or @FILE";
const KEYS_HINT: &str =
    "--psk-file takes lines of an identity, a blank and a key, both as text or as 0x and digits";

/// The octets of hexadecimal digits.
pub fn octets(digits: &str) -> Result<Vec<u8>, String> {
    let wrong = || "after 0x, write two hexadecimal digits for each octet".to_owned();
    let pairs = digits.as_bytes().chunks(2);
    let octet = |pair: &[u8]| {
        let is_octet = pair.len() == 2 && pair.iter().all(u8::is_ascii_hexdigit);
        let text = std::str::from_utf8(pair).ok().filter(|_| is_octet)?;
        u8::from_str_radix(text, 16).ok()
    };
    pairs.map(|pair| octet(pair).ok_or_else(wrong)).collect()
}

/// A value as text, or as `0x` and hexadecimal digits.
pub fn value(text: &str) -> Result<Vec<u8>, String> {
    text.strip_prefix("0x").map_or_else(|| Ok(text.as_bytes().to_vec()), octets)
}

/// The identity of a key (RFC 4279 s5.1): any octets, and devices have binary ones.
pub fn identity(text: &str) -> Result<Vec<u8>, Failure> {
    let hint = "an identity is text, or 0x and hexadecimal digits";
    value(text).map_err(|why| Failure::usage(format!("{text}: {why}"), hint))
}

/// A pre-shared key.
pub fn secret(text: &str) -> Result<Vec<u8>, Failure> {
    let wrong = |why: String| Failure::usage(format!("--psk: {why}"), KEY_HINT);
    let Some(file) = text.strip_prefix('@') else { return value(text).map_err(wrong) };
    let content = std::fs::read(file)
        .map_err(|error| Failure::usage(format!("cannot read {file}: {error}"), KEY_HINT))?;
    secret_file::look_at(Path::new(file));
    match first_line(&content) {
        Some(line) => value(line).map_err(wrong),
        None => Ok(content),
    }
}

/// The first line of a text. `None` if this is no text: a key of random octets has control characters or is no UTF-8.
fn first_line(content: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(content).ok()?;
    let is_text = |c: char| !c.is_control() || matches!(c, '\n' | '\r' | '\t');
    text.chars().all(is_text).then(|| text.lines().next().unwrap_or_default())
}

/// Adds the keys of a file to others: a line for each identity.
pub fn add_file(keys: Keys, file: &Path) -> Result<Keys, Failure> {
    let text = std::fs::read_to_string(file).map_err(|error| {
        Failure::usage(format!("cannot read {}: {error}", file.display()), KEYS_HINT)
    })?;
    secret_file::look_at(file);
    let at = |line: usize, why: &dyn std::fmt::Display| {
        Failure::usage(format!("{}, line {line}: {why}", file.display()), KEYS_HINT)
    };
    let mut keys = keys;
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let (identity, key) = line
            .rsplit_once([' ', '\t'])
            .ok_or_else(|| at(number, &"there is no key behind the identity"))?;
        let key = value(key).map_err(|why| at(number, &why))?;
        let identity = value(identity.trim_end()).map_err(|why| at(number, &why))?;
        keys = keys.with(&identity, &key).map_err(|error: KeyError| at(number, &error))?;
    }
    Ok(keys)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What `@FILE` gives for a file with this content.
    fn of_file(name: &str, content: &[u8]) -> Vec<u8> {
        let path = std::env::temp_dir().join(format!("lowmesh-key-{}-{name}", std::process::id()));
        std::fs::write(&path, content).expect("a temporary folder");
        let key = secret(&format!("@{}", path.display()));
        std::fs::remove_file(&path).expect("just written");
        key.expect("a key")
    }

    #[test]
    fn a_key_is_text_or_hexadecimal_digits() {
        assert_eq!(secret("secret").expect("text"), b"secret");
        assert_eq!(secret("0x00fFa0").expect("digits"), [0, 255, 160]);
        for wrong in ["0x0", "0x0g", "0x+1", "0x 1"] {
            assert!(matches!(secret(wrong), Err(Failure::Usage { .. })), "{wrong}");
        }
        assert!(secret("@/no/such/file").is_err());
    }

    #[test]
    fn a_file_has_a_key_as_octets_or_in_its_first_line() {
        let random: Vec<u8> = (0xf0..=0xff).collect();
        assert_eq!(of_file("random", &random), random);
        // Valid UTF-8, but no text; and an octet that looks like the end of a line.
        assert_eq!(of_file("control", b"\x01\x02abc\n"), b"\x01\x02abc\n");
        assert_eq!(of_file("text", b"secret\nnot this\n"), b"secret");
        assert_eq!(of_file("digits", b"0x00ff\r\n"), [0, 255]);
    }

    #[test]
    fn a_file_of_keys_has_an_identity_and_a_key_in_each_line() {
        let path = std::env::temp_dir().join(format!("lowmesh-keys-{}", std::process::id()));
        let read = |text: &str| {
            std::fs::write(&path, text).expect("a temporary folder");
            add_file(Keys::new(), &path)
        };
        let keys = read("# devices\n\nlamp 1 0x00ff\ngate\tsecret\n").expect("two keys");
        assert_eq!(format!("{keys:?}"), "Keys(2 identities)");
        // An identity has the notation of a key, so these lines have the same one.
        let keys = read("ab 0x01\n0x6162 0x02\n0x00ff 0x03\n").expect("two identities");
        assert_eq!(format!("{keys:?}"), "Keys(2 identities)");
        assert_eq!(identity("0x00ff").expect("digits"), [0, 255]);
        assert!(identity("0x0").is_err());
        for wrong in ["lamp\n", "lamp 0x0\n", "0x0 secret\n"] {
            let Err(Failure::Usage { message, .. }) = read(wrong) else { panic!("{wrong}") };
            assert!(message.contains("line 1"), "{message}");
        }
        std::fs::remove_file(&path).expect("just written");
    }
}
