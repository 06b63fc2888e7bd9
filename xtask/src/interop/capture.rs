//! The traffic on the loopback interface, read by tshark: nothing is malformed, and everything encrypted is decrypted with
//! the keys.

use std::collections::BTreeMap;

use anyhow::Result;

use super::case::Tally;
use super::material::{CLIENT_ID, KEY, Material, SALT, SECRET, SERVER_ID};
use super::peer::Peer;
use crate::{process, tools};

/// A port that CoAP was spoken at.
#[derive(Clone, Copy, Debug)]
pub struct Port {
    /// Its number, for datagrams and connections.
    pub number: u16,
    /// DTLS and TLS.
    pub secure: bool,
}

impl Port {
    /// Ports at which nothing is encrypted below CoAP.
    pub fn in_the_open(numbers: impl IntoIterator<Item = u16>) -> Vec<Self> {
        numbers.into_iter().map(|number| Self { number, secure: false }).collect()
    }
}

/// One column a packet, in the order in which [`judge`] takes them.
const COLUMNS: &[&str] = &[
    "frame.number",
    "frame.protocols",
    "_ws.malformed",
    "oscore.code",
    "coap.code",
    "_ws.expert.message",
];
/// How warnings of tshark 4.0 begin that are none: it does not know Echo and Request-Tag (RFC 9175), and suspects some ports.
const KNOWN_WARNINGS: &[&str] =
    &["Invalid Option Number 252", "Invalid Option Number 292", "Possible traceroute"];
/// It also reads the options of signaling messages (RFC 8323 s5), from this code on, as those of requests.
const SIGNALING: u32 = 0xe0;

/// What has to be seen: protocols of a packet from the outside to the inside. The code inside of OSCORE, which is a column of
/// its own, stands for the last.
const WANTED: &[(&str, &str)] = &[
    ("CoAP over UDP", ":udp:coap"),
    ("CoAP over TCP", ":tcp:coap"),
    ("CoAP decrypted out of DTLS", ":dtls:coap"),
    ("CoAP decrypted out of OSCORE", DECRYPTED),
];
const DECRYPTED: &str = "decrypted";
/// How many faults are reported at most.
const FAULTS_TOLD: usize = 10;

/// A running capture.
pub struct Capture {
    tshark: Peer,
    file: String,
}

impl Capture {
    /// Listens, if this user may.
    pub fn start(material: &Material, tally: &Tally) -> Result<Option<Self>> {
        tools::tshark()?;
        let (file, interface) = (material.path("interop.pcapng"), loopback());
        let args = ["-q", "-i", interface, "-w", &file, "-f", "udp or tcp"];
        match Peer::start_until(process::command("tshark", &args), "Capture started") {
            Ok(tshark) => Ok(Some(Self { tshark, file })),
            Err(why) => {
                tally.skip("reading with tshark", &format!("it may not capture: {why:#}"));
                Ok(None)
            }
        }
    }
    /// Reads what was captured at these ports.
    pub fn judge(self, ports: &[Port], tally: &Tally) -> Result<()> {
        self.tshark.interrupt()?;
        let psk: String =
            KEY.bytes().fold(String::new(), |hex, octet| hex + &format!("{octet:02x}"));
        let context = format!(
            "uat:oscore_contexts:\"{CLIENT_ID}\",\"{SERVER_ID}\",\"{SECRET}\",\"{SALT}\",\"\",\
             \"AES-CCM-16-64-128 (CCM*)\""
        );
        let numbers: Vec<String> = ports.iter().map(|port| port.number.to_string()).collect();
        let filter = format!("udp.port in {{{0}}} or tcp.port in {{{0}}}", numbers.join(","));
        let mut command =
            process::command("tshark", &["-n", "-2", "-r", &self.file, "-R", &filter]);
        command.args(["-o", &format!("dtls.psk:{psk}"), "-o", &context, "-T", "fields"]);
        // The messages of tshark have commas in them.
        command.args(["-E", "aggregator=;"]);
        for port in ports {
            let (number, below) = (port.number, if port.secure { "dtls" } else { "coap" });
            command.args(["-d", &format!("udp.port=={number},{below}")]);
            if port.secure {
                command.args(["-d", &format!("dtls.port=={number},coap")]);
                command.args(["-d", &format!("tcp.port=={number},tls")]);
            } else {
                command.args(["-d", &format!("tcp.port=={number},coap")]);
            }
        }
        for column in COLUMNS {
            command.args(["-e", column]);
        }
        let dissection = process::read(command)?;
        let verdicts = judge(&dissection);
        if verdicts.iter().any(|(_, verdict)| verdict.is_err()) {
            // A failed capture stays for a look with Wireshark.
            let kept = format!("lowmesh-interop-{}.pcapng", std::process::id());
            let kept = std::env::temp_dir().join(kept);
            std::fs::copy(&self.file, &kept)?;
            println!("the capture is {}", kept.display());
        }
        for (title, verdict) in verdicts {
            tally.note(&title, verdict);
        }
        Ok(())
    }
}

fn is_known(warning: &str) -> bool {
    KNOWN_WARNINGS.iter().any(|known| warning.starts_with(known))
}

const fn loopback() -> &'static str {
    if cfg!(target_os = "linux") { "lo" } else { "lo0" }
}

/// A verdict on the whole, and one on each thing that has to be seen.
fn judge(dissection: &str) -> Vec<(String, Result<(), String>)> {
    let mut stacks: BTreeMap<&str, u64> = BTreeMap::new();
    let (mut faults, mut decrypted) = (Vec::new(), 0);
    for line in dissection.lines() {
        let mut columns = line.split('\t');
        let mut next = || columns.next().unwrap_or_default();
        let (number, stack, malformed, inner_code) = (next(), next(), next(), next());
        *stacks.entry(stack).or_default() += 1;
        decrypted += u64::from(!inner_code.is_empty());
        let (codes, warnings) = (next(), next());
        let signals =
            codes.split(';').any(|code| code.parse().is_ok_and(|code: u32| code >= SIGNALING));
        let known = warnings.split(';').all(is_known);
        if !malformed.is_empty() && !signals && !known && faults.len() < FAULTS_TOLD {
            faults.push(format!("packet {number}: {stack}: {warnings}"));
        }
    }
    let packets: u64 = stacks.values().sum();
    println!("{packets} packets read by tshark");
    let clean = if faults.is_empty() { Ok(()) } else { Err(faults.join("\n")) };
    let mut verdicts = vec![("tshark finds nothing malformed".to_owned(), clean)];
    for (what, wanted) in WANTED {
        let seen = match *wanted {
            DECRYPTED => decrypted > 0,
            wanted => stacks.keys().any(|stack| stack.contains(wanted)),
        };
        let missing = || format!("no packet has {wanted}");
        let verdict = if seen { Ok(()) } else { Err(missing()) };
        verdicts.push((format!("tshark sees {what}"), verdict));
    }
    verdicts
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "1\teth:ethertype:ipv6:udp:coap\t\t\n\
        2\teth:ethertype:ipv6:tcp:coap\t\t\n\
        3\teth:ethertype:ipv6:udp:dtls:coap\t\t\n\
        4\teth:ethertype:ipv6:udp:coap:data:oscore\t\t1\n";

    fn failures(dissection: &str) -> Vec<String> {
        let failed = judge(dissection).into_iter().filter(|(_, verdict)| verdict.is_err());
        failed.map(|(title, _)| title).collect()
    }

    #[test]
    fn a_capture_with_everything_in_it_passes() {
        assert_eq!(failures(GOOD), Vec::<String>::new());
    }

    #[test]
    fn a_malformed_packet_fails() {
        for warnings in ["Malformed Packet", "Invalid Option Number 292;Malformed Packet"] {
            let text = format!("{GOOD}5\teth:ethertype:ipv6:udp:coap\t1\t\t1\t{warnings}\n");
            assert_eq!(failures(&text), ["tshark finds nothing malformed"], "{warnings}");
        }
    }

    #[test]
    fn what_tshark_does_not_know_is_no_fault() {
        let tag = "5\teth:ethertype:ipv6:udp:coap\t1\t\t3\t\
                   Possible traceroute: hop #8, attempt #2;Invalid Option Number 292\n";
        let csm = "6\teth:ethertype:ipv6:tcp:coap\t1\t\t225\tInvalid Option Number 2\n";
        assert_eq!(failures(&format!("{GOOD}{tag}{csm}")), Vec::<String>::new());
    }

    #[test]
    fn what_stayed_encrypted_fails() {
        let text = GOOD.replace("dtls:coap", "dtls").replace("oscore\t\t1", "oscore\t\t");
        let missing = ["CoAP decrypted out of DTLS", "CoAP decrypted out of OSCORE"];
        assert_eq!(failures(&text), missing.map(|what| format!("tshark sees {what}")));
    }
}
