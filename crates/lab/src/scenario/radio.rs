//! `[radio]`: who hears whom, and what disturbs them.

use lowmesh_registry::Choice;
use lowmesh_sim::air::Medium;
use lowmesh_units::Duration;

use super::section::{Cursor, Lines, Section, section};
use super::value::Within;

/// The medium and its interferers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Radio {
    /// What decides received power and reception.
    pub medium: Choice<dyn Medium>,
    /// `[[radio.wifi]]`: Wi-Fi stations.
    pub wifi: Vec<Wifi>,
    /// `[[radio.burst]]`: disturbances that come and go on given channels.
    pub burst: Vec<Burst>,
}

impl Section for Radio {
    fn keys() -> Vec<&'static str> {
        let mut keys = Choice::<dyn Medium>::keys();
        keys.extend(["wifi", "burst"]);
        keys
    }
    fn read(cursor: &mut Cursor<'_, '_>) -> Self {
        Self {
            medium: <Choice<_> as Section>::read(cursor),
            wifi: cursor.sections("wifi"),
            burst: cursor.sections("burst"),
        }
    }
    fn write(&self, lines: &mut Lines) {
        Section::write(&self.medium, lines);
        lines.sections("radio.wifi", &self.wifi);
        lines.sections("radio.burst", &self.burst);
    }
}

section! {
    /// A Wi-Fi station.
    Wifi {
        /// Its channel; it covers 22 MHz, about four channels of IEEE 802.15.4.
        channel: u8 = 6, Within(1, 13);
        /// Share of time that it sends.
        duty_cycle: f64 = 0.1, Within(0.0, 1.0);
        /// Power that each node receives from it, within one channel of IEEE 802.15.4.
        power_dbm: f64 = -80.0, Within(-150.0, 0.0);
    }
}

section! {
    /// A disturbance that comes and goes (Gilbert-Elliott).
    Burst {
        /// The channel of IEEE 802.15.4 that it hits.
        channel: u8 = 26, Within(11, 26);
        /// Mean time that it lasts.
        on: Duration = Duration::from_millis(500), Within(Duration::from_millis(1), Duration::from_secs(86_400));
        /// Mean time between two.
        off: Duration = Duration::from_millis(4500), Within(Duration::from_millis(1), Duration::from_secs(86_400));
        /// Power that each node receives from it while it lasts.
        power_dbm: f64 = -80.0, Within(-150.0, 0.0);
    }
}
