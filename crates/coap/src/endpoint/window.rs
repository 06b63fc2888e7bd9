//! Which timer and window a destination has, and what waits for them (RFC 7252 s4.7).

use lowmesh_congestion::Permit;
use lowmesh_units::Instant;

use super::Endpoint;
use crate::{ConfigError, CongestionControl, CongestionSnapshot, Lifetimes, PeerAddress};

impl<P: PeerAddress> Endpoint<P> {
    /// Gives a destination a congestion control of its own, from now on and whether it is known yet or
    /// not; `None` gives it that of the endpoint again. What has been learned about it so far is
    /// forgotten. As many destinations as [`Config::peers_max`](crate::Config) may have one.
    pub fn choose_congestion_control(
        &mut self,
        peer: P,
        chosen: Option<CongestionControl>,
        now: Instant,
    ) -> Result<(), ConfigError> {
        match chosen {
            Some(chosen) => {
                chosen.check()?;
                let known = self.chosen.contains_key(&peer);
                if !known && self.chosen.len() >= self.config.peers_max {
                    return Err(ConfigError::Choices(self.chosen.len()));
                }
                self.chosen.insert(peer, chosen);
            }
            None => drop(self.chosen.remove(&peer)),
        }
        let chosen = self.chosen.get(&peer).unwrap_or(&self.config.congestion);
        let lifetimes = self.config.lifetimes(chosen);
        if let Some(known) = self.peers.get_mut(&peer) {
            known.replace_sender(chosen, lifetimes, now);
        }
        self.lifetimes = self.lifetimes.widest(lifetimes);
        if let Some(ids) = &mut self.stranger_ids {
            ids.widen(self.lifetimes.exchange);
        }
        self.start_waiting(peer, now);
        Ok(())
    }
    /// The lifetimes of messages to and from a destination (RFC 7252 s4.8.2).
    pub fn lifetimes(&self, peer: P) -> Lifetimes {
        self.peers.get(&peer).map_or(self.lifetimes, |known| known.lifetimes)
    }
    /// The widest lifetimes of all destinations so far.
    pub const fn widest_lifetimes(&self) -> Lifetimes {
        self.lifetimes
    }
    /// What timer and window of a destination believe, if it is known.
    pub fn congestion(&self, peer: P) -> Option<CongestionSnapshot> {
        self.peers.get(&peer).map(crate::peer::Peer::congestion)
    }
    /// The same of every destination that is known, at most [`Config::peers_max`](crate::Config).
    pub fn destinations(&self) -> impl Iterator<Item = (P, CongestionSnapshot)> {
        self.peers.iter().map(|(peer, known)| (*peer, known.congestion()))
    }

    /// Sends from the queue of a peer what its window permits.
    pub(super) fn start_waiting(&mut self, to: P, now: Instant) {
        while let Some(peer) = self.peers.get_mut(&to) {
            match peer.permits(now) {
                Permit::Now => {}
                Permit::At(then) => return self.pace(to, then),
                Permit::Blocked => return,
            }
            let Some(id) = peer.queue.pop_front() else { return };
            self.queued -= 1;
            self.start(id, now);
        }
    }
    /// The window of a peer is to be asked again then, if something waits for it.
    fn pace(&mut self, to: P, then: Instant) {
        let Some(peer) = self.peers.get_mut(&to) else { return };
        if peer.queue.is_empty() {
            return;
        }
        if let Some(before) = peer.paced.replace(then) {
            self.paced.remove(&(before, to));
        }
        self.paced.insert((then, to));
    }
    /// Windows that pace are asked again.
    pub(super) fn on_paced(&mut self, now: Instant) {
        while let Some((due, to)) = self.paced.first().copied()
            && due <= now
        {
            self.paced.pop_first();
            if let Some(peer) = self.peers.get_mut(&to) {
                peer.paced = None;
            }
            self.start_waiting(to, now);
        }
    }
}
