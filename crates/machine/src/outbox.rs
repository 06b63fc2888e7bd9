//! What a machine wants done, in the order in which it wanted it.

use alloc::collections::VecDeque;

/// A first-in first-out list of outputs. The driver drains it after every input, so it stays short.
#[derive(Clone, Debug)]
pub struct Outbox<T>(VecDeque<T>);

impl<T> Outbox<T> {
    /// An empty list, without allocation.
    pub const fn new() -> Self {
        Self(VecDeque::new())
    }
    /// Adds an output at the end.
    pub fn push(&mut self, output: T) {
        self.0.push_back(output);
    }
    /// Takes the oldest output.
    pub fn pop(&mut self) -> Option<T> {
        self.0.pop_front()
    }
    /// True when there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<T> Extend<T> for Outbox<T> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, outputs: I) {
        self.0.extend(outputs);
    }
}

impl<T> Default for Outbox<T> {
    fn default() -> Self {
        Self::new()
    }
}
