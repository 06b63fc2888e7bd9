//! `/mc` of a server: clients make it join and leave groups.

use std::sync::{Mutex, PoisonError};

use lowmesh_coap::membership::{Change, Memberships, Step};
use lowmesh_coap::resource::Resource;

use super::handler::Handler;
use crate::multicast::{Groups, Interface};
use crate::peer::Peer;

impl Groups {
    /// A resource for [`PATH`](lowmesh_coap::membership::PATH): it lists the groups that clients have made the server join,
    /// joins and leaves them at an interface, or at every interface that can. Any client that reaches it may do that.
    pub fn resource(&self, interface: Option<Interface>) -> Resource<Handler> {
        let (groups, memberships) = (self.clone(), Mutex::new(Memberships::default()));
        Memberships::<Peer>::resource(Handler::new(move |request| {
            let mut memberships = memberships.lock().unwrap_or_else(PoisonError::into_inner);
            let change = match memberships.step(request.peer, &request.message) {
                Step::Answer(response) => return response,
                Step::Change(change) => change,
            };
            let made = match change {
                Change::Join { group, .. } => groups.join(group.0.into(), interface),
                // What the server has joined by itself stays.
                Change::Leave(group) if !memberships.contains(group) => Ok(()),
                Change::Leave(group) => {
                    groups.leave(group.0.into(), interface);
                    Ok(())
                }
            };
            let refused = made.err().map(|error| error.to_string());
            memberships.settle(change, refused.as_deref().map_or(Ok(()), Err))
        }))
    }
}
