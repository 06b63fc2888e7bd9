//! `interop`: CoAP with programs that nobody here wrote, in both directions, and read by a third: libcoap's client and server,
//! aiocoap's, and tshark. Proxies too.
//!
//! What a machine lacks is installed where that is possible (pip, and apt-get for root); what stays away is said.

mod aiocoap;
mod capture;
mod case;
mod libcoap;
mod material;
mod peer;
mod proxy;

use anyhow::{Result, bail};

use crate::product;
use capture::Capture;
use case::Tally;
use material::Material;

/// Asks and answers, captures, and judges.
pub fn run(args: &[String]) -> Result<()> {
    if let Some(unknown) = args.first() {
        bail!("interop takes no argument, but got {unknown:?}");
    }
    let binary = product::build()?;
    let material = Material::make()?;
    let mut tally = Tally::default();
    let capture = Capture::start(&material, &mut tally)?;
    let mut ports = Vec::new();
    ports.extend(libcoap::run(&binary, &material, &mut tally)?);
    ports.extend(proxy::run(&binary, &material, &mut tally)?);
    ports.extend(aiocoap::run(&binary, &material, &mut tally)?);
    if let Some(capture) = capture {
        capture.judge(&ports, &mut tally)?;
    }
    tally.report()
}
