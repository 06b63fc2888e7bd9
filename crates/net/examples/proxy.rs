//! A proxy between TCP and UDP: `cargo run -p lowmesh-net --example proxy -- [TARGET]`, and then, elsewhere,
//! `lowmesh get coap://device/temperature -P coap+tcp://localhost:5693`. With a target it stands in front of that one.

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
    let any = "[::]:5693".parse()?;
    println!("coap://{}", server.listen_udp(any)?);
    println!("coap+tcp://{}", server.listen_connections(any, Scheme::CoapTcp, None).await?);
    Ok(server.run(std::future::pending()).await?)
}
