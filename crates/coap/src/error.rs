//! The user's mistakes: settings that are not possible.

use lowmesh_registry::{ParameterError, Unknown};

/// A setting that is not possible.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// A number out of its bounds.
    #[error("{key} = {value} is not possible: {allowed}")]
    OutOfBounds {
        /// The setting.
        key: &'static str,
        /// What it was set to.
        value: usize,
        /// What it can be.
        allowed: &'static str,
    },
    /// A timer or a window that does not exist.
    #[error("{0}")]
    Unknown(Unknown),
    /// A timer that cannot have these numbers.
    #[error("timer: {0}")]
    Timer(ParameterError),
    /// Over connections TCP controls congestion (RFC 8323 s1).
    #[error("a connection leaves congestion control to TCP")]
    NoCongestionControl,
    /// More destinations with a congestion control of their own than peers are remembered.
    #[error("{0} destinations already have their own congestion control: raise peers_max")]
    Choices(usize),
}
