//! Observes a resource over UDP and prints its first states: `cargo run -p lowmesh-net --example observe -- URI [COUNT]`.
//! The retransmission timer is CoCoA's, to show the choice.

use std::error::Error;

use lowmesh_coap::{Config, CongestionControl, Host, HostLimits, Input, Output, RequestTemplate};
use lowmesh_machine::Handle;
use lowmesh_net::clock::fresh_seed;
use lowmesh_net::driver::Driver;
use lowmesh_net::resolve::resolve;
use lowmesh_net::udp::Udp;
use lowmesh_units::{NodeId, Purpose, Rng};
use lowmesh_wire::coap::OptionNumber;
use lowmesh_wire::coap::uri::Uri;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let uri: Uri = arguments.next().ok_or("observe URI [COUNT]")?.parse()?;
    let count: u32 = arguments.next().map_or(Ok(5), |count| count.parse())?;

    let rng = Rng::stream(fresh_seed(), NodeId(0), Purpose::Coap);
    let config = Config { congestion: CongestionControl::new("cocoa"), ..Config::default() };
    let host = Host::over_datagrams(config, HostLimits::default(), rng)?;
    let mut driver = Driver::new(Udp::ephemeral()?, host);
    let peer = driver.udp().peer(resolve(&uri).await?[0])?;

    let mut message = RequestTemplate::get("/");
    uri.insert_into(&mut message.options);
    // RFC 7641 s2: 0 registers.
    message.options.insert_uint(OptionNumber::OBSERVE, 0);
    let handle = Handle(1);
    driver.handle(Input::Request { peer, message, handle })?;
    for _ in 0..count {
        loop {
            match driver.next().await? {
                Output::Notification { message, .. } => {
                    println!("{} {}", message.code, String::from_utf8_lossy(&message.payload));
                    break;
                }
                // A response that is no notification: the server keeps no observation, or has ended it.
                Output::Response { message, .. } => {
                    return Err(format!("{}: not observed", message.code).into());
                }
                Output::Failed { reason, .. } => return Err(reason.name().into()),
                _ => {}
            }
        }
    }
    // What is on its way from now on is answered with RST, which ends the observation.
    driver.handle(Input::Cancel { handle })?;
    driver.close();
    Ok(())
}
