//! A row with the numbers of a user.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use lowmesh_units::Duration;

use crate::error::ParameterError;
use crate::parameter::{Order, Parameter, Value};
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
    /// Replaces the value of one parameter.
    pub fn set(&mut self, key: &str, value: impl Into<Value>) -> Result<(), ParameterError> {
        let value = value.into();
        let Some((index, parameter)) = self.row.parameter(key) else {
            let known = self.row.parameters.iter().map(|parameter| parameter.key).collect();
            let (row, key) = (self.row.name, key.to_string());
            return Err(ParameterError::NoSuchKey { row, key, known });
        };
        if !parameter.admits(value) {
            let (key, value) = (parameter.key, value.to_string());
            return Err(ParameterError::OutOfBounds { key, value, allowed: parameter.allowed() });
        }
        match self.replaced.binary_search_by_key(&index, |(index, _)| *index) {
            Ok(at) => self.replaced[at].1 = value,
            Err(at) => self.replaced.insert(at, (index, value)),
        }
        Ok(())
    }
    /// The replaced parameters with their values, in the order of the row.
    pub fn replaced(&self) -> impl Iterator<Item = (&'static Parameter, Value)> {
        self.replaced.iter().map(|(index, value)| (&self.row.parameters[*index], *value))
    }
    /// Whether every parameter has its default.
    pub fn is_plain(&self) -> bool {
        self.replaced.is_empty()
    }
    /// The value that replaces the default of `key`, if there is one.
    pub fn replacement(&self, key: &str) -> Option<Value> {
        self.replaced().find(|(parameter, _)| parameter.key == key).map(|(_, value)| value)
    }
    /// Checks the relations between the parameters.
    pub fn check(&self) -> Result<(), ParameterError> {
        for parameter in self.row.parameters {
            let Order::NotAbove(other) = parameter.order else { continue };
            let (key, value, most) = (parameter.key, self.value(parameter.key), self.value(other));
            if value > most {
                let (value, most) = (value.to_string(), most.to_string());
                return Err(ParameterError::Above { key, value, other, most });
            }
        }
        Ok(())
    }
    /// The value of the parameter called `key`.
    ///
    /// # Panics
    ///
    /// If the row does not declare it.
    pub fn value(&self, key: &str) -> Value {
        let declared = self.row.parameter(key).map(|(_, parameter)| parameter.default);
        self.replacement(key).or(declared).expect("a row reads the parameters that it declares")
    }
    /// A parameter that is a number.
    ///
    /// # Panics
    ///
    /// If the row does not declare it as a number; so do the three functions below for their types.
    pub fn number(&self, key: &str) -> f64 {
        let Value::Number(number) = self.value(key) else { panic!("`{key}` is not a number") };
        number
    }
    /// A parameter that is a whole number.
    pub fn whole(&self, key: &str) -> u64 {
        let Value::Whole(number) = self.value(key) else { panic!("`{key}` is not whole") };
        number
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
}

impl<A: Algorithm + ?Sized> Row<A> {
    /// Checks what it declares: one line of summary, keys that differ, defaults and ranges of search within bounds, and
    /// defaults in their order. The error says what is wrong.
    pub fn check(&'static self) -> Result<(), String> {
        if self.summary.is_empty() || self.summary.ends_with('.') || self.summary.contains('\n') {
            return Err("its summary is not one line without a full stop".to_string());
        }
        for (index, parameter) in self.parameters.iter().enumerate() {
            let key = parameter.key;
            if self.parameter(key).map(|(first, _)| first) != Some(index) {
                return Err(format!("it has two parameters `{key}`"));
            }
            if !parameter.admits(parameter.default) || !parameter.is_searched_within_bounds() {
                return Err(format!("`{key}` has a default or a range of search out of bounds"));
            }
        }
        Choice::from(self).check().map_err(|error| error.to_string())
    }
}
