//! Puts a file to a server, block by block: `cargo run -p lowmesh-net --example upload -- FILE URI [BLOCK]`.

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use lowmesh_coap::Output;
use lowmesh_coap::blockwise::Exponent;
use lowmesh_net::client::Client;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let usage = "upload FILE URI [BLOCK]";
    let mut arguments = std::env::args().skip(1);
    let payload = std::fs::read(arguments.next().ok_or(usage)?)?;
    let uri = arguments.next().ok_or(usage)?;
    let block: usize = arguments.next().map_or(Ok(1024), |block| block.parse())?;

    let blocks = Arc::new(AtomicU32::new(0));
    let seen = blocks.clone();
    // The largest power of two that fits; the server may want smaller ones still.
    let client = Client::builder().block(Exponent::fitting(block)).watch(move |output| {
        if matches!(output, Output::Started { .. }) {
            seen.fetch_add(1, Ordering::Relaxed);
        }
    });
    let answer = client.build()?.put(&uri).payload(payload).await?;
    println!("{} after {} blocks", answer.code(), blocks.load(Ordering::Relaxed));
    Ok(())
}
