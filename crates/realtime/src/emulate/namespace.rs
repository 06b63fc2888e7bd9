//! A network namespace with a TUN device, made and removed with `ip` of iproute2.

use std::io;
use std::process::Command;

use lowmesh_wired::ConfigError;
use tun_rs::{DeviceBuilder, SyncDevice};

use super::End;
use crate::params::{EMULATED_IPV4, EMULATED_IPV6, EMULATED_NAME_OCTETS_MAX, EMULATED_NODE_PREFIX};

/// Why a link cannot be emulated here.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// A value makes no link.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The settings make no node.
    #[error(transparent)]
    Node(#[from] lowmesh_stack::ConfigError),
    /// The name makes no device.
    #[error(
        "`{0}` cannot be the name of a device; a name has 1 to {EMULATED_NAME_OCTETS_MAX} letters, digits or dashes"
    )]
    Name(String),
    /// The user may not make devices.
    #[error("making network devices and namespaces needs root")]
    Rights,
    /// The kernel has no TUN.
    #[error("/dev/net/tun is missing: {0}")]
    NoTun(io::Error),
    /// The command `ip` is missing.
    #[error("the command `ip` of iproute2 is missing")]
    NoIp,
    /// Somebody has made the namespace already.
    #[error("the namespace {0} exists already")]
    Exists(String),
    /// A command failed.
    #[error("`{command}` failed: {message}")]
    Command {
        /// The command line.
        command: String,
        /// What it wrote to stderr.
        message: String,
    },
}

/// A TUN device without an address, in the namespace of this process.
pub(super) fn tun(name: &str) -> Result<SyncDevice, OpenError> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
    // The name ends with the letter of its end.
    let length = name.len() - 2;
    if !(1..=EMULATED_NAME_OCTETS_MAX).contains(&length) || !name.chars().all(is_plain) {
        return Err(OpenError::Name(name[..length].to_owned()));
    }
    let open = || {
        let device = DeviceBuilder::new().name(name).enable(false).build_sync()?;
        device.set_nonblocking(true)?;
        Ok(device)
    };
    open().map_err(|error: io::Error| match error.kind() {
        io::ErrorKind::PermissionDenied => OpenError::Rights,
        io::ErrorKind::ResourceBusy => OpenError::Exists(name.to_owned()),
        _ => OpenError::NoTun(error),
    })
}

/// A namespace that is removed when it is dropped.
pub(super) struct Namespace {
    name: String,
}

impl Namespace {
    pub(super) fn create(name: &str) -> Result<Self, OpenError> {
        match ip(&["netns", "add", name]) {
            Ok(()) => Ok(Self { name: name.to_owned() }),
            Err(OpenError::Command { message, .. }) if message.contains("File exists") => {
                Err(OpenError::Exists(name.to_owned()))
            }
            Err(OpenError::Command { message, .. }) if message.contains("ermi") => {
                Err(OpenError::Rights)
            }
            Err(error) => Err(error),
        }
    }
    pub(super) fn name(&self) -> &str {
        &self.name
    }
    /// Moves the device of the same name here, and gives it the addresses of `end`.
    pub(super) fn adopt(&self, end: End, mtu: u16, ipv6: bool) -> Result<(), OpenError> {
        let name = self.name.as_str();
        ip(&["link", "set", name, "netns", name])?;
        let disable = if ipv6 { "0" } else { "1" };
        let script = format!(
            "for part in all default {name}; do \
             f=/proc/sys/net/ipv6/conf/$part/disable_ipv6; [ ! -e $f ] || echo {disable} > $f; done"
        );
        ip(&["netns", "exec", name, "sh", "-c", &script])?;
        ip(&["-n", name, "link", "set", "lo", "up"])?;
        ip(&["-n", name, "link", "set", name, "mtu", &mtu.to_string(), "up"])?;
        ip(&["-n", name, "address", "add", EMULATED_IPV4[end.index()], "dev", name])?;
        if ipv6 {
            let address = EMULATED_IPV6[end.index()];
            ip(&["-n", name, "address", "add", address, "dev", name, "nodad"])?;
        }
        Ok(())
    }
    /// Adds the route to the node at the other end.
    pub(super) fn route_to_node(&self) -> Result<(), OpenError> {
        let name = self.name.as_str();
        ip(&["-n", name, "-6", "route", "add", EMULATED_NODE_PREFIX, "dev", name])
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        // Nothing is left to do about a namespace that another program has removed.
        let _gone = ip(&["netns", "delete", &self.name]);
    }
}

fn ip(args: &[&str]) -> Result<(), OpenError> {
    let output = Command::new("ip").args(args).output().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => OpenError::NoIp,
        _ => OpenError::Command { command: "ip".to_owned(), message: error.to_string() },
    })?;
    if output.status.success() {
        return Ok(());
    }
    let message = String::from_utf8_lossy(&output.stderr).trim().replace('\n', "; ");
    Err(OpenError::Command { command: format!("ip {}", args.join(" ")), message })
}
