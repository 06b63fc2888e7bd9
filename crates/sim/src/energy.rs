//! From radio time to charge.

use lowmesh_mac::account::RadioTime;

/// Currents of a radio in milliamperes. The defaults are those of the CC2538 data sheet (SWRS096): 24 mA
/// when sending at 0 dBm, 20 mA when receiving, 1.3 uA asleep.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Currents {
    /// While sending.
    pub tx_ma: f64,
    /// While receiving or listening.
    pub rx_ma: f64,
    /// While the radio is off.
    pub sleep_ma: f64,
}

impl Default for Currents {
    fn default() -> Self {
        Self { tx_ma: 24.0, rx_ma: 20.0, sleep_ma: 0.0013 }
    }
}

impl Currents {
    /// Charge in millicoulombs for `time` out of `total_s` seconds.
    pub fn charge_mc(&self, time: RadioTime, total_s: f64) -> f64 {
        let (tx, rx) = (time.tx.as_secs_f64(), time.rx.as_secs_f64());
        self.tx_ma * tx + self.rx_ma * rx + self.sleep_ma * (total_s - tx - rx).max(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lowmesh_units::Duration;

    #[test]
    fn charge_is_current_times_time() {
        let currents = Currents { tx_ma: 2.0, rx_ma: 1.0, sleep_ma: 0.5 };
        let time = RadioTime {
            tx: Duration::from_secs(1),
            rx: Duration::from_secs(3),
            listening_slots_used: 0,
        };
        assert!((currents.charge_mc(time, 10.0) - (2.0 + 3.0 + 3.0)).abs() < 1e-9);
    }
}
