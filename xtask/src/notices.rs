//! `notices`: licences of all packages in the `lowmesh` program, with their texts, for those who pass it on.
//!
//! The licences allow to pass the program on with copyright notices and licence texts. These are in the sources that cargo
//! has fetched; equal texts are printed once, with the packages that they are for.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use crate::process;

/// Beginnings of the names of files with notices, in capitals.
const NAMES: [&str; 5] = ["LICENSE", "LICENCE", "COPYING", "NOTICE", "COPYRIGHT"];

/// A package in the program.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Package {
    name: String,
    licence: String,
    folder: PathBuf,
}

/// Prints the notices, or writes them into a file.
pub fn run(args: &[String]) -> Result<()> {
    let file = match args {
        [] => None,
        [file] if !file.starts_with('-') => Some(PathBuf::from(file)),
        other => bail!("unknown arguments {other:?}; allowed: FILE"),
    };
    let packages = packages()?;
    let text = notices(&packages)?;
    match file {
        None => print!("{text}"),
        Some(file) => {
            fs::write(&file, &text).with_context(|| format!("cannot write {}", file.display()))?;
            println!("{}: notices of {} packages", file.display(), packages.len());
        }
    }
    Ok(())
}

/// The packages of others that are compiled into the program on this kind of machine.
fn packages() -> Result<Vec<Package>> {
    let tree = process::read(process::cargo(&[
        "tree",
        "--package",
        "lowmesh",
        "--edges",
        "normal",
        "--prefix",
        "none",
        "--format",
        "{p}",
        "--locked",
    ]))?;
    let compiled: BTreeSet<String> = tree.lines().filter_map(name_and_version).collect();
    let metadata =
        process::read(process::cargo(&["metadata", "--format-version", "1", "--locked"]))?;
    let metadata: Value = serde_json::from_str(&metadata).context("cargo metadata is not JSON")?;
    let all = metadata["packages"].as_array().context("cargo metadata has no packages")?;
    let mut packages = Vec::new();
    for package in all.iter().filter(|package| !package["source"].is_null()) {
        let text = |key: &str| package[key].as_str().unwrap_or_default();
        let name = format!("{} {}", text("name"), text("version"));
        if compiled.contains(&name) {
            let folder = Path::new(text("manifest_path")).parent().unwrap_or(Path::new("."));
            packages.push(Package {
                name,
                licence: text("license").to_owned(),
                folder: folder.to_owned(),
            });
        }
    }
    packages.sort_by(|a, b| a.name.cmp(&b.name));
    ensure!(!packages.is_empty(), "cargo tree names no package");
    Ok(packages)
}

/// `NAME VERSION` out of a line `NAME vVERSION ...` of cargo tree.
fn name_and_version(line: &str) -> Option<String> {
    let (name, rest) = line.split_once(" v")?;
    Some(format!("{name} {}", rest.split_whitespace().next()?))
}

/// The list of packages, and each text once.
fn notices(packages: &[Package]) -> Result<String> {
    let mut text = String::from("Packages in this program, with their licences\n\n");
    let mut texts: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for package in packages {
        // Writing to a String cannot fail.
        _ = writeln!(text, "{}: {}", package.name, package.licence);
        for notice in texts_in(&package.folder)? {
            texts.entry(notice).or_default().push(&package.name);
        }
    }
    let mut texts: Vec<(String, Vec<&str>)> = texts.into_iter().collect();
    texts.sort_by(|a, b| a.1.cmp(&b.1));
    for (notice, names) in texts {
        _ = write!(text, "\n{}\n{}\n\n{notice}\n", "=".repeat(80), names.join(", "));
    }
    Ok(text)
}

/// The texts of the files with notices in a folder.
fn texts_in(folder: &Path) -> Result<BTreeSet<String>> {
    let mut texts = BTreeSet::new();
    for entry in
        fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))?
    {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_uppercase();
        if path.is_file() && NAMES.iter().any(|start| name.starts_with(start)) {
            let text =
                fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
            texts.insert(String::from_utf8_lossy(&text).replace('\r', "").trim().to_owned());
        }
    }
    Ok(texts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_cargo_tree_become_names_with_versions() {
        let of = |line: &str| name_and_version(line).unwrap_or_default();
        assert_eq!(of("ring v0.17.14"), "ring 0.17.14");
        assert_eq!(of("clap_derive v4.6.7 (proc-macro) (*)"), "clap_derive 4.6.7");
        assert_eq!(name_and_version(""), None);
    }

    #[test]
    fn each_package_is_listed_and_each_text_printed_once() {
        let folder = std::env::temp_dir().join(format!("xtask-notices-{}", std::process::id()));
        for (package, file, text) in [
            ("a", "LICENSE-MIT", "mit\r\n"),
            ("b", "license.txt", "mit\n"),
            ("b", "NOTICE", "b's"),
            ("b", "lib.rs", "x"),
        ] {
            fs::create_dir_all(folder.join(package)).expect("writable");
            fs::write(folder.join(package).join(file), text).expect("writable");
        }
        let package = |name: &str, licence: &str| Package {
            name: format!("{name} 1.0.0"),
            licence: licence.to_owned(),
            folder: folder.join(name),
        };
        let text = notices(&[package("a", "MIT"), package("b", "MIT OR Zlib")]).expect("readable");
        fs::remove_dir_all(&folder).expect("it is there");
        assert!(text.contains("a 1.0.0: MIT\nb 1.0.0: MIT OR Zlib\n"), "{text}");
        assert!(
            text.contains("a 1.0.0, b 1.0.0\n\nmit\n") && text.contains("b 1.0.0\n\nb's\n"),
            "{text}"
        );
        assert_eq!(text.matches("mit").count(), 1);
    }
}
