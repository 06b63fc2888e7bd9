//! A server that only OSCORE reaches (RFC 8613): `cargo run -p lowmesh-net --example protected -- SERVER.conf`, and then,
//! elsewhere, `cargo run -p lowmesh-net --example get -- coap://localhost/secret --oscore CLIENT.conf`, where in the
//! client's file sender and recipient are exchanged:
//!
//! ```text
//! master_secret,ascii,0123456789abcdef
//! sender_id,ascii,server
//! recipient_id,ascii,client
//! ```

use std::error::Error;
use std::path::Path;
use std::time::Duration;

use lowmesh_coap::ResponseTemplate;
use lowmesh_coap::resource::{Methods, Resource};
use lowmesh_net::oscore::{Contexts, Plain};
use lowmesh_net::server::{Handler, Limits, Server};
use lowmesh_wire::coap::Code;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let file = std::env::args().nth(1).ok_or("protected FILE")?;
    let contexts = Contexts::open(Path::new(&file))?;
    let mut server = Server::new(Limits::default())?;
    // To be said before the ports are opened.
    server.protect(contexts.clone(), Plain::Refused);
    let secret = Handler::new(|_| {
        ResponseTemplate::new(Code::CONTENT).with_payload(b"only for you".to_vec())
    });
    server.insert("/secret", Resource::new(Methods::GET, secret));
    println!("coap://{}, for ten minutes", server.listen_udp("[::]:5683".parse()?)?);
    server.run(tokio::time::sleep(Duration::from_secs(600))).await?;
    // Stores the replay window, so that the next start challenges nobody.
    Ok(contexts.close()?)
}
