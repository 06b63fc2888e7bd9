//! A thermometer that clients can read and observe: the server of README.

use lowmesh_net::prelude::*;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut server = Server::new(Limits::default())?;
    let thermometer =
        Handler::new(|_| ResponseTemplate::new(Code::CONTENT).with_payload(b"21.5 Cel".to_vec()));
    server.insert("/temperature", Resource::new(Methods::GET, thermometer).observable());
    println!("coap://{}", server.listen_udp("[::]:5683".parse()?)?);
    Ok(server.run(std::future::pending()).await?)
}
