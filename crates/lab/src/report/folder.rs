//! The folder of results: `runs.csv`, `summary.json`, `scenario.toml` and the files that this names, there as a whole or
//! not at all.
//!
//! Files are written into a sibling folder first, which then takes the wanted name in one step. A folder that
//! exists is never touched. The sibling is there only while files are written, so a command that ends before leaves nothing.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use super::Report;
use super::error::FolderError;
use super::files::Files;
use crate::plan::Plan;
use crate::results::Results;

/// A folder of results that does not exist yet.
#[derive(Debug)]
pub struct Folder {
    target: PathBuf,
    partial: PathBuf,
    /// The plan with the names of the copies.
    plan: Plan,
    files: Files,
}

impl Folder {
    /// Checks, before any run, that the folder `target` can be created, and reads the files that `plan` names.
    pub fn reserve(target: &Path, plan: &Plan) -> Result<Self, FolderError> {
        if target.symlink_metadata().is_ok() {
            return Err(FolderError::Exists(target.to_owned()));
        }
        let name = target.file_name().ok_or_else(|| FolderError::Name(target.to_owned()))?;
        let mut partial = std::ffi::OsString::from(".");
        partial.push(name);
        partial.push(format!(".partial-{}", std::process::id()));
        let partial = target.with_file_name(partial);
        let try_it = || fs::create_dir(&partial).and_then(|()| fs::remove_dir(&partial));
        try_it().map_err(|source| FolderError::Io { path: partial.clone(), source })?;
        let (files, plan) = Files::of(plan)?;
        Ok(Self { target: target.to_owned(), partial, plan, files })
    }

    /// Writes the results of a scenario and renames the folder to its final name.
    pub fn commit(self, report: &Report) -> Result<(), FolderError> {
        self.commit_texts(&report.to_csv(), &report.to_json())
    }

    /// Writes the results of a sweep and renames the folder to its final name.
    pub fn commit_sweep(self, results: &Results) -> Result<(), FolderError> {
        let results = self.files.renamed(results);
        self.commit_texts(&results.to_csv(), &results.to_json())
    }

    fn commit_texts(self, runs: &str, summary: &str) -> Result<(), FolderError> {
        let scenario = self.plan.to_toml();
        let texts =
            [("scenario.toml", scenario.as_str()), ("runs.csv", runs), ("summary.json", summary)];
        let texts = texts.map(|(name, text)| (name, text.as_bytes()));
        fs::create_dir(&self.partial)
            .map_err(|source| FolderError::Io { path: self.partial.clone(), source })?;
        for (name, contents) in texts.into_iter().chain(self.files.all()) {
            if let Err(error) = self.write(name, contents) {
                // Nothing to be done about a folder that does not go; it holds nothing of worth.
                _ = fs::remove_dir_all(&self.partial);
                return Err(error);
            }
        }
        let rename = |source| FolderError::Rename {
            target: self.target.clone(),
            kept: self.partial.clone(),
            source,
        };
        // A rename would replace an empty folder that came into being meanwhile.
        if self.target.symlink_metadata().is_ok() {
            return Err(rename(io::ErrorKind::AlreadyExists.into()));
        }
        fs::rename(&self.partial, &self.target).map_err(rename)
    }

    fn write(&self, name: &str, contents: &[u8]) -> Result<(), FolderError> {
        let path = self.partial.join(name);
        let write = || -> io::Result<()> {
            let mut file = fs::File::create_new(&path)?;
            file.write_all(contents)?;
            file.sync_all()
        };
        write().map_err(|source| FolderError::Io { path: path.clone(), source })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::PointResult;
    use crate::runner::Campaign;
    use crate::scenario::Scenario;

    /// An empty folder of the test's own, removed with the value.
    struct Scratch(PathBuf);

    impl Scratch {
        fn new(test: &str) -> Self {
            let path =
                std::env::temp_dir().join(format!("lowmesh-lab-{test}-{}", std::process::id()));
            fs::create_dir_all(&path).expect("the system's folder for temporary files is writable");
            Self(path)
        }
        fn entries(&self) -> Vec<String> {
            let list = fs::read_dir(&self.0).expect("the folder exists");
            list.map(|entry| entry.expect("readable").file_name().into_string().expect("ASCII"))
                .collect()
        }
    }
    impl Drop for Scratch {
        fn drop(&mut self) {
            _ = fs::remove_dir_all(&self.0);
        }
    }

    fn results() -> (Plan, Report) {
        let scenario = Scenario::parse("x", "name = \"x\"", &[]).expect("a valid scenario");
        let report = Report::new(&scenario, Campaign::default());
        (Plan::single(scenario), report)
    }

    #[test]
    fn the_folder_has_its_three_files_and_no_trace_of_its_making() {
        let scratch = Scratch::new("whole");
        let (plan, report) = results();
        let target = scratch.0.join("out");
        Folder::reserve(&target, &plan).expect("free").commit(&report).expect("writable");
        assert_eq!(scratch.entries(), ["out"]);
        let text = fs::read_to_string(target.join("scenario.toml")).expect("written");
        assert_eq!(Plan::parse("x", &text, &[]), Ok(plan));
        assert_eq!(
            fs::read_to_string(target.join("summary.json")).expect("written"),
            report.to_json()
        );
        assert_eq!(fs::read_to_string(target.join("runs.csv")).expect("written"), report.to_csv());
    }

    #[test]
    fn a_folder_that_exists_is_refused_and_left_alone() {
        let scratch = Scratch::new("exists");
        let (plan, _) = results();
        let target = scratch.0.join("out");
        fs::create_dir(&target).expect("writable");
        fs::write(target.join("mine"), "kept").expect("writable");
        let error = Folder::reserve(&target, &plan).expect_err("it exists");
        assert!(matches!(error, FolderError::Exists(_)), "{error}");
        assert_eq!(fs::read_to_string(target.join("mine")).expect("left"), "kept");
        assert_eq!(scratch.entries(), ["out"]);
    }

    #[test]
    fn files_of_one_name_are_told_apart_and_no_result_is_overwritten() {
        let scratch = Scratch::new("names");
        let file = |name: &str, contents: &str| {
            let path = scratch.0.join(name);
            fs::create_dir_all(path.parent().expect("a folder")).expect("writable");
            fs::write(&path, contents).expect("writable");
            path.display().to_string()
        };
        let places = ["a/P.csv", "b/p.csv", "runs.csv"].map(|name| file(name, name));
        let text = format!(
            "name = \"x\"\n[topology]\nkind = \"positions\"\n[sweep]\n\"topology.file\" = {places:?}\n"
        );
        let plan = Plan::parse("x", &text, &[]).unwrap_or_else(|error| panic!("{error}"));
        let target = scratch.0.join("out");
        let folder = Folder::reserve(&target, &plan).expect("free");
        let points = plan.points.iter().map(|point| PointResult {
            point: point.clone(),
            runs: Vec::new(),
            failures: Vec::new(),
        });
        let results = Results { name: plan.name.clone(), points: points.collect() };
        folder.commit_sweep(&results).expect("writable");
        for (name, contents) in
            ["P.csv", "2-p.csv", "2-runs.csv"].into_iter().zip(["a/P.csv", "b/p.csv", "runs.csv"])
        {
            assert_eq!(fs::read_to_string(target.join(name)).expect(name), contents);
        }
        let toml = fs::read_to_string(target.join("scenario.toml")).expect("written");
        assert!(toml.contains(r#""topology.file" = ["P.csv", "2-p.csv", "2-runs.csv"]"#), "{toml}");
        let summary = fs::read_to_string(target.join("summary.json")).expect("written");
        let own = scratch.0.display().to_string();
        assert!(summary.contains("\"2-p.csv\"") && ![toml, summary].concat().contains(&own));
    }

    #[test]
    fn a_run_that_is_killed_leaves_nothing() {
        let scratch = Scratch::new("killed");
        let (plan, _) = results();
        let _folder = Folder::reserve(&scratch.0.join("out"), &plan).expect("free");
        assert!(scratch.entries().is_empty());
    }

    #[test]
    fn a_name_taken_meanwhile_loses_no_results() {
        let scratch = Scratch::new("meanwhile");
        let (plan, report) = results();
        let target = scratch.0.join("out");
        let folder = Folder::reserve(&target, &plan).expect("free");
        fs::create_dir(&target).expect("writable");
        let error = folder.commit(&report).expect_err("the name is taken");
        let FolderError::Rename { kept, .. } = error else { panic!("{error}") };
        assert!(kept.join("runs.csv").is_file());
        assert_eq!(fs::read_dir(&target).expect("left").count(), 0);
    }
}
