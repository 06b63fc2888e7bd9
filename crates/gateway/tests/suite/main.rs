//! An Entity Manager on sockets, and peers that behave badly.

mod dead;
mod endless;
mod faulty;
mod rig;
mod strangers;
