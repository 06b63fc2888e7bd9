//! All keys that scenarios can have. Help, completion and checks of the manual read this list.

use lowmesh_multicast::Engine;
use lowmesh_registry::{Choice, Kind};
use lowmesh_sixtop::SchedulingFunction;

use super::key::{Key, merged};
use super::rows::Rows;
use super::section::Section;
use super::{
    Backbone, BorderRouter, Burst, Clock, Coap, Energy, Entity, Event, Fragments, Groups, Head,
    Ipv6, Lowpan, Mac, Placed, Radio, Rpl, SerialLine, Traffic, Wifi, WiredLink,
};

/// What lists the keys of a section.
type ListKeys = fn(&Rows) -> Vec<Key>;

/// Every section with the function that lists its keys.
const SECTIONS: [(&str, ListKeys); 22] = [
    ("topology", Placed::keys),
    ("radio", Radio::keys),
    ("radio.wifi", Wifi::keys),
    ("radio.burst", Burst::keys),
    ("mac", Mac::keys),
    ("schedule", Choice::<dyn SchedulingFunction>::keys),
    ("rpl", Rpl::keys),
    ("lowpan", Lowpan::keys),
    ("fragments", Fragments::keys),
    ("ipv6", Ipv6::keys),
    ("multicast", Choice::<dyn Engine>::keys),
    ("coap", Coap::keys),
    ("traffic", Traffic::keys),
    ("groups", Groups::keys),
    ("entity", Entity::keys),
    ("clock", Clock::keys),
    ("energy", Energy::keys),
    ("border_router", BorderRouter::keys),
    ("backbone", Backbone::keys),
    ("link", WiredLink::keys),
    ("serial", SerialLine::keys),
    ("event", Event::keys),
];

impl Rows {
    /// Every key that a scenario with these rows can have, dotted, with its meaning and its values.
    ///
    /// ```
    /// use lowmesh_lab::scenario::Rows;
    /// let keys = Rows::default().keys();
    /// let timer = keys.iter().find(|key| key.name == "coap.congestion").expect("a key");
    /// assert!(timer.values.iter().any(|value| value.name == "cocoa"));
    /// ```
    pub fn keys(&self) -> Vec<Key> {
        let mut keys = Head::keys(self);
        for (section, list) in SECTIONS {
            keys.extend(list(self).into_iter().map(|key| key.within(section)));
        }
        for row in self.kinds().iter().flat_map(Kind::apart) {
            let parameters = row.parameters.iter();
            keys.extend(parameters.map(|one| Key::parameter(one, self).within(row.section)));
        }
        merged(keys)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::{Named, Scenario};

    fn key(name: &str) -> Key {
        let keys = Rows::default().keys();
        keys.into_iter().find(|key| key.name == name).unwrap_or_else(|| panic!("no key {name}"))
    }

    #[test]
    fn every_key_is_listed_once_with_a_meaning() {
        let keys = Rows::default().keys();
        for (index, key) in keys.iter().enumerate() {
            assert!(keys[..index].iter().all(|other| other.name != key.name), "{}", key.name);
            assert!(key.meaning.ends_with('.') && !key.allowed.is_empty(), "{key:?}");
        }
    }

    #[test]
    fn every_name_that_is_listed_is_accepted() {
        for key in Rows::default().keys() {
            for Named { name, .. } in &key.values {
                let flag = format!("{}={name}", key.name);
                let Err(errors) = Scenario::parse("x", "name = \"x\"", &[flag]) else { continue };
                // The key may not go with the other defaults; its value must never be refused.
                let text = errors.to_string();
                assert!(!text.contains(&format!("{} = {name}: must be", key.name)), "{text}");
            }
        }
    }

    #[test]
    fn names_of_choices_and_of_enumerations_have_summaries() {
        for name in ["mac.kind", "topology.kind", "fragments.mode", "radio.medium", "rpl.mode"] {
            let key = key(name);
            assert!(key.values.len() > 1, "{key:?}");
            for value in key.values {
                let summary = value.summary;
                assert!(!summary.is_empty() && !summary.ends_with('.'), "{name}: {value:?}");
            }
        }
    }

    #[test]
    fn a_default_that_depends_on_a_choice_is_none() {
        assert_eq!(key("mac.retries").default, None);
        assert_eq!(key("mac.eb_period").default.as_deref(), Some("\"16s\""));
    }
}
