//! `[radio]`: who hears whom, and what disturbs them.

use lowmesh_units::Duration;

use super::section::{Cursor, Lines, Section, section, variants};
use super::value::{NotEmpty, Within};

/// The medium and its interferers.
#[derive(Clone, Debug, PartialEq)]
pub struct Radio {
    /// What decides received power and reception.
    pub medium: Medium,
    /// `[[radio.wifi]]`: Wi-Fi stations.
    pub wifi: Vec<Wifi>,
    /// `[[radio.burst]]`: disturbances that come and go on given channels.
    pub burst: Vec<Burst>,
}

impl Default for Radio {
    fn default() -> Self {
        Self { medium: Medium::Mrm(Mrm::default()), wifi: Vec::new(), burst: Vec::new() }
    }
}

impl Section for Radio {
    fn keys() -> Vec<&'static str> {
        let mut keys = Medium::keys();
        keys.extend(["wifi", "burst"]);
        keys
    }
    fn read(cursor: &mut Cursor<'_, '_>) -> Self {
        Self {
            medium: Medium::read(cursor),
            wifi: cursor.sections("wifi"),
            burst: cursor.sections("burst"),
        }
    }
    fn write(&self, lines: &mut Lines) {
        self.medium.write(lines);
        lines.sections("radio.wifi", &self.wifi);
        lines.sections("radio.burst", &self.burst);
    }
}

variants! {
    /// What decides received power and reception.
    Medium by "medium" {
        /// Cooja's multi-path medium, direct ray.
        "mrm" => Mrm,
        /// Cooja's unit disk.
        "unit-disk" => UnitDisk,
        /// Log-distance path loss with shadowing.
        "log-distance" => LogDistance,
        /// Free space.
        "friis" => Friis,
        /// Free space near, ground reflection far.
        "two-ray" => TwoRay,
        /// The 6TiSCH Simulator's model.
        "pister-hack" => PisterHack,
        /// A fixed delivery ratio a link.
        "pdr-matrix" => PdrMatrix,
        /// A connectivity trace in the K7 format.
        "k7" => K7,
        /// Mean delivery ratio and power by link and channel, from a file.
        "link-table" => LinkTable,
        /// Real link qualities of the FIT IoT-LAB site in Grenoble, built in.
        "grenoble" => Grenoble,
        /// The tree of `[topology]`: good links with their lengths, and what the others get from them.
        "links" => Links,
    }
}

section! {
    /// Cooja MRM: direct ray, normally distributed SNR, threshold.
    Mrm {
        /// Sending power (a Cooja mote always sends at 0 dBm).
        tx_power_dbm: f64 = 0.0, Within(-60.0, 40.0);
        /// Mean background noise. Cooja's own default of -100 makes a 33 m grid one hop wide; -81.6 gives
        /// delivery ratios of .99, .84 and .36 at 33, 46.7 and 66 m.
        noise_dbm: f64 = -81.6, Within(-150.0, 0.0);
        /// Signal-to-noise ratio at which half of the frames arrive, in dB.
        snr_threshold_db: f64 = 6.0, Within(-50.0, 50.0);
        /// Variance of the system gain, in dB squared.
        system_gain_var: f64 = 4.0, Within(0.0, 400.0);
        /// Variance of the background noise, in dB squared.
        noise_var: f64 = 1.0, Within(0.0, 400.0);
        /// Sensitivity of the receiver; raises the threshold where it lies above the noise.
        sensitivity_dbm: f64 = -100.0, Within(-150.0, 0.0);
        /// A new frame at most so much weaker takes the receiver over, in dB.
        capture_db: f64 = 3.0, Within(0.0, 50.0);
    }
}

section! {
    /// Cooja UDGM.
    UnitDisk {
        /// Distance up to which frames arrive, in metres.
        range_m: f64 = 50.0, Within(0.1, 100_000.0);
        /// Distance up to which frames disturb, in metres.
        interference_range_m: f64 = 100.0, Within(0.1, 100_000.0);
        /// Share of frames that arrive at the very edge; 1 makes the disk even.
        edge_ratio: f64 = 1.0, Within(0.0, 1.0);
    }
}

section! {
    /// Log-distance path loss.
    LogDistance {
        /// Sending power.
        tx_power_dbm: f64 = 0.0, Within(-60.0, 40.0);
        /// Noise over one channel: thermal noise and a noise figure of 13 dB.
        noise_dbm: f64 = -98.0, Within(-150.0, 0.0);
        /// Path-loss exponent.
        exponent: f64 = 3.0, Within(1.0, 8.0);
        /// Standard deviation of the shadowing of a link, in dB.
        shadowing_db: f64 = 3.0, Within(0.0, 20.0);
    }
}

section! {
    /// Friis' free space.
    Friis {
        /// Sending power.
        tx_power_dbm: f64 = 0.0, Within(-60.0, 40.0);
        /// Noise over one channel: thermal noise and a noise figure of 13 dB.
        noise_dbm: f64 = -98.0, Within(-150.0, 0.0);
    }
}

section! {
    /// Two rays.
    TwoRay {
        /// Sending power.
        tx_power_dbm: f64 = 0.0, Within(-60.0, 40.0);
        /// Noise over one channel: thermal noise and a noise figure of 13 dB.
        noise_dbm: f64 = -98.0, Within(-150.0, 0.0);
        /// Height of the antennas over ground, in metres.
        height_m: f64 = 1.5, Within(0.01, 1000.0);
    }
}

section! {
    /// Friis less a uniform 0 to 40 dB a link, and a measured table from power to delivery ratio.
    PisterHack {
        /// Sending power (6TiSCH Simulator: 0 dBm).
        tx_power_dbm: f64 = 0.0, Within(-60.0, 40.0);
    }
}

section! {
    /// Delivery ratios written in the scenario: row = sender, column = receiver.
    PdrMatrix {
        /// The rows.
        matrix: Vec<Vec<f64>> = Vec::new(), Square;
    }
}

section! {
    /// A connectivity trace.
    K7 {
        /// The file, plain or gzip, relative to the scenario's folder.
        file: String = String::new(), NotEmpty;
    }
}

section! {
    /// A table of links.
    LinkTable {
        /// The CSV file, relative to the scenario's folder.
        file: String = String::new(), NotEmpty;
    }
}

section! {
    /// The built-in Grenoble table: 50 nodes, mean delivery ratio and power by link and channel; no keys.
    Grenoble {
    }
}

section! {
    /// The tree of good links of a deployment.
    Links {
        /// Delivery ratio of a link alone on the air, where the tree does not say it (Lenders et al. 2021: at least 0.975).
        pdr: f64 = 0.975, Within(0.0, 1.0);
        /// Length of a link whose power is `margin_db` above that at which nothing is received, in metres; other
        /// distances are measured against it (Lenders et al. 2021: links of up to 6.5 m were taken).
        reach_m: f64 = 6.5, Within(0.01, 100_000.0);
        /// That margin, in dB: how far beyond its own links a node is heard. 13 dB go with a delivery ratio of 0.975.
        margin_db: f64 = 13.0, Within(0.0, 100.0);
        /// Path loss exponent, by which pairs that are no link hear each other less.
        exponent: f64 = 3.0, Within(1.0, 8.0);
        /// Standard deviation of the shadowing of pairs that are no link, in dB.
        shadowing_db: f64 = 3.0, Within(0.0, 20.0);
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

/// As many columns as rows, and ratios.
struct Square;

impl super::value::Rule<Vec<Vec<f64>>> for Square {
    fn admits(&self, rows: &Vec<Vec<f64>>) -> bool {
        let ratios = |row: &Vec<f64>| row.iter().all(|pdr| (0.0..=1.0).contains(pdr));
        !rows.is_empty() && rows.iter().all(|row| row.len() == rows.len() && ratios(row))
    }
    fn words(&self) -> String {
        " from 0 to 1, as many in each row as there are rows".to_owned()
    }
}
