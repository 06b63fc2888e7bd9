//! `lowmesh groups serve`: the Entity Manager before real devices, with its state in a file.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;

use lowmesh_gateway::entities::{self, FileStore, Proof, Setup};
use lowmesh_group::params::{GROUP_WAIT, SECURED_GROUP_WAIT};
use lowmesh_group::store::{Memory, Store};
use lowmesh_group::{Authority, Config, Manager, Prefix};
use lowmesh_net::client::Client;
use lowmesh_net::clock::{Clock, fresh_rng};
use lowmesh_net::multicast::Interface;
use lowmesh_net::oscore::{Contexts, ToOne};
use lowmesh_net::server::{Limits, Server};
use lowmesh_wire::coap::uri::{Host, Scheme};

use crate::bounds;
use crate::channel::{interface, trusted, uri, wait};
use crate::console::say;
use crate::descriptors;
use crate::failure::Failure;
use crate::key;
use crate::place;
use crate::ports::{self, Reach};
use crate::rows;
use crate::secret_file;
use crate::serve::GRACE;

/// Run the Entity Manager, which combines the responses of the members of an entity into one
#[derive(Debug, clap::Args)]
pub struct Args {
    /// File that stores the entities; without it they are lost when the program ends
    #[arg(long, value_name = "FILE")]
    state: Option<PathBuf>,
    /// Further name of this Entity Manager in the URIs of members, such as `coap://gateway.example` (repeatable)
    #[arg(long, value_name = "URI")]
    own: Vec<String>,
    /// Pacing of requests to members behind one border router
    #[arg(long, value_name = "NAME", default_value = "fixed", value_parser = rows::gates())]
    gate: String,
    /// Interface that sends requests to groups
    #[arg(long, value_name = "NAME", value_parser = interface)]
    interface: Option<Interface>,
    /// Hop limit of requests to groups; by default they stay on the link
    #[arg(long, value_name = "HOPS", value_parser = clap::value_parser!(u8).range(1..))]
    hops: Option<u8>,
    /// Pre-shared key for coaps members, or @FILE that contains it
    #[arg(long, value_name = "KEY", requires = "member_identity")]
    member_psk: Option<String>,
    /// Identity that belongs to the key
    #[arg(long, value_name = "NAME", requires = "member_psk")]
    member_identity: Option<String>,
    /// Certificates (PEM) of the authorities to trust, for members over TLS
    #[arg(long, value_name = "FILE")]
    cafile: Option<PathBuf>,
    /// Member of a group for Group OSCORE, which protects all requests to members; not the file of --group-oscore
    #[arg(long, value_name = "FILE")]
    member_group_oscore: Option<PathBuf>,
    /// Protect requests to one member in group mode: an attacker can send them on to other members, which accept them too
    #[arg(long, requires = "member_group_oscore")]
    member_group_mode: bool,
    /// Addresses that members may have, such as fd00:1::/64 (repeatable); any by default
    #[arg(long, value_name = "PREFIX")]
    allow_member: Vec<Prefix>,
    /// Serve clients without keys at addresses beyond loopback: anyone there can use and change all entities
    #[arg(long)]
    open: bool,
    /// Ask members for clients that have not proven their address, for clients without Echo: a forged datagram then makes
    /// the manager send requests to all members of an entity
    #[arg(long)]
    no_echo: bool,
    #[command(flatten)]
    ports: ports::Args,
    #[command(flatten)]
    bounds: bounds::Args,
}

/// Serves until Ctrl-C.
pub fn execute(args: &Args) -> Result<(), Failure> {
    wait(serve(args))
}

async fn serve(args: &Args) -> Result<(), Failure> {
    let limits = Limits { grace: GRACE, ..args.bounds.limits()? };
    let mut server = Server::new(descriptors::provide(limits)).map_err(Failure::own)?;
    let (store, client) = (store(args)?, client(args)?);
    if !args.open {
        ports::refuse_strangers(&args.ports)?;
    }
    ports::listen(&args.ports, &mut server, Reach::Loopback).await?;
    let proof = if args.no_echo { Proof::Unneeded } else { Proof::Needed };
    let clock = Clock::start();
    let (authorities, gate) = (authorities(args, &server)?, rows::gate(&args.gate)?);
    // Members with Group OSCORE take longer to answer.
    let is_secured = args.member_group_oscore.is_some();
    let group_wait = if is_secured { SECURED_GROUP_WAIT } else { GROUP_WAIT };
    let config = Config {
        authorities,
        gate,
        group_wait,
        allowed: args.allow_member.clone(),
        ..Config::default()
    };
    let manager = Manager::open(config, store, fresh_rng(), clock.now());
    let manager = manager.map_err(|error| unusable(&error))?;
    if let Some(file) = &args.state {
        say!("{} entities in {}", manager.names().count(), file.display());
    }
    let setup = Setup { clock, proof, tell: Box::new(|line| say!("{line}")) };
    let (managing, status) = entities::serve(&mut server, manager, client.clone(), setup);
    let ended = {
        let metrics = move || {
            let status = status.clone();
            async move { status.text().await }
        };
        let running = ports::run_with(&args.ports, server, metrics);
        tokio::pin!(running, managing);
        // The manager ends with the server, and its requests with it: queries that are still open do not delay the end.
        tokio::select! {
            ended = &mut running => ended,
            () = &mut managing => running.await,
        }
    };
    let closed = tokio::time::timeout(GRACE, client.close()).await.unwrap_or(Ok(()));
    closed.map_err(Failure::own).and(ended)
}

fn store(args: &Args) -> Result<Box<dyn Store>, Failure> {
    let Some(file) = &args.state else { return Ok(Box::new(Memory::default())) };
    place::check_file(file).map_err(|why| {
        let message = format!("cannot store the state in {}: {why}", file.display());
        Failure::usage(message, "--state takes a file in an existing folder")
    })?;
    Ok(Box::new(FileStore::open(file).map_err(|error| unusable(&error))?))
}

fn unusable(error: &lowmesh_group::store::StoreError) -> Failure {
    Failure::usage(error, "--state takes the file of an earlier Entity Manager, or a new name")
}

fn client(args: &Args) -> Result<Client, Failure> {
    let mut builder = Client::builder().datagrams(args.bounds.datagrams()?);
    if let (Some(key), Some(identity)) = (&args.member_psk, &args.member_identity) {
        builder = builder.key(&key::identity(identity)?, &key::secret(key)?);
    }
    if let Some(file) = &args.cafile {
        builder = builder.trust(trusted(file)?);
    }
    if let Some(file) = &args.member_group_oscore {
        let contexts = Contexts::default();
        secret_file::look_at(file);
        let group = contexts.add_group_in(file, args.ports.oscore_state())?;
        // RFC 10021 s14.9: what is for one member is protected for one, unless the user says otherwise.
        let to_one = if args.member_group_mode { ToOne::GroupMode } else { ToOne::Answered };
        let others = contexts.members(group).len();
        if to_one == ToOne::Answered && others > 1 {
            let message = format!(
                "the group has {others} other members, and which one is at which address is not known"
            );
            return Err(Failure::usage(message, "--member-group-mode lets any of them accept it"));
        }
        builder = builder.protect_with_group(contexts, group, to_one);
    }
    if args.interface.is_some() || args.hops.is_some() {
        builder = builder.groups(args.interface.unwrap_or_default(), args.hops.unwrap_or(1));
    }
    Ok(builder.build()?)
}

/// All names of this manager: members at them are its own entities.
fn authorities(args: &Args, server: &Server) -> Result<Vec<Authority>, Failure> {
    let mut all: Vec<Authority> = server.addresses().into_iter().flat_map(names).collect();
    for text in &args.own {
        all.push(Authority::of(&uri(text)?));
    }
    Ok(all)
}

/// The address at which a server listens, and what else leads there from its own machine.
fn names(bound: SocketAddr) -> Vec<Authority> {
    let host = |address: IpAddr| match address {
        IpAddr::V4(address) => Host::V4(address),
        IpAddr::V6(address) => Host::V6(address, None),
    };
    let mut hosts = vec![host(bound.ip())];
    if bound.ip().is_unspecified() {
        hosts.extend([Host::V4(Ipv4Addr::LOCALHOST), Host::V6(Ipv6Addr::LOCALHOST, None)]);
    }
    if bound.ip().is_unspecified() || bound.ip().is_loopback() {
        hosts.push(Host::Name("localhost".to_owned()));
    }
    let schemes = [Scheme::Coap, Scheme::CoapTcp];
    let of = |host: Host| schemes.map(|scheme| (scheme, host.clone()));
    let authority = |(scheme, host)| Authority { scheme, host, port: bound.port() };
    hosts.into_iter().flat_map(of).map(authority).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manager_at_all_addresses_knows_itself_by_those_of_loopback() {
        let all = names("[::]:61616".parse().expect("an address"));
        for uri in ["coap://localhost:61616/", "coap://127.0.0.1:61616/", "coap+tcp://[::1]:61616/"]
        {
            let uri = uri.parse().expect("a URI");
            assert!(all.iter().any(|one| one.is_of(&uri)), "{uri}");
        }
        let one = names("10.0.0.1:5683".parse().expect("an address"));
        assert_eq!(one.len(), 2, "{one:?}");
    }
}
