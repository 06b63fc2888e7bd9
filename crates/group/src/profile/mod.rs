//! Profiles: how an entity behaves (S002 s2.3.1), and how one query overrides that.
//!
//! ```text
//!   er     members: [NAME=]URI, or /e/NAME    enr    answers that suffice; all unless set
//!   emt    con | non                           eo     operations, the first one is the default
//!   ect    unicast | multicast                 delay  milliseconds between requests
//! ```
//! `scope` (3, 4, 5 or e) belongs to group addresses, and `deadline` says how many milliseconds a query takes at most; both are
//! ours. So is `missing=allow` of a request, which takes members in that do not answer their check. [`document`] reads and writes profiles.

pub mod document;

use alloc::format;
use alloc::string::{String, ToString as _};
use alloc::vec;
use alloc::vec::Vec;

use lowmesh_units::Duration;

use crate::name::is_name;
use crate::params::{DEADLINE_MAX, DELAY_MAX, MEMBERS_MAX, SCOPE_DEFAULT};
use crate::refusal::Refusal;
use crate::target::{Authority, Choice, Entry};
use document::Field;

/// Type of the messages to members (`emt`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum MessageType {
    /// CON: acknowledged, retransmitted.
    #[default]
    Confirmable,
    /// NON.
    NonConfirmable,
}

/// How the manager reaches members (`ect`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Communication {
    /// One request for each member.
    #[default]
    Unicast,
    /// One request for all of them.
    Multicast,
}

/// How the manager combines the answers (`eo`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Each answer.
    List,
    /// The mean of all numbers.
    Average,
    /// The smallest number.
    Minimum,
    /// The largest number.
    Maximum,
}

impl MessageType {
    /// As a profile writes it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Confirmable => "con",
            Self::NonConfirmable => "non",
        }
    }
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        [Self::Confirmable, Self::NonConfirmable].into_iter().find(|one| one.name() == name)
    }
}

impl Communication {
    /// As a profile writes it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unicast => "unicast",
            Self::Multicast => "multicast",
        }
    }
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        [Self::Unicast, Self::Multicast].into_iter().find(|one| one.name() == name)
    }
}

impl Operation {
    const ALL: [Self; 4] = [Self::List, Self::Average, Self::Minimum, Self::Maximum];

    /// As a profile writes it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::List => "lst",
            Self::Average => "avg",
            Self::Minimum => "min",
            Self::Maximum => "max",
        }
    }
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.name() == name)
    }
}

/// The fields of a profile, without the members.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Profile {
    /// `emt`.
    pub message_type: MessageType,
    /// `ect`.
    pub communication: Communication,
    /// `enr`; `None` waits for all.
    pub replies: Option<u16>,
    /// `eo`, at least one.
    pub operations: Vec<Operation>,
    /// `delay`.
    pub delay: Duration,
    /// The scope of the group address (RFC 7346 s2).
    pub scope: u8,
    /// `deadline`: how long a query takes at most, if it says nothing else.
    pub deadline: Option<Duration>,
}

impl Default for Profile {
    fn default() -> Self {
        Self {
            message_type: MessageType::Confirmable,
            communication: Communication::Unicast,
            replies: None,
            operations: vec![Operation::List],
            delay: Duration::ZERO,
            scope: SCOPE_DEFAULT,
            deadline: None,
        }
    }
}

/// A value of `enr`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Replies {
    All,
    Some(u16),
}

/// The fields that a request sets; all other fields keep their values.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Draft {
    /// The name of a new entity.
    pub name: Option<String>,
    /// `er` of a profile.
    pub members: Option<Vec<Entry>>,
    /// `er` of a query: the members that it asks.
    pub only: Option<Vec<Choice>>,
    message_type: Option<MessageType>,
    communication: Option<Communication>,
    replies: Option<Replies>,
    operations: Option<Vec<Operation>>,
    delay: Option<Duration>,
    scope: Option<u8>,
    /// The longest time of a query; ours.
    pub deadline: Option<Duration>,
    missing: Option<bool>,
}

/// The kind of request that a draft is for, which determines the allowed fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// A new entity.
    Creation,
    /// A new profile for an entity.
    Update,
    /// One query.
    Query,
}

impl Draft {
    /// Sets one field. The error says which one, its value, and what is allowed.
    pub fn set(
        &mut self,
        key: &str,
        field: &Field,
        use_: Use,
        own: &[Authority],
    ) -> Result<(), Refusal> {
        let refuse = |allowed: &str| Refusal::field(format!("{key}: {field} is not {allowed}"));
        let twice = match key {
            "name" | "ect" | "scope" if use_ == Use::Creation => self.set_fixed(key, field)?,
            "er" if use_ == Use::Query => self.only.replace(choices(field, own)?).is_some(),
            "er" => self.members.replace(members(field, own)?).is_some(),
            "emt" => {
                let value = field.text().and_then(MessageType::from_name);
                self.message_type.replace(value.ok_or_else(|| refuse("con or non"))?).is_some()
            }
            // S002 s2.3.1: the communication type can be set at creation only.
            "ect" => {
                let allowed = "changeable: delete the entity, and create it with another ect";
                return Err(refuse(allowed));
            }
            "enr" => {
                let value = match (field.text(), field.number()) {
                    (Some("all"), _) => Replies::All,
                    (_, Some(number)) if (1..=MEMBERS_MAX as u64).contains(&number) => {
                        Replies::Some(number as u16)
                    }
                    _ => return Err(refuse("all, or a number from 1 to 256")),
                };
                self.replies.replace(value).is_some()
            }
            "eo" => {
                let allowed = "a list of different operations out of lst, avg, min and max";
                let value = operations(field).ok_or_else(|| refuse(allowed))?;
                self.operations.replace(value).is_some()
            }
            "delay" => {
                let most = DELAY_MAX.as_millis();
                let value = field.number().filter(|number| *number <= most);
                let value = value.ok_or_else(|| refuse("0 to 60000 ms"))?;
                self.delay.replace(Duration::from_millis(value)).is_some()
            }
            "deadline" => {
                let range = 1..=DEADLINE_MAX.as_millis();
                let value = field.number().filter(|number| range.contains(number));
                let value = value.ok_or_else(|| refuse("1 to 247000 ms"))?;
                self.deadline.replace(Duration::from_millis(value)).is_some()
            }
            // Ours: S002 s4.1 wants every member to be there.
            "missing" if use_ != Use::Query => {
                let value = match field.text() {
                    Some("allow") => true,
                    Some("refuse") => false,
                    _ => return Err(refuse("allow or refuse")),
                };
                self.missing.replace(value).is_some()
            }
            _ => return Err(unknown(key, use_)),
        };
        if twice { Err(Refusal::field(format!("{key}: the field occurs twice"))) } else { Ok(()) }
    }
    /// Takes in a field that stays as it is for the life of an entity; true if it was there before.
    fn set_fixed(&mut self, key: &str, field: &Field) -> Result<bool, Refusal> {
        let refuse = |allowed: &str| Refusal::field(format!("{key}: {field} is not {allowed}"));
        Ok(match key {
            "name" => {
                let name = field.text().filter(|name| is_name(name));
                let name =
                    name.ok_or_else(|| refuse("a name: 1 to 32 letters, digits, - and _"))?;
                self.name.replace(name.to_string()).is_some()
            }
            "ect" => {
                let value = field.text().and_then(Communication::from_name);
                let value = value.ok_or_else(|| refuse("unicast or multicast"))?;
                self.communication.replace(value).is_some()
            }
            _ => {
                let value = match field.text() {
                    Some("3") => 3,
                    Some("4") => 4,
                    Some("5") => 5,
                    Some("e") => 0xe,
                    _ => return Err(refuse("3, 4, 5 or e, as text")),
                };
                self.scope.replace(value).is_some()
            }
        })
    }
    /// The profile that results when this draft changes another profile.
    pub fn over(&self, profile: &Profile) -> Profile {
        let communication = self.communication.unwrap_or(profile.communication);
        let message_type = self.message_type.unwrap_or(profile.message_type);
        Profile {
            // S002 s2.3.1: with multicast all messages are NON (RFC 7252 s8.1).
            message_type: match communication {
                Communication::Unicast => message_type,
                Communication::Multicast => MessageType::NonConfirmable,
            },
            communication,
            replies: match self.replies {
                Some(Replies::All) => None,
                Some(Replies::Some(number)) => Some(number),
                None => profile.replies,
            },
            operations: self.operations.clone().unwrap_or_else(|| profile.operations.clone()),
            delay: self.delay.unwrap_or(profile.delay),
            scope: self.scope.unwrap_or(profile.scope),
            deadline: self.deadline.or(profile.deadline),
        }
    }
    /// Whether members may be silent when they are checked. Members of a group have to join it.
    pub(crate) fn allows_missing(&self, profile: &Profile) -> Result<bool, Refusal> {
        let allows = self.missing == Some(true);
        if allows && profile.communication == Communication::Multicast {
            return Err(Refusal::field(
                "missing: with ect=multicast all members have to join the group",
            ));
        }
        Ok(allows)
    }
    /// Checks the resulting profile against the number of members.
    pub fn check(&self, profile: &Profile, members: usize) -> Result<(), Refusal> {
        if profile.communication == Communication::Multicast
            && self.message_type == Some(MessageType::Confirmable)
        {
            return Err(Refusal::field(
                "emt: \"con\" is not possible with ect=multicast: leave it out (RFC 7252 s8.1)",
            ));
        }
        let deadline = profile.deadline.unwrap_or(DEADLINE_MAX);
        let last = profile.delay * members.saturating_sub(1) as u64;
        if profile.communication == Communication::Unicast && last >= deadline {
            let (delay, deadline) = (profile.delay.as_millis(), deadline.as_millis());
            return Err(Refusal::field(format!(
                "delay: after {delay} ms each, the last of {members} members would be asked when the query is over, after \
                 {deadline} ms"
            )));
        }
        match profile.replies {
            Some(replies) if usize::from(replies) > members => {
                Err(Refusal::field(format!("enr: {replies} is more than the {members} members")))
            }
            _ => Ok(()),
        }
    }
}

/// The texts of `er`.
fn listed(field: &Field) -> Result<Vec<&str>, Refusal> {
    let Some(texts) = field.texts() else {
        return Err(Refusal::field(format!("er: {field} is not a list of URIs")));
    };
    let count = texts.len();
    if (1..=MEMBERS_MAX).contains(&count) {
        return Ok(texts);
    }
    Err(Refusal::field(format!("er: there are {count} members; 1 to {MEMBERS_MAX} are allowed")))
}

/// The members of a profile. Each has a name of its own in results.
fn members(field: &Field, own: &[Authority]) -> Result<Vec<Entry>, Refusal> {
    let mut members: Vec<Entry> = Vec::new();
    for text in listed(field)? {
        let entry = Entry::parse(text, own).map_err(|why| Refusal::field(format!("er: {why}")))?;
        if members.iter().any(|one| one.target == entry.target) {
            return Err(Refusal::field(format!("er: {text:?} occurs twice")));
        }
        let label = entry.label();
        if let Some(one) = members.iter().find(|one| one.label() == label) {
            return Err(Refusal::field(format!(
                "er: results would call {one} and {entry} {label:?}: give one a name, NAME=URI"
            )));
        }
        members.push(entry);
    }
    Ok(members)
}

/// The members that a query chooses.
fn choices(field: &Field, own: &[Authority]) -> Result<Vec<Choice>, Refusal> {
    let mut choices: Vec<Choice> = Vec::new();
    for text in listed(field)? {
        let choice =
            Choice::parse(text, own).map_err(|why| Refusal::field(format!("er: {why}")))?;
        if choices.contains(&choice) {
            return Err(Refusal::field(format!("er: {text:?} occurs twice")));
        }
        choices.push(choice);
    }
    Ok(choices)
}

fn operations(field: &Field) -> Option<Vec<Operation>> {
    let mut operations = Vec::new();
    let names = field.texts()?;
    for name in names.into_iter().flat_map(|names| names.split(',')) {
        let operation = Operation::from_name(name.trim())?;
        if operations.contains(&operation) {
            return None;
        }
        operations.push(operation);
    }
    (!operations.is_empty()).then_some(operations)
}

fn unknown(key: &str, use_: Use) -> Refusal {
    let known = match use_ {
        Use::Creation => "name, er, emt, ect, enr, eo, delay, deadline, scope and missing",
        Use::Update => "er, emt, enr, eo, delay, deadline and missing",
        Use::Query => "er, emt, enr, eo, delay and deadline",
    };
    Refusal::field(format!("{key:?} is not a field; the fields are {known}"))
}

#[cfg(test)]
mod tests;
