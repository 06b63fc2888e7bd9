//! The fragmenting end: sends the fragments of one datagram, asks for acknowledgements, and sends again what did not
//! arrive (RFC 8931 s6).
//!
//! ```text
//!          leaves                in the bitmap
//!   Due ------------> Sent ----------------------> Received
//!    ^                 |  \   not in it, though later ones are     ^
//!    |                 |   +----------------> Due                  |
//!    |                 | nothing came for a whole timeout          |
//!    |                 v                                           |
//!    +-------------- Silent ---------------------------------------+
//!      the one that asked;                  in a later bitmap
//!      or not in a later bitmap
//! ```
//!
//! What a link-layer acknowledgement says about the first hop is not used: only the other end knows.

mod gnrc;

use alloc::boxed::Box;
use alloc::vec::Vec;

use lowmesh_congestion::{Attempt, Message, Permit, Timer, Window};
use lowmesh_machine::Handle;
use lowmesh_units::{Duration, Eui64, Instant, Rng};
use lowmesh_wire::lowpan::rfrag::{Bitmap, FRAGMENTS_MAX, Part, Rfrag, RfragAck};

use super::path::frame;
use super::pieces::{Fate, Piece, cut};
use crate::params::{Config, Recovery, StackProfile};

/// A fragment with X set that waits for its acknowledgement.
#[derive(Clone, Copy, Debug)]
struct Asked {
    sequence: usize,
    wait: Duration,
    deadline: Instant,
}

/// Timeouts that followed each other without any news between them.
#[derive(Clone, Copy, Debug)]
struct Silence {
    /// The wait for the first copy.
    initial: Duration,
    /// The wait that has just run out.
    previous: Duration,
    timeouts: u8,
}

/// How a datagram ended at its fragmenting end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The other end has all of it.
    Delivered,
    /// A NULL bitmap came: some node gave it up, and the path is clean.
    Refused,
    /// No retries are left; the path is still there.
    GaveUp,
    /// The window fell below the fragment that asks for the acknowledgement; the path is still there.
    Unasked,
}

/// One datagram on its way in recoverable fragments.
#[derive(Debug)]
pub struct Sending {
    handle: Handle,
    next_hop: Eui64,
    datagram_tag: u8,
    datagram: Vec<u8>,
    pieces: Vec<Piece>,
    window: Box<dyn Window>,
    timer: Box<dyn Timer>,
    asked: Option<Asked>,
    silence: Option<Silence>,
    orders: u32,
    fragment_retries: u8,
    datagram_retries: u8,
    recovery: Recovery,
    profile: StackProfile,
    /// The gap behind a fragment at the start.
    first_gap: Duration,
    gap_changed: bool,
    /// Fragments that acknowledgements have shown as lost.
    lost: u16,
}

impl Sending {
    /// Octets of state without the datagram, all 32 fragments set aside. Of window and timer only the references
    /// count: their sizes differ by algorithm.
    pub const STATIC_OCTETS: usize = size_of::<Self>() + FRAGMENTS_MAX * size_of::<Piece>();

    /// A compressed `datagram` in fragments of at most `room` octets; `None` when it would take more than 32.
    pub fn new(
        handle: Handle,
        next_hop: Eui64,
        datagram: Vec<u8>,
        datagram_tag: u8,
        room: usize,
        config: &Config,
    ) -> Option<Self> {
        let recovery = &config.recovery;
        let window = recovery.window.window();
        Some(Self {
            handle,
            next_hop,
            datagram_tag,
            pieces: cut(datagram.len(), room)?,
            datagram,
            first_gap: gap(window.as_ref(), recovery),
            gap_changed: false,
            lost: 0,
            window,
            timer: recovery.arq.timer(),
            asked: None,
            silence: None,
            orders: 0,
            fragment_retries: recovery.fragment_retries,
            datagram_retries: recovery.datagram_retries,
            recovery: *recovery,
            profile: config.profile,
        })
    }

    /// Names the packet.
    pub const fn handle(&self) -> Handle {
        self.handle
    }
    /// The neighbour that gets the fragments.
    pub const fn next_hop(&self) -> Eui64 {
        self.next_hop
    }
    /// The tag under which the datagram goes to that neighbour.
    pub const fn datagram_tag(&self) -> u8 {
        self.datagram_tag
    }
    /// Octets of the compressed datagram.
    pub fn octets(&self) -> usize {
        self.datagram.len()
    }
    /// Whether a fragment may leave; [`Permit::Blocked`] also when none has to.
    pub fn permits(&self, now: Instant) -> Permit {
        match self.due() {
            Some(_) => match self.window.permits(1, now) {
                Permit::At(_) if !self.profile.choices().paces => Permit::Now,
                permit => permit,
            },
            None => Permit::Blocked,
        }
    }
    /// True once a fragment has left.
    pub const fn has_begun(&self) -> bool {
        self.orders > 0
    }
    /// When the acknowledgement that was asked for is late.
    pub fn deadline(&self) -> Option<Instant> {
        self.asked.map(|asked| asked.deadline)
    }
    /// The window, for plots.
    pub fn window(&self) -> &dyn Window {
        self.window.as_ref()
    }
    /// The gap behind a fragment of the datagram: the window's or the node's, whichever is longer.
    pub fn gap(&self) -> Duration {
        gap(self.window.as_ref(), &self.recovery)
    }
    /// Whether that gap has ever been another than at the start.
    pub const fn gap_changed(&self) -> bool {
        self.gap_changed
    }
    /// Fragments of the datagram.
    pub fn fragments(&self) -> usize {
        self.pieces.len()
    }

    /// Fragments that the other end has.
    pub fn received(&self) -> usize {
        self.pieces.iter().filter(|piece| piece.fate == Fate::Received).count()
    }
    /// Fragments that acknowledgements have shown as lost, every copy counted.
    pub const fn lost(&self) -> u16 {
        self.lost
    }

    fn due(&self) -> Option<usize> {
        self.pieces.iter().position(|piece| piece.fate == Fate::Due)
    }

    /// The next fragment, and whether it was sent before; to be called when [`Sending::permits`] says so.
    pub fn next_fragment(&mut self, now: Instant, rng: &mut Rng) -> Option<(Rfrag, bool)> {
        let sequence = self.due()?;
        self.orders += 1;
        let piece = &mut self.pieces[sequence];
        let is_copy = piece.copies > 0;
        piece.copies = piece.copies.saturating_add(1);
        piece.order = self.orders;
        piece.fate = Fate::Sent(now);
        self.window.on_sent(1, now);
        // RFC 8931 s6: X marks the end of a window, and MUST be set on the last fragment.
        let ack_request = self.due().is_none() || self.window.permits(1, now) == Permit::Blocked;
        if ack_request {
            self.ask(sequence, now, rng);
        }
        Some((self.header(sequence, ack_request), is_copy))
    }

    /// RFC 8931 s6: a timer MUST protect the request; s7.1 leaves the timeout to a parameter.
    fn ask(&mut self, sequence: usize, now: Instant, rng: &mut Rng) {
        let wait = match &mut self.silence {
            Some(Silence { initial, previous, timeouts }) => {
                let (initial, number) = (*initial, *timeouts);
                let attempt = Attempt { initial, previous: *previous, number };
                *previous = self.timer.backoff(attempt, rng);
                *previous
            }
            None => self.timer.initial(now, rng),
        };
        self.asked = Some(Asked { sequence, wait, deadline: now + wait });
    }

    fn header(&self, sequence: usize, ack_request: bool) -> Rfrag {
        let Piece { offset, size, .. } = self.pieces[sequence];
        let part = match sequence {
            // RFC 8931 s5.1: the offset of the first fragment is the size of the compressed datagram.
            0 => Part::First { datagram_size: self.datagram.len() as u16 },
            _ => Part::Next { sequence: sequence as u8, offset },
        };
        let datagram_tag = self.datagram_tag;
        Rfrag { congestion: false, datagram_tag, ack_request, fragment_size: size, part }
    }

    /// The fragment behind a header of [`Sending::next_fragment`], as it goes on the air.
    pub fn frame(&self, header: &Rfrag) -> Vec<u8> {
        let Piece { offset, size, .. } = self.pieces[usize::from(header.part.sequence())];
        frame(header, &self.datagram[usize::from(offset)..usize::from(offset + size)])
    }

    /// The pseudo fragment that takes down the path (RFC 8931 s6.3).
    pub fn abort_frame(&self) -> Vec<u8> {
        let header = Rfrag {
            congestion: false,
            datagram_tag: self.datagram_tag,
            ack_request: false,
            fragment_size: 0,
            part: Part::Abort,
        };
        frame(&header, &[])
    }

    /// An acknowledgement of this datagram came.
    pub fn on_ack(&mut self, ack: &RfragAck, now: Instant) -> Option<Ending> {
        // RFC 8931 s6.3: upon a NULL bitmap the fragmenting end MUST abort.
        if ack.bitmap == Bitmap::NULL {
            return Some(Ending::Refused);
        }
        let marks_last = self.profile.choices().marks_after_bitmap;
        // RFC 8931 s5.2: E says that one of the fragments since the last acknowledgement met congestion. A window that
        // reduces to a share of what is on its way (RFC 5681, RFC 8511) means what was on its way then.
        if ack.congestion && !marks_last {
            self.window.on_ecn(self.latest_in(ack.bitmap).unwrap_or(now), now);
        }
        let news = self.settle(ack.bitmap, now);
        if ack.congestion && marks_last {
            self.window.on_ecn(news.unwrap_or(now), now);
        }
        if self.pieces.iter().all(|piece| piece.fate == Fate::Received) {
            return Some(Ending::Delivered);
        }
        if self.profile.choices().lists_sent {
            self.take_back_lost();
        }
        if news.is_some() {
            self.silence = None;
        }
        self.gap_changed |= self.gap() != self.first_gap;
        self.keep_asking(now);
        self.exhausted()
    }

    /// When the latest fragment left of those that are new in the bitmap.
    fn latest_in(&self, bitmap: Bitmap) -> Option<Instant> {
        let new = self.pieces.iter().enumerate().filter(|(sequence, piece)| {
            piece.copies > 0 && bitmap.contains(*sequence as u8) && piece.fate != Fate::Received
        });
        new.filter_map(|(_, piece)| piece.unsettled()).max()
    }

    /// Settles what the bitmap is about; returns when the latest fragment left of those that are new in it.
    fn settle(&mut self, bitmap: Bitmap, now: Instant) -> Option<Instant> {
        let asked = self.asked.map(|asked| asked.sequence);
        let (mut latest, mut newest) = (None, self.lost_below());
        for (sequence, piece) in self.pieces.iter_mut().enumerate() {
            // A bit for a fragment that never left says nothing true: its octets are nowhere.
            let is_new = piece.copies > 0 && piece.fate != Fate::Received;
            if !bitmap.contains(sequence as u8) || !is_new {
                continue;
            }
            if let Some(sent) = piece.unsettled() {
                latest = latest.max(Some(sent));
                newest = newest.max(piece.order);
                let sample = (asked == Some(sequence)).then(|| now.since(sent));
                if let Some(rtt) = sample {
                    let resent = u8::try_from(piece.copies - 1).unwrap_or(u8::MAX);
                    self.timer.on_sample(rtt, resent, now);
                    self.asked = None;
                }
                if piece.fate == Fate::Sent(sent) {
                    let rtt = sample.filter(|_| piece.copies == 1);
                    self.window.on_acked(Message { size: 1, sent }, rtt, now);
                }
            }
            piece.fate = Fate::Received;
        }
        let mut lost = Vec::new();
        for piece in &mut self.pieces {
            // What left before a fragment that arrived, and is not in the bitmap, did not arrive.
            let Some(sent) = piece.unsettled().filter(|_| piece.order < newest) else { continue };
            if piece.fate == Fate::Sent(sent) {
                lost.push(Message { size: 1, sent });
            }
            piece.fate = Fate::Due;
        }
        let is_due = |asked: &Asked| self.pieces[asked.sequence].fate == Fate::Due;
        self.asked = self.asked.filter(|asked| !is_due(asked));
        self.lost = self.lost.saturating_add(lost.len() as u16);
        if !lost.is_empty() {
            self.window.on_lost(&lost, now);
        }
        latest
    }

    /// Fragments whose latest copy is older than this are lost when they are missing in a bitmap, even if none in it
    /// is newer.
    const fn lost_below(&self) -> u32 {
        if self.profile.choices().lists_sent { u32::MAX } else { 0 }
    }

    /// Without a request under way and a fragment that may leave nothing would ever come back: the latest
    /// fragment asks again.
    fn keep_asking(&mut self, now: Instant) {
        if self.asked.is_some() || self.permits(now) != Permit::Blocked {
            return;
        }
        let unsettled = self.pieces.iter_mut().filter(|piece| piece.unsettled().is_some());
        if let Some(piece) = unsettled.max_by_key(|piece| piece.order) {
            if matches!(piece.fate, Fate::Sent(_)) {
                self.window.on_discarded(1, now);
            }
            piece.fate = Fate::Due;
        }
    }

    /// [`Ending::GaveUp`] when a fragment that is due has no retries left.
    fn exhausted(&self) -> Option<Ending> {
        let retries = self.fragment_retries;
        let spent = |piece: &Piece| piece.fate == Fate::Due && piece.copies > retries.into();
        self.pieces.iter().any(spent).then_some(Ending::GaveUp)
    }

    /// The acknowledgement that was asked for did not come.
    pub fn on_timeout(&mut self, now: Instant) -> Option<Ending> {
        let asked = self.asked.filter(|asked| asked.deadline <= now)?;
        let mut silent = Vec::new();
        for piece in &mut self.pieces {
            if let Fate::Sent(sent) = piece.fate {
                silent.push(Message { size: 1, sent });
                piece.fate = Fate::Silent(sent);
            }
        }
        self.window.on_timeout(&silent, now);
        self.asked = None;
        if self.profile.choices().lists_sent && !self.keep_window(asked.sequence, now) {
            self.timer.on_give_up(now);
            return Some(Ending::Unasked);
        }
        // After the end there is no gap that could have changed.
        self.gap_changed |= self.gap() != self.first_gap;
        let previous = asked.wait;
        self.silence = Some(match self.silence {
            Some(Silence { initial, timeouts, .. }) => {
                Silence { initial, previous, timeouts: timeouts.saturating_add(1) }
            }
            None => Silence { initial: previous, previous, timeouts: 1 },
        });
        // RFC 8931 s6: the fragment that carries X MAY be sent again upon a timeout.
        self.pieces[asked.sequence].fate = Fate::Due;
        let ending = self.exhausted();
        if ending.is_some() {
            self.timer.on_give_up(now);
        }
        ending
    }

    /// Begins again from scratch under another tag, if datagram retries are left (RFC 8931 s7.1).
    pub fn restart(&mut self, datagram_tag: u8) -> bool {
        if self.datagram_retries == 0 {
            return false;
        }
        self.datagram_retries -= 1;
        self.datagram_tag = datagram_tag;
        self.window = self.recovery.window.window();
        self.asked = None;
        self.silence = None;
        for piece in &mut self.pieces {
            (piece.copies, piece.fate) = (0, Fate::Due);
        }
        true
    }
}

fn gap(window: &dyn Window, recovery: &Recovery) -> Duration {
    window.pacing_gap(1).unwrap_or_default().max(recovery.inter_frame_gap)
}
