//! `lowmesh keygen group`: a file for each member of a group for Group OSCORE (RFC 10021).

use std::io::Write;
use std::path::PathBuf;

use lowmesh_oscore::group::{SignatureAlgorithm, credential_of};
use lowmesh_oscore::params::{GROUP_MEMBERS_MAX, PRIVATE_KEY_LEN};

use super::{KEY_OCTETS, SALT_OCTETS, id, random, with_ending, word, write};
use crate::console::say;
use crate::diagnostic::hex;
use crate::failure::Failure;

/// Octets of a Gid: ours. It goes in each request; a random one of 4 octets is unlikely to be that of another group.
const GROUP_ID_OCTETS: usize = 4;
/// Members in one group: the others that a member can have, and itself.
const MEMBERS_MAX: usize = GROUP_MEMBERS_MAX + 1;

/// Make the keys of a group for Group OSCORE (RFC 10021): NAME-MEMBER.conf for each member
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Path with which the names of the files begin
    name: PathBuf,
    /// Sender ID of a member (repeatable); a group has at least two
    #[arg(long = "member", value_name = "ID", required = true, value_parser = id)]
    members: Vec<String>,
    /// Signature algorithm of the group
    #[arg(long, value_name = "NAME", default_value = "EdDSA", value_parser = algorithm)]
    sign_alg: SignatureAlgorithm,
}

fn algorithm(text: &str) -> Result<SignatureAlgorithm, String> {
    let named = SignatureAlgorithm::ALL.into_iter().find(|one| one.name() == text);
    named.ok_or_else(|| {
        let names = SignatureAlgorithm::ALL.map(SignatureAlgorithm::name);
        format!("the signature algorithms are {}", names.join(" and "))
    })
}

/// A member, and what its file has that those of others do not.
struct Member<'a> {
    id: &'a str,
    private_key: String,
    credential: String,
}

/// Makes the keys of all members, and prints the names of their files.
pub(super) fn execute(args: &Args, out: &mut impl Write) -> Result<(), Failure> {
    check(&args.members)?;
    let members: Result<Vec<_>, Failure> =
        args.members.iter().map(|id| Member::new(id, args.sign_alg)).collect();
    let members = members?;
    let common = format!(
        "master_secret,hex,\"{}\"\nmaster_salt,hex,\"{}\"\ngroup_id,hex,\"{}\"\nsign_alg,text,{}\n",
        hex(&random::<KEY_OCTETS>()?),
        hex(&random::<SALT_OCTETS>()?),
        hex(&random::<GROUP_ID_OCTETS>()?),
        args.sign_alg.name()
    );
    let files: Vec<PathBuf> =
        args.members.iter().map(|id| with_ending(&args.name, &format!("-{id}.conf"))).collect();
    let texts = members.iter().map(|own| common.clone() + &own.file(&members));
    let contents: Vec<_> = files.iter().zip(texts).collect();
    write(&contents, out)?;
    let (client, server) = (word(&files[0]), word(&files[1]));
    say!("server: lowmesh serve DIR --group-oscore {server}");
    say!("client: lowmesh get --group-oscore {client} coap://GROUP/");
    Ok(())
}

/// Refuses members that make no group.
fn check(members: &[String]) -> Result<(), Failure> {
    if !(2..=MEMBERS_MAX).contains(&members.len()) {
        let message = format!("a group has 2 to {MEMBERS_MAX} members, but got {}", members.len());
        return Err(Failure::usage(message, "give --member ID for each member"));
    }
    let mut sorted: Vec<&String> = members.iter().collect();
    sorted.sort_unstable();
    if let Some([same, ..]) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        let message = format!("two members have the ID `{same}`");
        return Err(Failure::usage(message, "give each --member a different ID"));
    }
    Ok(())
}

impl<'a> Member<'a> {
    fn new(id: &'a str, algorithm: SignatureAlgorithm) -> Result<Self, Failure> {
        let key = random::<PRIVATE_KEY_LEN>()?;
        // All octets are a key of EdDSA, and all but one in 2^32 of P-256.
        let credential = credential_of(algorithm, &key)
            .ok_or_else(|| Failure::own("the random octets are not a private key; try again"))?;
        Ok(Self { id, private_key: hex(&key), credential: hex(&credential) })
    }
    /// The lines of its file behind those of all members.
    fn file(&self, all: &[Member<'_>]) -> String {
        let Member { id, private_key, credential } = self;
        let own = format!(
            "sender_id,ascii,\"{id}\"\nprivate_key,hex,\"{private_key}\"\n\
             credential,hex,\"{credential}\"\n"
        );
        let others = all.iter().filter(|other| other.id != *id).map(|other| {
            let Member { id, credential, .. } = other;
            format!("member_id,ascii,\"{id}\"\nmember_credential,hex,\"{credential}\"\n")
        });
        own + &others.collect::<Vec<_>>().concat()
    }
}
