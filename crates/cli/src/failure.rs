//! Why a verb failed: one clear line, a hint, and an exit code.

use std::fmt::Display;
use std::io;
use std::process::ExitCode;

use lowmesh_lab::report::FolderError;
use lowmesh_lab::scenario::LoadError;
use lowmesh_net::oscore::OpenError;
use lowmesh_net::resolve::ResolveError;
use lowmesh_net::stream_transport::ConnectError;
use lowmesh_net::tls::TlsError;
use lowmesh_net::udp::BindError;

use crate::console::say;

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
        let hint = "are there members on this link? [ff02::fd%25eth0] says which link";
        Self::no_answer("nobody of the group answered", hint)
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
            Self::EnoughRead => return,
        };
        for line in message.lines() {
            say!("error: {line}");
        }
        if let Some(hint) = hint {
            say!("hint: {hint}");
        }
    }

    /// Its exit code.
    pub fn exit_code(&self) -> ExitCode {
        match self {
            Self::Usage { .. } => ExitCode::from(2),
            Self::Own { .. } => ExitCode::from(1),
            Self::NoAnswer { .. } => ExitCode::from(3),
            Self::Refused { class, .. } => ExitCode::from(*class),
            Self::Security { .. } => ExitCode::from(6),
            Self::EnoughRead => ExitCode::SUCCESS,
        }
    }
}

impl From<BindError> for Failure {
    fn from(error: BindError) -> Self {
        let hint = match &error {
            BindError::InUse(_) => "choose another with --port, or end the program that has it",
            BindError::Denied(_) => {
                "ports below 1024 are for the system; choose another with --port"
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
                "name a link of this machine behind the address, as in [ff02::fd%25eth0]"
            }
            ResolveError::ZoneTooMany(..) => "only addresses of one link have a zone",
            ResolveError::Unknown { .. } | ResolveError::NoAddress(_) | ResolveError::NoName(_) => {
                "give a name that is known here, an IPv4 address, or [an IPv6 address]"
            }
        };
        Self::usage(error, hint)
    }
}

impl From<TlsError> for Failure {
    fn from(error: TlsError) -> Self {
        let hint = "does --cafile hold the authority that has signed the server's certificate?";
        Self::Security { message: error.to_string(), hint }
    }
}

impl From<OpenError> for Failure {
    fn from(error: OpenError) -> Self {
        let hint = match &error {
            OpenError::Read { .. } => "--oscore takes a file of `keyword,encoding,value` lines",
            OpenError::HardLinks { .. } => "`find DIR -samefile FILE` shows the other names",
            OpenError::Configuration { .. } => "coap-oscore-conf(5) of libcoap has the form",
            OpenError::Store(_) => "the state of a security context lies beside its file",
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
            ConnectError::Group(_) => Self::usage(error, "ask them with coap://"),
            ConnectError::Datagrams(_) => Self::usage(error, "use coap+tcp"),
            ConnectError::Connect { .. } | ConnectError::Upgrade(_) => Self::no_answer(
                error,
                "is a server running there, at this port and for this scheme?",
            ),
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
