//! Recoverable fragments along a line of nodes.

mod chance;
mod ends;
mod line;
mod passing;
mod steps;
