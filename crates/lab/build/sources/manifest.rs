//! What a package's `Cargo.toml` says that can change a run: edition, features, and which features of which packages
//! it builds on. Descriptions, lints, versions of packages of the workspace and dependencies of tests do not.

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
    /// What it builds on; only a [`resolved`](Manifest::resolved) manifest has them.
    pub dependencies: Vec<Dependency>,
    /// The edition of the language; only a resolved manifest has it.
    edition: String,
    table: Table,
}

/// One package on which another builds.
#[derive(Clone, Debug)]
pub struct Dependency {
    /// Its own name, whatever the manifest calls it.
    pub package: String,
    /// Its folder, if the manifest names one.
    pub folder: Option<PathBuf>,
    /// Everything else that is said of it, in one line.
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

    /// The root of the workspace in which this package is built; none if it is built for itself.
    ///
    /// A package from a registry neither inherits from a workspace nor names folders, whatever lies above it.
    pub fn root(&self) -> Result<Option<Self>, String> {
        let in_place = |told: &Value| told.get("workspace").is_some() || told.get("path").is_some();
        if !self.told().iter().any(|(_, _, told)| in_place(told)) {
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
        Err(format!("no workspace lies above {}", self.folder.display()))
    }

    /// This manifest with what it inherits from the workspace at `root`.
    pub fn resolved(mut self, root: Option<&Self>) -> Result<Self, String> {
        let workspace = root.and_then(|root| root.table.get("workspace"));
        let shared =
            |path: [&str; 2]| path.iter().try_fold(workspace?, |value, key| value.get(key));
        let mut dependencies = Vec::new();
        for (kind, key, told) in self.told() {
            let inherits = told.get("workspace").is_some();
            let inherited = if inherits { shared(["dependencies", key]) } else { None };
            if inherits && inherited.is_none() {
                return Err(format!("{}: the workspace has no dependency {key}", self.place()));
            }
            let home = root.filter(|_| inherits).map_or(&self.folder, |root| &root.folder);
            dependencies.push(Dependency::new(&kind, key, told, inherited, home));
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

    /// What of it can change a run, always in the same words.
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

    /// Each dependency that the library or its build script builds on: of which kind, under which key, what is said.
    fn told(&self) -> Vec<(String, &String, &Value)> {
        let targets = self.table.get("target").and_then(Value::as_table).into_iter().flatten();
        let targets = targets.filter_map(|(name, told)| Some((name.as_str(), told.as_table()?)));
        let mut all = Vec::new();
        for (target, table) in std::iter::once(("", &self.table)).chain(targets) {
            for kind in ["dependencies", "build-dependencies"] {
                let list = table.get(kind).and_then(Value::as_table).into_iter().flatten();
                all.extend(list.map(|(key, told)| (format!("{target} {kind}"), key, told)));
            }
        }
        all
    }

    fn place(&self) -> String {
        self.folder.join("Cargo.toml").display().to_string()
    }
}

impl Dependency {
    /// `told` is what the package itself says, `inherited` what it takes over from the workspace.
    fn new(kind: &str, key: &str, told: &Value, inherited: Option<&Value>, home: &Path) -> Self {
        let get = |name: &str| told.get(name).or_else(|| inherited?.get(name));
        let text = |name: &str| get(name).and_then(Value::as_str);
        let flag = |name: &str, unless: bool| get(name).and_then(Value::as_bool).unwrap_or(unless);
        let package = text("package").unwrap_or(key).to_owned();
        let folder = text("path").map(|path| home.join(path));
        let plain = told.as_str().or_else(|| inherited?.as_str());
        // Packages of the workspace count by their files.
        let version = plain.or_else(|| text("version")).filter(|_| folder.is_none());
        // Features add up.
        let features =
            [Some(told), inherited].map(|side| list(side.and_then(|side| side.get("features"))));
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
