//! Why a file of security contexts is refused.

use std::io;
use std::path::PathBuf;

use lowmesh_oscore::{ConfigurationError, group};

use super::store::StoreError;

/// A file of contexts that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another file has a group with the same Gid.
    #[error("{}: another file has a group with the same group_id", path.display())]
    SameGroup {
        /// The file.
        path: PathBuf,
    },
    /// It cannot be read.
    #[error("cannot read {}: {error}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        error: io::Error,
    },
    /// It has several names.
    #[error("{} has {names} hard links, each of which would have its own state; \
             keep one, and make the others symbolic links", path.display())]
    HardLinks {
        /// The file.
        path: PathBuf,
        /// How many names it has.
        names: u64,
    },
    /// It is not of the form.
    #[error("{}: {error}", path.display())]
    Configuration {
        /// The file.
        path: PathBuf,
        /// Where, and what is wrong.
        error: ConfigurationError,
    },
    /// It is not of the form of a group.
    #[error("{}: {error}", path.display())]
    Group {
        /// The file.
        path: PathBuf,
        /// Where, and what is wrong.
        error: group::ConfigurationError,
    },
    /// What changes of a context cannot be kept.
    #[error(transparent)]
    Store(#[from] StoreError),
}
