//! Scheduling functions from outside: the rules for each row, and two nodes that negotiate cells.

mod conformance;
mod negotiation;
mod unnamed_children;
