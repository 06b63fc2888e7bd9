//! The row of MPL: its parameters with the defaults of RFC 7731 s5.4.

use alloc::boxed::Box;

use lowmesh_registry::{Parameter, Row};
use lowmesh_units::Duration;

use super::Mpl;
use crate::engine::Engine;
use crate::params::{
    CONTROL_EXPIRATIONS, CONTROL_IMAX, CONTROL_IMIN, CONTROL_REDUNDANCY, DATA_EXPIRATIONS,
    DATA_IMIN, DATA_REDUNDANCY, SEED_LIFETIME, TIME_MAX,
};

/// The shortest interval of a timer: a bound of ours, so that no timer runs without rest.
const IMIN_LOW: Duration = Duration::from_millis(1);

/// The row of [`Mpl`].
pub static ROW: Row<dyn Engine> = Row {
    name: "mpl",
    summary: "Trickle timers for each message and for control messages (RFC 7731)",
    section: "multicast",
    parameters: &[
        Parameter::flag(
            "proactive",
            true,
            "Whether a node forwards new messages without a request",
        )
        .source("RFC 7731 s5.4, PROACTIVE_FORWARDING"),
        Parameter::time(
            "data_imin",
            DATA_IMIN,
            IMIN_LOW,
            TIME_MAX,
            "Shortest interval of data messages; at least ten broadcast cells, if the MAC has such cells",
        )
        .source("RFC 7731 s5.4, ten times the latency of a link")
        .not_above("data_imax"),
        Parameter::time(
            "data_imax",
            DATA_IMIN,
            IMIN_LOW,
            TIME_MAX,
            "Longest interval of data messages",
        )
        .source("RFC 7731 s5.4: equal to the shortest interval"),
        Parameter::whole(
            "data_k",
            DATA_REDUNDANCY,
            0,
            255,
            "Received copies after which a node suppresses its own; 0 for never",
        )
        .source("RFC 7731 s5.4"),
        Parameter::whole(
            "data_expirations",
            DATA_EXPIRATIONS,
            1,
            255,
            "Number of expirations of the timer of a data message",
        )
        .source("RFC 7731 s5.4"),
        Parameter::time(
            "control_imin",
            CONTROL_IMIN,
            IMIN_LOW,
            TIME_MAX,
            "Shortest interval of control messages; at least ten broadcast cells, if the MAC has such cells",
        )
        .source("RFC 7731 s5.4, ten times the worst latency of a link")
        .not_above("control_imax"),
        Parameter::time(
            "control_imax",
            CONTROL_IMAX,
            IMIN_LOW,
            TIME_MAX,
            "Longest interval of control messages",
        )
        .source("RFC 7731 s5.4"),
        Parameter::whole(
            "control_k",
            CONTROL_REDUNDANCY,
            0,
            255,
            "Received control messages after which a node suppresses its own; 0 for never",
        )
        .source("RFC 7731 s5.4"),
        Parameter::whole(
            "control_expirations",
            CONTROL_EXPIRATIONS,
            0,
            255,
            "Number of expirations of the timer of control messages; 0 sends none",
        )
        .source("RFC 7731 s5.4"),
        Parameter::time(
            "seed_lifetime",
            SEED_LIFETIME,
            Duration::from_secs(1),
            TIME_MAX,
            "How long a seed is remembered",
        )
        .source("RFC 7731 s5.4, SEED_SET_ENTRY_LIFETIME"),
        Parameter::name(
            "seed_id",
            &["source", "short", "extended"],
            "Identifier of this node as a seed: its address, or the last 16 or 64 bits of the address",
        )
        .source("RFC 7731 s5.3 leaves it open; the address is unique without management"),
        Parameter::whole("seeds", 16, 1, 255, "Maximum number of remembered seeds")
            .unit("seeds")
            .source("ours"),
        Parameter::whole("messages", 16, 1, 255, "Maximum number of buffered messages")
            .unit("packets")
            .source("ours"),
    ],
    make: |choice, rng| Box::new(Mpl::new(choice, rng)),
};
