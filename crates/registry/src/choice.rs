//! A row with the numbers of a user.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use lowmesh_units::Duration;

use crate::error::{Breach, ParameterError};
use crate::parameter::{Domain, Order, Parameter, Value};
use crate::row::{Algorithm, Row};

/// A row and the values that replace its defaults.
pub struct Choice<A: Algorithm + ?Sized> {
    row: &'static Row<A>,
    /// By the index of the parameter, ascending.
    replaced: Vec<(usize, Value)>,
}

impl<A: Algorithm + ?Sized> From<&'static Row<A>> for Choice<A> {
    fn from(row: &'static Row<A>) -> Self {
        Self { row, replaced: Vec::new() }
    }
}

/// The first built-in row.
impl<A: Algorithm + ?Sized> Default for Choice<A> {
    fn default() -> Self {
        A::BUILTIN[0].into()
    }
}

impl<A: Algorithm + ?Sized> Clone for Choice<A> {
    fn clone(&self) -> Self {
        Self { row: self.row, replaced: self.replaced.clone() }
    }
}

impl<A: Algorithm + ?Sized> PartialEq for Choice<A> {
    fn eq(&self, other: &Self) -> bool {
        self.row == other.row && self.replaced == other.replaced
    }
}

impl<A: Algorithm + ?Sized> fmt::Debug for Choice<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.row.name)?;
        f.debug_map()
            .entries(self.replaced().map(|(parameter, value)| (parameter.key, value)))
            .finish()
    }
}

impl<A: Algorithm + ?Sized> Choice<A> {
    /// The row.
    pub fn row(&self) -> &'static Row<A> {
        self.row
    }
    /// The name of the row.
    pub fn name(&self) -> &'static str {
        self.row.name
    }
    /// The same with another value of one parameter, within its bounds.
    pub fn with(mut self, key: &str, value: impl Into<Value>) -> Result<Self, ParameterError> {
        self.set(key, value)?;
        Ok(self)
    }
    /// Replaces the value of one parameter; the default undoes a replacement.
    pub fn set(&mut self, key: &str, value: impl Into<Value>) -> Result<(), ParameterError> {
        let value = value.into();
        let Some((index, parameter)) = self.row.parameter(key) else {
            let known = self.row.parameters.iter().map(|parameter| parameter.key).collect();
            let (row, key) = (self.row.name, key.to_string());
            return Err(ParameterError::NoSuchKey { row, key, known });
        };
        if !parameter.admits(&value) {
            let (key, value) = (parameter.key, value.to_string());
            return Err(ParameterError::OutOfBounds { key, value, allowed: parameter.allowed() });
        }
        let is_default = parameter.default().as_ref() == Some(&value);
        match self.replaced.binary_search_by_key(&index, |(index, _)| *index) {
            Ok(at) if is_default => _ = self.replaced.remove(at),
            Ok(at) => self.replaced[at].1 = value,
            Err(_) if is_default => {}
            Err(at) => self.replaced.insert(at, (index, value)),
        }
        Ok(())
    }
    /// The replaced parameters with their values, in the order of the row.
    pub fn replaced(&self) -> impl Iterator<Item = (&'static Parameter, &Value)> {
        self.replaced.iter().map(|(index, value)| (&self.row.parameters[*index], value))
    }
    /// The paths of files among its values, for a reader that resolves them.
    pub fn files_mut(&mut self) -> impl Iterator<Item = &mut String> {
        self.replaced.iter_mut().filter_map(|(_, value)| match value {
            Value::File(path) => Some(path),
            _ => None,
        })
    }
    /// Whether every parameter has its default.
    pub fn is_plain(&self) -> bool {
        self.replaced.is_empty()
    }
    /// The value that replaces the default of `key`, if there is one.
    pub fn replacement(&self, key: &str) -> Option<&Value> {
        self.replaced().find(|(parameter, _)| parameter.key == key).map(|(_, value)| value)
    }
    /// Checks that nothing is missing, and the relations between the parameters; the error is the first.
    pub fn check(&self) -> Result<(), ParameterError> {
        self.errors().next().map_or(Ok(()), Err)
    }
    /// The parameters that are missing, and those that are not in order with others.
    pub fn errors(&self) -> impl Iterator<Item = ParameterError> {
        self.row.parameters.iter().filter_map(|parameter| {
            let key = parameter.key;
            let Some(value) = self.get(key) else {
                return Some(ParameterError::Missing { key, allowed: parameter.allowed() });
            };
            let (other, is_strict) = match parameter.order {
                Order::Free => return None,
                Order::NotAbove(other) => (other, false),
                Order::Below(other) => (other, true),
            };
            let most = self.get(other)?;
            let is_wrong = value > most || (is_strict && value == most);
            let (value, most) = (value.to_string(), most.to_string());
            is_wrong.then_some(ParameterError::Order { key, value, is_strict, other, most })
        })
    }
    /// The value of the parameter called `key`; `None` if the row does not declare it, or it has neither a default nor a
    /// replacement.
    pub fn get(&self, key: &str) -> Option<Value> {
        let (_, parameter) = self.row.parameter(key)?;
        self.replacement(key).cloned().or_else(|| parameter.default())
    }
    /// The value of the parameter called `key`.
    ///
    /// # Panics
    ///
    /// If the row does not declare it, or the value is [missing](Self::check).
    pub fn value(&self, key: &str) -> Value {
        self.get(key).expect("a row reads the parameters that it declares")
    }
    /// A parameter that is a number.
    ///
    /// # Panics
    ///
    /// If the row does not declare it as a number; so do the functions below for their types.
    pub fn number(&self, key: &str) -> f64 {
        let Value::Number(number) = self.value(key) else { panic!("`{key}` is not a number") };
        number
    }
    /// A parameter that is a whole number, in a type that holds its bounds.
    pub fn whole<T: TryFrom<u64>>(&self, key: &str) -> T {
        let Value::Whole(number) = self.value(key) else { panic!("`{key}` is not whole") };
        T::try_from(number).unwrap_or_else(|_| panic!("`{key}` has wider bounds than its type"))
    }
    /// A parameter that is a time span.
    pub fn time(&self, key: &str) -> Duration {
        let Value::Time(time) = self.value(key) else { panic!("`{key}` is not a time") };
        time
    }
    /// A parameter that is yes or no.
    pub fn flag(&self, key: &str) -> bool {
        let Value::Flag(flag) = self.value(key) else { panic!("`{key}` is not yes or no") };
        flag
    }
    /// A parameter that is a name or the path of a file.
    pub fn text(&self, key: &str) -> String {
        match self.value(key) {
            Value::Name(name) => name.to_string(),
            Value::File(path) => path,
            _ => panic!("`{key}` is not a text"),
        }
    }
    /// A parameter that is a square of shares.
    pub fn matrix(&self, key: &str) -> Vec<Vec<f64>> {
        let Value::Matrix(rows) = self.value(key) else { panic!("`{key}` is not a matrix") };
        rows
    }
}

impl<A: Algorithm + ?Sized> Row<A> {
    /// Checks what it declares: summaries of one line, keys that differ, sources, defaults and ranges of search within
    /// bounds, and defaults in their order.
    pub fn check(&'static self) -> Result<(), Breach> {
        self.declared().map_err(|what| self.breach(what))
    }
    fn declared(&'static self) -> Result<(), String> {
        if !is_one_line(self.summary) {
            return Err("its summary is not one line without a full stop".to_string());
        }
        if self.section.is_empty() && !self.parameters.is_empty() {
            return Err("it has parameters, and no section for them".to_string());
        }
        for (index, parameter) in self.parameters.iter().enumerate() {
            let key = parameter.key;
            if self.parameter(key).map(|(first, _)| first) != Some(index) {
                return Err(format!("it has two parameters `{key}`"));
            }
            let default = parameter.default();
            let is_sourced = default.is_none() || is_one_line(parameter.source);
            if !is_one_line(parameter.summary) || !is_sourced {
                return Err(format!(
                    "the summary or the source of `{key}` is not one line without a full stop"
                ));
            }
            if (parameter.domain == Domain::File) == parameter.example.is_empty() {
                return Err(format!(
                    "`{key}` has an example and is no file, or is a file without one"
                ));
            }
            if let Order::NotAbove(other) | Order::Below(other) = parameter.order
                && self.parameter(other).is_none()
            {
                return Err(format!("`{key}` is compared with `{other}`, which it does not have"));
            }
            let is_allowed = default.is_none_or(|value| parameter.admits(&value));
            if !is_allowed || !parameter.is_searched_within_bounds() {
                return Err(format!("`{key}` has a default or a range of search out of bounds"));
            }
        }
        let is_order = |error: &ParameterError| matches!(error, ParameterError::Order { .. });
        let error = Choice::from(self).errors().find(is_order);
        error.map_or(Ok(()), |error| Err(error.to_string()))
    }
}

fn is_one_line(text: &str) -> bool {
    !text.is_empty() && !text.ends_with('.') && !text.contains('\n')
}
