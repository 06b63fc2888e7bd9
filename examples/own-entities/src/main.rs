//! A program with an Entity Manager in it. It serves two thermometers and the manager, makes one resource of the two,
//! and asks it for the mean.

use std::error::Error;
use std::net::SocketAddr;

use lowmesh_coap::ResponseTemplate;
use lowmesh_coap::resource::{Methods, Resource};
use lowmesh_group::store::Memory;
use lowmesh_group::{Config, Manager};
use lowmesh_net::client::Client;
use lowmesh_net::clock::{Clock, fresh_rng};
use lowmesh_gateway::entities::{self, Setup};
use lowmesh_net::server::{Handler, Limits, Server};
use lowmesh_wire::coap::{Code, ContentFormat};

/// Serves a temperature until the program ends.
fn thermometer(value: &'static str) -> Result<SocketAddr, Box<dyn Error>> {
    let mut server = Server::new(Limits::default())?;
    let text = ContentFormat::TEXT_PLAIN;
    let temperature = Handler::new(move |_| {
        ResponseTemplate::new(Code::CONTENT).with_payload(value.into()).with_format(text)
    });
    server.insert("/t", Resource::new(Methods::GET, temperature).format(text));
    let address = server.listen_udp("127.0.0.1:0".parse()?)?;
    tokio::spawn(server.run(std::future::pending()));
    Ok(address)
}

/// Serves the manager. Entities end with the program; `entities::FileStore` keeps them.
fn manager() -> Result<SocketAddr, Box<dyn Error>> {
    let (clock, mut server) = (Clock::start(), Server::new(Limits::default())?);
    let store = Box::new(Memory::default());
    let manager = Manager::open(Config::default(), store, fresh_rng(), clock.now())?;
    let members = Client::builder().build()?;
    let (managing, _status) = entities::serve(&mut server, manager, members, Setup::new(clock));
    tokio::spawn(managing);
    let address = server.listen_udp("127.0.0.1:0".parse()?)?;
    tokio::spawn(server.run(std::future::pending()));
    Ok(address)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let (kitchen, hall, manager) = (thermometer("20 Cel")?, thermometer("23 Cel")?, manager()?);
    let client = Client::builder().build()?;
    let profile = format!(r#"{{"name": "house", "er": ["coap://{kitchen}/t", "coap://{hall}/t"]}}"#);
    client.post(format!("coap://{manager}/e")).payload(profile).await?.ok()?;
    let mean = client.get(format!("coap://{manager}/e/house?eo=avg")).await?.ok()?;
    println!("mean of the house: {}", mean.text());
    assert_eq!(mean.text(), "21.5");
    Ok(())
}
