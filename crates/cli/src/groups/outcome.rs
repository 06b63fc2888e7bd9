//! The result of a query, read from its SenML: a line for each member, with its code and its value or reason.
//!
//! ```text
//!   NAME          a value, perhaps with a time   NAME/code    the code of a member, without a value or with a failure
//!                                               NAME/reason  why the member failed
//! ```

use std::io::Write;

use comfy_table::{Table, presets};
use lowmesh_net::client::Response;
use lowmesh_wire::senml::{Measurement, Value, parse_json, resolve};
use serde_json::json;

use super::access::strange;
use crate::diagnostic::hex;
use crate::failure::Failure;

/// What one member has answered, or the value that was computed of several.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    name: String,
    code: String,
    value: Option<Value>,
    unit: Option<String>,
    /// Seconds since 1970, or from now.
    time: Option<f64>,
    reason: Option<String>,
}

/// What all members have answered.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    code: String,
    lines: Vec<Line>,
}

impl Outcome {
    /// Reads an answer in SenML.
    pub fn read(answer: &Response) -> Result<Self, Failure> {
        let text = std::str::from_utf8(answer.payload());
        let pack = text.ok().and_then(|text| parse_json(text.as_bytes()).ok());
        let all = pack.and_then(|pack| resolve(&pack, 0.0).ok());
        let all = all.ok_or_else(|| strange("it is not SenML"))?;
        let code = answer.message.code.to_string();
        Ok(Self { lines: lines(&code, all), code })
    }
    /// Members that failed.
    fn failed(&self) -> usize {
        self.lines.iter().filter(|line| line.reason.is_some()).count()
    }
    /// Writes the result; an error if a member failed.
    pub fn show(&self, name: &str, json: bool, out: &mut impl Write) -> Result<(), Failure> {
        if json {
            writeln!(out, "{}", self.object(name))?;
        } else {
            let table = self.table();
            for line in table.lines() {
                writeln!(out, "{}", line.trim_end())?;
            }
        }
        match self.failed() {
            0 => Ok(()),
            failed => Err(Failure::Partial { failed, all: self.members().count() }),
        }
    }
    /// Lines of members, without the value that was computed of several.
    fn members(&self) -> impl Iterator<Item = &Line> {
        self.lines.iter().filter(|line| !self.is_combined(line))
    }
    /// Whether a line is a value of the whole entity: members that are in it have no value of their own.
    fn is_combined(&self, line: &Line) -> bool {
        let without = |line: &Line| line.value.is_none() && line.reason.is_none();
        line.value.is_some() && self.lines.iter().any(without)
    }
    fn table(&self) -> Table {
        let mut table = Table::new();
        table.load_style(presets::NOTHING).set_header(["member", "code", "value"]);
        for line in &self.lines {
            table.add_row([&line.name, &line.code, &line.said()]);
        }
        table
    }
    fn object(&self, name: &str) -> serde_json::Value {
        let all: Vec<&Line> = self.lines.iter().filter(|line| self.is_combined(line)).collect();
        // Several quantities have a value each, and no common one.
        let (combined, values) = match &all[..] {
            [only] => (Some(*only), Vec::new()),
            several => (None, several.iter().map(|line| line.object()).collect()),
        };
        let members: Vec<_> = self.members().map(Line::object).collect();
        json!({
            "schema": 1,
            "entity": name,
            "code": self.code,
            "value": combined.and_then(Line::number),
            "unit": combined.and_then(|line| line.unit.as_deref()),
            "values": values,
            "failed": self.failed(),
            "members": members,
        })
    }
}

impl Line {
    fn number(&self) -> Option<serde_json::Value> {
        self.value.as_ref().map(|value| match value {
            Value::Number(number) => json!(number),
            Value::Text(text) => json!(text),
            Value::Boolean(one) => json!(one),
            Value::Data(data) => json!(hex(data)),
        })
    }
    /// The value with its unit, or the reason.
    fn said(&self) -> String {
        let value = match (&self.reason, &self.value) {
            (Some(reason), _) => return visible(reason),
            (None, None) => String::new(),
            (None, Some(Value::Number(number))) => number.to_string(),
            (None, Some(Value::Text(text))) => visible(text),
            (None, Some(Value::Boolean(one))) => one.to_string(),
            (None, Some(Value::Data(data))) => hex(data),
        };
        let unit = self.unit.as_ref().map(|unit| format!(" {}", visible(unit)));
        let time = self.time.map(|time| format!(" t={time}"));
        value + &unit.unwrap_or_default() + &time.unwrap_or_default()
    }
    fn object(&self) -> serde_json::Value {
        json!({
            "name": self.name,
            "code": self.code,
            "value": self.number(),
            "unit": self.unit,
            "time": self.time,
            "reason": self.reason,
        })
    }
}

/// Control characters of a peer do not reach a terminal.
fn visible(text: &str) -> String {
    text.replace(char::is_control, "\u{fffd}")
}

fn lines(code: &str, measurements: Vec<Measurement>) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    for one in measurements {
        let text = match &one.value {
            Some(Value::Text(text)) => Some(text.as_str()),
            _ => None,
        };
        if let (Some(text), Some(name)) = (text, one.name.strip_suffix("/reason"))
            && let Some(line) = lines.last_mut().filter(|line| line.name == name)
        {
            line.reason = Some(text.to_owned());
            continue;
        }
        let of_code = one.name.strip_suffix("/code").zip(text.filter(|text| is_code(text)));
        lines.push(if let Some((name, code)) = of_code {
            let (name, code) = (name.to_owned(), code.to_owned());
            Line { name, code, value: None, unit: None, time: None, reason: None }
        } else {
            let (name, value, unit) = (visible(&one.name), one.value, one.unit);
            let time = (one.time != 0.0).then_some(one.time);
            Line { name, code: code.to_owned(), value, unit, time, reason: None }
        });
    }
    lines
}

/// A code as text: a class, a point and two digits.
fn is_code(text: &str) -> bool {
    matches!(text.as_bytes(), [b'2'..=b'5', b'.', b'0'..=b'9', b'0'..=b'9'])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(pack: &str) -> Outcome {
        let pack = parse_json(pack.as_bytes()).expect("SenML");
        let lines = lines("2.05", resolve(&pack, 0.0).expect("whole"));
        Outcome { code: "2.05".to_owned(), lines }
    }

    fn shown(outcome: &Outcome) -> (Vec<String>, Result<(), Failure>) {
        let mut out = Vec::new();
        let ended = outcome.show("room", false, &mut out);
        let text = String::from_utf8(out).expect("text");
        let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        (text.lines().map(words).collect(), ended)
    }

    #[test]
    fn a_list_has_a_line_for_each_member_with_its_value() {
        let outcome = outcome(r#"[{"n":"a/t","u":"Cel","v":20},{"n":"b/t","vs":"on"}]"#);
        let (lines, ended) = shown(&outcome);
        assert_eq!(lines, ["member code value", "a/t 2.05 20 Cel", "b/t 2.05 on"]);
        assert!(ended.is_ok());
        assert_eq!(outcome.object("room")["value"], serde_json::Value::Null);
    }

    #[test]
    fn a_mean_stands_before_its_members_and_a_failure_has_its_reason() {
        let outcome = outcome(
            r#"[{"n":"e/room/avg","v":20},{"n":"a/t/code","vs":"2.05"},
                {"n":"b/t/code","vs":"5.04"},{"n":"b/t/reason","vs":"silent"}]"#,
        );
        let (lines, ended) = shown(&outcome);
        assert_eq!(lines[1..], ["e/room/avg 2.05 20", "a/t 2.05", "b/t 5.04 silent"]);
        assert!(matches!(ended, Err(Failure::Partial { failed: 1, all: 2 })));
        let object = outcome.object("room");
        assert_eq!((&object["value"], &object["failed"]), (&json!(20.0), &json!(1)));
        assert_eq!(object["members"][1]["reason"], "silent");
    }

    #[test]
    fn each_quantity_stands_before_the_members() {
        let outcome = outcome(
            r#"[{"n":"e/s/avg/temp","u":"Cel","v":20},{"n":"e/s/avg/hum","v":50},{"n":"a/t/code","vs":"2.05"}]"#,
        );
        let (lines, ended) = shown(&outcome);
        assert_eq!(lines[1..], ["e/s/avg/temp 2.05 20 Cel", "e/s/avg/hum 2.05 50", "a/t 2.05"]);
        assert!(ended.is_ok());
        let object = outcome.object("s");
        assert_eq!((&object["value"], &object["values"][1]["value"]), (&json!(null), &json!(50.0)));
        assert_eq!(object["members"].as_array().map(Vec::len), Some(1));
    }

    #[test]
    fn a_reading_shows_its_time() {
        let outcome = outcome(r#"[{"n":"a/t","v":20,"t":-60},{"n":"b/t","u":"Cel","v":21}]"#);
        assert_eq!(shown(&outcome).0[1..], ["a/t 2.05 20 t=-60", "b/t 2.05 21 Cel"]);
    }

    #[test]
    fn the_value_of_a_resource_that_is_called_code_stays_a_value() {
        let outcome = outcome(r#"[{"n":"door/code","vs":"1234"},{"n":"gate/code","v":5}]"#);
        let (lines, _) = shown(&outcome);
        assert_eq!(lines[1..], ["door/code 2.05 1234", "gate/code 2.05 5"]);
    }
}
