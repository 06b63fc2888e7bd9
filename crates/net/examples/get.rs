//! Asks for a resource by a URI of any of the six schemes, and prints what comes.
//!
//! ```text
//!   get coap://[::1]/hello
//!   get coap+tcp://host/hello
//!   get coaps://host/hello --psk IDENTITY KEY
//!   get coaps+tcp://host/hello --trust CA.pem
//!   get coap://host/hello --oscore FILE
//! ```

use std::error::Error;
use std::io::Write as _;
use std::path::Path;

use lowmesh_net::client::Client;
use lowmesh_net::oscore::Contexts;
use lowmesh_net::tls::TlsClient;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let uri =
        arguments.next().ok_or("get URI [--psk IDENTITY KEY] [--trust PEM] [--oscore FILE]")?;
    let mut builder = Client::builder();
    while let Some(flag) = arguments.next() {
        let mut value = || arguments.next().ok_or_else(|| format!("{flag} needs a value"));
        builder = match flag.as_str() {
            "--psk" => builder.key(value()?.as_bytes(), value()?.as_bytes()),
            "--trust" => builder.trust(TlsClient::trusting(&std::fs::read(value()?)?)?),
            "--oscore" => builder.protect(Contexts::open(Path::new(&value()?))?),
            _ => return Err(format!("{flag} is not known").into()),
        };
    }
    let client = builder.build()?;
    let answer = client.get(&uri).await?;
    eprintln!("{}", answer.code());
    std::io::stdout().write_all(answer.payload())?;
    Ok(client.close().await?)
}
