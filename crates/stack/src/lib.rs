//! One node: all layers composed into one machine.
