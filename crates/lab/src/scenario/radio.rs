//! `[radio]`: who hears whom, and what disturbs them.

use lowmesh_registry::Choice;
use lowmesh_sim::air::Medium;
use lowmesh_sim::air::params::{PATH_LOSS_EXPONENT, WIFI_LOAD_MAX_MBPS};
use lowmesh_units::Duration;

use super::key::Key;
use super::rows::Rows;
use super::section::{Cursor, Lines, Section, section};
use super::value::Within;

const LOAD: &str = "wifi_load_mbps";
const LOAD_BOUND: Within<f64> = Within(0.0, WIFI_LOAD_MAX_MBPS);
const LOAD_MEANING: &str = "Load of every Wi-Fi station; replaces its own `load_mbps`.";

/// The medium and its interferers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Radio {
    /// What decides received power and reception.
    pub medium: Choice<dyn Medium>,
    /// Load of every Wi-Fi station; replaces its own `load_mbps`.
    pub wifi_load_mbps: Option<f64>,
    /// `[[radio.wifi]]`: Wi-Fi stations.
    pub wifi: Vec<Wifi>,
    /// `[[radio.burst]]`: bursts of interference on given channels.
    pub burst: Vec<Burst>,
}

impl Section for Radio {
    fn keys(rows: &Rows) -> Vec<Key> {
        let mut keys = <Choice<dyn Medium> as Section>::keys(rows);
        keys.push(Key::new::<Option<f64>>(LOAD, &None, &LOAD_BOUND, LOAD_MEANING, rows));
        keys.push(Key::sections("wifi", "Wi-Fi stations."));
        keys.push(Key::sections("burst", "Bursts of interference on given channels."));
        keys
    }
    fn read(cursor: &mut Cursor<'_, '_>) -> Self {
        Self {
            medium: <Choice<_> as Section>::read(cursor),
            wifi_load_mbps: cursor.value(LOAD, None, &LOAD_BOUND),
            wifi: cursor.sections("wifi"),
            burst: cursor.sections("burst"),
        }
    }
    fn write(&self, lines: &mut Lines) {
        Section::write(&self.medium, lines);
        lines.value(LOAD, &self.wifi_load_mbps, LOAD_MEANING);
        lines.sections("radio.wifi", &self.wifi);
        lines.sections("radio.burst", &self.burst);
    }
}

section! {
    /// A Wi-Fi station.
    Wifi {
        /// Its channel; it covers 22 MHz, about four channels of IEEE 802.15.4.
        channel: u8 = 6, Within(1, 13);
        /// Share of time in which the station sends, in bursts of 1.5 ms; without effect if `load_mbps` is set.
        duty_cycle: f64 = 0.1, Within(0.0, 1.0);
        /// UDP throughput of an IEEE 802.11g sender at 54 Mbit/s. Each period has one frame of 1470 octets and its acknowledgement, 288 us.
        load_mbps: Option<f64> = None, Within(0.0, WIFI_LOAD_MAX_MBPS);
        /// Time at which the station starts to send.
        start: Duration = Duration::ZERO, Within(Duration::ZERO, Duration::from_secs(86_400));
        /// Mean time for which the station sends before it pauses, exponentially distributed; without it, the station never pauses.
        on: Option<Duration> = None, Within(Duration::from_millis(1), Duration::from_secs(86_400));
        /// Mean duration of a pause; requires `on`, and `on` requires it.
        off: Option<Duration> = None, Within(Duration::from_millis(1), Duration::from_secs(86_400));
        /// Power that each node receives from the station, within one channel of IEEE 802.15.4; without effect if the station has a position.
        power_dbm: f64 = -80.0, Within(-150.0, 0.0);
        /// Position of the station. Each node then receives `tx_power_dbm` minus the path loss.
        x_m: Option<f64> = None, Within(-1e6, 1e6);
        /// The other coordinate of the position.
        y_m: Option<f64> = None, Within(-1e6, 1e6);
        /// Sending power at this position, within one channel of IEEE 802.15.4 (20 dBm over 16.6 MHz: 10.8).
        tx_power_dbm: f64 = 10.8, Within(-50.0, 30.0);
        /// Path loss exponent from this position.
        exponent: f64 = PATH_LOSS_EXPONENT, Within(1.0, 8.0);
    }
}

impl Wifi {
    /// Where it stands, if it has a place.
    pub fn place_m(&self) -> Option<(f64, f64)> {
        self.x_m.zip(self.y_m)
    }
}

section! {
    /// A disturbance that comes and goes (Gilbert-Elliott).
    Burst {
        /// Disturbed channel of IEEE 802.15.4.
        channel: u8 = 26, Within(11, 26);
        /// Mean duration of a burst.
        on: Duration = Duration::from_millis(500), Within(Duration::from_millis(1), Duration::from_secs(86_400));
        /// Mean time between two bursts.
        off: Duration = Duration::from_millis(4500), Within(Duration::from_millis(1), Duration::from_secs(86_400));
        /// Power that each node receives during a burst.
        power_dbm: f64 = -80.0, Within(-150.0, 0.0);
    }
}
