//! Nodes and links that run in real time.
//!
//! | module | runs |
//! |---|---|
//! | [`zep`] | a whole node over IEEE 802.15.4 frames in UDP |
//! | `emulate` | a constrained link between two network namespaces (Linux) |

#[cfg(target_os = "linux")]
pub mod emulate;
pub mod params;
pub mod zep;
