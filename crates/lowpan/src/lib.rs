//! 6LoWPAN adaptation: header compression, fragmentation, reassembly.
