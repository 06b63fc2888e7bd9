//! From a target to the addresses at which it is asked: those that the rules let through, and none of our own.
//!
//! What is checked here is what is connected to, so that a name whose address changes in between gains nothing.

use std::net::{IpAddr, SocketAddr, UdpSocket};

use lowmesh_wire::coap::Code;
use lowmesh_wire::coap::uri::Uri;

use super::access::Access;
use super::refusal::Refusal;
use crate::client::Error;
use crate::peer::canonical;
use crate::resolve::resolve;
use crate::server::Listening;

/// The rules, and where we listen ourselves.
#[derive(Clone, Debug, Default)]
pub(super) struct Gate {
    pub(super) access: Access,
    pub(super) listening: Listening,
}

impl Gate {
    /// The addresses of a target; `chosen` by the operator, all may be asked. It is called `name` towards clients.
    pub(super) async fn pass(
        &self,
        target: &Uri,
        chosen: bool,
        name: &str,
    ) -> Result<Vec<SocketAddr>, Refusal> {
        let found = resolve(target).await.map_err(Error::from);
        let found = found.map_err(|error| Refusal::instead(&error, name))?;
        let admitted = found.into_iter().map(canonical);
        let admitted = admitted.filter(|one| chosen || self.access.admits_target(one.ip()));
        let admitted: Vec<SocketAddr> = admitted.collect();
        if admitted.is_empty() {
            let reason = "targets that are not public addresses, or denied, are refused \
                          unless --allow-target names their range";
            return Err(Refusal::new(Code::FORBIDDEN, reason));
        }
        // RFC 7252 s5.10.2: a proxy MUST be able to recognise all of its own addresses, to avoid loops.
        let reliable = target.scheme.is_reliable();
        if admitted.iter().any(|one| self.is_ours(*one, reliable)) {
            return Err(Refusal::is_loop());
        }
        Ok(admitted)
    }
    fn is_ours(&self, target: SocketAddr, reliable: bool) -> bool {
        self.listening.all(reliable).into_iter().map(canonical).any(|own| {
            own.port() == target.port()
                && match own.ip() {
                    ip if ip.is_unspecified() => is_of_this_machine(target.ip()),
                    // To ask the unspecified address is to ask this machine.
                    ip => ip == target.ip() || (target.ip().is_unspecified() && ip.is_loopback()),
                }
        })
    }
}

/// The system lets a socket have the addresses of the machine only.
fn is_of_this_machine(address: IpAddr) -> bool {
    address.is_unspecified() || UdpSocket::bind((address, 0)).is_ok()
}
