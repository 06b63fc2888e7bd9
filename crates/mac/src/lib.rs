//! IEEE 802.15.4 medium access: TSCH, queues, link statistics.
