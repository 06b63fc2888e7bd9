//! Puts a file to a server over UDP, block by block: `cargo run -p lowmesh-net --example upload -- FILE URI [BLOCK]`.

use std::error::Error;

use lowmesh_coap::blockwise::Exponent;
use lowmesh_coap::{Config, Host, HostLimits, Input, Output, RequestTemplate};
use lowmesh_machine::Handle;
use lowmesh_net::clock::fresh_seed;
use lowmesh_net::driver::Driver;
use lowmesh_net::resolve::resolve;
use lowmesh_net::udp::Udp;
use lowmesh_units::{NodeId, Purpose, Rng};
use lowmesh_wire::coap::Code;
use lowmesh_wire::coap::uri::Uri;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let usage = "upload FILE URI [BLOCK]";
    let mut arguments = std::env::args().skip(1);
    let payload = std::fs::read(arguments.next().ok_or(usage)?)?;
    let uri: Uri = arguments.next().ok_or(usage)?.parse()?;
    let block: usize = arguments.next().map_or(Ok(1024), |block| block.parse())?;

    let rng = Rng::stream(fresh_seed(), NodeId(0), Purpose::Coap);
    // The largest power of two that fits; the server may want smaller ones still.
    let limits = HostLimits { exponent: Exponent::fitting(block), ..HostLimits::default() };
    let host = Host::over_datagrams(Config::default(), limits, rng)?;
    let mut driver = Driver::new(Udp::ephemeral()?, host);
    let peer = driver.udp().peer(resolve(&uri).await?[0])?;

    let mut message = RequestTemplate::new(Code::PUT, "/").with_payload(payload);
    uri.insert_into(&mut message.options);
    driver.handle(Input::Request { peer, message, handle: Handle(1) })?;
    let mut blocks = 0;
    loop {
        match driver.next().await? {
            Output::Started { .. } => blocks += 1,
            Output::Response { message, .. } => {
                println!("{} after {blocks} blocks", message.code);
                return Ok(());
            }
            Output::Failed { reason, .. } => return Err(reason.name().into()),
            _ => {}
        }
    }
}
