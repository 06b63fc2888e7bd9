//! The lowmesh command: reads the command line, calls one verb, turns its result into an exit code.
//!
//! Data goes to stdout, everything else to stderr. `exit` has the exit codes. The program `src/main.rs` only calls
//! [`main`]: cargo compiles a library while its dependencies are still being optimised, and a program only after that.

mod answer;
mod body;
mod bounds;
mod channel;
mod compare;
mod complete;
mod console;
mod descriptors;
mod diagnostic;
mod discover;
mod dry;
mod duration;
#[cfg(target_os = "linux")]
mod emulate;
mod exit;
mod failure;
mod group_oscore;
mod groups;
mod interrupt;
mod key;
mod keygen;
mod log;
mod manual;
mod merge;
mod node;
mod observe;
mod ping;
mod place;
mod ports;
mod progress;
mod proxy;
mod report;
mod reproduce;
mod request;
mod rerun;
mod rows;
mod run;
mod scenarios;
mod secret_file;
mod serve;
mod show;
mod store;
mod table;
mod template;
mod traffic;
mod tune;
mod validate;

use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::LazyLock;

use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use lowmesh_lab::build::{self, BuildId};
use lowmesh_wire::coap::Code;

use exit::Exit;

/// Simulate meshes of constrained nodes, compare their protocols, and talk CoAP.
#[derive(Debug, Parser)]
#[command(name = "lowmesh", version, long_version = LONG_VERSION.as_str(), arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    Reproduce(reproduce::Args),
    Run(run::Args),
    Rerun(rerun::Args),
    Compare(compare::Args),
    #[cfg(target_os = "linux")]
    Emulate(emulate::Args),
    Groups(groups::Args),
    Merge(merge::Args),
    Node(node::Args),
    Scenarios(scenarios::Args),
    Serve(serve::Args),
    Proxy(proxy::Args),
    Show(show::Args),
    Tune(tune::Args),
    Validate(validate::Args),
    /// Get a resource and print it (GET)
    Get(template::Args),
    /// Create or replace a resource (PUT)
    Put(template::Args),
    /// Send data for a resource to process (POST)
    Post(template::Args),
    /// Delete a resource (DELETE)
    Delete(template::Args),
    /// Get a part of a resource (FETCH, RFC 8132)
    Fetch(template::Args),
    /// Change a part of a resource (PATCH, RFC 8132)
    Patch(template::Args),
    /// Change a part of a resource idempotently (iPATCH, RFC 8132)
    Ipatch(template::Args),
    /// Print a resource each time it changes, until Ctrl-C (RFC 7641)
    Observe(observe::Args),
    /// List the resources of a server, or of all servers of a group (RFC 6690)
    Discover(discover::Args),
    /// Check whether a CoAP endpoint answers, and how fast
    Ping(ping::Args),
    Keygen(keygen::Args),
    /// Print the script that completes this command in a shell
    Completions(manual::Completions),
    /// Write manual pages into a folder
    Man(manual::Pages),
}

/// The widest help: longer lines are hard to read.
const HELP_COLUMNS: usize = 100;

/// The commit from which the program was built, as the build script found it; empty if it is unknown.
const COMMIT: &str = env!("LOWMESH_COMMIT");

/// What `--version` prints after the name; `-V` prints the first line.
static LONG_VERSION: LazyLock<String> = LazyLock::new(|| {
    let commit = if COMMIT.is_empty() { "unknown" } else { COMMIT };
    let versions = if BuildId::is_unlocked() {
        "\nversions of dependencies are not those of Cargo.lock; install with --locked"
    } else {
        ""
    };
    format!("{}\nbuild {}\ncommit {commit}{versions}", build::VERSION, BuildId::own())
});

/// Runs the command with the arguments of the process.
pub fn main() -> ExitCode {
    build::declare(COMMIT);
    clap_complete::CompleteEnv::with_factory(|| manual::with_pages(Cli::command())).complete();
    let command = manual::with_pages(Cli::command());
    let matches = command.term_width(console::width().min(HELP_COLUMNS)).get_matches();
    let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    let stdout = &mut io::stdout().lock();
    let result = match &cli.verb {
        Verb::Reproduce(args) => reproduce::execute(args, &lowmesh_lab::simulate::simulate, stdout),
        Verb::Run(args) => run::execute(args, &lowmesh_lab::simulate::simulate, stdout),
        Verb::Rerun(args) => rerun::execute(args, &lowmesh_lab::simulate::simulate, stdout),
        Verb::Compare(args) => compare::execute(args, stdout),
        #[cfg(target_os = "linux")]
        Verb::Emulate(args) => emulate::execute(args, stdout),
        Verb::Groups(args) => groups::execute(args, stdout),
        Verb::Merge(args) => merge::execute(args, stdout),
        Verb::Node(args) => node::execute(args, stdout),
        Verb::Scenarios(args) => scenarios::execute(args, stdout),
        Verb::Serve(args) => serve::execute(args),
        Verb::Proxy(args) => proxy::execute(args),
        Verb::Show(args) => show::execute(args, stdout),
        Verb::Tune(args) => tune::execute(args, &lowmesh_lab::simulate::simulate, stdout),
        Verb::Validate(args) => validate::execute(args, &lowmesh_lab::simulate::simulate, stdout),
        Verb::Get(args) => request::execute(Code::GET, args, stdout),
        Verb::Put(args) => request::execute(Code::PUT, args, stdout),
        Verb::Post(args) => request::execute(Code::POST, args, stdout),
        Verb::Delete(args) => request::execute(Code::DELETE, args, stdout),
        Verb::Fetch(args) => request::execute(Code::FETCH, args, stdout),
        Verb::Patch(args) => request::execute(Code::PATCH, args, stdout),
        Verb::Ipatch(args) => request::execute(Code::IPATCH, args, stdout),
        Verb::Observe(args) => {
            let method = args.request.message.method.unwrap_or(Code::GET);
            observe::execute(method, &args.request, args.count, stdout)
        }
        Verb::Discover(args) => discover::execute(args, stdout),
        Verb::Ping(args) => ping::execute(args, stdout),
        Verb::Keygen(args) => keygen::execute(args, stdout),
        Verb::Completions(args) => manual::complete(args, stdout),
        Verb::Man(args) => manual::print(args, manual::with_pages(Cli::command())),
    };
    match result.and_then(|()| Ok(stdout.flush()?)) {
        Ok(()) => Exit::Done.into(),
        Err(failure) => {
            failure.tell();
            failure.exit().into()
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Command;
    use clap::error::ErrorKind;

    use super::*;
    use manual::PAGES;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    /// Every verb and the verbs in it, as words after `lowmesh`.
    fn verbs(command: &Command, path: &str) -> Vec<String> {
        let mut list = vec![path.to_owned()];
        for sub in command.get_subcommands() {
            list.extend(verbs(sub, format!("{path} {}", sub.get_name()).trim_start()));
        }
        list
    }

    /// The words of a command line as a shell passes them on.
    fn words(line: &str) -> Vec<String> {
        let line = line.replace("\\\n", " ");
        let line = line.split([';', '|', '>', '<', '&']).next().unwrap_or_default();
        line.split_whitespace().map(|word| word.replace(['\'', '"'], "")).collect()
    }

    #[test]
    fn every_verb_has_a_page_and_every_page_a_verb() {
        let mut verbs = verbs(&Cli::command(), "");
        let mut pages: Vec<&str> = PAGES.iter().map(|page| page.verb).collect();
        verbs.sort();
        pages.sort_unstable();
        assert_eq!(pages, verbs);
        assert!(PAGES.iter().all(|page| !page.examples.is_empty() && !page.exits.is_empty()));
    }

    #[test]
    fn every_example_is_a_command_line_that_the_parser_takes() {
        for page in PAGES {
            for (index, example) in page.examples.iter().enumerate() {
                let words = words(example.line);
                let command = Cli::command();
                let parsed = command.try_get_matches_from(&words);
                assert!(parsed.is_ok(), "{}: {}", example.line, parsed.expect_err("refused"));
                let verb = words[1..].join(" ");
                let here = page.verb.split(' ').all(|word| verb.contains(word));
                assert!(here || index > 0, "{} is not about {}", example.line, page.verb);
            }
        }
    }

    /// The commands that stand in backquotes in the texts of the program and of the lab.
    fn hints(folder: &std::path::Path, found: &mut Vec<String>) {
        for entry in std::fs::read_dir(folder).expect("the sources") {
            let path = entry.expect("readable").path();
            if path.is_dir() {
                hints(&path, found);
                continue;
            }
            let text = std::fs::read_to_string(&path).expect("text");
            let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
            for part in code.flat_map(|line| line.split('`').skip(1).step_by(2)) {
                found.extend(part.starts_with("lowmesh ").then(|| part.to_owned()));
            }
        }
    }

    #[test]
    fn every_command_that_a_hint_names_is_one_of_ours() {
        let mut found = Vec::new();
        for source in ["src", "../lab/src", "../net/src"] {
            hints(&std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(source), &mut found);
        }
        assert!(found.len() > 10, "{found:?}");
        for hint in found {
            // Values that a hint leaves out, or names by their kind, are no fault.
            let line = words(&hint).into_iter().chain(["--help".to_owned()]);
            let error = Cli::command().try_get_matches_from(line).expect_err("help");
            let unknown = [ErrorKind::UnknownArgument, ErrorKind::InvalidSubcommand];
            assert!(!unknown.contains(&error.kind()), "`{hint}`: {error}");
        }
    }

    #[test]
    fn an_exit_status_is_listed_once_and_in_order() {
        for page in PAGES {
            assert!(page.exits.is_sorted_by(|a, b| a.code() < b.code()), "{}", page.verb);
        }
    }
}
