//! A mesh as a viewer sees it at one moment.

use lowmesh_mac::account::RadioTime;
use lowmesh_units::{Eui64, Instant, NodeId, Rank};
use lowmesh_wire::ipv6::Address;

/// All nodes at one moment; [`Mesh::snapshot`](crate::Mesh::snapshot) takes it.
#[derive(Clone, Debug, PartialEq)]
pub struct Snapshot {
    /// The time of the snapshot.
    pub now: Instant,
    /// One entry a node, in the order of their numbers.
    pub nodes: Vec<NodeSnapshot>,
}

/// One node at that moment.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeSnapshot {
    /// The number of the node.
    pub node: NodeId,
    /// Its EUI-64.
    pub eui64: Eui64,
    /// Its global address.
    pub address: Address,
    /// The border router of its PAN, itself if it is one.
    pub border_router: NodeId,
    /// Whether its link layer is up.
    pub is_synchronised: bool,
    /// Whether it also has a place in the DODAG.
    pub is_joined: bool,
    /// Its preferred parent.
    pub parent: Option<NodeId>,
    /// Hops to the border router over preferred parents; none while there is a loop or a gap.
    pub hops: Option<u32>,
    /// Its rank, where RPL finds the routes.
    pub rank: Option<Rank>,
    /// Cells that it has agreed on with neighbours.
    pub negotiated_cells: u32,
    /// Octets of packet data in its buffers.
    pub packet_buffer_octets: usize,
    /// Frames that it handed to the radio, retries included.
    pub frames_sent: u64,
    /// Frames to one neighbour that were acknowledged.
    pub frames_acked: u64,
    /// Time for which its radio has been on.
    pub radio: RadioTime,
}
