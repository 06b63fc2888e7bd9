//! How a scenario names algorithms, and reads and writes their parameters.
//!
//! The parameters of a row are in a section of their own, as `[cocoa]` beside `coap.congestion`, or in the section of the
//! key that names the row, as those of scheduling functions beside `schedule.function`.

use lowmesh_registry::{
    self as registry, Algorithm, Bounded, Choice, Declaration, Domain, Kind, Parameter,
    ParameterError, Row,
};
use toml::de::DeValue;

use super::error::{Fault, Origin, similar};
use super::key::{Key, merged};
use super::rows::{Listed, Rows};
use super::section::{Cursor, Lines, Section};
use super::value::{Any, Mismatch, Named, NotEmpty, Rule, Value, Within, literal, quoted};

impl<A: Listed + ?Sized> Value for &'static Row<A> {
    fn noun(rows: &Rows) -> String {
        format!("one of {}", Named::join(&Self::names(rows)))
    }
    fn read(value: &DeValue<'_>, rows: &Rows) -> Result<Self, Mismatch> {
        let (rows, text) = (A::registry(rows), value.as_str().unwrap_or_default());
        rows.row(text).map_err(|_| Mismatch { similar: similar(text, rows.names()) })
    }
    fn names(rows: &Rows) -> Vec<Named> {
        let named = |row: &'static Row<A>| Named { name: row.name, summary: row.summary };
        A::registry(rows).rows().map(named).collect()
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
    fn names(rows: &Rows) -> Vec<Named> {
        <&Row<A>>::names(rows)
    }
    fn write(&self) -> Option<String> {
        self.row().write()
    }
    fn meaning(&self) -> Option<&'static str> {
        self.row().meaning()
    }
}

/// The section and the key in it that name an implementation.
fn chooser<A: Algorithm + ?Sized>() -> (&'static str, &'static str) {
    A::KEY.rsplit_once('.').expect("a chooser is a key of a section")
}

/// A section in which one key names a row, and the other keys are the parameters of that row.
impl<A: Listed + ?Sized> Section for Choice<A> {
    fn keys(rows: &Rows) -> Vec<Key> {
        keys_beside(&A::registry(rows).kind(), rows)
    }
    fn read(cursor: &mut Cursor<'_, '_>) -> Self {
        let (section, key) = chooser::<A>();
        let rows: Vec<_> = A::registry(cursor.rows()).rows().collect();
        let names: Vec<_> = rows.iter().map(|row| row.name).collect();
        let row = rows[cursor.choice(key, &names, 0)];
        cursor.foreign(<Self as Section>::keys(cursor.rows()));
        let mut choice = Self::from(row);
        if row.section == section {
            for parameter in row.parameters {
                if let Some(value) = cursor.parameter(parameter) {
                    choice.set(parameter.key, value).expect("the reader has applied the bounds");
                }
            }
            for error in choice.errors() {
                cursor.order(A::KEY, section, &error, str::to_owned);
            }
        }
        choice
    }
    fn write(&self, lines: &mut Lines) {
        let ((section, key), row) = (chooser::<A>(), self.row());
        lines.literal(key, &quoted(row.name), &format!("{}.", row.summary));
        for parameter in row.parameters.iter().filter(|_| row.section == section) {
            if let Some(value) = self.get(parameter.key) {
                lines.literal(parameter.key, &literal(&value), &meaning(parameter));
            }
        }
    }
}

/// The key that names a row of this kind, and the keys of the rows whose parameters are beside it.
fn keys_beside(kind: &Kind, rows: &Rows) -> Vec<Key> {
    let named = |row: &Declaration| Named { name: row.name, summary: row.summary };
    let names = kind.rows.iter().map(named).collect();
    let choice = Key::choice(kind.chooser().1, names, &format!("The {}.", kind.noun));
    let parameters = kind.beside().flat_map(|row| row.parameters);
    merged(std::iter::once(choice).chain(parameters.map(|one| Key::parameter(one, rows))))
}

impl Cursor<'_, '_> {
    /// Reads the sections that rows of an algorithm have of their own, and puts the values of the chosen row into `choice`.
    pub fn numbers<A: Listed + ?Sized>(&mut self, choice: &mut Choice<A>) {
        let rows: Vec<_> = A::registry(self.rows()).rows().collect();
        let has_own = |row: &&&'static Row<A>| !["", chooser::<A>().0].contains(&row.section);
        for first in rows.iter().filter(has_own) {
            let (section, chosen) = (first.section, choice.row());
            if self.knows(section) {
                continue;
            }
            let is_chosen = chosen.section == section;
            let row = if is_chosen { chosen } else { first };
            let read = |cursor: &mut Cursor<'_, '_>| -> Vec<_> {
                let read = |one: &'static Parameter| {
                    if !is_chosen && one.default().is_none() {
                        cursor.elsewhere(one.key);
                        return None;
                    }
                    cursor.parameter(one).map(|it| (one.key, it))
                };
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
                self.conflict(A::KEY, A::KEY, message);
                continue;
            }
            for (key, number) in numbers {
                choice.set(key, number).expect("the reader has applied the parameter's bounds");
            }
            for error in choice.errors() {
                self.order(A::KEY, section, &error, |key| format!("{section}.{key}"));
            }
        }
    }

    /// The value of a parameter of a row; nothing where the default holds, or where an error is noted.
    fn parameter(&mut self, parameter: &'static Parameter) -> Option<registry::Value> {
        use registry::Value as V;
        let key = parameter.key;
        match parameter.domain {
            Domain::Flag(_) => self.value(key, None::<bool>, &Any).map(V::Flag),
            Domain::Whole(bounds) => self.value(key, None, &within(bounds)).map(V::Whole),
            Domain::Number(bounds) => self.value(key, None, &within(bounds)).map(V::Number),
            Domain::Time(bounds) => self.value(key, None, &within(bounds)).map(V::Time),
            Domain::Name(names) => {
                let index = self.name(key, names).ok().flatten();
                index.map(|index| V::Name(names[index]))
            }
            // These have no default, so what is absent is noted, and an empty one stands for it.
            Domain::File => Some(V::File(self.value(key, String::new(), &NotEmpty)))
                .filter(|it| parameter.admits(it)),
            Domain::Matrix => Some(V::Matrix(self.value(key, Vec::new(), &Square)))
                .filter(|it| parameter.admits(it)),
        }
    }

    /// Notes two values of a row that are not in order. Values that are missing are noted where they are read.
    fn order(
        &self,
        chooser: &str,
        section: &str,
        error: &ParameterError,
        path: impl Fn(&str) -> String,
    ) {
        let ParameterError::Order { key, value, is_strict, other, most } = error else { return };
        let relation = if *is_strict { "not below" } else { "above" };
        let message = format!("{value} is {relation} {section}.{other} = {most}");
        self.conflict(chooser, &path(key), message);
    }

    /// Notes that values do not go together, unless the value of `chooser` is wrong already.
    fn conflict(&self, chooser: &str, key: &str, message: String) {
        if !self.is_wrong(chooser) {
            self.note(Origin::Whole, key, Fault::Conflict(message));
        }
    }
}

const fn within<T: Copy>(bounds: Bounded<T>) -> Within<T> {
    Within(bounds.low, bounds.high)
}

/// As many columns as rows, and shares; the parameter's own bounds in the words of scenarios.
struct Square;

impl Rule<Vec<Vec<f64>>> for Square {
    fn admits(&self, rows: &Vec<Vec<f64>>) -> bool {
        Parameter::matrix("", "").admits(&registry::Value::Matrix(rows.clone()))
    }
    fn words(&self) -> String {
        " from 0 to 1, as many in each row as there are rows".to_owned()
    }
}

impl Lines {
    /// Writes the section with the values that replace the defaults of a row, if there are any. With comments it also
    /// lists the defaults, as comments. Values beside the key that names the row are written with that key.
    pub fn numbers<A: Algorithm + ?Sized>(&mut self, choice: &Choice<A>) {
        let row = choice.row();
        let has_own = !["", chooser::<A>().0].contains(&row.section);
        if !has_own || (choice.is_plain() && !self.is_commented()) {
            return;
        }
        self.heading(row.section);
        for parameter in row.parameters {
            let (key, meaning) = (parameter.key, meaning(parameter));
            if let Some(replacement) = choice.replacement(key) {
                self.literal(key, &literal(replacement), &meaning);
            } else if let Some(default) = parameter.default().filter(|_| self.is_commented()) {
                self.literal(&format!("# {key}"), &literal(&default), &meaning);
            }
        }
    }
}

/// What a parameter does, with its bounds, its unit and the source of its default.
fn meaning(parameter: &Parameter) -> String {
    let Parameter { summary, source, .. } = parameter;
    let from = if source.is_empty() { String::new() } else { format!("; {source}") };
    format!("{summary} ({}{from}).", parameter.allowed())
}
