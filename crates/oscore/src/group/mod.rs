//! Group OSCORE: security of messages between many (RFC 10021).
//!
//! ```text
//!   group mode      a key that all members know, and a signature: who has said it     to all, and from anyone
//!   pairwise mode   a key of two members alone: 64 octets less                        to one
//! ```
//! A [`Group`] is what one member holds: the secrets of all, a private key, a sequence number for what it sends, and for each
//! other member a credential and a window against replays. It reads from a file with [`Configuration`].
//!
//! A request in group mode goes to all members. Each answers by itself, in pairwise mode unless the file says otherwise, and
//! [`Pending`] orders the responses of each. No number leaves that is not stored as used, as in [`crate::SecurityContext`].
//!
//! What costs most comes last: the option, the replay window and the tag refuse a message before its signature is checked. So
//! only holders of the group's secrets make a member check signatures (see [`Group::unprotect_request`]).
//!
//! ```
//! use lowmesh_oscore::group::{Configuration, credential_of, SignatureAlgorithm};
//! use lowmesh_wire::coap::{Code, stream::StreamMessage};
//!
//! # let hex = |octets: &[u8]| octets.iter().map(|one| format!("{one:02x}")).collect::<String>();
//! let keys = [[1; 32], [2; 32]];
//! let credential = |key| credential_of(SignatureAlgorithm::EdDsa, key).map(|one| hex(&one));
//! let file = |own: usize, other: usize| {
//!     format!(
//!         "master_secret,hex,0102030405060708090a0b0c0d0e0f10\ngroup_id,hex,0a\n\
//!          sender_id,hex,0{own}\nprivate_key,hex,{}\ncredential,hex,{}\n\
//!          member_id,hex,0{other}\nmember_credential,hex,{}\n",
//!         hex(&keys[own]), credential(&keys[own]).unwrap(), credential(&keys[other]).unwrap(),
//!     )
//! };
//! let mut client = Configuration::parse(&file(0, 1))?.group();
//! let mut server = Configuration::parse(&file(1, 0))?.group();
//!
//! for member in [&mut client, &mut server] {
//!     if let Some(reservation) = member.reservation_needed() {
//!         // Here the state is stored.
//!         member.confirm(reservation);
//!     }
//! }
//! let mut get = StreamMessage::new(Code::GET);
//! get.options.insert_path("/temp");
//! let (outer, mut pending) = client.protect_request(None, &get)?;
//! let (request, mut received) = server.unprotect_request(&outer)?;
//! assert_eq!(request, get);
//! let outer = server.protect_response(&mut received, &StreamMessage::new(Code::CONTENT))?;
//! let answer = client.unprotect_response(&mut pending, &outer)?;
//! assert_eq!(answer.from, server.sender_id());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Left out: the Group Manager and its protocols, so a group has one Gid for as long as its file; deterministic requests;
//! algorithms beside those of [`SignatureAlgorithm`], AES-CCM-16-64-128 and HKDF SHA-256; credentials other than CWT Claims
//! Sets; checkers of signatures that are no members.

mod authenticated;
mod client;
mod configuration;
mod context;
mod credential;
mod curve;
mod server;
mod state;

pub use authenticated::Mode;
pub use client::{Answer, Pending};
pub use configuration::{Configuration, ConfigurationError, Mistake};
pub use context::{Group, GroupError, Inputs, MayCheck, Signed};
pub use credential::{CredentialError, credential_of};
pub use curve::SignatureAlgorithm;
pub use server::Received;
pub use state::{GroupState, MemberWindow};

#[cfg(test)]
mod tests;
