//! Why a verb failed: one clear line, a hint, and an exit code.

use std::fmt::Display;
use std::io;
use std::process::ExitCode;

use lowmesh_lab::report::FolderError;
use lowmesh_lab::scenario::LoadError;

/// A failed verb.
#[derive(Debug)]
pub enum Failure {
    /// The command line or the scenario is wrong; the user can mend it.
    Usage {
        /// What is wrong.
        message: String,
        /// What would help.
        hint: Option<String>,
    },
    /// Something went wrong on our side, or on the machine's.
    Own {
        /// What went wrong.
        message: String,
        /// What would help.
        hint: Option<String>,
    },
    /// Whoever read our output has enough, as `head` does.
    EnoughRead,
}

impl Failure {
    /// A failure on our side without a hint.
    pub fn own(message: impl Display) -> Self {
        Self::Own { message: message.to_string(), hint: None }
    }

    /// Writes it to stderr.
    pub fn tell(&self) {
        let (Self::Usage { message, hint } | Self::Own { message, hint }) = self else { return };
        for line in message.lines() {
            eprintln!("error: {line}");
        }
        if let Some(hint) = hint {
            eprintln!("hint: {hint}");
        }
    }

    /// Its exit code.
    pub fn exit_code(&self) -> ExitCode {
        match self {
            Self::Usage { .. } => ExitCode::from(2),
            Self::Own { .. } => ExitCode::from(1),
            Self::EnoughRead => ExitCode::SUCCESS,
        }
    }
}

impl From<LoadError> for Failure {
    fn from(error: LoadError) -> Self {
        let hint = match &error {
            LoadError::Unknown { .. } => "`lowmesh scenarios` lists the built-in ones",
            LoadError::Read { .. } => "give the path of a scenario's TOML file, or a built-in name",
            LoadError::Config(_) => {
                "`lowmesh show NAME` prints a built-in scenario with every key written out; `lowmesh scenarios` names them"
            }
        };
        Self::Usage { message: error.to_string(), hint: Some(hint.to_owned()) }
    }
}

impl From<FolderError> for Failure {
    fn from(error: FolderError) -> Self {
        let message = error.to_string();
        match error {
            FolderError::Exists(_) => {
                let hint = "give another name to --out, or move the old results away";
                Self::Usage { message, hint: Some(hint.to_owned()) }
            }
            FolderError::Name(_) => Self::Usage { message, hint: None },
            FolderError::Io { .. } | FolderError::Rename { .. } => Self::own(message),
        }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Self::EnoughRead;
        }
        Self::own(format!("cannot write the output: {error}"))
    }
}
