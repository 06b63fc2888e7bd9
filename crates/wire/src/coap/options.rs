//! A message's options: an iterator over wire bytes, and an owned list that keeps them ordered (RFC
//! 7252 s3.1).

use alloc::vec::Vec;
use core::fmt;

use super::body;
use super::option::{OptionNumber, decode_uint, encode_uint};

/// The longest value this list takes: what a UDP datagram could hold, and well inside what the 14 +
/// two octets encoding can spell.
const VALUE_LEN_MAX: usize = u16::MAX as usize;
/// Octets of options that lie in the list itself: with them it is no larger than a `Vec` and a number.
const SHORT_LEN_MAX: usize = 28;

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
    /// The number of the last option, 0 if there is none.
    last: u16,
    rest: &'a [u8],
}

impl<'a> OptionsIter<'a> {
    /// Over `options`, which [`body::split`] has checked or [`Options`] has built.
    pub(super) const fn new(options: &'a [u8], last: u16) -> Self {
        Self { number: 0, last, rest: options }
    }
    /// The highest number of an option, 0 if there is none.
    pub const fn last_number(&self) -> OptionNumber {
        OptionNumber(self.last)
    }
    /// The values of the options numbered `number`, in order.
    #[inline]
    pub fn values(self, number: OptionNumber) -> impl Iterator<Item = &'a [u8]> + Clone {
        let past_the_last = number.0 > self.last;
        let rest = if past_the_last { &[] } else { self.rest };
        Self { rest, ..self }
            .skip_while(move |option| option.number < number)
            .take_while(move |option| option.number == number)
            .map(|option| option.value)
    }
    /// What has to be done about these options, when the receiver processes those of RFC 7252 and
    /// those that `knows` says yes to.
    ///
    /// An option of wrong length (s5.4.3), the second of an option that is not repeatable (s5.4.5), and
    /// a segment `.` or `..` of a path (s5.10.1, s5.10.7) count as not recognised.
    #[inline]
    pub fn recognise(self, knows: impl Fn(OptionNumber) -> bool) -> Recognition {
        let mut recognition = Recognition { critical: None, faulty_elective: false };
        let mut previous = None;
        for OptionRef { number, value } in self {
            let definition = number.definition();
            let sound = definition.is_none_or(|one| one.admits(value, previous));
            let known = definition.is_some_and(|one| one.rfc == 7252) || knows(number);
            if number.is_critical() && !(sound && known) {
                recognition.critical = recognition.critical.or(Some(number));
            }
            recognition.faulty_elective |= !number.is_critical() && !sound;
            previous = Some(number);
        }
        recognition
    }
}

/// What the options of a message mean for its fate (RFC 7252 s5.4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recognition {
    /// The first critical option that is not recognised: the message must be refused.
    pub critical: Option<OptionNumber>,
    /// An elective option has a value that it must not have, or came once too often:
    /// [`Options::drop_faulty_electives`] takes out what has to be ignored.
    pub faulty_elective: bool,
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

/// The options of an owned message, kept as wire bytes in the order of their numbers: nothing is left to encode when
/// the message is sent, and a few short ones need no allocation.
#[derive(Clone)]
pub struct Options(Octets);

/// The wire bytes, and the number of the last option. A list that has grown long stays long.
#[derive(Clone)]
enum Octets {
    Short { len: u8, last: u16, bytes: [u8; SHORT_LEN_MAX] },
    Long { last: u16, bytes: Vec<u8> },
}

impl Options {
    /// No options, without allocation.
    pub const fn new() -> Self {
        Self(Octets::Short { len: 0, last: 0, bytes: [0; SHORT_LEN_MAX] })
    }
    /// No options, with room for so many octets.
    fn with_capacity(octets: usize) -> Self {
        if octets <= SHORT_LEN_MAX {
            return Self::new();
        }
        Self(Octets::Long { last: 0, bytes: Vec::with_capacity(octets) })
    }
    /// A copy of options that a view has checked.
    #[inline]
    pub(super) fn from_checked(options: &OptionsIter<'_>) -> Self {
        let OptionsIter { last, rest, .. } = *options;
        if rest.len() > SHORT_LEN_MAX {
            return Self(Octets::Long { last, bytes: rest.to_vec() });
        }
        let mut bytes = [0; SHORT_LEN_MAX];
        bytes[..rest.len()].copy_from_slice(rest);
        Self(Octets::Short { len: rest.len() as u8, last, bytes })
    }
    /// Adds an option behind those of the same number. A value longer than 65,535 octets is cut
    /// there.
    pub fn insert(&mut self, number: OptionNumber, value: &[u8]) {
        let value = &value[..value.len().min(VALUE_LEN_MAX)];
        if number >= self.last_number() {
            self.push(number, value);
            return;
        }
        let mut ordered = Self::with_capacity(self.as_bytes().len() + value.len() + 5);
        let mut pending = Some(value);
        for option in self.iter() {
            if option.number > number
                && let Some(value) = pending.take()
            {
                ordered.push(number, value);
            }
            ordered.push(option.number, option.value);
        }
        *self = ordered;
    }
    /// Adds an option behind all others, whose numbers are not higher.
    fn push(&mut self, number: OptionNumber, value: &[u8]) {
        let delta = number.0 - self.last_number().0;
        let start = self.as_bytes().len();
        let end = start + body::option_len(delta, value.len());
        if let Octets::Short { bytes, .. } = &self.0
            && end > SHORT_LEN_MAX
        {
            let mut long = Vec::with_capacity(end);
            long.extend_from_slice(&bytes[..start]);
            self.0 = Octets::Long { last: 0, bytes: long };
        }
        let (last, room) = match &mut self.0 {
            Octets::Short { len, last, bytes } => {
                *len = end as u8;
                (last, &mut bytes[start..end])
            }
            Octets::Long { last, bytes } => {
                bytes.resize(end, 0);
                (last, &mut bytes[start..])
            }
        };
        body::write_option(delta, value, room);
        *last = number.0;
    }
    /// The highest number of an option, 0 if there is none.
    pub(super) const fn last_number(&self) -> OptionNumber {
        match &self.0 {
            Octets::Short { last, .. } | Octets::Long { last, .. } => OptionNumber(*last),
        }
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
    /// Keeps the options that `keep` says yes to.
    pub fn retain(&mut self, mut keep: impl FnMut(OptionRef<'_>) -> bool) {
        let mut kept = Self::with_capacity(self.as_bytes().len());
        for option in self.iter() {
            if keep(option) {
                kept.push(option.number, option.value);
            }
        }
        *self = kept;
    }
    /// Takes out every option numbered `number`; true if there was one.
    pub fn remove(&mut self, number: OptionNumber) -> bool {
        let found = self.get(number).is_some();
        if found {
            self.retain(|option| option.number != number);
        }
        found
    }
    /// Sets an option to one value, in place of those it had.
    pub fn set(&mut self, number: OptionNumber, value: &[u8]) {
        self.remove(number);
        self.insert(number, value);
    }
    /// Sets an option to a number, in place of the values it had.
    pub fn set_uint(&mut self, number: OptionNumber, value: u32) {
        self.set(number, encode_uint(value).as_bytes());
    }
    /// The first value of an option as a number, if there is one of at most 32 bits.
    pub fn get_uint(&self, number: OptionNumber) -> Option<u32> {
        self.get(number).and_then(decode_uint)
    }
    /// RFC 7252 s5.4.1, s5.4.3, s5.4.5: takes out the elective options that MUST be ignored because
    /// their length is wrong or they came once too often.
    pub fn drop_faulty_electives(&mut self) {
        let mut previous = None;
        self.retain(|OptionRef { number, value }| {
            let sound = number.definition().is_none_or(|one| one.admits(value, previous));
            previous = Some(number);
            sound || number.is_critical()
        });
    }
    /// Walks over all options in order.
    #[inline]
    pub fn iter(&self) -> OptionsIter<'_> {
        OptionsIter::new(self.as_bytes(), self.last_number().0)
    }
    /// The first value of an option.
    #[inline]
    pub fn get(&self, number: OptionNumber) -> Option<&[u8]> {
        self.iter().values(number).next()
    }
    /// True when there is no option.
    pub fn is_empty(&self) -> bool {
        self.as_bytes().is_empty()
    }
    /// The options as they are on the wire.
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        match &self.0 {
            Octets::Short { len, bytes, .. } => &bytes[..usize::from(*len)],
            Octets::Long { bytes, .. } => bytes,
        }
    }
}

impl Default for Options {
    fn default() -> Self {
        Self::new()
    }
}

/// Equal octets say the same, wherever they lie.
impl PartialEq for Options {
    fn eq(&self, other: &Self) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl Eq for Options {}

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

    fn critical(options: &Options) -> Option<OptionNumber> {
        options.iter().recognise(NOTHING_MORE).critical
    }

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
                assert_eq!(checked.last, number);
                let option = OptionsIter::new(checked.options, checked.last).next();
                let option = option.expect("one option");
                assert_eq!((option.number.0, option.value.len()), (number, len));
            }
        }
    }

    #[test]
    fn options_that_outgrow_the_list_read_as_those_that_lie_in_it() {
        assert!(size_of::<Options>() <= size_of::<(Vec<u8>, u16)>());
        for len in 0..2 * SHORT_LEN_MAX {
            let mut options = Options::new();
            options.insert(OptionNumber::URI_QUERY, &vec![2; len]);
            options.insert(OptionNumber::URI_PATH, b"1");
            options.insert(OptionNumber::SIZE1, b"3");
            let bytes = options.as_bytes();
            let body::Body { last, .. } = body::split(bytes, 0).expect("own output is valid");
            let copy = Options::from_checked(&OptionsIter::new(bytes, last));
            assert_eq!(copy, options);
            let values: Vec<&[u8]> = copy.iter().map(|option| option.value).collect();
            assert_eq!(values, [&b"1"[..], &vec![2; len], b"3"]);
            options.retain(|option| option.number == OptionNumber::SIZE1);
            let mut last = Options::new();
            last.insert(OptionNumber::SIZE1, b"3");
            assert_eq!(options, last);
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
        assert_eq!(critical(&options), None);
        options.insert(OptionNumber(65), b"x");
        assert_eq!(critical(&options), Some(OptionNumber(65)));
        let knowing = options.iter().recognise(|number| number.0 == 65);
        assert_eq!(knowing.critical, None);
    }

    #[test]
    fn a_critical_option_of_a_later_rfc_is_recognised_only_by_who_processes_it() {
        let mut options = Options::new();
        options.insert_uint(OptionNumber::BLOCK2, 6);
        assert_eq!(critical(&options), Some(OptionNumber::BLOCK2));
        let knowing = |options: &Options| {
            options.iter().recognise(|number| number == OptionNumber::BLOCK2).critical
        };
        assert_eq!(knowing(&options), None);
        options.set(OptionNumber::BLOCK2, &[1, 2, 3, 4]);
        assert_eq!(knowing(&options), Some(OptionNumber::BLOCK2), "its length is wrong");
    }

    #[test]
    fn a_wrong_length_or_a_second_copy_makes_a_critical_option_unrecognised() {
        let mut host = Options::new();
        host.insert(OptionNumber::URI_HOST, b"");
        assert_eq!(critical(&host), Some(OptionNumber::URI_HOST));
        let mut accept = Options::new();
        accept.insert_uint(OptionNumber::ACCEPT, 0);
        assert_eq!(critical(&accept), None);
        accept.insert_uint(OptionNumber::ACCEPT, 50);
        assert_eq!(critical(&accept), Some(OptionNumber::ACCEPT));
    }

    #[test]
    fn a_segment_of_dots_makes_a_path_unrecognised_and_a_location_faulty() {
        for (segment, dots) in [(&b"."[..], true), (b"..", true), (b"...", false), (b".a", false)] {
            let mut path = Options::new();
            path.insert(OptionNumber::URI_PATH, segment);
            path.insert(OptionNumber::URI_QUERY, segment);
            assert_eq!(critical(&path), dots.then_some(OptionNumber::URI_PATH));
            let mut location = Options::new();
            location.insert(OptionNumber::LOCATION_PATH, segment);
            assert_eq!(location.iter().recognise(NOTHING_MORE).faulty_elective, dots);
        }
    }

    #[test]
    fn an_elective_option_of_wrong_length_or_once_too_often_is_dropped() {
        let mut options = Options::new();
        options.insert(OptionNumber::ETAG, b"");
        options.insert(OptionNumber::ETAG, b"fine");
        options.insert(OptionNumber::URI_HOST, b"");
        options.insert_uint(OptionNumber::MAX_AGE, 1);
        options.insert_uint(OptionNumber::MAX_AGE, 2);
        assert!(options.iter().recognise(NOTHING_MORE).faulty_elective);
        options.drop_faulty_electives();
        let mut left = Options::new();
        left.insert(OptionNumber::URI_HOST, b"");
        left.insert(OptionNumber::ETAG, b"fine");
        left.insert_uint(OptionNumber::MAX_AGE, 1);
        assert_eq!(options, left);
        assert!(!options.iter().recognise(NOTHING_MORE).faulty_elective);
    }

    #[test]
    fn an_option_can_be_replaced_and_removed() {
        let mut options = Options::new();
        options.insert_path("/a/b");
        options.set_uint(OptionNumber::OBSERVE, 1);
        options.set_uint(OptionNumber::OBSERVE, 0);
        assert_eq!(options.get_uint(OptionNumber::OBSERVE), Some(0));
        assert!(options.remove(OptionNumber::OBSERVE) && !options.remove(OptionNumber::OBSERVE));
        let mut path = Options::new();
        path.insert_path("/a/b");
        assert_eq!(options, path);
    }
}
