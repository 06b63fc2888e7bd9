//! A message's options: an iterator over wire bytes, and an owned list that keeps them ordered (RFC
//! 7252 s3.1).

use alloc::vec::Vec;
use core::fmt;

use super::body;
use super::option::{OptionNumber, decode_uint, encode_uint};

/// The longest value this list takes: what a UDP datagram could hold, and well inside what the 14 +
/// two octets encoding can spell.
const VALUE_LEN_MAX: usize = u16::MAX as usize;

/// One option of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OptionRef<'a> {
    /// Which option.
    pub number: OptionNumber,
    /// Its value, as it is on the wire.
    pub value: &'a [u8],
}

impl<'a> OptionRef<'a> {
    /// The value as a number, if it has at most 32 bits.
    pub fn as_uint(&self) -> Option<u32> {
        decode_uint(self.value)
    }
    /// The value as text, if it is UTF-8.
    pub fn as_str(&self) -> Option<&'a str> {
        core::str::from_utf8(self.value).ok()
    }
}

/// Walks over options in the order of their numbers, without allocation.
#[derive(Clone, Debug)]
pub struct OptionsIter<'a> {
    number: u16,
    rest: &'a [u8],
}

impl<'a> OptionsIter<'a> {
    /// Over `options`, which [`body::split`] has checked or [`Options`] has built.
    pub(super) const fn new(options: &'a [u8]) -> Self {
        Self { number: 0, rest: options }
    }
    /// The values of the options numbered `number`, in order.
    pub fn values(self, number: OptionNumber) -> impl Iterator<Item = &'a [u8]> + Clone {
        self.skip_while(move |option| option.number < number)
            .take_while(move |option| option.number == number)
            .map(|option| option.value)
    }
    /// The first critical option that this message must be refused for, when the receiver knows the
    /// options of RFC 7252 and those that `knows` says yes to.
    ///
    /// An option of wrong length (s5.4.3) and the second of an option that is not repeatable
    /// (s5.4.5) count as not recognised.
    pub fn first_unrecognised_critical(
        self,
        knows: impl Fn(OptionNumber) -> bool,
    ) -> Option<OptionNumber> {
        let mut previous = None;
        for OptionRef { number, value } in self {
            let recognised = match number.definition() {
                Some(definition) => {
                    let lengths = usize::from(definition.len_min)..=usize::from(definition.len_max);
                    let repeated = previous == Some(number) && !definition.repeatable;
                    lengths.contains(&value.len()) && !repeated
                }
                None => knows(number),
            };
            if number.is_critical() && !recognised {
                return Some(number);
            }
            previous = Some(number);
        }
        None
    }
}

impl<'a> Iterator for OptionsIter<'a> {
    type Item = OptionRef<'a>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let (delta, value, rest) = body::next_checked(self.rest)?;
        self.number = self.number.wrapping_add(delta);
        self.rest = rest;
        Some(OptionRef { number: OptionNumber(self.number), value })
    }
}

/// The options of an owned message, kept as wire bytes in the order of their numbers: one
/// allocation for all, and nothing left to encode when the message is sent.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Options {
    bytes: Vec<u8>,
    last: u16,
}

impl Options {
    /// No options, without allocation.
    pub const fn new() -> Self {
        Self { bytes: Vec::new(), last: 0 }
    }
    /// A copy of options that a view has checked.
    pub(super) fn from_checked(bytes: &[u8]) -> Self {
        let last = OptionsIter::new(bytes).last().map_or(0, |option| option.number.0);
        Self { bytes: bytes.to_vec(), last }
    }
    /// Adds an option behind those of the same number. A value longer than 65,535 octets is cut
    /// there.
    pub fn insert(&mut self, number: OptionNumber, value: &[u8]) {
        let value = &value[..value.len().min(VALUE_LEN_MAX)];
        if number.0 >= self.last {
            body::emit_option(number.0 - self.last, value, &mut self.bytes);
            self.last = number.0;
            return;
        }
        let mut ordered =
            Self { bytes: Vec::with_capacity(self.bytes.len() + value.len() + 5), last: 0 };
        let mut pending = Some(value);
        for option in self.iter() {
            if option.number > number
                && let Some(value) = pending.take()
            {
                ordered.insert(number, value);
            }
            ordered.insert(option.number, option.value);
        }
        *self = ordered;
    }
    /// Adds an option whose value is a number.
    pub fn insert_uint(&mut self, number: OptionNumber, value: u32) {
        self.insert(number, encode_uint(value).as_bytes());
    }
    /// Adds the segments of an absolute path as Uri-Path options; `/` and the empty path add none
    /// (RFC 7252 s6.4).
    pub fn insert_path(&mut self, path: &str) {
        let path = path.strip_prefix('/').unwrap_or(path);
        if !path.is_empty() {
            path.split('/').for_each(|one| self.insert(OptionNumber::URI_PATH, one.as_bytes()));
        }
    }
    /// Adds the arguments of a query as Uri-Query options; the empty query adds none (RFC 7252
    /// s6.4).
    pub fn insert_query(&mut self, query: &str) {
        if !query.is_empty() {
            query.split('&').for_each(|one| self.insert(OptionNumber::URI_QUERY, one.as_bytes()));
        }
    }
    /// Walks over all options in order.
    pub fn iter(&self) -> OptionsIter<'_> {
        OptionsIter::new(&self.bytes)
    }
    /// The first value of an option.
    pub fn get(&self, number: OptionNumber) -> Option<&[u8]> {
        self.iter().values(number).next()
    }
    /// True when there is no option.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }
    /// The options as they are on the wire.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl<'a> IntoIterator for &'a Options {
    type Item = OptionRef<'a>;
    type IntoIter = OptionsIter<'a>;
    fn into_iter(self) -> OptionsIter<'a> {
        self.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOTHING_MORE: fn(OptionNumber) -> bool = |_| false;

    #[test]
    fn options_come_out_in_the_order_of_their_numbers_whatever_the_order_of_insertion() {
        let mut options = Options::new();
        options.insert(OptionNumber(2000), b"far");
        options.insert_query("b=2&c");
        options.insert_path("/a/b");
        options.insert(OptionNumber(300), b"");
        options.insert(OptionNumber::URI_PATH, b"c");
        let numbers: Vec<u16> = options.iter().map(|option| option.number.0).collect();
        assert_eq!(numbers, [11, 11, 11, 15, 15, 300, 2000]);
        let path: Vec<&[u8]> = options.iter().values(OptionNumber::URI_PATH).collect();
        assert_eq!(path, [b"a", b"b", b"c"]);
        assert_eq!(options.get(OptionNumber(2000)), Some(&b"far"[..]));
        assert_eq!(options.get(OptionNumber(12)), None);
    }

    #[test]
    fn delta_and_length_use_the_encodings_at_their_borders() {
        for number in [0, 12, 13, 268, 269, 65_535] {
            for len in [0, 12, 13, 268, 269, 65_535] {
                let mut options = Options::new();
                options.insert(OptionNumber(number), &vec![7; len]);
                let checked = body::split(options.as_bytes(), 0).expect("own output is valid");
                let option = OptionsIter::new(checked.options).next().expect("one option");
                assert_eq!((option.number.0, option.value.len()), (number, len));
            }
        }
    }

    #[test]
    fn the_root_path_and_the_empty_query_have_no_options() {
        let mut options = Options::new();
        options.insert_path("/");
        options.insert_path("");
        options.insert_query("");
        assert!(options.is_empty());
        options.insert_path("/a/");
        assert_eq!(options.iter().values(OptionNumber::URI_PATH).count(), 2);
    }

    #[test]
    fn an_unknown_critical_option_is_found_and_an_unknown_elective_one_is_not() {
        let mut options = Options::new();
        options.insert(OptionNumber(66), b"x");
        assert_eq!(options.iter().first_unrecognised_critical(NOTHING_MORE), None);
        options.insert(OptionNumber(65), b"x");
        let found = options.iter().first_unrecognised_critical(NOTHING_MORE);
        assert_eq!(found, Some(OptionNumber(65)));
        assert_eq!(options.iter().first_unrecognised_critical(|number| number.0 == 65), None);
    }

    #[test]
    fn a_wrong_length_or_a_second_copy_makes_a_critical_option_unrecognised() {
        let mut host = Options::new();
        host.insert(OptionNumber::URI_HOST, b"");
        let found = host.iter().first_unrecognised_critical(NOTHING_MORE);
        assert_eq!(found, Some(OptionNumber::URI_HOST));
        let mut accept = Options::new();
        accept.insert_uint(OptionNumber::ACCEPT, 0);
        assert_eq!(accept.iter().first_unrecognised_critical(NOTHING_MORE), None);
        accept.insert_uint(OptionNumber::ACCEPT, 50);
        let found = accept.iter().first_unrecognised_critical(NOTHING_MORE);
        assert_eq!(found, Some(OptionNumber::ACCEPT));
    }
}
