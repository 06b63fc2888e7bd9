//! What leaves a node: frames, a gap apart and while there is room (RFC 8931 s4.2), and events for the layer around it.
//!
//! | bound | total | the next one |
//! |---|---|---|
//! | frames that wait for the gap | [`RECOVERY_QUEUE_FRAMES`] | is lost, and recovered by its ends |

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use lowmesh_machine::{DropReason, Handle, Outbox};
use lowmesh_units::{Duration, Eui64, Instant};
use lowmesh_wire::lowpan::rfrag::RfragAck;

use super::{Output, QueueState};
use crate::params::{Config, RECOVERY_QUEUE_FRAMES};
use crate::recover::null;

/// A frame that waits for the gap.
#[derive(Debug)]
pub(super) struct Waiting {
    pub payload: Vec<u8>,
    pub destination: Eui64,
    pub handle: Handle,
    /// Nothing depends on its arrival.
    pub is_advice: bool,
}

/// All that leaves a node.
#[derive(Debug)]
pub(super) struct Outgoing {
    config: Config,
    queue: VecDeque<Waiting>,
    queue_state: QueueState,
    /// When the next frame may leave.
    gap_ends: Instant,
    overflowed: u64,
    outbox: Outbox<Output>,
}

impl Outgoing {
    pub fn new(config: Config) -> Self {
        Self {
            config,
            queue: VecDeque::new(),
            queue_state: QueueState::default(),
            gap_ends: Instant::ZERO,
            overflowed: 0,
            outbox: Outbox::new(),
        }
    }

    pub fn poll_output(&mut self) -> Option<Output> {
        self.outbox.pop()
    }
    /// Octets of frames that wait for the gap.
    pub fn octets(&self) -> usize {
        self.queue.iter().map(|waiting| waiting.payload.len()).sum()
    }
    /// Frames that found the queue full.
    pub const fn overflowed(&self) -> u64 {
        self.overflowed
    }
    /// Octets that the packet buffer has left.
    pub const fn room(&self) -> usize {
        self.queue_state.room
    }
    /// True when the packet buffer takes another frame of this node's own.
    pub const fn has_room(&self) -> bool {
        self.queue_state.room >= self.config.frame_payload
    }
    /// True when the queues are so long that fragments are marked.
    pub fn is_congested(&self) -> bool {
        self.queue_state.backlog + self.queue.len() >= self.config.recovery.mark_frames
    }
    /// When the next frame may leave.
    pub const fn gap_ends(&self) -> Instant {
        self.gap_ends
    }
    /// When the first frame that waits may leave.
    pub fn next_deadline(&self) -> Option<Instant> {
        (!self.queue.is_empty()).then_some(self.gap_ends)
    }

    /// Takes over what the layer around says of its queues.
    pub const fn observe(&mut self, queue_state: QueueState) {
        self.queue_state = queue_state;
    }

    /// Puts an event in the outbox.
    pub fn tell(&mut self, output: Output) {
        self.outbox.push(output);
    }
    /// This node's copy of a packet is over.
    pub fn end(&mut self, handle: Handle, dropped: Option<DropReason>) {
        self.tell(Output::Ended { handle, dropped });
    }
    /// This node's copy of a packet is over, and what waits of it for the gap serves no one any more.
    pub fn end_with_frames(&mut self, handle: Handle, dropped: Option<DropReason>) {
        self.queue.retain(|waiting| waiting.handle != handle || handle == Handle::NONE);
        self.end(handle, dropped);
    }

    /// Puts a frame behind those that wait for the gap. One that has no room is lost, and recovered by its ends.
    pub fn push(&mut self, payload: Vec<u8>, destination: Eui64, handle: Handle) {
        self.wait(Waiting { payload, destination, handle, is_advice: false });
    }
    fn wait(&mut self, waiting: Waiting) {
        if self.queue.len() < RECOVERY_QUEUE_FRAMES
            && waiting.payload.len() <= self.queue_state.room
        {
            self.take_room(&waiting.payload);
            self.queue.push_back(waiting);
        } else {
            self.overflowed += 1;
        }
    }
    pub fn acknowledge(&mut self, to: Eui64, ack: RfragAck) {
        self.tell_neighbour(to, ack, false);
    }
    /// Lets a neighbour know that a datagram cannot go on; with `is_advice` it will find out without it, too.
    pub fn refuse(&mut self, to: Eui64, datagram_tag: u8, is_advice: bool) {
        self.tell_neighbour(to, null(datagram_tag), is_advice);
    }
    fn tell_neighbour(&mut self, destination: Eui64, ack: RfragAck, is_advice: bool) {
        let mut payload = Vec::new();
        ack.emit(&mut payload);
        self.wait(Waiting { payload, destination, handle: Handle::NONE, is_advice });
    }

    /// Takes room for a frame that leaves at once.
    pub const fn take_room(&mut self, frame: &[u8]) {
        let octets = frame.len() + self.config.choices().overhead.fragment;
        self.queue_state.room = self.queue_state.room.saturating_sub(octets);
    }
    /// Takes the first frame that waits.
    pub fn pop(&mut self) -> Option<Waiting> {
        self.queue.pop_front()
    }
    /// Lets a frame leave.
    pub fn send(&mut self, now: Instant, waiting: Waiting) {
        let Waiting { payload, destination, handle, is_advice } = waiting;
        self.tell(Output::Frame { payload, destination, handle, is_advice });
        self.queue_state.backlog += 1;
        // RFC 8931 s4.2: the sender MUST keep a gap between frames.
        self.gap_ends = now + self.gap();
    }

    const fn gap(&self) -> Duration {
        if self.config.choices().paces {
            self.config.recovery.inter_frame_gap
        } else {
            Duration::ZERO
        }
    }
}
