//! Scheduling functions from outside: the rules for each row, and two nodes that negotiate cells.

mod backlog;
mod conformance;
mod negotiation;
mod three_steps;
mod unnamed_children;
