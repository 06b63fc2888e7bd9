//! `lowmesh serve`: the files of a folder, or a set of resources to try a client with, over every transport of CoAP.

mod demo;
mod folder;
mod groups;
mod oscore_plugtest;
mod plugtest;
mod reply;

use std::path::PathBuf;
use std::time::Duration;

use lowmesh_net::server::{Limits, Server};

use crate::bounds;
use crate::channel::wait;
use crate::descriptors;
use crate::failure::Failure;
use crate::ports::{self, Reach};
use folder::Usage;

/// How long unfinished answers, and observers who do not acknowledge, may delay the end.
pub const GRACE: Duration = Duration::from_secs(2);

/// Serve the files of a folder, or resources to try a client with
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Folder whose files are served
    #[arg(value_name = "DIR", required_unless_present = "demo", conflicts_with = "demo")]
    folder: Option<PathBuf>,
    /// Serve resources to try a client with: /hello, /count, /time, and those of the ETSI plugtests
    #[arg(long)]
    demo: bool,
    /// Let clients write and delete files of the folder (PUT, DELETE)
    #[arg(short, long, conflicts_with = "demo")]
    writable: bool,
    /// Files that the folder may have; beyond it clients can only replace files
    #[arg(long, value_name = "NUMBER", default_value_t = 10_000, requires = "writable")]
    max_files: u64,
    /// Octets that all files of the folder may have; beyond it clients can only write shorter ones
    #[arg(long, value_name = "OCTETS", default_value_t = 1 << 30, requires = "writable")]
    max_folder: u64,
    #[command(flatten)]
    ports: ports::Args,
    #[command(flatten)]
    groups: groups::Args,
    #[command(flatten)]
    bounds: bounds::Args,
}

/// Serves until Ctrl-C.
pub fn execute(args: &Args) -> Result<(), Failure> {
    wait(serve(args))
}

async fn serve(args: &Args) -> Result<(), Failure> {
    let limits = args
        .groups
        .limits(args.ports.is_in_group(), Limits { grace: GRACE, ..args.bounds.limits()? });
    let mut server = Server::new(descriptors::provide(limits)).map_err(Failure::own)?;
    if let Some(folder) = &args.folder {
        let max = Usage { files: args.max_files, octets: args.max_folder };
        folder::resources(&mut server, folder, args.groups.access(args.writable, max))?;
    } else {
        demo::resources(&mut server);
        plugtest::resources(&mut server);
        oscore_plugtest::resources(&mut server);
    }
    args.groups.resources(&mut server);
    ports::listen(&args.ports, &mut server, Reach::Everywhere).await?;
    args.groups.join(&server)?;
    ports::run(&args.ports, server).await
}
