//! Every key of a scenario with its value, as people write them.

use std::collections::BTreeMap;

use super::Scenario;

impl Scenario {
    /// Every key, dotted, with its value; a text has no quotes. Keys of sections that occur several times have an index,
    /// as `link[0].loss`.
    pub fn keys(&self) -> BTreeMap<String, String> {
        let mut keys = BTreeMap::new();
        flatten("", &self.to_toml().parse().unwrap_or_default(), &mut keys);
        keys
    }

    /// The keys, with this scenario's values, whose values are others in `there`. A list of sections is one key if the two
    /// have entries of different forms.
    pub fn keys_unlike(&self, there: &Self) -> Vec<(String, String)> {
        let [own, there] = [self, there].map(|one| one.to_toml().parse().unwrap_or_default());
        let mut unlike = Vec::new();
        differences("", &own, &there, &mut unlike);
        unlike
    }
}

/// Lists the values of `own` that are not those of `there`, with their dotted keys.
fn differences(
    path: &str,
    own: &toml::Table,
    there: &toml::Table,
    unlike: &mut Vec<(String, String)>,
) {
    let dotted = |key: &str| if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
    for (key, value) in own {
        let (key, old) = (dotted(key), there.get(key));
        match (value, old) {
            (value, Some(old)) if value == old => {}
            (toml::Value::Table(own), Some(toml::Value::Table(there))) => {
                differences(&key, own, there, unlike);
            }
            (toml::Value::Table(own), _) => differences(&key, own, &toml::Table::new(), unlike),
            (toml::Value::Array(own), Some(toml::Value::Array(there))) if alike(own, there) => {
                for (index, (own, there)) in own.iter().zip(there).enumerate() {
                    if let (toml::Value::Table(own), toml::Value::Table(there)) = (own, there) {
                        differences(&format!("{key}[{index}]"), own, there, unlike);
                    }
                }
            }
            (toml::Value::String(text), _) => unlike.push((key, text.clone())),
            (other, _) => unlike.push((key, other.to_string())),
        }
    }
    let is_list = |value: &toml::Value| matches!(value, toml::Value::Array(_));
    let gone = there.iter().filter(|(key, value)| is_list(value) && !own.contains_key(*key));
    unlike.extend(gone.map(|(key, _)| (dotted(key), "[]".to_owned())));
}

/// Whether two lists have as many sections, and these the same keys.
fn alike(own: &[toml::Value], there: &[toml::Value]) -> bool {
    own.len() == there.len()
        && own.iter().zip(there).all(|pair| match pair {
            (toml::Value::Table(own), toml::Value::Table(there)) => own.keys().eq(there.keys()),
            _ => false,
        })
}

fn flatten(path: &str, table: &toml::Table, keys: &mut BTreeMap<String, String>) {
    for (key, value) in table {
        let dotted = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
        match value {
            toml::Value::Table(inner) => flatten(&dotted, inner, keys),
            toml::Value::Array(all) if all.iter().any(toml::Value::is_table) => {
                for (index, one) in all.iter().enumerate() {
                    if let toml::Value::Table(inner) = one {
                        flatten(&format!("{dotted}[{index}]"), inner, keys);
                    }
                }
            }
            toml::Value::String(text) => _ = keys.insert(dotted, text.clone()),
            other => _ = keys.insert(dotted, other.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_dotted_and_texts_have_no_quotes() {
        let text = "name = \"x\"\n[traffic]\nperiod = \"2s\"\n[mac]\nretries = 3";
        let keys = Scenario::parse("x", text, &[]).expect("a valid scenario").keys();
        assert_eq!((keys["traffic.period"].as_str(), keys["mac.retries"].as_str()), ("2s", "3"));
        assert!(keys.contains_key("duration") && !keys.contains_key("mac"));
    }

    #[test]
    fn keys_of_a_repeated_section_have_its_index_and_can_be_set() {
        let keys = Scenario::load("nb-iot", &[]).expect("built in").keys();
        assert_eq!(keys["link[0].queue_octets"], "2500");
        let sets = ["link[0].queue_octets=14100".to_owned()];
        let keys = Scenario::load("nb-iot", &sets).expect("a valid value").keys();
        assert_eq!(keys["link[0].queue_octets"], "14100");
    }

    #[test]
    fn the_keys_that_differ_make_one_scenario_of_another() {
        let two = "link=[{near=0,far=1,rate_bps=20000},{near=1,far=2}]";
        for sets in [
            &["traffic.period=3s", "link[0].loss=0.1"][..],
            &["mac.kind=csma"],
            &["coap.transport=tcp"],
            &[two],
        ] {
            let load = |sets: Vec<String>| Scenario::load("nb-iot", &sets);
            let wanted = match load(sets.iter().map(|set| (*set).to_owned()).collect()) {
                Ok(wanted) => wanted,
                Err(error) => panic!("{error}"),
            };
            let there = load(Vec::new()).expect("built in");
            let unlike = wanted.keys_unlike(&there);
            let sets = unlike.iter().map(|(key, value)| format!("{key}={value}")).collect();
            assert_eq!(load(sets).unwrap_or_else(|error| panic!("{error}")), wanted, "{unlike:?}");
            assert!(wanted.keys_unlike(&wanted).is_empty());
        }
    }

    #[test]
    fn a_flag_sweeps_a_key_of_a_repeated_section() {
        let sets = ["sweep.link[0].queue_octets=2500,14100".to_owned()];
        let plan = crate::plan::Plan::load("nb-iot", &sets).expect("a sweep");
        let octets =
            plan.points.iter().map(|point| point.scenario.keys()["link[0].queue_octets"].clone());
        assert_eq!(octets.collect::<Vec<_>>(), ["2500", "14100"]);
        assert_eq!(plan.points[0].settings[0].0, "link[0].queue_octets");
    }
}
