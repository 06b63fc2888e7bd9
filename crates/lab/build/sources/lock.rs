//! `Cargo.lock`: the version and the checksum of each third-party package in a build.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use toml::{Table, Value};

use super::manifest::{self, Manifest};

/// The packages of a lock file, by name and version.
#[derive(Debug)]
pub struct Lock {
    packages: BTreeMap<(String, String), Table>,
    place: String,
}

impl Lock {
    /// Reads a lock file.
    pub fn read(path: &Path) -> Result<Self, String> {
        let mut table = manifest::table(path)?;
        let text = |table: &Table, key: &str| {
            table.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        let packages = match table.remove("package") {
            Some(Value::Array(packages)) => packages,
            _ => Vec::new(),
        };
        let packages = packages.into_iter().filter_map(|package| match package {
            Value::Table(table) => Some(((text(&table, "name"), text(&table, "version")), table)),
            _ => None,
        });
        Ok(Self { packages: packages.collect(), place: path.display().to_string() })
    }

    /// Every third-party package in the dependency tree of `members`, one line each: name, version, source, checksum.
    pub fn tree(&self, members: &[Manifest]) -> Result<BTreeSet<String>, String> {
        let ours = |name: &str| members.iter().any(|member| member.name == name);
        let mut waiting = Vec::new();
        for member in members {
            let builds_on = |name: &str| member.dependencies.iter().any(|one| one.package == name);
            let own = self.packages.iter().find(|((name, _), _)| *name == member.name);
            let (_, own) = own.ok_or_else(|| format!("{} lacks {}", self.place, member.name))?;
            // The lock file does not mark dev-dependencies; the manifest does.
            let named = dependencies(own).filter(|one| builds_on(name_of(one)));
            waiting.extend(named.map(str::to_owned));
        }
        let mut lines = BTreeSet::new();
        while let Some(reference) = waiting.pop() {
            if ours(name_of(&reference)) {
                continue;
            }
            let package = self.find(&reference)?;
            if lines.insert(self.line(package)?) {
                waiting.extend(dependencies(package).map(str::to_owned));
            }
        }
        Ok(lines)
    }

    /// The package that a dependency names as `name`, `name version` or `name version (source)`.
    fn find(&self, reference: &str) -> Result<&Table, String> {
        let mut words = reference.split(' ');
        let (name, version) = (words.next().unwrap_or_default(), words.next());
        let found = self
            .packages
            .iter()
            .find(|((own, of), _)| own == name && version.is_none_or(|version| of == version));
        let found = found.map(|(_, package)| package);
        found.ok_or_else(|| format!("{} lacks {reference}", self.place))
    }

    /// The line of a package. A package in a folder has neither source nor checksum, and its files are not hashed here.
    fn line(&self, package: &Table) -> Result<String, String> {
        let text = |key: &str| package.get(key).and_then(Value::as_str).unwrap_or_default();
        let (name, version, source) = (text("name"), text("version"), text("source"));
        if source.is_empty() {
            return Err(format!(
                "{}: {name} {version} has no source; name its folder as a dependency with `path`, so that its files count",
                self.place
            ));
        }
        Ok(format!("{name} {version} {source} {}", text("checksum")))
    }
}

fn dependencies(package: &Table) -> impl Iterator<Item = &str> {
    let list = package.get("dependencies").and_then(Value::as_array);
    list.into_iter().flatten().filter_map(Value::as_str)
}

fn name_of(reference: &str) -> &str {
    reference.split(' ').next().unwrap_or(reference)
}
