//! Every key of a scenario with its value, as people write them.

use std::collections::BTreeMap;

use super::Scenario;

impl Scenario {
    /// Every key, dotted, with its value; a text has no quotes.
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
}
