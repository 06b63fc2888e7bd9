//! Three hosts in a line, each in a thread of its own.

use std::net::Ipv6Addr;
use std::sync::mpsc::{Receiver, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use lowmesh_applications::Clock;
use lowmesh_lowpan::FragmentMode;
use lowmesh_net::clock::fresh_seed;
use lowmesh_realtime::zep::{Host, RealTime, Remote, Settings};
use lowmesh_stack::event::{Input, Output};
use lowmesh_stack::{Identity, Node};
use lowmesh_units::{Channel, Eui64, NodeId, PanId};
use lowmesh_wire::ipv6::{Address, Prefix};

use crate::air::{Air, Running};

const NODES: u16 = 3;

pub struct Line {
    air: Running,
    hosts: Vec<(Remote, JoinHandle<()>)>,
    /// What node 0 says.
    said: Receiver<Output>,
}

fn node(index: u16) -> Eui64 {
    NodeId(index).eui64()
}
fn address(index: u16) -> Address {
    Ipv6Addr::new(0x2001, 0xdb8, index, 0, 0, 0, 0, 1).into()
}

/// The node at `index`: the others are behind its neighbour on their side.
fn identity(index: u16) -> Identity {
    let others = (0..NODES).filter(|other| *other != index);
    let here = Identity::new(node(index)).with_address(address(index), 64).expect("a global one");
    others.fold(here, |identity, other| {
        let prefix = Prefix::new(address(other), 64).expect("64 bits");
        let next = if other > index { index + 1 } else { index - 1 };
        identity.with_route(prefix, Address::link_local(node(next))).expect("a neighbour")
    })
}

impl Line {
    /// Nodes that carry large packets in this way.
    pub fn start(mode: FragmentMode) -> Self {
        let nodes: Vec<Eui64> = (0..NODES).map(node).collect();
        let air = Air::start(&nodes);
        let (to_test, said) = channel();
        let host = |index: u16| {
            let config = RealTime::default().config(PanId(0x23), mode);
            let mut node = Node::alone(&config, identity(index), fresh_seed()).expect("possible");
            node.install(Box::new(Clock::default())).expect("alone");
            let settings = Settings {
                peer: air.address,
                local: None,
                channel: Channel::new(26).expect("of the band"),
                node: nodes[usize::from(index)],
            };
            let mut host = Host::open(settings, node).expect("loopback is there");
            let remote = host.remote();
            let listener = (index == 0).then(|| to_test.clone());
            let thread = thread::spawn(move || {
                host.run(|_, output| {
                    if let Some(listener) = &listener {
                        // The test may have heard enough.
                        let _ = listener.send(output.clone());
                    }
                    output.not_found()
                })
                .expect("the socket works");
            });
            (remote, thread)
        };
        let hosts = (0..NODES).map(host).collect();
        Self { air, hosts, said }
    }

    pub fn address(&self, index: u16) -> Address {
        assert!(usize::from(index) < self.hosts.len());
        address(index)
    }

    pub fn tell(&self, index: usize, input: Input) {
        assert!(self.hosts[index].0.tell(input), "node {index} runs");
    }

    /// Waits until node 0 says what `wanted` takes.
    #[allow(clippy::disallowed_methods, reason = "a test over real sockets has a real deadline")]
    pub fn wait<T>(
        &self,
        patience: Duration,
        mut wanted: impl FnMut(Output) -> Option<T>,
    ) -> Option<T> {
        let end = Instant::now() + patience;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let output = self.said.recv_timeout(left).ok()?;
            if let Some(found) = wanted(output) {
                return Some(found);
            }
        }
    }

    pub fn stop(self) -> Air {
        for (remote, thread) in self.hosts {
            remote.stop();
            thread.join().expect("no host panics");
        }
        self.air.stop()
    }
}
