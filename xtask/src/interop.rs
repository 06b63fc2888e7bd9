//! `interop`: CoAP with programs of others, in both directions: client and server of libcoap and aiocoap, the OSCORE
//! plugtests, groups and entities among them, and our own TCP. tshark reads the traffic.
//!
//! Missing programs are installed where possible (pip, and apt-get for root); those that stay missing are reported.

mod aiocoap;
mod capture;
mod case;
mod entities;
mod folders;
mod group_oscore;
mod libcoap;
mod material;
mod members;
mod observation;
mod oscore;
mod own_tcp;
mod peer;
mod product;
mod proxy;
mod relay;

use anyhow::{Context as _, Result, bail};

use capture::{Capture, Port};
use case::{Stage, Tally};
use material::Material;

/// Cases that one after another share servers; the ports that were used.
type Group<'a> = Box<dyn FnOnce() -> Result<Vec<Port>> + Send + 'a>;

/// What the command line says.
#[derive(Clone, Debug, Default)]
struct Options {
    /// Cells of the product that take minutes, too.
    long: bool,
    /// The product alone.
    product_only: bool,
    /// Of the product, the rows with this in their names.
    rows: Option<String>,
}

fn options(args: &[String]) -> Result<Options> {
    let (mut options, mut args) = (Options::default(), args.iter());
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--long" => options.long = true,
            "--product" => options.product_only = true,
            "--rows" => {
                let rows = args.next().context("--rows needs a part of a name")?;
                (options.rows, options.product_only) = (Some(rows.clone()), true);
            }
            other => bail!("unknown argument {other:?}; allowed: --long, --product, --rows PART"),
        }
    }
    Ok(options)
}

/// Asks and answers, captures, and judges.
pub fn run(args: &[String]) -> Result<()> {
    let options = options(args)?;
    let binary = crate::product::build()?;
    let (material, tally) = (Material::make()?, Tally::default());
    let stage = Stage { binary: &binary, material: &material, tally: &tally };
    let libcoap = libcoap::is_there(&tally);
    let python = aiocoap::python(&tally);
    let has_dtls = python.as_ref().is_some_and(|python| aiocoap::has_dtls(python, &tally));
    let peers = product::Peers { libcoap, python: python.clone(), has_dtls };
    if options.product_only {
        together(product::groups(stage, peers, &options), &tally);
        return tally.report();
    }
    let mut groups = Vec::new();
    if libcoap {
        groups.extend(libcoap::groups(stage));
    }
    if let Some(python) = &python {
        groups.extend(aiocoap::groups(stage, python, has_dtls));
    }
    groups.extend(oscore::groups(stage, libcoap, python.as_deref()));
    groups.extend(group_oscore::groups(stage, python.as_deref()));
    groups.extend(proxy::groups(stage, libcoap, python.as_deref()));
    groups.extend(members::groups(stage, libcoap, python.as_deref()));
    groups.extend(own_tcp::groups(stage, libcoap, python.as_deref()));
    groups.extend(folders::groups(stage));
    groups.extend(entities::groups(stage, libcoap, python.as_deref()));
    groups.extend(product::groups(stage, peers, &options));
    let capture = Capture::start(&material, &tally)?;
    let ports = together(groups, &tally);
    if let Some(capture) = capture {
        capture.judge(&ports, &tally)?;
    }
    tally.report()
}

/// Runs all groups at the same time, since most of their time is waiting; returns the ports that were used.
fn together(groups: Vec<Group<'_>>, tally: &Tally) -> Vec<Port> {
    std::thread::scope(|scope| {
        let running: Vec<_> = groups.into_iter().map(|group| scope.spawn(group)).collect();
        let ended = running.into_iter().map(|one| one.join().expect("a group does not panic"));
        ended.flat_map(|ports| ports.unwrap_or_else(|error| broken(&error, tally))).collect()
    })
}

/// A group could not go on to its end.
fn broken(error: &anyhow::Error, tally: &Tally) -> Vec<Port> {
    tally.note("a group of cases", Err(format!("{error:#}")));
    Vec::new()
}
