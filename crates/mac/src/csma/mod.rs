//! Unslotted CSMA/CA, IEEE 802.15.4-2015 s6.2.5.1, with acknowledgements and retries (s6.7.4).
//!
//! | file       | holds                                                           |
//! |------------|-----------------------------------------------------------------|
//! | `config`   | settings, the open radio and the thin one                       |
//! | `event`    | the face: inputs and outputs, and who times what                |

pub mod config;
pub mod event;

pub use config::{Acknowledgement, Config, ConfigError, Radio};
pub use event::{Input, Output};
