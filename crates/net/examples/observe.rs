//! Observes a resource and prints its first states: `cargo run -p lowmesh-net --example observe -- URI [COUNT]`.
//! The retransmission timer is CoCoA's, to show the choice.

use std::error::Error;

use lowmesh_coap::CongestionControl;
use lowmesh_net::client::Client;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let uri = arguments.next().ok_or("observe URI [COUNT]")?;
    let count: u32 = arguments.next().map_or(Ok(5), |count| count.parse())?;

    let client = Client::builder().congestion(CongestionControl::new("cocoa")?).build()?;
    let mut states = client.get(&uri).observe().await?;
    for _ in 0..count {
        // Without a next one the server keeps no observation, or has ended it.
        let state = states.next().await.ok_or("not observed")??;
        println!("{} {}", state.code(), state.text());
    }
    states.end().await;
    Ok(())
}
