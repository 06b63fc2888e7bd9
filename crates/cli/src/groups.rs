//! `lowmesh groups`: the Entity Manager before real devices, and its client (Ishaq et al. 2016).
//!
//! An Entity Manager makes one resource, an entity, of resources of several devices. `serve` runs it; the other verbs ask it.

mod access;
mod fields;
mod members;
mod outcome;
mod serve;
mod verbs;

use std::io::Write;

use crate::failure::Failure;

/// Use resources of many devices as one: run an Entity Manager, and send requests to it
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    Serve(serve::Args),
    Create(verbs::Create),
    List(verbs::List),
    Show(verbs::Show),
    Query(verbs::Query),
    Update(verbs::Update),
    Delete(verbs::Delete),
}

/// Runs the Entity Manager, or asks it.
pub fn execute(args: &Args, out: &mut impl Write) -> Result<(), Failure> {
    match &args.verb {
        Verb::Serve(args) => serve::execute(args),
        Verb::Create(args) => verbs::create(args, out),
        Verb::List(args) => verbs::list(args, out),
        Verb::Show(args) => verbs::show(args, out),
        Verb::Query(args) => verbs::query(args, out),
        Verb::Update(args) => verbs::update(args, out),
        Verb::Delete(args) => verbs::delete(args, out),
    }
}
