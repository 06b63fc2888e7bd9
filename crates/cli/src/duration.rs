//! Times on the command line: `30`, `30s`, `1.5min`, `250ms`; a number alone counts seconds.

use lowmesh_units::Duration;

/// The longest wait that a flag takes.
const WAIT_MAX: Duration = Duration::from_secs(24 * 3600);

/// Reads a time above zero.
pub fn positive(text: &str) -> Result<Duration, String> {
    let time: Duration = text.parse().map_err(|error| format!("{error}"))?;
    if time.is_zero() { Err("it must be longer than 0s".to_owned()) } else { Ok(time) }
}

/// Reads a time to wait: above zero, and no longer than a day.
pub fn wait(text: &str) -> Result<Duration, String> {
    positive(text).and_then(|time| {
        if time > WAIT_MAX { Err("the longest is 1d".to_owned()) } else { Ok(time) }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_alone_counts_seconds() {
        assert_eq!(wait("2.5"), Ok(Duration::from_millis(2500)));
        assert_eq!(wait("90"), wait("1.5min"));
        assert_eq!(wait("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(wait("1d"), Ok(WAIT_MAX));
    }

    #[test]
    fn a_time_that_cannot_be_waited_for_is_refused() {
        for wrong in ["0", "0ms", "-1", "NaN", "inf", "soon", "25h", "5 parsecs"] {
            assert!(wait(wrong).is_err(), "{wrong}");
        }
    }
}
