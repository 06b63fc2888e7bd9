//! One MAC on the bench: the test is its driver and the whole air.

use lowmesh_machine::{Handle, Machine, Rejected};
use lowmesh_units::{Dbm, Duration, Eui64, Instant, NodeId, PanId, Purpose, Rng, Seed};

use crate::csma::{Config, Csma, Input, Output};
use crate::frame::{self, airtime};
use crate::params::CCA;
use crate::queue::Priority;

pub const ME: Eui64 = NodeId(1).eui64();
pub const PEER: Eui64 = NodeId(2).eui64();
pub const OTHER: Eui64 = NodeId(3).eui64();
pub const RSSI: Dbm = Dbm(-70.0);
/// Payload of every frame sent here, and its time on the air: 21 + 9 + FCS 2 + PHY 6 octets of 32 us.
pub const PAYLOAD: [u8; 9] = [0x41; 9];
pub const FRAME: Duration = Duration::from_micros(38 * 32);
/// An immediate acknowledgement: 3 + FCS 2 + PHY 6 octets.
pub const ACK: Duration = Duration::from_micros(11 * 32);

pub const fn micros(us: u64) -> Duration {
    Duration::from_micros(us)
}

/// The default, but without any waiting before a CCA.
pub fn prompt() -> Config {
    Config { be_min: 0, be_max: 0, ..Config::default() }
}

pub struct Bench {
    pub now: Instant,
    pub mac: Csma,
}

impl Bench {
    pub fn new(config: Config) -> Self {
        config.check().expect("possible settings");
        let rng = Rng::stream(Seed(7), NodeId(1), Purpose::Mac);
        let mut bench = Self { now: Instant::from_secs(1), mac: Csma::new(config, ME, rng) };
        assert_eq!(bench.tell(Input::Start), []);
        bench
    }
    pub fn try_tell(&mut self, input: Input<'_>) -> Result<Vec<Output>, Rejected> {
        self.mac.handle(self.now, input)?;
        Ok(core::iter::from_fn(|| self.mac.poll_output()).collect())
    }
    pub fn tell(&mut self, input: Input<'_>) -> Vec<Output> {
        self.try_tell(input).expect("acceptable")
    }
    pub fn send_as(&mut self, to: Option<Eui64>, handle: u64, priority: Priority) -> Vec<Output> {
        let handle = Handle(handle);
        self.tell(Input::Send {
            destination: to,
            payload: &PAYLOAD,
            priority,
            is_advice: false,
            handle,
        })
    }
    pub fn send(&mut self, to: Option<Eui64>, handle: u64) -> Vec<Output> {
        self.send_as(to, handle, Priority::Data)
    }
    /// Lets time pass, over no deadline.
    pub fn wait(&mut self, span: Duration) {
        self.now += span;
        assert!(self.mac.next_deadline().is_none_or(|due| due >= self.now), "slept too long");
    }
    /// Goes to the deadline, and says what comes of it.
    pub fn expire(&mut self) -> Vec<Output> {
        self.now = self.mac.next_deadline().expect("it waits for something");
        self.tell(Input::Deadline)
    }
    /// Does the CCA that was asked for.
    pub fn sense(&mut self, outputs: &[Output], busy: bool) -> Vec<Output> {
        let [.., Output::Sense { at }] = outputs else { panic!("no CCA: {outputs:?}") };
        self.now = *at + CCA;
        self.tell(Input::Sensed { busy })
    }
    /// Puts the frame on the air that was asked for: its octets, and what comes after it.
    pub fn transmit(&mut self, outputs: &[Output]) -> (Vec<u8>, Vec<Output>) {
        let [.., Output::Transmit { at, octets, .. }] = outputs else {
            panic!("no frame: {outputs:?}")
        };
        self.now = *at + airtime(octets.len());
        (octets.clone(), self.tell(Input::Sent))
    }
    /// A frame ends here and now.
    pub fn hear(&mut self, octets: &[u8]) -> Vec<Output> {
        self.tell(Input::Received { octets, rssi: RSSI, handle: Handle(77) })
    }
    /// The acknowledgement with this number comes in its time.
    pub fn hear_ack(&mut self, sequence: u8) -> Vec<Output> {
        self.wait(micros(192));
        assert!(self.mac.listens());
        self.tell(Input::Incoming);
        self.wait(ACK);
        self.hear(&frame::immediate_ack(sequence))
    }
    /// Sends one frame that is acknowledged at once.
    pub fn deliver(&mut self, outputs: &[Output]) -> Vec<Output> {
        let asked = self.sense(outputs, false);
        let (octets, _) = self.transmit(&asked);
        self.hear_ack(octets[2])
    }
}

/// A data frame of another node.
pub fn frame_from(source: Eui64, to: Option<Eui64>, sequence: u8) -> Vec<u8> {
    frame::data_2006(PanId(0xabcd), source, to, sequence, to.is_some(), &[1, 2, 3])
}

pub fn is_received(output: &Output) -> bool {
    matches!(output, Output::Received { .. })
}
pub fn is_acknowledge(output: &Output) -> bool {
    matches!(output, Output::Acknowledge { .. })
}
