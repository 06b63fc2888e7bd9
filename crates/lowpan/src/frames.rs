//! Frames handed to the MAC and not yet confirmed: what each is a part of, and how many octets wait there.

use alloc::collections::VecDeque;

use lowmesh_machine::Handle;

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

/// All frames of the layer in the MAC's queue, as many as that has room for.
#[derive(Debug, Default)]
pub(crate) struct Frames {
    /// In the order in which they were handed over.
    frames: VecDeque<Frame>,
    octets: usize,
}

impl Frames {
    pub fn push(&mut self, handle: Handle, part: Part, octets: usize) {
        self.frames.push_back(Frame { handle, part, octets });
        self.octets += octets;
    }
    /// Takes the oldest frame of the packet `handle`; `None` when there is none.
    pub fn take(&mut self, handle: Handle) -> Option<Part> {
        let at = self.frames.iter().position(|frame| frame.handle == handle)?;
        let frame = self.frames.remove(at)?;
        self.octets -= frame.octets;
        Some(frame.part)
    }
    /// How many frames there are.
    pub fn len(&self) -> usize {
        self.frames.len()
    }
    /// True when a recoverable fragment of the packet `handle` is among them.
    pub fn holds_recovered(&self, handle: Handle) -> bool {
        let is_recovered = |frame: &Frame| frame.part == Part::Recovered && frame.handle == handle;
        self.frames.iter().any(is_recovered)
    }
    /// Octets of all frames together.
    pub const fn octets(&self) -> usize {
        self.octets
    }
    /// The packets that are in one frame each.
    pub fn whole_packets(&self) -> impl Iterator<Item = Handle> + '_ {
        self.frames.iter().filter(|frame| frame.part == Part::Whole).map(|frame| frame.handle)
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
}
