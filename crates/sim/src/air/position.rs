//! Where a node stands.

/// A position, in metres.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub struct Position {
    /// Metres to the east.
    pub x_m: f64,
    /// Metres to the north.
    pub y_m: f64,
    /// Metres above the ground.
    pub z_m: f64,
}

impl Position {
    /// The position (`x_m`, `y_m`) on the ground.
    pub const fn new(x_m: f64, y_m: f64) -> Self {
        Self { x_m, y_m, z_m: 0.0 }
    }
    /// The same position at another height.
    #[must_use]
    pub const fn at_height(self, z_m: f64) -> Self {
        Self { z_m, ..self }
    }
    /// Metres from here to `other`.
    pub fn distance_m(self, other: Self) -> f64 {
        let on_ground = libm::hypot(self.x_m - other.x_m, self.y_m - other.y_m);
        libm::hypot(on_ground, self.z_m - other.z_m)
    }
}
