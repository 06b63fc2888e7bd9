//! How a scenario names algorithms, and reads and writes their numbers.

use lowmesh_registry::{self as registry, Algorithm, Choice, Parameter, ParameterError, Row};
use toml::de::DeValue;

use super::error::{Fault, Origin, similar};
use super::rows::{Listed, Rows};
use super::section::{Cursor, Lines};
use super::value::{Any, Mismatch, Value, Within, quoted};

impl<A: Listed + ?Sized> Value for &'static Row<A> {
    fn noun(rows: &Rows) -> String {
        format!("one of {}", A::registry(rows).names().collect::<Vec<_>>().join(", "))
    }
    fn read(value: &DeValue<'_>, rows: &Rows) -> Result<Self, Mismatch> {
        let (rows, text) = (A::registry(rows), value.as_str().unwrap_or_default());
        rows.row(text).map_err(|_| Mismatch { similar: similar(text, rows.names()) })
    }
    fn write(&self) -> Option<String> {
        Some(quoted(self.name))
    }
    fn meaning(&self) -> Option<&'static str> {
        Some(self.summary)
    }
}

impl<A: Listed + ?Sized> Value for Choice<A> {
    fn noun(rows: &Rows) -> String {
        <&Row<A>>::noun(rows)
    }
    fn read(value: &DeValue<'_>, rows: &Rows) -> Result<Self, Mismatch> {
        <&Row<A>>::read(value, rows).map(Self::from)
    }
    fn write(&self) -> Option<String> {
        self.row().write()
    }
    fn meaning(&self) -> Option<&'static str> {
        self.row().meaning()
    }
}

impl Cursor<'_, '_> {
    /// Reads the sections of all rows of an algorithm, and puts the numbers of the chosen row into `choice`. `chooser`
    /// is the dotted key that has chosen it.
    pub fn numbers<A: Listed + ?Sized>(&mut self, chooser: &str, choice: &mut Choice<A>) {
        let rows: Vec<_> = A::registry(self.rows()).rows().collect();
        for first in rows.iter().filter(|row| !row.section.is_empty()) {
            let (section, chosen) = (first.section, choice.row());
            if self.knows(section) {
                continue;
            }
            let is_chosen = chosen.section == section;
            let row = if is_chosen { chosen } else { first };
            let read = |cursor: &mut Cursor<'_, '_>| -> Vec<_> {
                let read = |one: &'static Parameter| cursor.parameter(one).map(|it| (one.key, it));
                row.parameters.iter().filter_map(read).collect()
            };
            let numbers = self.within(section, read);
            if !is_chosen && !numbers.is_empty() {
                let with: Vec<_> = rows.iter().filter(|row| row.section == section).collect();
                let names: Vec<_> = with.iter().map(|row| row.name).collect();
                let message = format!(
                    "\"{}\" has none of the keys of [{section}]; write one of {}, or leave [{section}] out",
                    chosen.name,
                    names.join(", ")
                );
                self.conflict(chooser, chooser, message);
                continue;
            }
            for (key, number) in numbers {
                choice.set(key, number).expect("the reader has applied the parameter's bounds");
            }
            if let Err(ParameterError::Above { key, value, other, most }) = choice.check() {
                let message = format!("{value} is above {section}.{other} = {most}");
                self.conflict(chooser, &format!("{section}.{key}"), message);
            }
        }
    }

    fn parameter(&mut self, parameter: &'static Parameter) -> Option<registry::Value> {
        use registry::Value::{Flag, Number, Time, Whole};
        let key = parameter.key;
        match parameter.bounds {
            (Flag(_), _) => self.value(key, None::<bool>, &Any).map(Flag),
            (Whole(low), Whole(high)) => self.value(key, None, &Within(low, high)).map(Whole),
            (Number(low), Number(high)) => self.value(key, None, &Within(low, high)).map(Number),
            (Time(low), Time(high)) => self.value(key, None, &Within(low, high)).map(Time),
            _ => unreachable!("the constructors of a parameter give both bounds the same type"),
        }
    }

    /// Notes that values do not go together, unless the value of `chooser` is wrong already.
    fn conflict(&self, chooser: &str, key: &str, message: String) {
        if !self.is_wrong(chooser) {
            self.note(Origin::Whole, key, Fault::Conflict(message));
        }
    }
}

impl Lines {
    /// Writes the section with the numbers that replace the defaults of a row, if there are any. With comments it also
    /// lists the defaults, as comments.
    pub fn numbers<A: Algorithm + ?Sized>(&mut self, choice: &Choice<A>) {
        let row = choice.row();
        if choice.is_plain() && (row.section.is_empty() || !self.is_commented()) {
            return;
        }
        self.heading(row.section);
        for parameter in row.parameters {
            let replacement = choice.replacement(parameter.key);
            let value = replacement.unwrap_or(parameter.default);
            let meaning = format!("{} ({}).", parameter.summary, parameter.allowed());
            if replacement.is_some() {
                self.literal(parameter.key, &literal(value), &meaning);
            } else if self.is_commented() {
                self.literal(&format!("# {}", parameter.key), &literal(value), &meaning);
            }
        }
    }
}

/// The TOML literal of a parameter's value.
fn literal(value: registry::Value) -> String {
    let literal = match value {
        registry::Value::Flag(flag) => flag.write(),
        registry::Value::Whole(number) => number.write(),
        registry::Value::Number(number) => number.write(),
        registry::Value::Time(time) => time.write(),
    };
    literal.unwrap_or_default()
}
