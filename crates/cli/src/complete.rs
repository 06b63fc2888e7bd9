//! Completion of values: scenarios and files, keys of scenarios with their values, metrics.
//!
//! The shell's script calls this command with the words of the line, and the engine of the parser asks these functions.

use std::ffi::OsStr;

use clap_complete::engine::{CompletionCandidate, PathCompleter, ValueCompleter as _};
use lowmesh_lab::claims::PAPERS;
use lowmesh_lab::metrics::Metrics;
use lowmesh_lab::scenario::{BUILTINS, Key, Rows};

/// Built-in scenarios, TOML files and link tables.
pub fn scenarios(current: &OsStr) -> Vec<CompletionCandidate> {
    let names = BUILTINS.iter().map(|builtin| builtin.name);
    let is_scenario = |path: &std::path::Path| {
        path.extension().is_some_and(|ending| ending == "toml" || ending == "csv")
    };
    let mut found = starting(names, current);
    found.extend(PathCompleter::file().filter(is_scenario).complete(current));
    found
}

/// Publications.
pub fn papers(current: &OsStr) -> Vec<CompletionCandidate> {
    starting(PAPERS.iter().map(|(name, ..)| *name), current)
}

/// Metrics, after the last comma.
pub fn metrics(current: &OsStr) -> Vec<CompletionCandidate> {
    let names = Metrics::default().numbers().into_iter().map(|(name, _)| name);
    let text = current.to_string_lossy();
    let (before, last) = text
        .rsplit_once(',')
        .map_or(("", &*text), |(_, last)| (&text[..text.len() - last.len()], last));
    let found = starting(names, OsStr::new(last));
    found.into_iter().map(|candidate| candidate.add_prefix(before)).collect()
}

/// Keys of a scenario, each with an equals sign, and behind it the values of the key.
pub fn settings(current: &OsStr) -> Vec<CompletionCandidate> {
    let text = current.to_string_lossy();
    let (sweep, rest) = text.strip_prefix("sweep.").map_or(("", &*text), |rest| ("sweep.", rest));
    let keys = Rows::default().keys();
    let candidates = match rest.split_once('=') {
        Some((name, value)) => values(&keys, name, value),
        // A section first: the whole list of keys is too long to choose from.
        None if !rest.contains('.') => sections(&keys, rest, sweep.is_empty()),
        None => {
            let found = keys.iter().filter(|key| key.name.starts_with(rest));
            found.map(|key| described(format!("{}=", key.name), &key.meaning)).collect()
        }
    };
    candidates.into_iter().map(|candidate| candidate.add_prefix(sweep)).collect()
}

/// The sections, and the keys that are in none.
fn sections(keys: &[Key], start: &str, with_sweep: bool) -> Vec<CompletionCandidate> {
    let head = |key: &Key| match key.name.split_once('.') {
        Some((section, _)) => format!("{section}."),
        None => format!("{}=", key.name),
    };
    let mut heads: Vec<String> = keys.iter().map(head).collect();
    heads.extend(with_sweep.then(|| "sweep.".to_owned()));
    heads.sort_unstable();
    heads.dedup();
    starting(heads.iter().map(String::as_str), OsStr::new(start))
}

/// The settings of the key called `name` whose values begin with `start`.
fn values(keys: &[Key], name: &str, start: &str) -> Vec<CompletionCandidate> {
    let key = keys.iter().find(|key| key.name == name);
    let values = key.into_iter().flat_map(|key| &key.values);
    let values = values.filter(|value| value.name.starts_with(start));
    values.map(|value| described(format!("{name}={}", value.name), value.summary)).collect()
}

fn described(word: String, meaning: &str) -> CompletionCandidate {
    let help = (!meaning.is_empty()).then(|| meaning.to_owned().into());
    CompletionCandidate::new(word).help(help)
}

fn starting<'n>(
    names: impl IntoIterator<Item = &'n str>,
    current: &OsStr,
) -> Vec<CompletionCandidate> {
    let start = current.to_string_lossy();
    let names = names.into_iter().filter(|name| name.starts_with(&*start));
    names.map(CompletionCandidate::new).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(candidates: &[CompletionCandidate]) -> Vec<String> {
        let word = |one: &CompletionCandidate| one.get_value().to_string_lossy().into_owned();
        candidates.iter().map(word).collect()
    }

    #[test]
    fn a_section_is_completed_first_then_its_keys_then_their_values() {
        assert_eq!(words(&settings(OsStr::new("coa"))), ["coap."]);
        let keys = words(&settings(OsStr::new("coap.con")));
        assert_eq!(keys, ["coap.congestion="]);
        let values = words(&settings(OsStr::new("coap.congestion=co")));
        assert!(values.contains(&"coap.congestion=cocoa".to_owned()), "{values:?}");
        let swept = words(&settings(OsStr::new("sweep.rpl.mode=n")));
        assert_eq!(swept, ["sweep.rpl.mode=non-storing"]);
        assert_eq!(
            words(&settings(OsStr::new("coap.oscore="))),
            ["coap.oscore=true", "coap.oscore=false"]
        );
    }

    #[test]
    fn a_metric_is_completed_behind_others() {
        assert_eq!(words(&metrics(OsStr::new("tdr,joine"))), ["tdr,joined"]);
    }
}
