//! Tests of the whole machine: scripts for one node, and networks in virtual time.

mod cut;
mod downward;
mod formation;
mod forwarding;
mod graph;
mod leaves;
mod limit;
mod network;
mod script;
mod upward;
