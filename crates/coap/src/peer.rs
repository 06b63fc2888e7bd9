//! What an endpoint keeps about one peer: congestion control, message IDs, and which exchanges are
//! where.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

use lowmesh_congestion::{Message, Permit, Timer, Window};
use lowmesh_units::{Duration, Instant, Rng};
use lowmesh_wire::coap::{MessageId, Token};

use crate::credit::Credit;
use crate::exchange::{ExchangeId, Name};
use crate::message_ids::MessageIds;
use crate::params::{PROOF_LIFETIME, SILENCE_AFTER, UNCONFIRMED_MAX};
use crate::seen::Seen;
use crate::{CongestionControl, CongestionSnapshot, Lifetimes};

/// One peer. The lists are as short as the window and the bounds of [`Config`] make them.
#[derive(Debug)]
pub(crate) struct Peer {
    pub(crate) timer: Box<dyn Timer>,
    window: Box<dyn Window>,
    /// Nothing starts before this time: nobody has answered the latest request to a group.
    held_until: Instant,
    /// When the window, which paces, is to be asked again.
    pub(crate) paced: Option<Instant>,
    pub(crate) ids: MessageIds,
    /// Sent and not acknowledged yet, by message ID.
    unacknowledged: Vec<(MessageId, ExchangeId)>,
    /// Requests sent and not answered yet, by token.
    unanswered: Vec<(Token, ExchangeId)>,
    /// Waiting for the window, oldest first.
    pub(crate) queue: VecDeque<ExchangeId>,
    pub(crate) seen: Seen,
    /// The widest that any of its congestion controls asked for.
    pub(crate) lifetimes: Lifetimes,
    /// Unconfirmed notifications that may still be answered with RST, oldest first.
    unconfirmed: VecDeque<(MessageId, Name)>,
    pub(crate) last_used: Instant,
    /// Requests of the peer that are not answered, and separate responses that are not acknowledged.
    pub(crate) incoming: usize,
    /// The peer has shown that it receives at its address.
    pub(crate) proven: bool,
    /// When it has shown that last.
    pub(crate) proven_at: Instant,
    /// Wrong ACKs since the last right one, while something waited for an ACK.
    pub(crate) strays: u8,
    /// More than one datagram came from it.
    pub(crate) returned: bool,
    /// What may leave to it while it is unproven.
    pub(crate) credit: Credit,
    /// Since when an answer has been due and nothing has come.
    silent_since: Option<Instant>,
    /// NON requests that have ended without a response since the latest response or ACK.
    misses: u8,
}

impl Peer {
    /// A peer that nothing is known about. The choice has been checked.
    pub(crate) fn new(
        chosen: &CongestionControl,
        lifetimes: Lifetimes,
        now: Instant,
        rng: &mut Rng,
    ) -> Self {
        let (timer, window) = chosen.sender();
        Self {
            timer,
            window,
            held_until: now,
            paced: None,
            ids: MessageIds::new(rng.next_u32() as u16, lifetimes.exchange),
            unacknowledged: Vec::new(),
            unanswered: Vec::new(),
            queue: VecDeque::new(),
            seen: Seen::new(lifetimes),
            lifetimes,
            unconfirmed: VecDeque::new(),
            last_used: now,
            incoming: 0,
            proven: false,
            proven_at: now,
            strays: 0,
            returned: false,
            credit: Credit::default(),
            silent_since: None,
            misses: 0,
        }
    }
    /// True when forgetting the peer ends no exchange.
    pub(crate) fn is_idle(&self) -> bool {
        self.unacknowledged.is_empty()
            && self.unanswered.is_empty()
            && self.queue.is_empty()
            && self.incoming == 0
    }
    /// Octets of a message that may leave to it now, behind headers of `overhead` octets: no bound once it is proven.
    pub(crate) fn room(&self, overhead: usize, now: Instant) -> usize {
        if self.proven {
            return usize::MAX;
        }
        self.credit.balance(now).saturating_sub(overhead)
    }
    /// Forgets a proof that is older than [`PROOF_LIFETIME`], unless something is under way. True if it did.
    pub(crate) fn age(&mut self, now: Instant) -> bool {
        let ages = self.proven && self.is_idle() && now.since(self.proven_at) >= PROOF_LIFETIME;
        self.proven &= !ages;
        ages
    }
    /// Since when an answer has been due and nothing has come.
    pub(crate) const fn silent_since(&self) -> Option<Instant> {
        self.silent_since
    }
    /// Something has come.
    pub(crate) const fn hear(&mut self) {
        self.silent_since = None;
    }
    /// A response or an ACK has come.
    pub(crate) const fn answer(&mut self) {
        self.misses = 0;
    }
    /// A response has come with this token, to a request that waits for one.
    pub(crate) fn answered(&mut self, token: &Token) -> Option<ExchangeId> {
        let id = self.by_token(token)?;
        self.answer();
        Some(id)
    }
    /// No response has come to a NON request.
    pub(crate) const fn miss(&mut self) {
        self.misses = self.misses.saturating_add(1);
    }
    /// RFC 7252 s4.7: the peer does not answer, so that PROBING_RATE holds.
    pub(crate) const fn is_silent(&self) -> bool {
        self.misses >= SILENCE_AFTER
    }
    /// A message has left that the peer has to answer.
    pub(crate) fn demand_answer(&mut self, now: Instant) {
        self.silent_since.get_or_insert(now);
    }
    /// How much would be lost with it, compared with other idle peers. A flood of forged addresses leaves
    /// peers behind that came once.
    pub(crate) const fn worth(&self) -> (bool, Instant) {
        (self.returned, self.last_used)
    }
    /// Whether one more interaction may start.
    pub(crate) fn permits(&self, now: Instant) -> Permit {
        if now < self.held_until {
            return Permit::At(self.held_until);
        }
        self.window.permits(1, now)
    }
    /// Lets nothing start before a time.
    pub(crate) fn hold_until(&mut self, then: Instant) {
        self.held_until = self.held_until.max(then);
    }
    /// Another timer and another window, which know nothing but what is on its way.
    pub(crate) fn replace_sender(
        &mut self,
        chosen: &CongestionControl,
        lifetimes: Lifetimes,
        now: Instant,
    ) {
        (self.timer, self.window) = chosen.sender();
        // Messages of the previous sender keep their lifetimes.
        self.lifetimes = self.lifetimes.widest(lifetimes);
        self.seen.widen(self.lifetimes);
        self.ids.widen(self.lifetimes.exchange);
        for _ in &self.unacknowledged {
            self.window.on_sent(1, now);
        }
    }
    /// What the timer and the window believe.
    pub(crate) fn congestion(&self) -> CongestionSnapshot {
        CongestionSnapshot {
            timer: self.timer.name(),
            estimate: self.timer.snapshot(),
            window: self.window.name(),
            occupancy: self.window.snapshot(),
            queued: self.queue.len(),
        }
    }
    /// An exchange's first copy leaves; a request is then found by its token too.
    pub(crate) fn sent(
        &mut self,
        message_id: MessageId,
        token: Option<Token>,
        id: ExchangeId,
        now: Instant,
    ) {
        self.window.on_sent(1, now);
        self.unacknowledged.push((message_id, id));
        // A request that registers its observation again keeps its token.
        if let Some(token) = token
            && self.by_token(&token) != Some(id)
        {
            self.unanswered.push((token, id));
        }
    }
    /// A request has a token before it leaves.
    pub(crate) fn hold_token(&mut self, token: Token, id: ExchangeId) {
        self.unanswered.push((token, id));
    }
    /// The latest copy of the exchange, which left at `sent`, was acknowledged after `rtt`; that is unknown when
    /// there were several copies.
    pub(crate) fn acknowledged(
        &mut self,
        id: ExchangeId,
        sent: Instant,
        rtt: Option<Duration>,
        now: Instant,
    ) {
        if self.land(id) {
            self.window.on_acked(Message { size: 1, sent }, rtt, now);
        }
    }
    /// The latest copy of the exchange, which left at `sent`, timed out; another follows at once.
    pub(crate) fn resent(&mut self, sent: Instant, now: Instant) {
        self.window.on_timeout(&[Message { size: 1, sent }], now);
        self.window.on_sent(1, now);
    }
    /// The last copy of the exchange, which left at `sent`, timed out.
    pub(crate) fn expired(&mut self, id: ExchangeId, sent: Instant, now: Instant) {
        if self.land(id) {
            self.window.on_timeout(&[Message { size: 1, sent }], now);
        }
    }
    /// The exchange is over, or its end will come without an acknowledgement.
    pub(crate) fn discarded(&mut self, id: ExchangeId, now: Instant) {
        if self.land(id) {
            self.window.on_discarded(1, now);
        }
    }
    /// The exchange is no longer outstanding for the window (RFC 7252 s4.7); true if it was.
    fn land(&mut self, id: ExchangeId) -> bool {
        let place = self.unacknowledged.iter().position(|(_, one)| *one == id);
        place.map(|place| self.unacknowledged.remove(place)).is_some()
    }
    /// The exchange neither waits nor is outstanding; its token may still be in use.
    pub(crate) fn settle(&mut self, id: ExchangeId, now: Instant) {
        self.discarded(id, now);
        self.queue.retain(|one| *one != id);
    }
    /// The exchange, which has settled, is over.
    pub(crate) fn forget(&mut self, id: ExchangeId) {
        self.unanswered.retain(|(_, one)| *one != id);
    }
    /// Whether something waits for an ACK.
    pub(crate) fn awaits_ack(&self) -> bool {
        !self.unacknowledged.is_empty()
    }
    pub(crate) fn by_message_id(&self, message_id: MessageId) -> Option<ExchangeId> {
        self.unacknowledged.iter().find(|(id, _)| *id == message_id).map(|(_, id)| *id)
    }
    pub(crate) fn by_token(&self, token: &Token) -> Option<ExchangeId> {
        self.unanswered.iter().find(|(one, _)| one == token).map(|(_, id)| *id)
    }
    /// An unconfirmed notification has left.
    pub(crate) fn expect_reset(&mut self, message_id: MessageId, handle: Name) {
        if self.unconfirmed.len() >= UNCONFIRMED_MAX {
            self.unconfirmed.pop_front();
        }
        self.unconfirmed.push_back((message_id, handle));
    }
    /// The notification that a RST is about.
    pub(crate) fn take_unconfirmed(&mut self, message_id: MessageId) -> Option<Name> {
        let place = self.unconfirmed.iter().position(|(id, _)| *id == message_id)?;
        self.unconfirmed.remove(place).map(|(_, handle)| handle)
    }
    /// Every exchange with the peer, oldest first.
    pub(crate) fn exchanges(&self) -> Vec<ExchangeId> {
        let sent = self.unacknowledged.iter().map(|(_, id)| *id);
        let acknowledged = self.unanswered.iter().map(|(_, id)| *id);
        let mut all: Vec<_> = sent.chain(acknowledged).chain(self.queue.iter().copied()).collect();
        all.sort_unstable();
        all.dedup();
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowmesh_units::{NodeId, Purpose, Seed};

    #[test]
    fn the_window_opens_once_for_each_end_of_an_exchange() {
        let mut rng = Rng::stream(Seed(1), NodeId(1), Purpose::Coap);
        let at = Instant::from_secs;
        let chosen = CongestionControl::default().with_nstart(4);
        let mut peer = Peer::new(&chosen, Lifetimes::default(), at(0), &mut rng);
        let outstanding = |peer: &Peer| peer.window.snapshot().outstanding;
        for number in 0..4_u16 {
            peer.sent(MessageId(number), None, ExchangeId(number.into()), at(0));
        }
        assert_eq!(peer.permits(at(0)), Permit::Blocked);
        peer.resent(at(0), at(3));
        assert_eq!(outstanding(&peer), 4, "a copy takes the place of the one before");
        peer.acknowledged(ExchangeId(0), at(3), None, at(4));
        peer.expired(ExchangeId(1), at(0), at(5));
        peer.discarded(ExchangeId(2), at(5));
        assert_eq!(outstanding(&peer), 1);
        for number in 0..4 {
            peer.settle(ExchangeId(number), at(6));
        }
        assert_eq!(outstanding(&peer), 0, "an exchange ends once");
    }
}
