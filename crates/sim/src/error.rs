//! Why a run cannot start or cannot end.

use std::io;

use crate::air::error::{BuildError, ConfigError};

/// Why a run failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The topology or the medium cannot be built.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// Parts of the mesh are not possible, or do not fit together.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A setting of the nodes is not possible.
    #[error(transparent)]
    Node(#[from] lowmesh_stack::ConfigError),
    /// The capture file cannot be written.
    #[error("cannot write the capture: {0}")]
    Capture(#[source] io::Error),
    /// The record stream cannot be written.
    #[error("cannot write the trace: {0}")]
    Trace(#[source] io::Error),
    /// Packets were lost or made without a reason: a defect of the simulator, not of the scenario.
    #[error(
        "the packet books do not balance ({0}); this is a defect, please report it with the command"
    )]
    Books(String),
}
