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
    fn a_flag_sweeps_a_key_of_a_repeated_section() {
        let sets = ["sweep.link[0].queue_octets=2500,14100".to_owned()];
        let plan = crate::plan::Plan::load("nb-iot", &sets).expect("a sweep");
        let octets =
            plan.points.iter().map(|point| point.scenario.keys()["link[0].queue_octets"].clone());
        assert_eq!(octets.collect::<Vec<_>>(), ["2500", "14100"]);
        assert_eq!(plan.points[0].settings[0].0, "link[0].queue_octets");
    }
}
