//! Time-slotted channel hopping, IEEE 802.15.4-2015 s6.2.6 and s6.3.6.
//!
//! | file       | holds                                                        |
//! |------------|--------------------------------------------------------------|
//! | `cell`     | cells and slotframes as values                               |
//! | `slotframe` | the cells of one slotframe, and the index of their slots     |
//! | `schedule` | the table of cells, and arithmetic over it                   |
//! | `hopping`  | from (ASN, channel offset) to a channel                      |
//! | `choice`   | which frame goes out in which cell                           |
//! | `burst`    | several frames in a row to one neighbour                     |
//! | `spacing`  | how much of the minimal cell a node takes for broadcasts     |
//! | `sync`     | the relation to the time source                              |
//! | `former`   | a coordinator's network from before it lost its memory         |
//! | `membership` | joining a network, staying in it and leaving it            |
//! | `beacons`  | when the next beacon is due, and what it says                |
//! | `send`     | queues, and one timeslot at the sender                       |
//! | `receive`  | one timeslot at the receiver                                 |
//! | `shared`   | what these parts have in common                              |
//! | `machine`  | the parts as one machine                                     |

mod beacons;
mod burst;
pub mod cell;
pub mod choice;
mod event;
mod former;
pub mod hopping;
pub mod machine;
mod membership;
mod receive;
pub mod schedule;
mod send;
mod shared;
mod slotframe;
pub mod spacing;
pub mod sync;

pub use event::{Input, Output, Reception, Transmission};
pub use former::{FormerNetwork, Start};
pub use machine::Tsch;

#[cfg(test)]
mod tests;
