//! The folder of results: `runs.csv`, `summary.json` and `scenario.toml`, there as a whole or not at all.
//!
//! Files are written into a sibling folder first, which then takes the wanted name in one step. A folder that
//! exists is never touched. The sibling is there only while files are written, so a command that ends before leaves nothing.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use super::Report;
use crate::scenario::Scenario;

/// A folder of results that does not exist yet.
#[derive(Debug)]
pub struct Folder {
    target: PathBuf,
    partial: PathBuf,
}

/// Why a folder of results cannot be created.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// There is something under the wanted name already.
    #[error("{} exists already; results go into a new folder", .0.display())]
    Exists(PathBuf),
    /// The wanted name is no name of a folder, as `/`.
    #[error("{} cannot be the name of a new folder", .0.display())]
    Name(PathBuf),
    /// The system refused.
    #[error("cannot write {}: {source}", path.display())]
    Io {
        /// The folder or file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The results are written but could not take their name.
    #[error("cannot rename the results to {}: {source}; they are in {}", target.display(), kept.display())]
    Rename {
        /// The wanted name.
        target: PathBuf,
        /// Where the results are.
        kept: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl Folder {
    /// Checks, before any run, that the folder `target` can be created.
    pub fn reserve(target: &Path) -> Result<Self, FolderError> {
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
        Ok(Self { target: target.to_owned(), partial })
    }

    /// Writes the results and renames the folder to its final name.
    pub fn commit(self, scenario: &Scenario, report: &Report) -> Result<(), FolderError> {
        self.commit_files(&[
            ("scenario.toml", scenario.to_toml()),
            ("runs.csv", report.to_csv()),
            ("summary.json", report.to_json()),
        ])
    }

    /// Writes `files`, each a name and its text, and gives the folder its name.
    pub fn commit_files(self, files: &[(&str, String)]) -> Result<(), FolderError> {
        fs::create_dir(&self.partial)
            .map_err(|source| FolderError::Io { path: self.partial.clone(), source })?;
        for (name, text) in files {
            if let Err(error) = self.write(name, text) {
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

    fn write(&self, name: &str, text: &str) -> Result<(), FolderError> {
        let path = self.partial.join(name);
        let write = || -> io::Result<()> {
            let mut file = fs::File::create_new(&path)?;
            file.write_all(text.as_bytes())?;
            file.sync_all()
        };
        write().map_err(|source| FolderError::Io { path: path.clone(), source })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runner::Campaign;

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

    fn results() -> (Scenario, Report) {
        let scenario = Scenario::parse("x", "name = \"x\"", &[]).expect("a valid scenario");
        let report = Report::new(&scenario, Campaign::default());
        (scenario, report)
    }

    #[test]
    fn the_folder_has_its_three_files_and_no_trace_of_its_making() {
        let scratch = Scratch::new("whole");
        let (scenario, report) = results();
        let target = scratch.0.join("out");
        Folder::reserve(&target).expect("free").commit(&scenario, &report).expect("writable");
        assert_eq!(scratch.entries(), ["out"]);
        let text = fs::read_to_string(target.join("scenario.toml")).expect("written");
        assert_eq!(Scenario::parse("x", &text, &[]), Ok(scenario));
        assert_eq!(
            fs::read_to_string(target.join("summary.json")).expect("written"),
            report.to_json()
        );
        assert_eq!(fs::read_to_string(target.join("runs.csv")).expect("written"), report.to_csv());
    }

    #[test]
    fn a_folder_that_exists_is_refused_and_left_alone() {
        let scratch = Scratch::new("exists");
        let target = scratch.0.join("out");
        fs::create_dir(&target).expect("writable");
        fs::write(target.join("mine"), "kept").expect("writable");
        let error = Folder::reserve(&target).expect_err("it exists");
        assert!(matches!(error, FolderError::Exists(_)), "{error}");
        assert_eq!(fs::read_to_string(target.join("mine")).expect("left"), "kept");
        assert_eq!(scratch.entries(), ["out"]);
    }

    #[test]
    fn a_run_that_is_killed_leaves_nothing() {
        let scratch = Scratch::new("killed");
        let _folder = Folder::reserve(&scratch.0.join("out")).expect("free");
        assert!(scratch.entries().is_empty());
    }

    #[test]
    fn a_name_taken_meanwhile_loses_no_results() {
        let scratch = Scratch::new("meanwhile");
        let (scenario, report) = results();
        let target = scratch.0.join("out");
        let folder = Folder::reserve(&target).expect("free");
        fs::create_dir(&target).expect("writable");
        let error = folder.commit(&scenario, &report).expect_err("the name is taken");
        let FolderError::Rename { kept, .. } = error else { panic!("{error}") };
        assert!(kept.join("runs.csv").is_file());
        assert_eq!(fs::read_dir(&target).expect("left").count(), 0);
    }
}
