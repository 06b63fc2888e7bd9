//! A proxy between TCP and UDP: `cargo run -p lowmesh-net --example proxy -- [TARGET]`, and then, elsewhere,
//! `lowmesh get coap://device/temperature -P coap+tcp://localhost:5693`. With a target it stands in front of that one. It
//! listens at loopback, and asks public addresses only: `ProxyLimits::access` says more.

use std::error::Error;

use lowmesh_net::proxy::{Proxy, ProxyLimits};
use lowmesh_net::server::{Limits, Server};
use lowmesh_wire::coap::uri::Scheme;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut proxy = Proxy::new(ProxyLimits::default())?;
    if let Some(target) = std::env::args().nth(1) {
        proxy = proxy.in_front_of(target.parse()?);
    }
    let mut server = Server::new(Limits::default())?;
    // To be said before the ports are opened.
    proxy.serve(&mut server);
    let local = "[::1]:5693".parse()?;
    println!("coap://{}", server.listen_udp(local)?);
    println!("coap+tcp://{}", server.listen_connections(local, Scheme::CoapTcp, None).await?);
    Ok(server.run(std::future::pending()).await?)
}
