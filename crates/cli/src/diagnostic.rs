//! CBOR for people: diagnostic notation (RFC 8949 s8).

use std::fmt::Write as _;

/// Arrays, maps and tags within each other; deeper ones are shown as octets by the caller.
const DEPTH_MAX: usize = 32;

/// The diagnostic notation of one item that fills `bytes`; `None` if they are something else.
pub fn notation(bytes: &[u8]) -> Option<String> {
    let mut reader = Reader { rest: bytes, out: String::new() };
    reader.item(0)?;
    reader.rest.is_empty().then_some(reader.out)
}

/// Octets in hexadecimal.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, octet| {
        // Writing into a string cannot fail.
        let _ = write!(text, "{octet:02x}");
        text
    })
}

struct Reader<'a> {
    rest: &'a [u8],
    out: String,
}

impl<'a> Reader<'a> {
    fn take(&mut self, len: u64) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(usize::try_from(len).ok()?)?;
        self.rest = rest;
        Some(taken)
    }
    /// Major type, additional information and argument (RFC 8949 s3).
    fn head(&mut self) -> Option<(u8, u8, u64)> {
        let first = self.take(1)?[0];
        let (major, info) = (first >> 5, first & 0x1f);
        let argument = match info {
            0..=23 => u64::from(info),
            24..=27 => {
                let octets = self.take(1 << (info - 24))?;
                octets.iter().fold(0, |number, octet| (number << 8) | u64::from(*octet))
            }
            31 => 0,
            _ => return None,
        };
        Some((major, info, argument))
    }
    fn item(&mut self, depth: usize) -> Option<()> {
        if depth > DEPTH_MAX {
            return None;
        }
        let (major, info, argument) = self.head()?;
        let indefinite = info == 31;
        match major {
            0 if !indefinite => write!(self.out, "{argument}").ok(),
            1 if !indefinite => write!(self.out, "{}", -1 - i128::from(argument)).ok(),
            2 | 3 if indefinite => self.items(("(_ ", ")"), None, false, depth),
            2 => {
                let text = hex(self.take(argument)?);
                write!(self.out, "h'{text}'").ok()
            }
            3 => {
                let text = std::str::from_utf8(self.take(argument)?).ok()?;
                self.out.push_str(&serde_json::to_string(text).ok()?);
                Some(())
            }
            4 => self.items(("[", "]"), (!indefinite).then_some(argument), false, depth),
            5 => self.items(("{", "}"), (!indefinite).then_some(argument), true, depth),
            6 if !indefinite => {
                write!(self.out, "{argument}(").ok()?;
                self.item(depth + 1)?;
                self.out.push(')');
                Some(())
            }
            7 => self.simple(info, argument),
            _ => None,
        }
    }
    fn items(
        &mut self,
        brackets: (&str, &str),
        count: Option<u64>,
        pairs: bool,
        depth: usize,
    ) -> Option<()> {
        self.out.push_str(brackets.0);
        let mut done = 0;
        while count.is_none_or(|count| done < count) {
            if count.is_none() && self.rest.first() == Some(&0xff) {
                self.take(1)?;
                break;
            }
            if done > 0 {
                self.out.push_str(", ");
            }
            self.item(depth + 1)?;
            if pairs {
                self.out.push_str(": ");
                self.item(depth + 1)?;
            }
            done += 1;
        }
        self.out.push_str(brackets.1);
        Some(())
    }
    fn simple(&mut self, info: u8, argument: u64) -> Option<()> {
        match info {
            20 => self.out.push_str("false"),
            21 => self.out.push_str("true"),
            22 => self.out.push_str("null"),
            23 => self.out.push_str("undefined"),
            25 => self.float(half(u16::try_from(argument).ok()?)),
            26 => self.float(f64::from(f32::from_bits(u32::try_from(argument).ok()?))),
            27 => self.float(f64::from_bits(argument)),
            0..=19 | 24 => write!(self.out, "simple({argument})").ok()?,
            _ => return None,
        }
        Some(())
    }
    fn float(&mut self, number: f64) {
        let text = if number.is_nan() {
            "NaN".to_owned()
        } else if number.is_infinite() {
            if number > 0.0 { "Infinity" } else { "-Infinity" }.to_owned()
        } else {
            format!("{number:?}")
        };
        self.out.push_str(&text);
    }
}

/// A float of 16 bits (IEEE 754, RFC 8949 appendix D).
fn half(bits: u16) -> f64 {
    let (exponent, mantissa) = (i32::from((bits >> 10) & 0x1f), f64::from(bits & 0x3ff));
    let size = match exponent {
        0 => mantissa * 2f64.powi(-24),
        31 if mantissa == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        _ => (mantissa + 1024.0) * 2f64.powi(exponent - 25),
    };
    if bits & 0x8000 == 0 { size } else { -size }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From RFC 8949 appendix A.
    const EXAMPLES: [(&[u8], &str); 10] = [
        (&[0x18, 0x64], "100"),
        (&[0x38, 0x63], "-100"),
        (&[0xf9, 0x3e, 0x00], "1.5"),
        (&[0xf9, 0xfc, 0x00], "-Infinity"),
        (&[0xfb, 0x3f, 0xf1, 0x99, 0x99, 0x99, 0x99, 0x99, 0x9a], "1.1"),
        (&[0x44, 1, 2, 3, 4], "h'01020304'"),
        (&[0x62, 0x22, 0x5c], "\"\\\"\\\\\""),
        (&[0x83, 0x01, 0x82, 0x02, 0x03, 0xf5], "[1, [2, 3], true]"),
        (&[0xa2, 0x01, 0x02, 0x03, 0x04], "{1: 2, 3: 4}"),
        (&[0xc1, 0x1a, 0x51, 0x4b, 0x67, 0xb0], "1(1363896240)"),
    ];

    #[test]
    fn the_examples_of_the_rfc_read_as_it_writes_them() {
        for (bytes, text) in EXAMPLES {
            assert_eq!(notation(bytes).as_deref(), Some(text));
        }
    }

    #[test]
    fn no_prefix_of_an_item_is_an_item() {
        for (bytes, _) in EXAMPLES {
            for len in 0..bytes.len() {
                assert_eq!(notation(&bytes[..len]), None, "{bytes:02x?} to {len}");
            }
        }
    }

    #[test]
    fn what_is_too_deep_is_refused_instead_of_overflowing_the_stack() {
        assert_eq!(notation(&vec![0x81; 100_000]), None);
    }
}
