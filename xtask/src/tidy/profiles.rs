//! The profiles of Cargo.toml: a profile with LTO optimises every package.
//!
//! LTO inlines the code of optimised packages into the others. If one of these has level 0, the simulator takes twice the
//! time, and nothing says why.

use std::collections::{BTreeMap, BTreeSet};

use super::Breach;

/// Lines of a table of Cargo.toml, by key.
type Table<'a> = BTreeMap<&'a str, &'a str>;

/// Profiles with LTO that have or inherit a package below level 3.
pub fn breaches(manifest: &str) -> Vec<Breach> {
    let tables = tables(manifest);
    let mut breaches = Vec::new();
    for (name, table) in &tables {
        let Some(profile) = name.strip_prefix("profile.").filter(|rest| !rest.contains('.')) else {
            continue;
        };
        if !matches!(table.get("lto"), Some(&("\"fat\"" | "\"thin\"" | "true"))) {
            continue;
        }
        let parent = table.get("inherits").map_or("", |parent| parent.trim_matches('"'));
        let slow: BTreeSet<&str> =
            [profile, parent].into_iter().flat_map(|one| below_three(&tables, one)).collect();
        for slow in slow {
            let own = tables.get(format!("profile.{profile}.package.{slow}").as_str());
            if own.and_then(|own| own.get("opt-level")) != Some(&"3") {
                let why = format!("profile {profile} has LTO, so it sets opt-level = 3 for {slow}");
                breaches.push(Breach::error("Cargo.toml", why));
            }
        }
    }
    breaches
}

/// Packages of a profile with a level of their own that is not 3.
fn below_three<'a>(tables: &BTreeMap<&'a str, Table<'a>>, profile: &str) -> Vec<&'a str> {
    let prefix = format!("profile.{profile}.package.");
    let slow =
        tables.iter().filter(|(_, table)| table.get("opt-level").is_some_and(|it| *it != "3"));
    slow.filter_map(|(name, _)| name.strip_prefix(prefix.as_str())).collect()
}

/// The tables of a manifest. Keys with a value on several lines are not read.
fn tables(manifest: &str) -> BTreeMap<&str, Table<'_>> {
    let mut tables = BTreeMap::new();
    let mut current = "";
    for line in manifest.lines() {
        if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            current = name;
        } else if let Some((key, value)) = line.split_once(" = ")
            && !line.starts_with('#')
        {
            let table: &mut Table<'_> = tables.entry(current).or_default();
            table.insert(key, value);
        }
    }
    tables
}

#[cfg(test)]
mod tests {
    use super::*;

    const RELEASE: &str = "[profile.release.package.toml]\nopt-level = 0\n\n";

    #[test]
    fn lto_over_a_package_of_level_0_is_a_breach() {
        let dist = "[profile.dist]\ninherits = \"release\"\nlto = \"fat\"\n";
        let breaches = breaches(&format!("{RELEASE}{dist}"));
        assert_eq!(breaches.len(), 1, "{breaches:?}");
        assert!(format!("{:?}", breaches[0]).contains("toml"));
    }

    #[test]
    fn a_level_below_3_in_the_profile_itself_is_one_too() {
        let dist = "[profile.dist]\ninherits = \"release\"\nlto = \"fat\"\n";
        let own = "[profile.dist.package.time]\nopt-level = \"s\"\n";
        assert_eq!(breaches(&format!("{dist}{own}")).len(), 1);
    }

    #[test]
    fn a_level_of_its_own_or_no_lto_is_none() {
        let dist = "[profile.dist]\ninherits = \"release\"\nlto = \"fat\"\n";
        let own = "[profile.dist.package.toml]\nopt-level = 3\n";
        assert_eq!(breaches(&format!("{RELEASE}{dist}{own}")).len(), 0);
        let off = "[profile.profiling]\ninherits = \"release\"\nlto = \"off\"\n";
        assert_eq!(breaches(&format!("{RELEASE}{off}")).len(), 0);
    }
}
