//! Comparisons in words, and the commands that reproduce them.

use crate::claims::claim::{Settings, Test};
use crate::claims::select::{Comparison, Side};
use crate::claims::value::Value;
use crate::command::Provenance;

/// One comparison in words.
pub(super) fn sentence(test: &Test, one: &Comparison<'_>, value: Option<&Value>) -> String {
    let place: Vec<String> = one
        .point
        .point
        .settings
        .iter()
        .filter(|(key, _)| test.left.as_ref().is_none_or(|left| !left.contains_key(key)))
        .map(|(key, value)| {
            let key = key.rsplit('.').next().unwrap_or(key);
            if key == "scenario" { value.clone() } else { format!("{key} {value}") }
        })
        .collect();
    let place = if test.on_average { "mean over all points".to_owned() } else { place.join(", ") };
    let Some(value) = value else { return format!("{place}: {} has no value", test.metric) };
    let number = value.words();
    let (Some(left), Some(right)) = (&test.left, &test.right) else {
        return format!("{place}: {} {number}", test.metric);
    };
    let name = |side: &Settings| side.values().cloned().collect::<Vec<_>>().join(" ");
    let shown = |side: &Side| {
        Value::of(side, test.statistic).map_or_else(|| "-".to_owned(), |value| value.words())
    };
    let of = if test.relative { " of it" } else { "" };
    format!(
        "{place}: {} {} {}, {} {}, difference {number}{of}",
        test.metric,
        name(left),
        shown(&one.left),
        name(right),
        shown(&one.right),
    )
}

/// A number with up to three digits after the point; a number of 100 or more has none.
pub(super) fn short(value: f64) -> String {
    let decimals = match value.abs() {
        size if size >= 100.0 => 0,
        size if size >= 1.0 => 2,
        _ => 3,
    };
    format!("{value:.decimals$}")
}

/// The numbers of comparisons out of `all` that hold, fail and are needed, in words.
pub(super) fn counted(needed: usize, all: usize, held: usize, failed: usize) -> String {
    let open = all.saturating_sub(held + failed);
    let asked = if needed == all { String::new() } else { format!(" ({needed} needed)") };
    let rest: Vec<String> = [(failed, "fail"), (open, "open")]
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, word)| format!("{count} {word}"))
        .collect();
    let rest = if rest.is_empty() { String::new() } else { format!(", {}", rest.join(", ")) };
    format!("holds at {held} of {all}{asked}{rest}")
}

/// The command that reproduces a comparison: both sides and their difference if they differ in one key, or the point if
/// there is only one side. For other comparisons there is none, and the command of the claim is shown.
pub(super) fn command(test: &Test, one: &Comparison<'_>, from: &Provenance) -> Option<String> {
    if test.on_average || test.knee_below.is_some() || !test.over.is_empty() {
        return None;
    }
    let (Some(left), Some(right)) = (&test.left, &test.right) else {
        return Some(from.point(&one.point.point));
    };
    let (key, _) = right.first_key_value().filter(|_| right.len() == 1)?;
    left.get(key).filter(|_| left.len() == 1)?;
    from.sides([&one.other?.point, &one.point.point], key, &test.metric)
}
