//! Fragmentation and compression together.

mod end_to_end;
