//! Links between namespaces; where none can be made, a test says that it is skipped.

use std::net::UdpSocket;
use std::process::Command;

use lowmesh_wired::{Config, Loss};

use super::*;

fn plan(name: &str) -> Plan {
    let link = Config {
        rate_bits_per_second: 80_000,
        delay: Duration::from_millis(20),
        jitter: (Duration::ZERO, Duration::ZERO),
        queue_octets_max: 1_000,
        loss: Loss::None,
        samples_max: 0,
    };
    Plan { name: name.to_owned(), mtu: 500, ipv6: false, links: [link; 2], seed: Seed(1) }
}

fn open(plan: &Plan) -> Option<Emulator> {
    match Emulator::open(plan) {
        Ok(emulator) => Some(emulator),
        Err(error @ (OpenError::Rights | OpenError::NoTun(_) | OpenError::NoIp)) => {
            eprintln!("SKIPPED, no link is emulated here: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn packets_take_the_time_of_the_link_and_what_does_not_fit_is_dropped() {
    let Some(mut emulator) = open(&plan("lmtest-1")) else { return };
    // Ten datagrams of 300 octets with headers at once: one is sent, three wait, six are dropped.
    let script = "import socket;s=socket.socket(socket.AF_INET,socket.SOCK_DGRAM);\
                  [s.sendto(b'x'*272,('10.9.0.2',9)) for _ in range(10)]";
    let namespace = emulator.namespace(End::A).expect("two namespaces").to_owned();
    let sent = Command::new("ip")
        .args(["netns", "exec", &namespace, "python3", "-c", script])
        .status()
        .expect("it starts");
    assert!(sent.success());
    let start = emulator.now();
    while emulator.totals(End::A).counters.arrived < 4 {
        emulator.step(Duration::from_millis(10)).expect("the devices work");
        assert!(
            emulator.now().since(start) < Duration::from_secs(5),
            "{:?}",
            emulator.totals(End::A)
        );
    }
    let took = emulator.now().since(start);
    // Four times 30 ms, and 20 ms of delay.
    assert!((0.139..0.3).contains(&took.as_secs_f64()), "{took}");
    let counters = emulator.totals(End::A).counters;
    assert_eq!((counters.offered, counters.dropped), (10, 6));
    assert!(emulator.totals(End::A).queued_octets_max == 900);
}

#[test]
fn the_namespaces_are_gone_with_the_emulator_and_a_second_one_of_the_name_is_refused() {
    let Some(emulator) = open(&plan("lmtest-2")) else { return };
    let second = Emulator::open(&plan("lmtest-2")).err().expect("the name is taken");
    assert!(matches!(second, OpenError::Exists(_)), "{second}");
    drop(emulator);
    drop(open(&plan("lmtest-2")).expect("the name is free again"));
}

#[test]
fn a_name_that_makes_no_device_is_refused_before_anything_is_made() {
    for name in ["", "a-name-far-too-long", "with space", "a/b"] {
        let error = Emulator::open(&plan(name)).err().expect("it is refused");
        assert!(matches!(&error, OpenError::Name(text) if text == name), "{error}");
    }
    // The caller's own namespace is untouched.
    assert!(UdpSocket::bind("127.0.0.1:0").is_ok());
}

#[test]
fn a_node_takes_the_packets_for_its_address_alone() {
    use lowmesh_stack::{Config as NodeConfig, LinkLayer};
    let link = LinkLayer::Csma(lowmesh_mac::csma::Config::default());
    let config = NodeConfig { link, icmpv6_errors: 10, ..NodeConfig::default() };
    let plan = Plan { mtu: 1_280, ..plan("lmtest-3") };
    let mut emulator = match Emulator::open_with_node(&plan, &config, Vec::new()) {
        Ok(emulator) => emulator,
        Err(error @ (OpenError::Rights | OpenError::NoTun(_) | OpenError::NoIp)) => {
            return eprintln!("SKIPPED, no link is emulated here: {error}");
        }
        Err(error) => panic!("{error}"),
    };
    assert!(emulator.namespace(End::B).is_none(), "the node has no namespace");
    // The echo service of the node, and an address behind it, where nothing is.
    let script = "import socket;s=socket.socket(socket.AF_INET6,socket.SOCK_DGRAM);s.settimeout(3);\
                  s.sendto(b'x'*100,('fd00:6c6d:0:1::3',7));s.sendto(b'y'*100,('fd00:6c6d:0:1::2',7));\
                  d,f=s.recvfrom(200);assert d==b'y'*100 and f[0]=='fd00:6c6d:0:1::2',(d,f)";
    let namespace = emulator.namespace(End::A).expect("namespace a").to_owned();
    let mut asked = Command::new("ip")
        .args(["netns", "exec", &namespace, "python3", "-c", script])
        .spawn()
        .expect("it starts");
    let status = loop {
        emulator.step(Duration::from_millis(10)).expect("the device works");
        if let Some(status) = asked.try_wait().expect("it was started") {
            break status;
        }
    };
    assert!(status.success());
    let counters = emulator.totals(End::B).counters;
    // The echo, and no error about the other packet.
    assert_eq!((counters.offered, counters.dropped), (1, 0));
}
