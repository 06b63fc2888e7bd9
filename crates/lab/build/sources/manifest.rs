//! The entries of a package's `Cargo.toml` that can change a run: edition, features, and dependencies with their
//! features. Descriptions, lints, versions of workspace packages and dev-dependencies do not count.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use toml::{Table, Value};

/// One package.
#[derive(Clone, Debug)]
pub struct Manifest {
    /// Its name.
    pub name: String,
    /// Its folder.
    pub folder: PathBuf,
    /// Its dependencies; empty until the manifest is [`resolved`](Manifest::resolved).
    pub dependencies: Vec<Dependency>,
    /// The edition of the language; empty until the manifest is resolved.
    edition: String,
    table: Table,
}

/// A dependency of a package.
#[derive(Clone, Debug)]
pub struct Dependency {
    /// The name of the package; the key in the manifest can be another.
    pub package: String,
    /// Its folder, if the manifest names one.
    pub folder: Option<PathBuf>,
    /// All other settings of the dependency, in one line.
    said: String,
}

impl Manifest {
    /// Reads the manifest of the package in `folder`.
    pub fn read(folder: &Path) -> Result<Self, String> {
        let table = table(&folder.join("Cargo.toml"))?;
        let name = table.get("package").and_then(|package| package.get("name"));
        let name = name.and_then(Value::as_str).unwrap_or_default().to_owned();
        let (dependencies, edition) = (Vec::new(), String::new());
        Ok(Self { name, folder: folder.to_owned(), dependencies, edition, table })
    }

    /// The root of the workspace of this package; none outside a workspace.
    ///
    /// A package from a registry neither inherits from a workspace nor has path dependencies. A workspace above its
    /// folder is therefore not its own.
    pub fn root(&self) -> Result<Option<Self>, String> {
        let in_place =
            |entry: &Value| entry.get("workspace").is_some() || entry.get("path").is_some();
        if !self.entries().iter().any(|(_, _, entry)| in_place(entry)) {
            return Ok(None);
        }
        for folder in self.folder.ancestors() {
            if folder.join("Cargo.toml").is_file() {
                let above = Self::read(folder)?;
                if above.table.contains_key("workspace") {
                    return Ok(Some(above));
                }
            }
        }
        Err(format!("there is no workspace above {}", self.folder.display()))
    }

    /// This manifest with what it inherits from the workspace at `root`.
    pub fn resolved(mut self, root: Option<&Self>) -> Result<Self, String> {
        let workspace = root.and_then(|root| root.table.get("workspace"));
        let shared =
            |path: [&str; 2]| path.iter().try_fold(workspace?, |value, key| value.get(key));
        let mut dependencies = Vec::new();
        for (kind, key, entry) in self.entries() {
            let inherits = entry.get("workspace").is_some();
            let inherited = if inherits { shared(["dependencies", key]) } else { None };
            if inherits && inherited.is_none() {
                return Err(format!("{}: the workspace has no dependency {key}", self.place()));
            }
            let home = root.filter(|_| inherits).map_or(&self.folder, |root| &root.folder);
            dependencies.push(Dependency::new(&kind, key, entry, inherited, home));
        }
        dependencies.sort_by(|a, b| (&a.package, &a.said).cmp(&(&b.package, &b.said)));
        let edition = self.table.get("package").and_then(|package| package.get("edition"));
        let edition = match edition {
            Some(Value::Table(_)) => shared(["package", "edition"]),
            other => other,
        };
        self.edition = edition.and_then(Value::as_str).unwrap_or("2015").to_owned();
        self.dependencies = dependencies;
        Ok(self)
    }

    /// The entries that can change a run, as a text in a fixed order.
    pub fn canonical(&self) -> String {
        let mut text = format!("edition {}\n", self.edition);
        let features = self.table.get("features").and_then(Value::as_table);
        let mut features: Vec<String> = features
            .into_iter()
            .flatten()
            .map(|(name, enables)| format!("feature {name} = {}\n", list(Some(enables))))
            .collect();
        features.sort();
        text.extend(features);
        for Dependency { package, said, .. } in &self.dependencies {
            // Writing to a String cannot fail.
            _ = writeln!(text, "dependency {package} {said}");
        }
        text
    }

    /// The dependencies of the library and of its build script: kind, key and entry of each.
    fn entries(&self) -> Vec<(String, &String, &Value)> {
        let targets = self.table.get("target").and_then(Value::as_table).into_iter().flatten();
        let targets = targets.filter_map(|(name, table)| Some((name.as_str(), table.as_table()?)));
        let mut all = Vec::new();
        for (target, table) in std::iter::once(("", &self.table)).chain(targets) {
            for kind in ["dependencies", "build-dependencies"] {
                let list = table.get(kind).and_then(Value::as_table).into_iter().flatten();
                all.extend(list.map(|(key, entry)| (format!("{target} {kind}"), key, entry)));
            }
        }
        all
    }

    fn place(&self) -> String {
        self.folder.join("Cargo.toml").display().to_string()
    }
}

impl Dependency {
    /// `entry` is that of the package itself, `inherited` that of the workspace.
    fn new(kind: &str, key: &str, entry: &Value, inherited: Option<&Value>, home: &Path) -> Self {
        let get = |name: &str| entry.get(name).or_else(|| inherited?.get(name));
        let text = |name: &str| get(name).and_then(Value::as_str);
        let flag = |name: &str, unless: bool| get(name).and_then(Value::as_bool).unwrap_or(unless);
        let package = text("package").unwrap_or(key).to_owned();
        let folder = text("path").map(|path| home.join(path));
        let plain = entry.as_str().or_else(|| inherited?.as_str());
        // The files of a workspace package are hashed, so its version does not count.
        let version = plain.or_else(|| text("version")).filter(|_| folder.is_none());
        // A package adds its features to the inherited ones.
        let features =
            [Some(entry), inherited].map(|side| list(side.and_then(|side| side.get("features"))));
        let said = format!(
            "{} as {key} version {} features {} defaults {} optional {}",
            kind.trim_start(),
            version.unwrap_or_default(),
            features.concat(),
            flag("default-features", true),
            flag("optional", false)
        );
        Self { package, folder, said }
    }
}

/// A list of names in order, as one word.
fn list(value: Option<&Value>) -> String {
    let names = value.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    let mut names: Vec<&str> = names.collect();
    names.sort_unstable();
    format!("[{}]", names.join(","))
}

/// The TOML in a file.
pub fn table(path: &Path) -> Result<Table, String> {
    let text = fs::read_to_string(path)
        .map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    text.parse().map_err(|error| format!("{}: {error}", path.display()))
}
