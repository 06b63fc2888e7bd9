//! Ranges of values: `2..20 step 2`, `0.1..0.5 step 0.1`, `2s..20s step 2s`.
//!
//! Both ends belong to a range; one that the steps do not meet is left out. Decimals are counted in whole units
//! of their last place, so that the third step of 0.1 is 0.3.

use lowmesh_units::Duration;

use super::value::quoted;

/// What a wrong range should have been.
const SHAPE: &str =
    "a range as \"2..20 step 2\" or \"2s..20s step 2s\", upwards and with a step above 0";

/// The values of the range as TOML; none for a text that is no range, an error for a wrong one.
pub fn expand(text: &str, values_max: usize) -> Option<Result<Vec<String>, String>> {
    let (low, rest) = text.split_once("..")?;
    let (high, step) = match rest.split_once("step") {
        Some((high, step)) => (high, Some(step)),
        None => (rest, None),
    };
    Some(range(low.trim(), high.trim(), step.map(str::trim), values_max))
}

fn range(
    low: &str,
    high: &str,
    step: Option<&str>,
    values_max: usize,
) -> Result<Vec<String>, String> {
    let shape = || SHAPE.to_owned();
    if let (Some(low), Some(high)) = (Decimal::read(low), Decimal::read(high)) {
        let step = match step {
            Some(step) => Decimal::read(step).ok_or_else(shape)?,
            // Between whole numbers one step is meant; between others nobody knows.
            None if low.places == 0 && high.places == 0 => Decimal { units: 1, places: 0 },
            None => return Err(shape()),
        };
        let places = low.places.max(high.places).max(step.places);
        let [low, high, step] = [low, high, step].map(|decimal| decimal.in_places(places));
        let counted = count(low, high, step, values_max)?;
        return Ok(counted.map(|units| Decimal { units, places }.write()).collect());
    }
    let time = |text: &str| -> Result<i128, String> {
        text.parse::<Duration>().map(|time| time.as_nanos().into()).map_err(|_| shape())
    };
    let counted = count(time(low)?, time(high)?, time(step.ok_or_else(shape)?)?, values_max)?;
    let write = |nanos: i128| quoted(&Duration::from_nanos(nanos as u64).to_string());
    Ok(counted.map(write).collect())
}

/// From `low` to `high` in steps, when that is upwards and not too long.
fn count(
    low: i128,
    high: i128,
    step: i128,
    values_max: usize,
) -> Result<impl Iterator<Item = i128>, String> {
    if step <= 0 || low > high {
        return Err(SHAPE.to_owned());
    }
    let steps = (high - low) / step;
    if steps >= values_max as i128 {
        return Err(format!("a range of at most {values_max} values"));
    }
    Ok((0..=steps).map(move |i| low + i * step))
}

/// A number as so many units of its last decimal place.
#[derive(Clone, Copy)]
struct Decimal {
    units: i128,
    places: u32,
}

/// The most decimal places that a range counts in; with them every number stays well within 128 bits.
const PLACES_MAX: u32 = 12;

impl Decimal {
    fn read(text: &str) -> Option<Self> {
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        let places = u32::try_from(fraction.len()).ok().filter(|places| *places <= PLACES_MAX)?;
        let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        let bare = whole.strip_prefix('-').unwrap_or(whole);
        if bare.is_empty() || bare.len() > 18 || !digits(bare) || !digits(fraction) {
            return None;
        }
        let units = format!("{whole}{fraction}").parse().ok()?;
        Some(Self { units, places })
    }

    fn in_places(self, places: u32) -> i128 {
        self.units * 10_i128.pow(places - self.places)
    }

    fn write(self) -> String {
        if self.places == 0 {
            return self.units.to_string();
        }
        let unit = 10_i128.pow(self.places);
        let sign = if self.units < 0 { "-" } else { "" };
        let (whole, fraction) = (self.units.abs() / unit, self.units.abs() % unit);
        format!("{sign}{whole}.{fraction:0width$}", width = self.places as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(text: &str) -> Vec<String> {
        expand(text, 100).expect("a range").expect("a right one")
    }

    #[test]
    fn both_ends_belong_to_a_range() {
        assert_eq!(values("2..8 step 2"), ["2", "4", "6", "8"]);
        assert_eq!(values("-2..1"), ["-2", "-1", "0", "1"]);
        assert_eq!(values("2s..6s step 2s"), ["\"2s\"", "\"4s\"", "\"6s\""]);
    }

    #[test]
    fn an_end_that_no_step_meets_is_left_out() {
        assert_eq!(values("1..6 step 2"), ["1", "3", "5"]);
        assert_eq!(values("500ms..2s step 1s"), ["\"500ms\"", "\"1500ms\""]);
    }

    #[test]
    fn decimals_are_counted_without_rounding() {
        assert_eq!(values("0.1..0.5 step 0.1"), ["0.1", "0.2", "0.3", "0.4", "0.5"]);
        assert_eq!(values("-0.5..0.5 step 0.25"), ["-0.50", "-0.25", "0.00", "0.25", "0.50"]);
    }

    #[test]
    fn wrong_ranges_are_told_apart_from_other_texts() {
        assert_eq!(expand("cocoa", 100), None);
        for wrong in ["5..2 step 1", "2..5 step 0", "2s..5s", "a..b", "0.1..0.5", "1..2 step 1s"] {
            assert_eq!(expand(wrong, 100), Some(Err(SHAPE.to_owned())), "{wrong}");
        }
        let long = expand("0..100", 100).expect("a range").expect_err("101 values");
        assert_eq!(long, "a range of at most 100 values");
    }
}
