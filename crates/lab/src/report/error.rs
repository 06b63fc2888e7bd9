//! Why results are not written.

use std::io;
use std::path::PathBuf;

/// Why a folder of results cannot be created.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// There is something under the wanted name already.
    #[error("{} exists already; results go into a new folder", .0.display())]
    Exists(PathBuf),
    /// The wanted name is no name of a folder, as `/`.
    #[error("{} cannot be the name of a new folder", .0.display())]
    Name(PathBuf),
    /// A file that the scenario names cannot be copied.
    #[error("cannot copy {}: {source}", path.display())]
    Source {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
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
