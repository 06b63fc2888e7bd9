//! Time-slotted channel hopping, IEEE 802.15.4-2015 s6.2.6 and s6.3.6.
//!
//! | file       | holds                                                        |
//! |------------|--------------------------------------------------------------|
//! | `cell`     | cells and slotframes as values                               |
//! | `schedule` | the table of cells, and arithmetic over it                   |
//! | `hopping`  | from (ASN, channel offset) to a channel                      |
//! | `choice`   | which frame goes out in which cell                           |
//! | `burst`    | several frames in a row to one neighbour                     |
//! | `spacing`  | how much of the minimal cell a node takes for broadcasts     |
//! | `sync`     | the relation to the time source                              |
//! | `machine`  | joining, beacons, keepalives, queues                         |
//! | `slot`     | one timeslot at the sender and at the receiver               |

mod burst;
pub mod cell;
pub mod choice;
pub mod hopping;
pub mod machine;
pub mod schedule;
pub mod slot;
pub mod spacing;
pub mod sync;

pub use machine::{Input, Output, Tsch};
pub use slot::{Reception, Transmission};

#[cfg(test)]
mod tests;
