//! Why a verb failed: one clear line, a hint, and an exit code.

use std::fmt::Display;
use std::io;

use lowmesh_lab::report::FolderError;
use lowmesh_lab::scenario::{ConfigError, Fault, LoadError};
use lowmesh_net::oscore::OpenError;
use lowmesh_net::resolve::ResolveError;
use lowmesh_net::stream_transport::ConnectError;
use lowmesh_net::tls::TlsError;
use lowmesh_net::udp::BindError;

use crate::console::say;
use crate::exit::Exit;

/// A failed verb.
#[derive(Debug)]
pub enum Failure {
    /// The command line or the scenario is wrong; the user can correct it.
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
    /// Nobody answered, or nobody can be reached.
    NoAnswer {
        /// What happened.
        message: String,
        /// What would help.
        hint: &'static str,
    },
    /// A server answered with an error: 4.xx or 5.xx.
    Refused {
        /// The digit before the point.
        class: u8,
        /// Code and diagnostic payload.
        message: String,
    },
    /// Keys or certificates do not fit.
    Security {
        /// What happened.
        message: String,
        /// What would help.
        hint: &'static str,
    },
    /// Some members of a group failed, and the output says which.
    Partial {
        /// How many failed.
        failed: usize,
        /// How many there are.
        all: usize,
    },
    /// A program that the verb has run ended with this exit code, and has said why.
    Ended(u8),
    /// The reader of our output has closed it, as `head` does.
    EnoughRead,
}

impl Failure {
    /// A failure on our side without a hint.
    pub fn own(message: impl Display) -> Self {
        Self::Own { message: message.to_string(), hint: None }
    }

    /// A failure that the user can correct.
    pub fn usage(message: impl Display, hint: &str) -> Self {
        Self::Usage { message: message.to_string(), hint: Some(hint.to_owned()) }
    }
    /// No answer.
    pub fn no_answer(message: impl Display, hint: &'static str) -> Self {
        Self::NoAnswer { message: message.to_string(), hint }
    }
    /// No answer from a whole group.
    pub fn no_member() -> Self {
        let hint = "are there members on this link? [ff02::fd%25eth0] selects the link";
        Self::no_answer("no member of the group answered", hint)
    }

    /// Writes it to stderr.
    pub fn tell(&self) {
        let (message, hint) = match self {
            Self::Usage { message, hint } | Self::Own { message, hint } => {
                (message, hint.as_deref())
            }
            Self::NoAnswer { message, hint } | Self::Security { message, hint } => {
                (message, Some(*hint))
            }
            Self::Refused { message, .. } => (message, None),
            Self::Partial { failed, all } => {
                return say!("error: {failed} of {all} members failed");
            }
            Self::Ended(_) | Self::EnoughRead => return,
        };
        for line in message.lines() {
            // An indented line is an excerpt below its error.
            if line.starts_with(' ') { say!("{line}") } else { say!("error: {line}") }
        }
        if let Some(hint) = hint {
            say!("hint: {hint}");
        }
    }

    /// How the process ends after it.
    pub fn exit(&self) -> Exit {
        match self {
            Self::Usage { .. } => Exit::Usage,
            Self::Own { .. } => Exit::Failed,
            Self::NoAnswer { .. } => Exit::NoAnswer,
            Self::Refused { class, .. } => Exit::of_class(*class),
            Self::Security { .. } => Exit::Security,
            Self::Partial { .. } => Exit::Partial,
            Self::Ended(code) => Exit::Command(*code),
            Self::EnoughRead => Exit::Done,
        }
    }
}

impl From<BindError> for Failure {
    fn from(error: BindError) -> Self {
        let hint = match &error {
            BindError::InUse(_) => "choose another with --port, or end the program that uses it",
            BindError::Denied(_) => {
                "ports below 1024 need a privilege of the system; choose another with --port"
            }
            BindError::NotOurs(_) => "`ip address` lists the addresses of this machine",
            BindError::Other { .. } => "is the network up?",
        };
        Self::usage(error, hint)
    }
}

impl From<ResolveError> for Failure {
    fn from(error: ResolveError) -> Self {
        let hint = match &error {
            ResolveError::Zone(_) | ResolveError::NoZone(_) => {
                "add a network interface of this machine to the address, as in [ff02::fd%25eth0]"
            }
            ResolveError::ZoneTooMany(..) => "only link-local addresses and groups have a zone",
            ResolveError::Unknown { .. } | ResolveError::NoAddress(_) | ResolveError::NoName(_) => {
                "give a name that this machine can resolve, an IPv4 address, or [an IPv6 address]"
            }
        };
        Self::usage(error, hint)
    }
}

impl From<TlsError> for Failure {
    fn from(error: TlsError) -> Self {
        Self::Security { message: error.to_string(), hint: error.hint() }
    }
}

impl From<OpenError> for Failure {
    fn from(error: OpenError) -> Self {
        let hint = match &error {
            OpenError::Read { .. } => {
                "--oscore and --group-oscore take files of `keyword,encoding,value` lines"
            }
            OpenError::HardLinks { .. } => "`find DIR -samefile FILE` shows the other names",
            OpenError::Configuration { .. } => {
                "coap-oscore-conf(5) of libcoap describes the format"
            }
            OpenError::Group { .. } => {
                "`lowmesh keygen group` makes a file for each member of a group"
            }
            OpenError::SameGroup { .. } => "give each group a group_id of its own",
            OpenError::Store(_) => {
                "each key file has one state: next to it, or in the first folder of --oscore-state"
            }
        };
        Self::usage(error, hint)
    }
}

impl From<ConnectError> for Failure {
    fn from(error: ConnectError) -> Self {
        match error {
            ConnectError::Resolve(error) => error.into(),
            ConnectError::Tls(error) => error.into(),
            ConnectError::NoTrust(_) => Self::usage(error, "give --cafile FILE"),
            ConnectError::Group(_) => Self::usage(error, "use coap:// for a group"),
            ConnectError::Datagrams(_) => Self::usage(error, "use coap+tcp"),
            ConnectError::Connect { .. } | ConnectError::Late { .. } | ConnectError::Upgrade(_) => {
                Self::no_answer(
                    error,
                    "is a server running there, at this port and for this scheme?",
                )
            }
        }
    }
}

impl From<LoadError> for Failure {
    fn from(error: LoadError) -> Self {
        let hint = match &error {
            LoadError::Unknown { .. } => Some("`lowmesh scenarios` lists the built-in ones"),
            LoadError::Read { .. } => Some(
                "give the path of a scenario's TOML file or of a link table, or a built-in name",
            ),
            LoadError::Config(errors) => hint_of(&errors.0),
        };
        Self::Usage { message: format!("{error:#}"), hint: hint.map(str::to_owned) }
    }
}

/// Where to look up a key. Other errors say themselves what is allowed.
fn hint_of(errors: &[ConfigError]) -> Option<&'static str> {
    let unknown =
        |error: &ConfigError| matches!(error.fault, Fault::UnknownKey { similar: None, .. });
    errors.iter().any(unknown).then_some("`lowmesh show grid-25` prints every key with its meaning")
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
            FolderError::Source { .. } | FolderError::Io { .. } | FolderError::Rename { .. } => {
                Self::own(message)
            }
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
