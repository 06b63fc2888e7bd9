//! Frames handed to the MAC and not yet confirmed: what each is a part of, and how many octets wait there.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use lowmesh_machine::{DropReason, Handle};

/// What a frame carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// A packet.
    Whole,
    /// A fragment of a packet that is sent from here.
    Fragment,
    /// A fragment that passes through.
    Forwarded,
    /// A recoverable fragment or its acknowledgement.
    Recovered,
}

/// A frame in the MAC's queue.
#[derive(Clone, Copy, Debug)]
struct Frame {
    handle: Handle,
    part: Part,
    octets: usize,
}

/// How a copy of a packet ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The next node has it.
    PassedOn,
    /// The MAC did not get a part of it through, for this reason.
    Failed(DropReason),
    /// It was given up here.
    Dropped(DropReason),
}

/// A copy that has ended while frames of it were in the MAC's queue: another node may yet take it over.
#[derive(Clone, Copy, Debug)]
struct Ended {
    handle: Handle,
    part: Part,
    end: End,
}

/// All frames of the layer in the MAC's queue, as many as that has room for.
#[derive(Debug, Default)]
pub(crate) struct Frames {
    /// In the order in which they were handed over.
    waiting: VecDeque<Frame>,
    octets: usize,
    ended: Vec<Ended>,
}

impl Frames {
    pub fn push(&mut self, handle: Handle, part: Part, octets: usize) {
        self.waiting.push_back(Frame { handle, part, octets });
        self.octets += octets;
    }
    /// Takes the oldest frame of the packet `handle`; `None` when there is none.
    pub fn take(&mut self, handle: Handle) -> Option<Part> {
        let at = self.waiting.iter().position(|frame| frame.handle == handle)?;
        let frame = self.waiting.remove(at)?;
        self.octets -= frame.octets;
        Some(frame.part)
    }
    /// How many frames there are.
    pub fn len(&self) -> usize {
        self.waiting.len()
    }
    /// The copy whose frames are of this kind ends; `Some` if none of them is left, and else it waits for them.
    pub fn end(&mut self, handle: Handle, part: Part, end: End) -> Option<End> {
        if self.holds(handle, part) {
            self.ended.push(Ended { handle, part, end });
            return None;
        }
        Some(end)
    }
    /// A copy that has ended and whose last frame was taken.
    pub fn take_ended(&mut self, handle: Handle, part: Part) -> Option<End> {
        if self.ended.is_empty() || self.holds(handle, part) {
            return None;
        }
        let at = self.ended.iter().position(|e| e.handle == handle && e.part == part)?;
        Some(self.ended.remove(at).end)
    }
    /// The packets whose copies have ended but for their frames.
    pub fn ended_packets(&self) -> impl Iterator<Item = Handle> + '_ {
        self.ended.iter().map(|ended| ended.handle)
    }
    fn holds(&self, handle: Handle, part: Part) -> bool {
        self.waiting.iter().any(|frame| frame.part == part && frame.handle == handle)
    }
    /// Octets of all frames together.
    pub const fn octets(&self) -> usize {
        self.octets
    }
    /// The packets that are in one frame each.
    pub fn whole_packets(&self) -> impl Iterator<Item = Handle> + '_ {
        self.waiting.iter().filter(|frame| frame.part == Part::Whole).map(|frame| frame.handle)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_of_one_packet_are_taken_in_their_order() {
        let mut frames = Frames::default();
        frames.push(Handle(1), Part::Fragment, 96);
        frames.push(Handle(2), Part::Whole, 20);
        frames.push(Handle(1), Part::Forwarded, 30);
        assert_eq!(frames.octets(), 146);
        assert_eq!(frames.whole_packets().collect::<Vec<_>>(), [Handle(2)]);
        assert_eq!(frames.take(Handle(1)), Some(Part::Fragment));
        assert_eq!(frames.take(Handle(1)), Some(Part::Forwarded));
        assert_eq!((frames.take(Handle(1)), frames.octets()), (None, 20));
    }

    #[test]
    fn a_copy_ends_with_its_last_frame() {
        let (handle, part) = (Handle(1), Part::Forwarded);
        let mut frames = Frames::default();
        let failed = End::Failed(DropReason::NoAck);
        assert_eq!(frames.end(handle, part, failed), Some(failed));
        frames.push(handle, part, 96);
        frames.push(handle, part, 96);
        frames.push(handle, Part::Whole, 20);
        let end = End::Dropped(DropReason::ReassemblyTimeout);
        assert_eq!(frames.end(handle, part, end), None);
        assert_eq!(frames.take(handle), Some(part));
        assert_eq!(frames.take_ended(handle, part), None);
        assert_eq!(frames.ended_packets().collect::<Vec<_>>(), [handle]);
        assert_eq!(frames.take(handle), Some(part));
        assert_eq!(frames.take_ended(handle, part), Some(end));
        assert_eq!(frames.take_ended(handle, part), None);
    }
}
