//! What a manager gets from its driver.

use core::net::IpAddr;

use lowmesh_coap::Fault;
use lowmesh_machine::DropReason;
use lowmesh_units::Duration;
use lowmesh_wire::coap::Message;

use crate::gate::Path;
use crate::output::{ExchangeId, RequestId};
use crate::target::Authority;

/// An event that a manager handles.
#[derive(Debug)]
pub enum Input {
    /// A client asks. It gets one [`Output::Respond`](crate::output::Output::Respond).
    Request {
        /// The name of the request.
        request: RequestId,
        /// The address of the client, for its share.
        client: IpAddr,
        /// The whole request.
        message: Message,
    },
    /// A node answers.
    Response {
        /// The name of the manager's request.
        exchange: ExchangeId,
        /// The whole answer.
        message: Message,
        /// From the first copy of the request to now.
        rtt: Duration,
        /// Copies after the first.
        retransmissions: u8,
    },
    /// A node has the request, and its answer follows (an empty ACK: RFC 7252 s5.2.2).
    Acknowledged {
        /// The name of the manager's request.
        exchange: ExchangeId,
    },
    /// A member that is observed notifies, after the response.
    Notification {
        /// The name of the manager's request.
        exchange: ExchangeId,
        /// The whole notification.
        message: Message,
    },
    /// One member of a group answers.
    GroupResponse {
        /// The name of the manager's request.
        exchange: ExchangeId,
        /// The member.
        from: Authority,
        /// The whole answer.
        message: Message,
    },
    /// The time for answers of a group is over, or a member notifies no more.
    Over {
        /// The name of the manager's request.
        exchange: ExchangeId,
    },
    /// A request came to nothing.
    Failed {
        /// The name of the manager's request.
        exchange: ExchangeId,
        /// Why.
        reason: DropReason,
    },
    /// A node is there and answers, but not well.
    Faulty {
        /// The name of the manager's request.
        exchange: ExchangeId,
        /// What it did.
        fault: Fault,
    },
    /// The route to a node, for gates that use it.
    Route {
        /// The node.
        host: IpAddr,
        /// The route.
        path: Path,
    },
    /// The time of [`Machine::next_deadline`](lowmesh_machine::Machine::next_deadline) has come.
    Deadline,
}
