//! The rules of direction of ARCHITECTURE.md, checked on the manifests: arrows go down a floor, never up
//! and never sideways, but for a short list of exceptions.

use super::Breach;
use crate::metadata::{Dependency, Package};

/// Floors from the ground up; a crate may depend on those of lower floors only.
const FLOORS: &[&[&str]] = &[
    &["units"],
    &["registry"],
    &["machine", "wire", "trickle", "congestion", "reassembly", "shares"],
    &["wired"],
    PROTOCOLS,
    &["stack"],
    &["applications"],
    &["sim", "net"],
    &["lab", "gateway", "realtime"],
    &["lowmesh", "python"],
];

const PROTOCOLS: &[&str] =
    &["coap", "oscore", "group", "tcp", "ipv6", "rpl", "multicast", "lowpan", "mac", "sixtop"];

/// The only arrows between crates of one floor: what two layers tell each other, `stack` carries.
const SIDEWAYS: &[(&str, &str)] = &[("group", "coap"), ("oscore", "coap"), ("sixtop", "mac")];

/// Crates that a protocol crate of the same name alone may use, besides `stack` and the drivers.
const RESERVED: &[(&str, &[&str])] = &[
    ("congestion", &["coap", "lowpan", "tcp", "stack", "sim", "net", "lab", "realtime"]),
    ("reassembly", &["ipv6", "lowpan"]),
    ("trickle", &["rpl", "multicast", "stack", "sim"]),
];

/// Where an asynchronous runtime may appear.
const ASYNCHRONOUS: &[&str] = &["net", "gateway", "lowmesh"];

/// Packages outside the floors: tools that no crate depends on, except for tests.
const TOOLS: &[&str] = &["xtask", "fuzz", "testkit"];

/// The floors from the ground up, each with the crates that may stand on it.
pub fn floors() -> &'static [&'static [&'static str]] {
    FLOORS
}

/// True for a crate that must build without `std`.
pub fn is_for_devices(name: &str) -> bool {
    FLOORS[..4].iter().any(|floor| floor.contains(&name)) || PROTOCOLS.contains(&name)
}

/// All arrows that break a rule.
pub fn breaches(packages: &[Package]) -> Vec<Breach> {
    let mut breaches = Vec::new();
    for package in packages {
        if floor(&package.name).is_none() && !TOOLS.contains(&package.name.as_str()) {
            breaches
                .push(Breach::error(&package.name, "stands on no floor; add it to xtask's FLOORS"));
        }
        for dependency in &package.dependencies {
            if let Some(why) = breach(package, dependency) {
                let arrow = format!("{} -> {}", package.name, dependency.name);
                breaches.push(Breach::error(arrow, why));
            }
        }
    }
    breaches
}

fn breach(from: &Package, to: &Dependency) -> Option<String> {
    let name = from.name.as_str();
    if to.name.starts_with("tokio") && !ASYNCHRONOUS.contains(&name) {
        return Some(format!(
            "an asynchronous runtime appears only in {}",
            ASYNCHRONOUS.join(", ")
        ));
    }
    if !to.ours || TOOLS.contains(&name) {
        return None;
    }
    if TOOLS.contains(&to.name.as_str()) {
        return (!to.dev).then(|| "a tool may serve tests only (dev-dependencies)".to_owned());
    }
    let (Some(here), Some(there)) = (floor(name), floor(&to.name)) else { return None };
    if there > here {
        return Some("an arrow up: the lower floor must not know the upper one".to_owned());
    }
    if there == here && !SIDEWAYS.contains(&(name, to.name.as_str())) {
        return Some("an arrow sideways that is not on the list of exceptions".to_owned());
    }
    let reserved = RESERVED.iter().find(|(crate_name, _)| *crate_name == to.name);
    let (_, users) = reserved?;
    (!users.contains(&name)).then(|| format!("only {} may use it", users.join(", ")))
}

fn floor(name: &str) -> Option<usize> {
    FLOORS.iter().position(|floor| floor.contains(&name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrow(from: &str, to: &str, ours: bool, dev: bool) -> Option<String> {
        let dependency = Dependency { name: to.to_owned(), ours, dev };
        let package =
            Package { name: from.to_owned(), dependencies: vec![dependency], ..Package::default() };
        breaches(&[package]).pop().map(|breach| breach.message)
    }

    #[test]
    fn arrows_down_pass() {
        assert_eq!(arrow("coap", "wire", true, false), None);
        assert_eq!(arrow("lowmesh", "lab", true, false), None);
        assert_eq!(arrow("sixtop", "mac", true, false), None);
    }

    #[test]
    fn an_arrow_up_is_a_breach() {
        assert!(arrow("wire", "coap", true, false).is_some_and(|why| why.contains("up")));
        assert!(arrow("mac", "stack", true, true).is_some_and(|why| why.contains("up")));
    }

    #[test]
    fn protocols_do_not_know_each_other() {
        assert!(arrow("rpl", "mac", true, false).is_some_and(|why| why.contains("sideways")));
        assert!(arrow("sim", "net", true, false).is_some_and(|why| why.contains("sideways")));
        assert!(arrow("mac", "congestion", true, false).is_some_and(|why| why.contains("only")));
    }

    #[test]
    fn a_tool_serves_tests_only() {
        assert_eq!(arrow("coap", "xtask", true, true), None);
        assert!(arrow("coap", "xtask", true, false).is_some());
    }

    #[test]
    fn tokio_stays_out_of_the_protocols() {
        assert!(arrow("coap", "tokio", false, false).is_some());
        assert_eq!(arrow("net", "tokio", false, false), None);
    }

    #[test]
    fn a_crate_without_a_floor_is_a_breach() {
        let package = Package { name: "attic".to_owned(), ..Package::default() };
        assert_eq!(breaches(&[package]).len(), 1);
    }
}
