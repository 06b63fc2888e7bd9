//! The sender's side of modes HWR and FF: one datagram cut into link fragments (RFC 4944 s5.3).
//!
//! ```text
//! Sending --all sent, all confirmed--> done, delivered
//!    |\--one failed, it is abandoned--> Failed --those on the way confirmed--> done, not delivered
//!     \--one failed, it goes on------> Lossy --all sent, all confirmed------> done, not delivered
//! ```

use alloc::vec::Vec;

use lowmesh_machine::{DropReason, Handle};
use lowmesh_units::Eui64;
use lowmesh_wire::lowpan::fragment::{FIRST_OCTETS, FragmentHeader, NEXT_OCTETS, OFFSET_UNIT};

/// Whether there is still a point in sending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    Sending,
    Lossy(DropReason),
    Failed(DropReason),
}

/// What the first fragment carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum First {
    /// The headers and as much behind them as fits (RFC 4944).
    Full,
    /// Nothing but the headers, so that they may grow on the path (RFC 8930 s5.1).
    Headers,
}

/// A datagram that is being sent in fragments.
#[derive(Debug)]
pub(crate) struct Fragmented {
    pub handle: Handle,
    pub destination: Option<Eui64>,
    packet: Vec<u8>,
    headers: Vec<u8>,
    covered: usize,
    first: First,
    datagram_tag: u16,
    /// Octets of the packet that are in fragments already sent.
    sent: usize,
    in_flight: usize,
    progress: Progress,
    is_let_go: bool,
}

impl Fragmented {
    /// A datagram whose compressed `headers` stand for the first `covered` octets of `packet`.
    pub fn new(
        handle: Handle,
        destination: Option<Eui64>,
        packet: Vec<u8>,
        headers: Vec<u8>,
        covered: usize,
        first: First,
        datagram_tag: u16,
    ) -> Self {
        Self {
            handle,
            destination,
            packet,
            headers,
            covered,
            first,
            datagram_tag,
            sent: 0,
            in_flight: 0,
            progress: Progress::Sending,
            is_let_go: false,
        }
    }

    /// Fragments sent and not yet confirmed.
    pub fn in_flight(&self) -> usize {
        self.in_flight
    }
    /// Octets of the packet, which waits until its last fragment is confirmed.
    pub fn octets(&self) -> usize {
        self.packet.len()
    }
    /// True once the packet has been let go.
    pub fn is_let_go(&self) -> bool {
        self.is_let_go
    }
    /// The packet is all in frames, and need not wait itself.
    pub fn let_go(&mut self) {
        self.is_let_go = true;
    }
    /// True once a fragment was sent.
    pub fn has_begun(&self) -> bool {
        self.sent > 0
    }
    /// True when nothing is left to send.
    pub fn is_sent(&self) -> bool {
        self.sent == self.packet.len()
    }
    /// Whether everything was delivered, or why the first fragment that failed did; `None` while something is in flight or
    /// will be.
    pub fn result(&self) -> Option<Result<(), DropReason>> {
        match (self.in_flight, self.progress) {
            (0, Progress::Failed(reason)) => Some(Err(reason)),
            (0, Progress::Lossy(reason)) if self.is_sent() => Some(Err(reason)),
            (0, Progress::Sending) if self.is_sent() => Some(Ok(())),
            _ => None,
        }
    }

    /// The next fragment, if there is a point in it; second, whether it is the datagram's last.
    pub fn next_fragment(&mut self, frame_payload: usize) -> Option<(Vec<u8>, bool)> {
        if matches!(self.progress, Progress::Failed(_)) || self.is_sent() {
            return None;
        }
        let first = self.sent == 0;
        let (start, header_octets) = if first {
            (self.covered, FIRST_OCTETS + self.headers.len())
        } else {
            (self.sent, NEXT_OCTETS)
        };
        let end = match self.first {
            First::Headers if first => self.covered,
            _ => self.end_of(start, frame_payload - header_octets),
        };
        let mut frame = Vec::with_capacity(header_octets + end - start);
        let header = FragmentHeader {
            datagram_size: self.packet.len() as u16,
            datagram_tag: self.datagram_tag,
            offset: self.sent as u16,
        };
        header.emit(&mut frame);
        if first {
            frame.extend_from_slice(&self.headers);
        }
        frame.extend_from_slice(&self.packet[start..end]);
        self.sent = end;
        self.in_flight += 1;
        Some((frame, self.is_sent()))
    }

    /// Where a fragment ends that has room for `room` octets from `start` on.
    fn end_of(&self, start: usize, room: usize) -> usize {
        if self.packet.len() - start <= room {
            return self.packet.len();
        }
        // RFC 4944 s5.3: all fragments but the last are multiples of eight octets long.
        (start + room) / OFFSET_UNIT * OFFSET_UNIT
    }

    /// The MAC is done with one of the fragments; if it failed, the rest is abandoned or goes on.
    pub fn on_confirmed(&mut self, result: Result<(), DropReason>, abandon: bool) {
        self.in_flight -= 1;
        if let (Progress::Sending, Err(reason)) = (self.progress, result) {
            self.progress =
                if abandon { Progress::Failed(reason) } else { Progress::Lossy(reason) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fragmented(octets: usize) -> Fragmented {
        let packet = (0..octets).map(|i| i as u8).collect();
        Fragmented::new(Handle(1), None, packet, std::vec![0x7a; 6], 48, First::Full, 7)
    }

    #[test]
    fn all_fragments_but_the_last_are_multiples_of_eight() {
        let mut datagram = fragmented(333);
        let (mut offset, mut frames) = (0, 0);
        while let Some((frame, last)) = datagram.next_fragment(64) {
            assert!(frame.len() <= 64);
            let header = FragmentHeader::parse(&frame).expect("own header");
            assert_eq!(usize::from(header.offset), offset);
            let data = frame.len() - header.octets();
            offset += if offset == 0 { data - 6 + 48 } else { data };
            assert_eq!(last, offset == 333);
            assert!(last || offset % 8 == 0);
            frames += 1;
        }
        assert_eq!((offset, frames), (333, 6));
    }

    #[test]
    fn a_minimal_first_fragment_has_headers_alone() {
        let mut datagram = Fragmented { first: First::Headers, ..fragmented(333) };
        let (frame, last) = datagram.next_fragment(64).expect("the first fragment");
        assert_eq!((frame.len(), last), (FIRST_OCTETS + 6, false));
        let (frame, _) = datagram.next_fragment(64).expect("the second fragment");
        assert_eq!(FragmentHeader::parse(&frame).map(|header| header.offset), Ok(48));
    }

    #[test]
    fn a_fragment_that_fails_stops_the_rest() {
        let mut datagram = fragmented(333);
        assert!(datagram.next_fragment(64).is_some());
        assert_eq!(datagram.result(), None);
        datagram.on_confirmed(Err(DropReason::NoAck), true);
        assert_eq!(datagram.next_fragment(64), None);
        assert_eq!(datagram.result(), Some(Err(DropReason::NoAck)));
    }

    #[test]
    fn a_datagram_that_goes_on_after_a_loss_sends_everything_and_has_failed() {
        let mut datagram = fragmented(100);
        let mut result = Err(DropReason::NoAck);
        while datagram.next_fragment(64).is_some() {
            assert_eq!(datagram.result(), None);
            datagram.on_confirmed(result, false);
            result = Ok(());
        }
        assert!(datagram.is_sent());
        assert_eq!(datagram.result(), Some(Err(DropReason::NoAck)));
    }
}
