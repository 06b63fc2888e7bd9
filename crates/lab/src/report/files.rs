//! The files that scenarios are read from, as a folder of results holds them: next to `scenario.toml`, which names them
//! without a folder. So the folder is complete, wherever it is copied.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::error::FolderError;
use crate::plan::Plan;
use crate::results::{Point, Results};
use crate::scenario::literal_of_text;

/// Names that other files of the folder have.
const TAKEN: [&str; 3] = ["scenario.toml", "runs.csv", "summary.json"];

/// Copies of the files that a plan names.
#[derive(Debug, Default)]
pub struct Files {
    copies: Vec<Copy>,
    /// The points of the plan, and what each is with the names of the copies.
    points: Vec<(Point, Point)>,
}

#[derive(Debug)]
struct Copy {
    source: PathBuf,
    name: String,
    contents: Vec<u8>,
}

impl Files {
    /// Reads the files of a plan. Returns also the plan with the names of the copies.
    pub fn of(plan: &Plan) -> Result<(Self, Plan), FolderError> {
        let (mut files, mut own) = (Self::default(), plan.clone());
        // By swept key: what a value is called in the plan, and in the folder.
        let mut renamed: BTreeMap<String, BTreeMap<String, String>> = BTreeMap::new();
        for point in &mut own.points {
            let before = point.clone();
            for file in point.scenario.files_mut() {
                *file = files.copy(Path::new(file))?;
            }
            if point.scenario != before.scenario {
                let (old, new) = (before.scenario.keys(), point.scenario.keys());
                for (key, value) in &mut point.settings {
                    if let Some(name) = new.get(key).filter(|name| old.get(key) != Some(name)) {
                        renamed.entry(key.clone()).or_default().insert(value.clone(), name.clone());
                        value.clone_from(name);
                    }
                }
            }
            files.points.push((before, point.clone()));
        }
        for axis in &mut own.sweep.axes {
            for value in &mut axis.values {
                if let Some(name) = renamed.get(&axis.key).and_then(|names| names.get(&value.text))
                {
                    (value.text, value.literal) = (name.clone(), literal_of_text(name));
                }
            }
        }
        Ok((files, own))
    }

    /// The results with the names of the copies in their points.
    pub fn renamed(&self, results: &Results) -> Results {
        let mut results = results.clone();
        for result in &mut results.points {
            let own = self.points.iter().find(|(before, _)| *before == result.point);
            if let Some((_, own)) = own {
                result.point.clone_from(own);
            }
        }
        results
    }

    /// The copies: names and contents.
    pub(super) fn all(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.copies.iter().map(|copy| (copy.name.as_str(), copy.contents.as_slice()))
    }

    /// The name of the copy of `source`, which is read the first time.
    fn copy(&mut self, source: &Path) -> Result<String, FolderError> {
        if let Some(known) = self.copies.iter().find(|copy| copy.source == source) {
            return Ok(known.name.clone());
        }
        let contents = fs::read(source)
            .map_err(|error| FolderError::Source { path: source.to_owned(), source: error })?;
        let plain = source.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let numbered = (2..).map(|number| format!("{number}-{plain}"));
        let mut names = std::iter::once(plain.clone()).chain(numbered);
        let name = names.find(|name| !self.is_taken(name)).expect("there is always a next number");
        self.copies.push(Copy { source: source.to_owned(), name: name.clone(), contents });
        Ok(name)
    }

    /// Whether a file of the folder has this name, where upper and lower case are the same too.
    fn is_taken(&self, name: &str) -> bool {
        let copies = self.copies.iter().map(|copy| copy.name.as_str());
        TAKEN.into_iter().chain(copies).any(|taken| taken.eq_ignore_ascii_case(name))
    }
}
