//! Exit codes: the one table behind the process, the help, the manual pages and their test against the docs.

use std::process::ExitCode;

/// How the process ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Exit {
    /// Everything was done.
    Done,
    /// Something failed on our side or on the machine's.
    Failed,
    /// The user can correct the input.
    Usage,
    /// Nobody answered.
    NoAnswer,
    /// A server answered with 4.xx.
    ClientError,
    /// A server answered with 5.xx.
    ServerError,
    /// Keys or certificates do not fit.
    Security,
    /// Some members of a group failed, others did not.
    Partial,
    /// The user interrupted the command.
    Interrupted,
    /// A program that the verb has run ended with this code.
    Command(u8),
}

impl Exit {
    /// The number that the shell sees.
    pub const fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Failed => 1,
            Self::Usage => 2,
            Self::NoAnswer => 3,
            Self::ClientError => 4,
            Self::ServerError => 5,
            Self::Security => 6,
            Self::Partial => 7,
            // The shell's convention: 128 and the number of SIGINT.
            Self::Interrupted => 130,
            Self::Command(code) => code,
        }
    }

    /// What it means, without a full stop.
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::Done => "success",
            Self::Failed => "a run failed, or a file or a socket could not be used",
            Self::Usage => "the command line, a scenario or another input is wrong",
            Self::NoAnswer => "no usable answer, or the server cannot be reached",
            Self::ClientError => "the server answered with 4.xx",
            Self::ServerError => "the server answered with 5.xx",
            Self::Security => "a key, an identity or a certificate is wrong",
            Self::Partial => "some members of a group failed, and others did not",
            Self::Interrupted => "interrupted with Ctrl-C; finished runs are in the store",
            Self::Command(_) => "the exit code of the program",
        }
    }

    /// The failure of a response code of this class.
    pub const fn of_class(class: u8) -> Self {
        if class == 5 { Self::ServerError } else { Self::ClientError }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}
