//! The modes of carrying a large packet over several hops: how many fragments, what faults and attacks do.

mod attacks;
mod counts;
mod faults;
mod forwarding;
mod gnrc;
mod line;
mod sixlorh;
