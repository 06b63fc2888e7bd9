//! Timers and windows from outside: the rules for each row, what every window holds, and measured timeouts replayed.

mod conformance;
mod ecoap_replay;
mod summaries;
