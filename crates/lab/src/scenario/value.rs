//! Values of scenario keys: how each type is read from TOML, bounded, and written back.

use std::fmt::Display;
use std::net::Ipv6Addr;

use lowmesh_registry as registry;
use lowmesh_units::{Channel, Duration};
use lowmesh_wire::ipv6::Address;
use toml::de::DeValue;

use super::rows::Rows;

/// Why a value was not taken.
#[derive(Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// An allowed value with a similar name.
    pub similar: Option<String>,
}

/// A type that a scenario key can have.
pub trait Value: Sized {
    /// What to write for it, as in "a whole number".
    fn noun(rows: &Rows) -> String;
    /// Reads it.
    fn read(value: &DeValue<'_>, rows: &Rows) -> Result<Self, Mismatch>;
    /// Its TOML literal; `None` leaves the key out.
    fn write(&self) -> Option<String>;
    /// The names that it can be; empty if it is no name.
    fn names(_rows: &Rows) -> Vec<Named> {
        Vec::new()
    }
    /// What this value means, if it is one of several names, without a full stop.
    fn meaning(&self) -> Option<&'static str> {
        None
    }
}

/// A name that a key takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Named {
    /// The name.
    pub name: &'static str,
    /// What it means, one line without a full stop; empty if the key says it all.
    pub summary: &'static str,
}

impl Named {
    /// A name with the documentation of its declaration.
    pub(super) fn documented(name: &'static str, documentation: &'static str) -> Self {
        Self { name, summary: documentation.trim().trim_end_matches('.') }
    }
    /// The names without their meanings.
    pub(super) fn join(names: &[Self]) -> String {
        names.iter().map(|one| one.name).collect::<Vec<_>>().join(", ")
    }
}

const WRONG_TYPE: Mismatch = Mismatch { similar: None };

macro_rules! whole_numbers {
    ($($type:ty),*) => {$(
        impl Value for $type {
            fn noun(_: &Rows) -> String {
                "a whole number".to_owned()
            }
            fn read(value: &DeValue<'_>, _: &Rows) -> Result<Self, Mismatch> {
                let DeValue::Integer(number) = value else { return Err(WRONG_TYPE) };
                // `from_str_radix` wants the digits alone; TOML allows 0x, 0o, 0b before them.
                <$type>::from_str_radix(number.as_str(), number.radix()).map_err(|_| WRONG_TYPE)
            }
            fn write(&self) -> Option<String> {
                Some(self.to_string())
            }
        }
    )*};
}
whole_numbers!(u8, u16, u32, u64);

impl Value for f64 {
    fn noun(_: &Rows) -> String {
        "a number".to_owned()
    }
    fn read(value: &DeValue<'_>, _: &Rows) -> Result<Self, Mismatch> {
        let text = match value {
            DeValue::Float(number) => number.as_str(),
            DeValue::Integer(number) if number.radix() == 10 => number.as_str(),
            _ => return Err(WRONG_TYPE),
        };
        text.parse().ok().filter(|number: &f64| number.is_finite()).ok_or(WRONG_TYPE)
    }
    fn write(&self) -> Option<String> {
        Some(format!("{self:?}"))
    }
}

impl Value for bool {
    fn noun(_: &Rows) -> String {
        "true or false".to_owned()
    }
    fn read(value: &DeValue<'_>, _: &Rows) -> Result<Self, Mismatch> {
        value.as_bool().ok_or(WRONG_TYPE)
    }
    fn names(_: &Rows) -> Vec<Named> {
        vec![Named { name: "true", summary: "" }, Named { name: "false", summary: "" }]
    }
    fn write(&self) -> Option<String> {
        Some(self.to_string())
    }
}

impl Value for String {
    fn noun(_: &Rows) -> String {
        "a text in quotes".to_owned()
    }
    fn read(value: &DeValue<'_>, _: &Rows) -> Result<Self, Mismatch> {
        value.as_str().map(str::to_owned).ok_or(WRONG_TYPE)
    }
    fn write(&self) -> Option<String> {
        Some(quoted(self))
    }
}

impl Value for Duration {
    fn noun(_: &Rows) -> String {
        "a duration, as \"10min\", \"250ms\" or 2 (seconds),".to_owned()
    }
    fn read(value: &DeValue<'_>, _: &Rows) -> Result<Self, Mismatch> {
        let text = match value {
            DeValue::String(text) => text.as_ref(),
            DeValue::Float(seconds) => seconds.as_str(),
            DeValue::Integer(seconds) if seconds.radix() == 10 => seconds.as_str(),
            _ => return Err(WRONG_TYPE),
        };
        text.parse().map_err(|_| WRONG_TYPE)
    }
    fn write(&self) -> Option<String> {
        Some(quoted(&self.to_string()))
    }
}

impl<T: Value> Value for Option<T> {
    fn noun(rows: &Rows) -> String {
        T::noun(rows)
    }
    fn read(value: &DeValue<'_>, rows: &Rows) -> Result<Self, Mismatch> {
        T::read(value, rows).map(Some)
    }
    fn names(rows: &Rows) -> Vec<Named> {
        T::names(rows)
    }
    fn meaning(&self) -> Option<&'static str> {
        self.as_ref().and_then(Value::meaning)
    }
    fn write(&self) -> Option<String> {
        self.as_ref().and_then(Value::write)
    }
}

macro_rules! lists {
    ($($type:ty: $noun:literal),*) => {$(
        impl Value for Vec<$type> {
            fn noun(_: &Rows) -> String {
                $noun.to_owned()
            }
            fn read(value: &DeValue<'_>, rows: &Rows) -> Result<Self, Mismatch> {
                let numbers = value.as_array().ok_or(WRONG_TYPE)?;
                numbers.iter().map(|number| <$type>::read(number.get_ref(), rows)).collect()
            }
            fn write(&self) -> Option<String> {
                let numbers: Vec<String> = self.iter().filter_map(Value::write).collect();
                (!numbers.is_empty()).then(|| format!("[{}]", numbers.join(", ")))
            }
        }
    )*};
}
lists!(
    u16: "a list of whole numbers",
    f64: "a list of numbers",
    String: "a list of texts in quotes",
    NodeTime: "a list of nodes with their times, as in [\"5@10min\"]"
);

/// A node with a time, written `5@10min`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeTime {
    /// The node.
    pub node: u16,
    /// The time that belongs to it.
    pub time: Duration,
}

impl Value for NodeTime {
    fn noun(_: &Rows) -> String {
        "a node and a time, as in \"5@10min\"".to_owned()
    }
    fn read(value: &DeValue<'_>, _: &Rows) -> Result<Self, Mismatch> {
        let text = value.as_str().ok_or(WRONG_TYPE)?;
        let (node, time) = text.split_once('@').ok_or(WRONG_TYPE)?;
        let (node, time) = (node.trim().parse().ok(), time.trim().parse().ok());
        node.zip(time).map(|(node, time)| Self { node, time }).ok_or(WRONG_TYPE)
    }
    fn write(&self) -> Option<String> {
        Some(quoted(&format!("{}@{}", self.node, self.time)))
    }
}

/// A group that reaches further than the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group(pub Address);

impl Value for Group {
    fn noun(_: &Rows) -> String {
        "a multicast address of scope 3 or more in quotes, as \"ff05::fd\"".to_owned()
    }
    fn read(value: &DeValue<'_>, _: &Rows) -> Result<Self, Mismatch> {
        let address: Option<Ipv6Addr> = value.as_str().and_then(|text| text.parse().ok());
        let group = address.map(Address::from).filter(Address::is_routed_group);
        group.map(Self).ok_or(WRONG_TYPE)
    }
    fn write(&self) -> Option<String> {
        Some(quoted(&self.0.to_string()))
    }
}

/// Rows of numbers, for a matrix written in the scenario itself.
impl Value for Vec<Vec<f64>> {
    fn noun(_: &Rows) -> String {
        "a list of rows of numbers".to_owned()
    }
    fn read(value: &DeValue<'_>, rows: &Rows) -> Result<Self, Mismatch> {
        let row = |row: &DeValue<'_>| -> Result<Vec<f64>, Mismatch> {
            let numbers = row.as_array().ok_or(WRONG_TYPE)?;
            numbers.iter().map(|number| f64::read(number.get_ref(), rows)).collect()
        };
        let rows = value.as_array().ok_or(WRONG_TYPE)?;
        rows.iter().map(|numbers| row(numbers.get_ref())).collect()
    }
    fn write(&self) -> Option<String> {
        let row = |row: &Vec<f64>| {
            let numbers: Vec<String> = row.iter().map(|number| format!("{number:?}")).collect();
            format!("[{}]", numbers.join(", "))
        };
        let rows: Vec<String> = self.iter().map(row).collect();
        (!rows.is_empty()).then(|| format!("[{}]", rows.join(", ")))
    }
}

/// The channels that a TSCH network hops over, in order (IEEE 802.15.4-2015 s6.2.10).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hopping {
    /// All sixteen channels, in Contiki-NG's order.
    Sixteen,
    /// Four channels clear of the usual Wi-Fi channels, Contiki-NG's default.
    Four,
    /// A sequence of one's own.
    List(Vec<Channel>),
}

impl Hopping {
    /// TSCH_HOPPING_SEQUENCE_16_16 of Contiki-NG 5.0.
    const SIXTEEN: [u8; 16] = [16, 17, 23, 18, 26, 15, 25, 22, 19, 11, 12, 13, 24, 14, 20, 21];
    /// TSCH_HOPPING_SEQUENCE_4_4 of Contiki-NG 5.0.
    const FOUR: [u8; 4] = [15, 25, 26, 20];

    /// The channels in hopping order.
    pub fn channels(&self) -> Vec<Channel> {
        match self {
            Self::Sixteen => Self::SIXTEEN.into_iter().filter_map(Channel::new).collect(),
            Self::Four => Self::FOUR.into_iter().filter_map(Channel::new).collect(),
            Self::List(channels) => channels.clone(),
        }
    }
}

impl Value for Hopping {
    fn noun(_: &Rows) -> String {
        "\"16_16\", \"4_4\" or a list of 1 to 64 channels from 11 to 26".to_owned()
    }
    fn read(value: &DeValue<'_>, rows: &Rows) -> Result<Self, Mismatch> {
        match value {
            DeValue::String(name) if name == "16_16" => Ok(Self::Sixteen),
            DeValue::String(name) if name == "4_4" => Ok(Self::Four),
            DeValue::Array(list) if (1..=64).contains(&list.len()) => {
                let channel = |value: &DeValue<'_>| Channel::new(u8::read(value, rows).ok()?);
                let channels: Option<_> =
                    list.iter().map(|value| channel(value.get_ref())).collect();
                channels.map(Self::List).ok_or(WRONG_TYPE)
            }
            _ => Err(WRONG_TYPE),
        }
    }
    fn names(_: &Rows) -> Vec<Named> {
        vec![
            Named { name: "16_16", summary: "All sixteen channels, in Contiki-NG's order" },
            Named { name: "4_4", summary: "Contiki-NG's four channels clear of the usual Wi-Fi" },
        ]
    }
    fn write(&self) -> Option<String> {
        Some(match self {
            Self::Sixteen => quoted("16_16"),
            Self::Four => quoted("4_4"),
            Self::List(channels) => {
                let numbers: Vec<String> = channels.iter().map(ToString::to_string).collect();
                format!("[{}]", numbers.join(", "))
            }
        })
    }
}

/// A bound on a value beyond its type.
pub trait Rule<T> {
    /// Whether `value` is within.
    fn admits(&self, value: &T) -> bool;
    /// The bound in words, put after the type's noun; empty without one.
    fn words(&self) -> String;
}

/// No bound.
pub struct Any;
/// From the first to the second, both included.
pub struct Within<T>(pub T, pub T);
/// Not the empty text.
pub struct NotEmpty;

impl<T> Rule<T> for Any {
    fn admits(&self, _: &T) -> bool {
        true
    }
    fn words(&self) -> String {
        String::new()
    }
}
impl<T: PartialOrd + Display> Rule<T> for Within<T> {
    fn admits(&self, value: &T) -> bool {
        (&self.0..=&self.1).contains(&value)
    }
    fn words(&self) -> String {
        format!(" from {} to {}", self.0, self.1)
    }
}
impl<T: PartialOrd + Display> Rule<Option<T>> for Within<T> {
    fn admits(&self, value: &Option<T>) -> bool {
        value.as_ref().is_none_or(|value| Rule::<T>::admits(self, value))
    }
    fn words(&self) -> String {
        Rule::<T>::words(self)
    }
}
impl Rule<String> for NotEmpty {
    fn admits(&self, value: &String) -> bool {
        !value.is_empty()
    }
    fn words(&self) -> String {
        ", not empty".to_owned()
    }
}

/// The TOML literal of a text.
pub fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

/// The TOML literal of a parameter's value.
pub(crate) fn literal(value: &registry::Value) -> String {
    let literal = match value {
        registry::Value::Flag(flag) => flag.write(),
        registry::Value::Whole(number) => number.write(),
        registry::Value::Number(number) => number.write(),
        registry::Value::Time(time) => time.write(),
        registry::Value::Name(name) => Some(quoted(name)),
        registry::Value::File(path) => path.write(),
        registry::Value::Matrix(rows) => rows.write(),
    };
    literal.unwrap_or_default()
}

/// Names one of a closed list of choices, as users write them.
macro_rules! choice {
    ($(#[$doc:meta])* $name:ident { $( $(#[doc = $vdoc:literal])* $variant:ident = $text:literal ),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name { $( $(#[doc = $vdoc])* $variant ),* }

        impl $name {
            /// Every name, as written in a scenario, with its meaning.
            fn named() -> Vec<$crate::scenario::Named> {
                vec![ $( $crate::scenario::Named::documented($text, concat!($($vdoc),*)) ),* ]
            }
            /// The name as written in a scenario.
            pub const fn name(self) -> &'static str {
                match self { $( Self::$variant => $text ),* }
            }
        }
        impl $crate::scenario::value::Value for $name {
            fn noun(_: &$crate::scenario::Rows) -> String {
                format!("one of {}", $crate::scenario::Named::join(&Self::named()))
            }
            fn read(
                value: &toml::de::DeValue<'_>,
                _: &$crate::scenario::Rows,
            ) -> Result<Self, $crate::scenario::value::Mismatch> {
                let text = value.as_str().unwrap_or_default();
                match text {
                    $( $text => Ok(Self::$variant), )*
                    _ => Err($crate::scenario::value::Mismatch {
                        similar: $crate::scenario::error::similar(
                            text, Self::named().iter().map(|one| one.name),
                        ),
                    }),
                }
            }
            fn write(&self) -> Option<String> {
                Some($crate::scenario::value::quoted(self.name()))
            }
            fn names(_: &$crate::scenario::Rows) -> Vec<$crate::scenario::Named> {
                Self::named()
            }
            fn meaning(&self) -> Option<&'static str> {
                Self::named().into_iter().find(|one| one.name == self.name()).map(|one| one.summary)
            }
        }
    };
}
pub(crate) use choice;
