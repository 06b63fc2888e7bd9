//! Information elements of IEEE 802.15.4-2015 s7.4.
