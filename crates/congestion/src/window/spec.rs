//! Which window a caller wants, and its limits.

use alloc::boxed::Box;

use lowmesh_registry::Row;

use super::{Limits, Window, fixed};

/// A window by its row, with the caller's limits.
///
/// ```
/// use lowmesh_congestion::window::{Limits, lln};
/// use lowmesh_congestion::{Permit, WindowSpec};
/// use lowmesh_units::Instant;
/// let mut window = WindowSpec::new(&lln::ROW, Limits::messages(2, 32)).window();
/// assert_eq!(window.permits(1, Instant::ZERO), Permit::Now);
/// window.on_sent(1, Instant::ZERO);
/// assert_eq!(window.permits(1, Instant::ZERO), Permit::Blocked);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowSpec {
    row: &'static Row<dyn Window>,
    limits: Limits,
}

impl WindowSpec {
    /// The window of `row`. [`fixed::ROW`] stays at `limits.initial`.
    pub const fn new(row: &'static Row<dyn Window>, limits: Limits) -> Self {
        Self { row, limits }
    }
    /// A window of `window` that never changes.
    pub const fn fixed(window: u32) -> Self {
        Self::new(&fixed::ROW, Limits::messages(window, window))
    }
    /// A new window.
    pub fn window(&self) -> Box<dyn Window> {
        (self.row.make)(self.limits)
    }
    /// The window's name.
    pub const fn name(&self) -> &'static str {
        self.row.name
    }
    /// The caller's limits.
    pub const fn limits(&self) -> Limits {
        self.limits
    }
}
