//! Conditional attributes of an observation (draft-ietf-core-conditional-attributes-12): which changes of a value are worth a
//! notification, and how often one leaves.
//!
//! ```text
//!   c.pmin, c.pmax   shortest and longest time between two notifications, seconds
//!   c.gt, c.lt       the value crosses this limit        c.st   it differs by so much from the last one
//!   c.band           it lies between c.gt and c.lt, or outside if c.gt is the larger one
//! ```
//! Left out: `c.edge` (a combined value is no boolean), `c.con`, and `c.epmin` and `c.epmax` (members say when they change).

use alloc::format;
use alloc::string::String;

use lowmesh_units::{Duration, Instant};
use lowmesh_wire::coap::{OptionNumber, Options};

use crate::params::{PERIOD_MAX, PERIOD_MIN};
use crate::refusal::Refusal;

/// How the arguments begin.
const PREFIX: &[u8] = b"c.";

/// The conditions of an observation.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub(crate) struct Condition {
    pmin: Option<Duration>,
    pmax: Option<Duration>,
    gt: Option<f64>,
    lt: Option<f64>,
    st: Option<f64>,
    band: bool,
}

/// When a notification leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Now,
    /// The value is news, and the shortest time is not over.
    At(Instant),
    Not,
}

impl Condition {
    /// Takes the conditions out of the options of a request.
    pub(crate) fn take(options: &mut Options) -> Result<Self, Refusal> {
        let mut condition = Self::default();
        for argument in options.iter().values(OptionNumber::URI_QUERY) {
            if let Some(rest) = argument.strip_prefix(PREFIX) {
                let text = core::str::from_utf8(rest).unwrap_or_default();
                condition.set(text.split_once('=').unwrap_or((text, "")))?;
            }
        }
        if let (Some(pmin), Some(pmax)) = (condition.pmin, condition.pmax)
            && pmax < pmin
        {
            return Err(Refusal::field("c.pmax: it is shorter than c.pmin"));
        }
        if condition.band && condition.gt.is_none() && condition.lt.is_none() {
            return Err(Refusal::field("c.band: it needs c.gt or c.lt"));
        }
        let is_ours = |value: &[u8]| value.starts_with(PREFIX);
        options.retain(|one| one.number != OptionNumber::URI_QUERY || !is_ours(one.value));
        Ok(condition)
    }
    fn set(&mut self, (key, value): (&str, &str)) -> Result<(), Refusal> {
        let refuse = |allowed: &str| Refusal::field(format!("c.{key}: {value:?} is not {allowed}"));
        let number = || value.trim_matches('"').parse().ok().filter(|one: &f64| one.is_finite());
        let positive = || number().filter(|one| *one > 0.0);
        let period = || {
            let most = PERIOD_MAX.as_secs_f64();
            let seconds = positive().filter(|seconds| *seconds <= most);
            let span = |seconds| Duration::from_secs(1).mul_f64(seconds);
            seconds.map(span).ok_or_else(|| refuse("a number of seconds above 0, up to 86400"))
        };
        match key {
            "pmin" => self.pmin = Some(period()?),
            "pmax" => {
                let pmax = period()?;
                if pmax < PERIOD_MIN {
                    return Err(refuse("a number of seconds from 1 to 86400"));
                }
                self.pmax = Some(pmax);
            }
            "gt" => self.gt = Some(number().ok_or_else(|| refuse("a number"))?),
            "lt" => self.lt = Some(number().ok_or_else(|| refuse("a number"))?),
            "st" => self.st = Some(positive().ok_or_else(|| refuse("a number above 0"))?),
            "band" => self.band = true,
            _ => {
                let known = "there are c.pmin, c.pmax, c.gt, c.lt, c.st and c.band";
                return Err(Refusal::field(format!("\"c.{key}\" is not a condition; {known}")));
            }
        }
        Ok(())
    }
    /// The first condition that only a number can meet, if there is one.
    pub(crate) fn needs_number(&self) -> Option<&'static str> {
        let all =
            [("c.gt", self.gt.is_some()), ("c.lt", self.lt.is_some()), ("c.st", self.st.is_some())];
        all.into_iter().find_map(|(name, given)| given.then_some(name))
    }
    /// The longest time between two notifications.
    pub(crate) const fn pmax(&self) -> Option<Duration> {
        self.pmax
    }
    /// Whether observers are to have a state, after the one that they got at `last`.
    pub(crate) fn verdict(
        &self,
        state: &State,
        (before, last): (&State, Instant),
        now: Instant,
    ) -> Verdict {
        if !self.is_met(state, before) {
            return Verdict::Not;
        }
        match self.pmin.map(|pmin| last + pmin) {
            Some(at) if at > now => Verdict::At(at),
            _ => Verdict::Now,
        }
    }
    fn is_met(&self, state: &State, before: &State) -> bool {
        let (State::Number(now), State::Number(before)) = (state, before) else {
            return state != before;
        };
        let step =
            self.st.map_or_else(|| now.total_cmp(before).is_ne(), |st| (now - before).abs() >= st);
        if self.band {
            return self.is_in_band(*now) && step;
        }
        if self.gt.is_none() && self.lt.is_none() {
            return step;
        }
        let crosses_gt = self.gt.is_some_and(|gt| (*now > gt) != (*before > gt));
        let crosses_lt = self.lt.is_some_and(|lt| (*now < lt) != (*before < lt));
        crosses_gt || crosses_lt || (self.st.is_some() && step)
    }
    fn is_in_band(&self, value: f64) -> bool {
        match (self.gt, self.lt) {
            (Some(gt), Some(lt)) if gt <= lt => gt <= value && value <= lt,
            (Some(gt), Some(lt)) => value < lt || value > gt,
            (Some(gt), None) => value <= gt,
            (None, lt) => lt.is_some_and(|lt| value >= lt),
        }
    }
}

/// The state of an entity, as far as conditions look at it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum State {
    /// One combined number.
    Number(f64),
    /// The text of a list.
    Text(String),
    /// Too few members answer.
    Missing,
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    fn condition(query: &str) -> Result<Condition, Refusal> {
        let mut options = Options::new();
        options.insert_query(query);
        let taken = Condition::take(&mut options)?;
        let left: Vec<&[u8]> = options.iter().values(OptionNumber::URI_QUERY).collect();
        assert!(left.iter().all(|one| !one.starts_with(b"c.")), "{left:?}");
        Ok(taken)
    }

    fn fires(query: &str, before: f64, now: f64) -> bool {
        let condition = condition(query).expect(query);
        condition.is_met(&State::Number(now), &State::Number(before))
    }

    #[test]
    fn each_attribute_decides_on_changes_as_the_draft_says() {
        for (query, before, now, notified) in [
            ("eo=avg", 20.0, 20.1, true),
            ("eo=avg", 20.0, 20.0, false),
            ("c.st=0.5", 20.0, 20.4, false),
            ("c.st=0.5", 20.0, 20.5, true),
            ("c.gt=25", 20.0, 24.0, false),
            ("c.gt=25", 24.0, 26.0, true),
            ("c.gt=25", 26.0, 27.0, false),
            ("c.gt=25", 26.0, 24.0, true),
            ("c.lt=10", 12.0, 9.0, true),
            ("c.lt=10&c.st=1", 12.0, 13.0, true),
            ("c.band&c.lt=10", 9.0, 11.0, true),
            ("c.band&c.gt=10", 9.0, 11.0, false),
            ("c.band&c.gt=10&c.lt=20", 9.0, 15.0, true),
            ("c.band&c.gt=10&c.lt=20", 15.0, 21.0, false),
            ("c.band&c.gt=20&c.lt=10", 15.0, 21.0, true),
            ("c.band&c.gt=20&c.lt=10", 15.0, 16.0, false),
        ] {
            assert_eq!(fires(query, before, now), notified, "{query}: {before} to {now}");
        }
    }

    #[test]
    fn a_change_within_the_shortest_time_waits_for_its_end() {
        let condition = condition("c.pmin=10").expect("seconds");
        let (before, state) = (State::Number(1.0), State::Number(2.0));
        let last = Instant::from_secs(100);
        let verdict = |now| condition.verdict(&state, (&before, last), Instant::from_secs(now));
        assert_eq!(verdict(105), Verdict::At(Instant::from_secs(110)));
        assert_eq!(verdict(110), Verdict::Now);
        assert_eq!(condition.verdict(&before, (&before, last), last), Verdict::Not);
    }

    #[test]
    fn what_cannot_be_met_is_refused_with_its_name() {
        for (query, says) in [
            ("c.pmin=0", "c.pmin"),
            ("c.pmax=soon", "c.pmax"),
            ("c.pmax=0.000000001", "from 1 to 86400"),
            ("c.pmin=5&c.pmax=4", "shorter"),
            ("c.st=-1", "above 0"),
            ("c.gt=NaN", "c.gt"),
            ("c.band", "needs c.gt"),
            ("c.edge=1", "not a condition"),
        ] {
            let refusal = condition(query).expect_err(query);
            assert!(refusal.detail.contains(says), "{query}: {}", refusal.detail);
        }
    }
}
