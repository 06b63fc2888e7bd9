//! Observing resources (RFC 7641): what both ends need besides the message layer.
//!
//! The endpoint keeps a client's observation open and puts its notifications in order ([`Place`]);
//! a server keeps its observers in a [`Registry`].

mod notification;
mod observation;
mod observer;
mod order;
mod registry;
mod waiting;

pub use notification::{End, Notification, Standing};
pub use observation::ObservationId;
pub use order::{Place, SEQUENCE_MODULUS};
pub use registry::Registry;

use lowmesh_wire::coap::{Code, OptionNumber, Options};

/// The value of Observe that registers: RFC 7641 s2.
pub const REGISTER: u32 = 0;
/// The value of Observe that deregisters: RFC 7641 s2.
pub const DEREGISTER: u32 = 1;

/// Whether a request asks to be registered as an observer (RFC 7641 s2, RFC 8132 s2.4).
pub fn registers(code: Code, options: &Options) -> bool {
    matches!(code, Code::GET | Code::FETCH)
        && options.get_uint(OptionNumber::OBSERVE) == Some(REGISTER)
}
