//! Numbers of the radio, each with its source, unit and bounds.

use lowmesh_units::Duration;

/// Carrier for path gains: 2400 MHz (Cooja MRM `frequency`; the band of IEEE 802.15.4 channels 11-26).
pub const CARRIER_MHZ: f64 = 2400.0;

/// Friis gain at 1 km and 1 MHz: -32.44 dB, which is 20 log10(c / (4 pi 10^9)).
pub const FRIIS_CONSTANT_DB: f64 = -32.44;

/// Noise of the SINR media: -98 dBm. Thermal noise in 2 MHz (-111 dBm) and a noise figure of 13 dB;
/// a 20-octet frame then reaches 1 % loss at about -97 dBm, the sensitivity of a CC2538.
pub const NOISE_DBM: f64 = -98.0;

/// How far under the noise a signal still counts as interference: 10 dB, where it raises the noise by 0.4 dB.
pub const AUDIBLE_BELOW_NOISE_DB: f64 = 10.0;

/// Least signal-to-noise ratio (linear) at which a receiver finds the preamble: 0.5, where half of
/// all 6-octet synchronisation and PHY headers pass the bit errors of annex E.
pub const LOCK_SNR: f64 = 0.5;

/// How much better a real receiver's SINR must be than that of annex E when something else is on the channel: 2.6 dB
/// (linear 1.82), on every medium that takes success from annex E. Annex E loses 1 % of 20-octet frames at 0.4 dB; the
/// CC2420 (data sheet, co-channel rejection) and its successors at 3 dB.
pub const CO_CHANNEL_LOSS: f64 = 1.82;
/// Synchronisation header: 4 octets preamble and the delimiter at 250 kbit/s
/// (IEEE 802.15.4-2006 s6.3), 160 us. Until it ends a stronger frame takes the receiver.
pub const SYNCHRONISATION_HEADER: Duration = Duration::from_micros(160);

/// Energy at which a clear channel assessment finds the channel busy: -77 dBm, the reset value of the AT86RF231
/// (and of the CC2420); IEEE 802.15.4-2015 s10.2.7 allows up to 10 dB over the required sensitivity of -85 dBm.
pub const CCA_ENERGY_DBM: f64 = -77.0;
/// Smallest probability for which a link is kept: under one frame in ten thousand, which no result can show.
pub const PROBABILITY_MIN: f64 = 1e-4;

/// Path loss exponent of the log-distance model: 3.0, bounds 1 to 8 (Cooja LogisticLoss; ITU indoor 2.5 to 3.5).
pub const PATH_LOSS_EXPONENT: f64 = 3.0;
/// Static shadowing of the log-distance model: 3 dB (Cooja LogisticLoss), bounds 0 to 20 dB.
pub const SHADOWING_SIGMA_DB: f64 = 3.0;
/// Antenna height of the two-ray model: 1.5 m.
pub const ANTENNA_HEIGHT_M: f64 = 1.5;

/// Unit disk: transmission range 50 m (Cooja UDGM default).
pub const DISK_RANGE_M: f64 = 50.0;
/// Unit disk: interference range 100 m (Cooja UDGM default), at least the transmission range.
pub const DISK_INTERFERENCE_M: f64 = 100.0;
/// Unit disk: signal at no distance, dBm (Cooja `SS_STRONG`).
pub const DISK_STRONG_DBM: f64 = -10.0;
/// Unit disk: signal at the edge of the range, dBm (Cooja `SS_WEAK`).
pub const DISK_WEAK_DBM: f64 = -95.0;
/// Unit disk: no signal, dBm (Cooja `SS_NOTHING`).
pub const DISK_NOTHING_DBM: f64 = -100.0;

/// MRM: least signal-to-noise ratio, dB (Cooja `snr_threshold`).
pub const MRM_SNR_THRESHOLD_DB: f64 = 6.0;
/// MRM: mean background noise, dBm (Cooja `bg_noise_mean`); grids at 33 m need about -81.6.
pub const MRM_NOISE_DBM: f64 = -100.0;
/// MRM: mean background noise of scenarios, dBm: ours, -81.6, so that a grid at 33 m has several hops.
pub const MRM_GRID_NOISE_DBM: f64 = -81.6;
/// MRM: variance of the background noise, dB^2 (Cooja `bg_noise_var`).
pub const MRM_NOISE_VARIANCE: f64 = 1.0;
/// MRM: variance of the system gain, dB^2 (Cooja `system_gain_var`).
pub const MRM_GAIN_VARIANCE: f64 = 4.0;
/// MRM: receiver sensitivity, dBm (Cooja `rx_sensitivity`).
pub const MRM_SENSITIVITY_DBM: f64 = -100.0;
/// MRM: a new frame at most this much weaker takes the receiver over, dB (Cooja capture threshold).
pub const MRM_CAPTURE_DB: f64 = 3.0;

/// Pister-hack: how far under Friis a link can lie, dB (6TiSCH simulator, `Connectivity`).
pub const PISTER_HACK_DEPTH_DB: f64 = 40.0;
/// Noise of the media that dictate a PDR, dBm (6TiSCH simulator, `Connectivity`).
pub const PISTER_HACK_NOISE_DBM: f64 = -105.0;
/// First RSSI of [`PDR_OF_RSSI`], dBm.
pub const PDR_TABLE_FIRST_DBM: f64 = -97.0;
/// PDR at each whole dBm from -97 to -79, linear between (6TiSCH simulator, measured for the Pister-hack).
pub const PDR_OF_RSSI: [f64; 19] = [
    0.0, 0.1494, 0.2340, 0.4071, 0.6359, 0.6866, 0.7476, 0.8603, 0.8702, 0.9324, 0.9427, 0.9562,
    0.9611, 0.9739, 0.9745, 0.9844, 0.9854, 0.9903, 1.0,
];

/// Random square: side, m (6TiSCH simulator, Random connectivity).
pub const SQUARE_SIDE_M: f64 = 2000.0;
/// Random square: good neighbours a node must have (6TiSCH simulator).
pub const SQUARE_NEIGHBOURS: usize = 3;
/// Random square: the PDR that makes a neighbour good (6TiSCH simulator).
pub const SQUARE_PDR: f64 = 0.5;
/// Random square: tries to place one node before the topology is given up.
pub const SQUARE_TRIES: u64 = 100_000;

/// Wi-Fi: width of a station's spectrum, 22 MHz (IEEE 802.11 DSSS mask).
pub const WIFI_WIDTH_MHZ: f64 = 22.0;
/// Wi-Fi: length of one medium occupation, 1.5 ms: a full-size frame at a low rate with its ACK.
pub const WIFI_BURST: Duration = Duration::from_micros(1500);
/// 802.11g: width of the occupied subcarriers, 53 of 312.5 kHz (IEEE 802.11-2020 s17.3.8).
pub const WIFI_OFDM_WIDTH_MHZ: f64 = 16.5625;
/// Width of a channel at 2 Mchip/s O-QPSK, about 2 MHz (IEEE 802.15.4-2015 s12.1.2).
pub const CHANNEL_WIDTH_MHZ: f64 = 2.0;
/// 802.11g: bits of a UDP payload of 1470 octets, the default of iperf.
pub const WIFI_FRAME_BITS: f64 = 1470.0 * 8.0;
/// 802.11g at 54 Mbit/s: 254 us for a frame with 1470 octets of UDP, and 34 us for its acknowledgement at 24 Mbit/s
/// (IEEE 802.11-2020 s17.4.3).
pub const WIFI_FRAME_BURST: Duration = Duration::from_micros(288);
/// 802.11g: UDP throughput with 394 us from frame to frame (SIFS, DIFS and the mean back-off), Mbit/s.
pub const WIFI_LOAD_MAX_MBPS: f64 = 29.8;
/// Gilbert-Elliott: steps of the chain per mean stay in its shorter state.
pub const GILBERT_ELLIOTT_STEPS: u64 = 4;

/// Nodes of the Grenoble measurement (FIT IoT-LAB, January 2018).
pub const GRENOBLE_NODES: usize = 50;
