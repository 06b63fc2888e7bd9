//! An entity as the manager describes it: its profile, and where each member stands.

use std::io::Write;

use lowmesh_wire::coap::ContentFormat;
use serde_json::{Map, Value, json};

use super::access::{Conversation, strange};
use crate::failure::Failure;

/// The profile of an entity, and its members.
pub struct Entity {
    profile: Map<String, Value>,
    /// Each with its state.
    members: Vec<(String, String)>,
}

/// The fields of a profile, in the order in which people read them.
const ORDER: [&str; 8] = ["name", "ect", "emt", "enr", "eo", "delay", "deadline", "mcastURI"];

impl Entity {
    /// Asks the manager for it.
    pub async fn ask(manager: &Conversation<'_>, name: &str) -> Result<Self, Failure> {
        let profile = profile(manager, name).await?;
        let standing = manager.text(&[name, "members"], ContentFormat::TEXT_PLAIN).await?;
        Ok(Self { profile, members: members(&standing) })
    }
    /// The same without what the manager says about the answers of nodes: those of a new entity are new too.
    pub fn without_health(mut self) -> Self {
        for (_, state) in &mut self.members {
            if let Some((before, _)) = state.rsplit_once("; ") {
                *state = before.to_owned();
            }
        }
        self
    }
    /// Writes it: the fields, and a line for each member.
    pub fn show(&self, json: bool, out: &mut impl Write) -> Result<(), Failure> {
        if json {
            let member = |(uri, state): &(String, String)| {
                // The manager says behind a semicolon whether the node answers.
                let (state, health) = match state.rsplit_once("; ") {
                    Some((state, health)) => (state, Some(health)),
                    None => (state.as_str(), None),
                };
                let (name, uri) = parts(uri);
                json!({"uri": uri, "name": name, "state": state, "health": health})
            };
            let mut object = self.profile.clone();
            object.remove("er");
            object.insert("schema".to_owned(), json!(1));
            object.insert("members".to_owned(), self.members.iter().map(member).collect());
            writeln!(out, "{}", Value::from(object))?;
            return Ok(());
        }
        for (key, value) in ORDER.into_iter().filter_map(|key| Some((key, self.profile.get(key)?)))
        {
            writeln!(out, "{key:<9} {}", plain(key, value))?;
        }
        Ok(table(&self.members, out)?)
    }
}

/// The profile of an entity, as the manager sends it.
pub async fn profile(
    manager: &Conversation<'_>,
    name: &str,
) -> Result<Map<String, Value>, Failure> {
    let document = manager.text(&[name, "profile"], ContentFormat::JSON).await?;
    match serde_json::from_str(&document) {
        Ok(Value::Object(profile)) => Ok(profile),
        _ => Err(strange("the profile is not a JSON object")),
    }
}

/// Writes a line for each member: its name, and where it stands.
pub fn table(members: &[(String, String)], out: &mut impl Write) -> std::io::Result<()> {
    let width = members.iter().map(|(name, _)| name.len()).max().unwrap_or_default();
    members.iter().try_for_each(|(name, state)| writeln!(out, "{name:<width$}  {state}"))
}

/// The members in a text of the manager: a line for each, its name before the first blank.
pub fn members(text: &str) -> Vec<(String, String)> {
    let member = |line: &str| {
        let (name, state) = line.split_once(' ')?;
        Some((name.to_owned(), state.to_owned()))
    };
    text.lines().filter_map(member).collect()
}

/// The name of a member and its URI, in the notation of a profile: `NAME=URI`, or a URI.
pub fn parts(member: &str) -> (Option<&str>, &str) {
    match member.split_once('=') {
        Some((name, uri)) if !name.contains([':', '/']) => (Some(name), uri),
        _ => (None, member),
    }
}

fn plain(key: &str, value: &Value) -> String {
    match value {
        Value::String(text) => text.replace(char::is_control, "\u{fffd}"),
        Value::Array(list) => list.iter().map(|one| plain(key, one)).collect::<Vec<_>>().join(" "),
        number if matches!(key, "delay" | "deadline") => format!("{number} ms"),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entity_is_shown_with_its_fields_and_a_line_for_each_member() {
        let profile =
            json!({"name": "room", "eo": ["avg", "lst"], "enr": "all", "delay": 100, "er": ["x"]});
        let Value::Object(profile) = profile else { panic!("an object") };
        let members = members(
            "desk=coap://[::1]/t joined; answered 3 s ago\n/e/hall?eo=min failed(5.04 silent)\n",
        );
        let (entity, mut text) = (Entity { profile, members }, Vec::new());
        entity.show(false, &mut text).expect("written");
        let expected = "name      room\nenr       all\neo        avg lst\ndelay     100 ms\n\
            desk=coap://[::1]/t  joined; answered 3 s ago\n/e/hall?eo=min       failed(5.04 silent)\n";
        assert_eq!(String::from_utf8(text).expect("text"), expected);
        let mut object = Vec::new();
        entity.show(true, &mut object).expect("written");
        let object: Value = serde_json::from_slice(&object).expect("JSON");
        assert_eq!(object["members"][1]["state"], "failed(5.04 silent)");
        assert_eq!(
            (&object["members"][0]["name"], &object["members"][1]["name"]),
            (&json!("desk"), &json!(null))
        );
        assert_eq!(object["members"][0]["uri"], "coap://[::1]/t");
        assert_eq!(object["members"][0]["state"], "joined");
        assert_eq!(object["members"][0]["health"], "answered 3 s ago");
        assert_eq!(object.get("er"), None);
    }
}
