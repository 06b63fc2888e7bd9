//! Keep-alive (RFC 9293 s3.8.4): an idle connection asks whether its peer is still there.

use lowmesh_units::Instant;

use super::{Connection, Ending};

/// What is known of the peer of an idle connection.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Watch {
    /// When its last segment came.
    heard: Instant,
    /// Probes since then.
    probes: u32,
}

impl Watch {
    pub(super) const fn heard(&self) -> Instant {
        self.heard
    }
}

impl Connection {
    /// A segment of the peer came.
    pub(super) const fn hear(&mut self, now: Instant) {
        self.watch = Watch { heard: now, probes: 0 };
    }
    /// When the next probe is due; never while something is in flight, whose timers find out first.
    pub(super) fn keep_alive_deadline(&self) -> Option<Instant> {
        let settings = self.config.profile.keep_alive?;
        let flow = self.flow.as_ref()?;
        let is_watched = self.time_wait.is_none() && flow.sender.is_idle();
        let waited = settings.idle + settings.interval * u64::from(self.watch.probes);
        is_watched.then(|| self.watch.heard + waited)
    }
    pub(super) fn on_keep_alive(&mut self, now: Instant) {
        let is_due = self.keep_alive_deadline().is_some_and(|at| at <= now);
        let Some(settings) = self.config.profile.keep_alive.filter(|_| is_due) else { return };
        let Some(flow) = &mut self.flow else { return };
        if self.watch.probes >= settings.probes {
            self.emit_abort(now);
            self.end(Ending::TimedOut);
            return;
        }
        self.watch.probes += 1;
        flow.sender.probe();
    }
}
