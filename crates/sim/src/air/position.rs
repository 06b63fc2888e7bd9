//! Where a node stands.

/// A place on the ground, in metres.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub struct Position {
    /// Metres to the east.
    pub x_m: f64,
    /// Metres to the north.
    pub y_m: f64,
}

impl Position {
    /// The place (`x_m`, `y_m`).
    pub const fn new(x_m: f64, y_m: f64) -> Self {
        Self { x_m, y_m }
    }
    /// Metres from here to `other`.
    pub fn distance_m(self, other: Self) -> f64 {
        libm::hypot(self.x_m - other.x_m, self.y_m - other.y_m)
    }
}
