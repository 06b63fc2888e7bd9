//! A thermometer: `cargo run -p lowmesh-net --example server`, and then, elsewhere,
//! `cargo run -p lowmesh-net --example observe -- coap://localhost/temperature`.

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Duration;

use lowmesh_coap::ResponseTemplate;
use lowmesh_coap::resource::{Methods, Resource};
use lowmesh_net::server::{Handler, Limits, Server};
use lowmesh_wire::coap::uri::Scheme;
use lowmesh_wire::coap::{Code, ContentFormat};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut server = Server::new(Limits::default())?;
    let tenths = Arc::new(AtomicI32::new(215));

    // A function that answers at once; clients may observe it, and ask it by multicast.
    let shown = tenths.clone();
    let temperature = Handler::new(move |_| {
        let celsius = f64::from(shown.load(Ordering::Relaxed)) / 10.0;
        ResponseTemplate::new(Code::CONTENT)
            .with_payload(format!("{celsius:.1}").into_bytes())
            .with_format(ContentFormat::TEXT_PLAIN)
    });
    let temperature = Resource::new(Methods::GET, temperature).observable().multicast();
    server.insert("/temperature", temperature.attribute("rt", "temperature"));

    // An asynchronous function, whose client is told meanwhile that the request has arrived.
    let calibrate = Handler::later(async |_| {
        tokio::time::sleep(Duration::from_secs(3)).await;
        ResponseTemplate::new(Code::CHANGED)
    });
    server.insert("/calibrate", Resource::new(Methods::POST, calibrate));

    let changes = server.changes();
    tokio::spawn(async move {
        loop {
            tokio::time::sleep(Duration::from_secs(2)).await;
            tenths.fetch_add(1, Ordering::Relaxed);
            changes.tell("/temperature");
        }
    });
    let any = "[::]:5683".parse()?;
    println!("coap://{}", server.listen_udp(any)?);
    println!("coap+tcp://{}", server.listen_connections(any, Scheme::CoapTcp, None).await?);
    Ok(server.run(std::future::pending()).await?)
}
