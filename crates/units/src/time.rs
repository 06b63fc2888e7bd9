//! Time as whole nanoseconds, so that sums are exact and equal on every machine.
//!
//! [`Instant`] counts from the start of a run (or from the driver's epoch), [`Duration`] is a span,
//! [`Asn`] the absolute slot number of IEEE 802.15.4 TSCH.

use core::fmt;
use core::ops::{Add, AddAssign, Div, Mul, Sub, SubAssign};
use core::str::FromStr;

use alloc::string::{String, ToString};

/// A span of time in nanoseconds (up to 584 years).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Duration(u64);

impl Duration {
    /// No time at all.
    pub const ZERO: Self = Self(0);
    /// The longest span.
    pub const MAX: Self = Self(u64::MAX);

    /// A span of `ns` nanoseconds.
    pub const fn from_nanos(ns: u64) -> Self {
        Self(ns)
    }
    /// A span of `us` microseconds.
    pub const fn from_micros(us: u64) -> Self {
        Self(us * 1_000)
    }
    /// A span of `ms` milliseconds.
    pub const fn from_millis(ms: u64) -> Self {
        Self(ms * 1_000_000)
    }
    /// A span of `s` seconds.
    pub const fn from_secs(s: u64) -> Self {
        Self(s * 1_000_000_000)
    }
    /// A span of `s` seconds, rounded to the nanosecond; negative and NaN give zero.
    pub fn from_secs_f64(s: f64) -> Self {
        // `as` saturates and maps NaN to 0, which is what a span wants.
        Self(libm::round(s * 1e9) as u64)
    }
    /// Whole nanoseconds.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }
    /// Whole microseconds, rounded down.
    pub const fn as_micros(self) -> u64 {
        self.0 / 1_000
    }
    /// Whole milliseconds, rounded down.
    pub const fn as_millis(self) -> u64 {
        self.0 / 1_000_000
    }
    /// Whole seconds, rounded down.
    pub const fn as_secs(self) -> u64 {
        self.0 / 1_000_000_000
    }
    /// Seconds as a float.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }
    /// Milliseconds as a float.
    pub fn as_millis_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }
    /// True for the empty span.
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }
    /// The product with a factor, rounded to the nanosecond; negative factors give zero.
    pub fn mul_f64(self, factor: f64) -> Self {
        Self(libm::round(self.0 as f64 * factor) as u64)
    }
    /// Product that stops at [`Duration::MAX`].
    pub const fn saturating_mul(self, factor: u64) -> Self {
        Self(self.0.saturating_mul(factor))
    }
    /// Difference that stops at zero.
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
    /// The distance between two spans.
    pub const fn abs_diff(self, other: Self) -> Self {
        Self(self.0.abs_diff(other.0))
    }
}

impl Add for Duration {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}
impl AddAssign for Duration {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}
impl Sub for Duration {
    type Output = Self;
    /// Stops at zero: a span is never negative.
    fn sub(self, other: Self) -> Self {
        self.saturating_sub(other)
    }
}
impl SubAssign for Duration {
    fn sub_assign(&mut self, other: Self) {
        *self = *self - other;
    }
}
impl Mul<u64> for Duration {
    type Output = Self;
    fn mul(self, factor: u64) -> Self {
        self.saturating_mul(factor)
    }
}
impl Div<u64> for Duration {
    type Output = Self;
    fn div(self, divisor: u64) -> Self {
        Self(self.0 / divisor)
    }
}
/// Stops at [`Duration::MAX`], 584 years.
impl From<core::time::Duration> for Duration {
    fn from(span: core::time::Duration) -> Self {
        u64::try_from(span.as_nanos()).map_or(Self::MAX, Self)
    }
}
impl From<Duration> for core::time::Duration {
    fn from(span: Duration) -> Self {
        Self::from_nanos(span.0)
    }
}
impl fmt::Debug for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Writes the largest unit that keeps the number whole: `10min`, `2s`, `250ms`, `17us`, `3ns`.
impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (value, unit) =
            match UNITS.iter().find(|(_, ns)| self.0 != 0 && self.0.is_multiple_of(*ns)) {
                Some((unit, ns)) => (self.0 / ns, *unit),
                None => (0, "s"),
            };
        write!(f, "{value}{unit}")
    }
}

/// Units from large to small; `d` and `h` for long runs, `ns` as the floor.
const UNITS: [(&str, u64); 7] = [
    ("d", 86_400_000_000_000),
    ("h", 3_600_000_000_000),
    ("min", 60_000_000_000),
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
    ("us", 1_000),
    ("ns", 1),
];

/// A text that is not a duration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a duration: write a number with a unit, as in 10min, 2s or 250ms; a number alone counts seconds"
)]
pub struct ParseDurationError(pub String);

impl FromStr for Duration {
    type Err = ParseDurationError;

    /// Reads one number (whole or decimal) with its unit: d, h, min, s, ms, us, ns; without a unit it counts seconds.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let error = || ParseDurationError(text.to_string());
        let trimmed = text.trim();
        let split = trimmed.find(|c: char| !c.is_ascii_digit() && c != '.');
        let split = split.unwrap_or(trimmed.len());
        let (number, unit) = trimmed.split_at(split);
        let unit = unit.trim();
        let unit = match unit {
            "" => "s",
            "m" => "min",
            unit => unit,
        };
        let (_, ns) = UNITS.iter().find(|(name, _)| *name == unit).ok_or_else(error)?;
        if let Ok(whole) = number.parse::<u64>() {
            return whole.checked_mul(*ns).map(Self).ok_or_else(error);
        }
        let value: f64 = number.parse().map_err(|_| error())?;
        let nanos = libm::round(value * *ns as f64);
        if nanos < u64::MAX as f64 { Ok(Self(nanos as u64)) } else { Err(error()) }
    }
}

/// A moment, in nanoseconds since the start of the run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Instant(u64);

impl Instant {
    /// The start of the run.
    pub const ZERO: Self = Self(0);
    /// A moment that never comes.
    pub const FAR_FUTURE: Self = Self(u64::MAX);

    /// The moment `ns` nanoseconds after the start.
    pub const fn from_nanos(ns: u64) -> Self {
        Self(ns)
    }
    /// The moment `ms` milliseconds after the start.
    pub const fn from_millis(ms: u64) -> Self {
        Self(ms * 1_000_000)
    }
    /// The moment `s` seconds after the start.
    pub const fn from_secs(s: u64) -> Self {
        Self(s * 1_000_000_000)
    }
    /// Whole nanoseconds since the start.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }
    /// Seconds since the start as a float.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }
    /// The span since `earlier`, zero if that is later.
    pub const fn since(self, earlier: Self) -> Duration {
        Duration(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Instant {
    type Output = Self;
    fn add(self, span: Duration) -> Self {
        Self(self.0.saturating_add(span.0))
    }
}
impl AddAssign<Duration> for Instant {
    fn add_assign(&mut self, span: Duration) {
        *self = *self + span;
    }
}
impl Sub<Duration> for Instant {
    type Output = Self;
    fn sub(self, span: Duration) -> Self {
        Self(self.0.saturating_sub(span.0))
    }
}
impl fmt::Debug for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "@{}.{:09}", self.0 / 1_000_000_000, self.0 % 1_000_000_000)
    }
}
impl fmt::Display for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:06}", self.0 / 1_000_000_000, self.0 / 1_000 % 1_000_000)
    }
}

/// Absolute slot number: slots since the network's start (IEEE 802.15.4-2015 s6.2.6; 5 bytes on the air).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Asn(pub u64);

impl Asn {
    /// Slots from `earlier` to here, zero if that is later.
    pub const fn since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
    /// The slot at or after `now`, for slots of `slot` that started to count at the run's start.
    pub const fn at_or_after(now: Instant, slot: Duration) -> Self {
        Self(now.0.div_ceil(slot.0))
    }
    /// The slot that holds `now`.
    pub const fn containing(now: Instant, slot: Duration) -> Self {
        Self(now.0 / slot.0)
    }
    /// When this slot starts.
    pub const fn start(self, slot: Duration) -> Instant {
        Instant(self.0.saturating_mul(slot.0))
    }
}
impl Add<u64> for Asn {
    type Output = Self;
    fn add(self, slots: u64) -> Self {
        Self(self.0.saturating_add(slots))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::format;

    #[test]
    fn durations_read_and_write_their_largest_whole_unit() {
        for text in ["10min", "2s", "250ms", "17us", "3ns", "1h", "2d", "90s"] {
            let span: Duration = text.parse().expect("a valid duration");
            let again: Duration = format!("{span}").parse().expect("own output is valid");
            assert_eq!(span, again, "{text}");
        }
        assert_eq!("1.5s".parse(), Ok(Duration::from_millis(1500)));
        assert_eq!("10 min".parse(), Ok(Duration::from_secs(600)));
        assert_eq!("90".parse(), Ok(Duration::from_secs(90)));
        assert_eq!("0.25".parse(), Ok(Duration::from_millis(250)));
        assert_eq!(format!("{}", Duration::from_secs(600)), "10min");
    }

    #[test]
    fn spans_of_the_standard_library_keep_their_nanoseconds_and_stop_at_the_largest() {
        let span = Duration::from_nanos(1_000_000_007);
        assert_eq!(Duration::from(core::time::Duration::from(span)), span);
        assert_eq!(Duration::from(core::time::Duration::MAX), Duration::MAX);
    }

    #[test]
    fn what_is_not_a_duration_is_named_in_the_error() {
        for text in ["", ".", "s", "10 parsecs", "-3s", "1..2s", "99999999999999d"] {
            let error = text.parse::<Duration>().expect_err(text);
            assert!(format!("{error}").contains(text));
        }
    }

    #[test]
    fn slots_cover_time_without_gap() {
        let slot = Duration::from_millis(10);
        assert_eq!(Asn::at_or_after(Instant::from_millis(20), slot), Asn(2));
        assert_eq!(Asn::at_or_after(Instant::from_nanos(20_000_001), slot), Asn(3));
        assert_eq!(Asn::containing(Instant::from_nanos(29_999_999), slot), Asn(2));
        assert_eq!(Asn(3).start(slot), Instant::from_millis(30));
    }
}
