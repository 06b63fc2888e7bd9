//! What a clear channel assessment counts as busy (IEEE 802.15.4-2015 s10.2.7).

/// The mode of the assessment. The standard's modes 4 to 6, for other PHYs, and mode 3 with AND are left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CcaMode {
    /// Mode 1: energy, from a threshold on.
    Energy,
    /// Mode 2: a frame that can be found.
    Carrier,
    /// Mode 3 with OR.
    Either,
}

/// A mode with its threshold.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cca {
    /// What is looked for.
    pub mode: CcaMode,
    /// Energy from which on the channel is busy, mW.
    pub energy_mw: f64,
}

impl Cca {
    /// Whether the channel is busy with `power_mw` on it, and a frame that can be found or none.
    pub fn is_busy(&self, has_carrier: bool, power_mw: f64) -> bool {
        let has_energy = power_mw >= self.energy_mw;
        match self.mode {
            CcaMode::Energy => has_energy,
            CcaMode::Carrier => has_carrier,
            CcaMode::Either => has_carrier || has_energy,
        }
    }
}
