//! docs/dependencies.md: every package of others that a manifest names has a row there that says why.

use std::collections::BTreeSet;

use super::Breach;
use crate::metadata::Package;

/// Dependencies without a row, and rows without a dependency.
pub fn breaches(packages: &[Package], ledger: &str) -> Vec<Breach> {
    let used: BTreeSet<&str> = packages
        .iter()
        .flat_map(|package| &package.dependencies)
        .filter(|dependency| !dependency.ours)
        .map(|dependency| dependency.name.as_str())
        .collect();
    let listed = rows(ledger);
    let place = "docs/dependencies.md";
    let missing = used.difference(&listed);
    let missing =
        missing.map(|name| Breach::error(place, format!("no row says why {name} is used")));
    let idle = listed.difference(&used);
    let idle = idle.map(|name| Breach::warning(place, format!("{name} has a row but is not used")));
    missing.chain(idle).collect()
}

/// The names in the first column: rows look like "| `name` | ...".
fn rows(ledger: &str) -> BTreeSet<&str> {
    let name = |line: &'_ str| -> Option<(usize, usize)> {
        let rest = line.strip_prefix("| `")?;
        Some((3, 3 + rest.find('`')?))
    };
    ledger.lines().filter_map(|line| name(line).map(|(from, to)| &line[from..to])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::Dependency;

    #[test]
    fn a_dependency_without_a_row_is_an_error_and_an_idle_row_a_warning() {
        let dependency = Dependency { name: "anyhow".to_owned(), ours: false, dev: false };
        let ours = Dependency { name: "units".to_owned(), ours: true, dev: false };
        let package = Package {
            name: "lowmesh".to_owned(),
            dependencies: vec![dependency, ours],
            ..Package::default()
        };
        let packages = [package];
        assert_eq!(breaches(&packages, "| `anyhow` | errors |"), []);
        let found = breaches(&packages, "| `clap` | flags |");
        assert_eq!(found.len(), 2);
        assert!(found[0].message.contains("anyhow") && found[1].message.contains("clap"));
    }
}
