//! The rows that a scenario chooses, whatever their kind, with their parameters by scenario key.

use lowmesh_registry::{Algorithm, Choice, Declaration, Order, Parameter, ParameterError, Value};

use super::Scenario;

/// A chosen row with its values, without its type.
pub(crate) trait Chosen {
    /// The dotted key that names the row.
    fn key(&self) -> &'static str;
    /// What the row declares.
    fn declaration(&self) -> Declaration;
    /// Replaces the value of one parameter.
    fn set(&mut self, key: &str, value: Value) -> Result<(), ParameterError>;
    /// The keys of values that are not in order, in pairs.
    fn disorders(&self) -> Vec<[&'static str; 2]>;
}

impl<A: Algorithm + ?Sized> Chosen for Choice<A> {
    fn key(&self) -> &'static str {
        A::KEY
    }
    fn declaration(&self) -> Declaration {
        self.row().declaration()
    }
    fn set(&mut self, key: &str, value: Value) -> Result<(), ParameterError> {
        self.set(key, value)
    }
    fn disorders(&self) -> Vec<[&'static str; 2]> {
        let pair = |error| match error {
            ParameterError::Order { key, other, .. } => Some([key, other]),
            _ => None,
        };
        self.errors().filter_map(pair).collect()
    }
}

impl Scenario {
    /// The rows that it chooses, if they can have parameters.
    pub(crate) fn chosen(&mut self) -> [&mut dyn Chosen; 6] {
        [
            &mut self.coap.congestion,
            &mut self.schedule,
            &mut self.groups.gate,
            &mut self.rpl.objective,
            &mut self.radio.medium,
            &mut self.multicast,
        ]
    }

    /// Replaces the parameter of a chosen row at a dotted key.
    pub(crate) fn set_parameter(&mut self, key: &str, value: Value) -> Result<(), ParameterError> {
        let (section, name) = key.rsplit_once('.').unwrap_or(("", key));
        let mut rows = self.chosen().into_iter();
        let Some(row) = rows.find(|row| row.declaration().section == section) else {
            let (key, known) = (key.to_owned(), Vec::new());
            return Err(ParameterError::NoSuchKey { row: "scenario", key, known });
        };
        row.set(name, value)
    }

    /// The dotted keys of values of rows that are not in order.
    pub(crate) fn disorders(&mut self) -> Vec<String> {
        let of_row = |row: &mut dyn Chosen| {
            let section = row.declaration().section;
            let keys = row.disorders().into_iter().flatten();
            keys.map(|key| format!("{section}.{key}")).collect::<Vec<_>>()
        };
        self.chosen().into_iter().flat_map(of_row).collect()
    }
}

/// The dotted keys of a parameter and of the one that it may not exceed.
pub(crate) fn ordered(section: &str, parameter: &Parameter) -> Option<[String; 2]> {
    let (Order::NotAbove(other) | Order::Below(other)) = parameter.order else { return None };
    Some([parameter.key, other].map(|key| format!("{section}.{key}")))
}
