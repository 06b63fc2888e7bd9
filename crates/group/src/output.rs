//! What a manager requests of its driver.

use lowmesh_coap::{RequestTemplate, ResponseTemplate};
use lowmesh_units::Duration;

use crate::target::Authority;

/// Names a request of the manager to a member or a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ExchangeId(pub u64);

/// Names a request of a client, which the driver chooses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u64);

/// An action that a manager requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Ask a node. It ends with `Input::Response` or `Input::Failed`. After `Output::Cancel` a request may be asked again
    /// with the same name and a new message ID. Of a request with Observe notifications may follow
    /// the response, each as `Input::Notification`, until `Input::Over`, `Input::Failed` or `Output::Cancel`.
    Request {
        /// The name of the request.
        exchange: ExchangeId,
        /// The node.
        to: Authority,
        /// The request.
        message: RequestTemplate,
    },
    /// Ask a group. It ends with `Input::Over` or `Input::Failed`.
    Group {
        /// The name of the request.
        exchange: ExchangeId,
        /// The address of the group.
        to: Authority,
        /// The request.
        message: RequestTemplate,
        /// How long answers are taken.
        wait: Duration,
    },
    /// The end of a request is no longer of interest.
    Cancel {
        /// The name of the request.
        exchange: ExchangeId,
    },
    /// Answer a client.
    Respond {
        /// The request of the client.
        request: RequestId,
        /// The answer.
        response: ResponseTemplate,
    },
}

/// Which part of the manager a request belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    /// One member of a query.
    Query { query: u64, slot: usize },
    /// The group of a query.
    Group { query: u64 },
    /// One member of an observation.
    Watch { watch: u64, slot: usize },
    /// One member of a validation.
    Check { check: u64, slot: usize },
    /// The membership of a member.
    Membership { entity: u64, member: u32 },
    /// None any more: the request finds out whether a node is up, or others share it.
    Nobody,
}
