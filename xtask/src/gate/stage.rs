//! The list of stages: what each proves, the command that runs it, what that needs, and when it runs.
//!
//! A stage is a command of this program, so that a stage by hand and one of the gate are the same.

use super::reach::Reach;

/// One stage.
#[derive(Debug)]
pub struct Stage {
    /// The name, for `--only`, logs and the record.
    pub name: &'static str,
    /// What holds after it has passed.
    pub proves: &'static str,
    /// Arguments of `cargo xtask`; [`SEED`] stands for a number that each commit changes.
    pub args: &'static [&'static str],
    /// Arguments of the nightly gate, if it runs a longer form.
    pub long: Option<&'static [&'static str]>,
    /// When the gate of a push runs it.
    pub when: When,
    /// What must have passed before.
    pub needs: Needs,
    /// Processors that it keeps busy; a stage that mostly waits has 0.
    pub cores: usize,
    /// Whether it needs programs that are not in Rust's toolchain.
    pub external: bool,
}

/// In arguments: the seed that the commit gives.
pub const SEED: &str = "{seed}";

/// When the gate of a push runs a stage. The nightly gate runs all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// Always.
    Push,
    /// If the files that can change its result are others than when it passed last.
    Reached(Reach),
    /// Never.
    Nightly,
}

impl Stage {
    /// The files that reach it, if only their changes make it run.
    pub fn reach(&self) -> Option<Reach> {
        match self.when {
            When::Reached(reach) => Some(reach),
            When::Push | When::Nightly => None,
        }
    }
}

/// What must have passed before a stage starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    /// Nothing: it takes seconds.
    Nothing,
    /// The stages that take seconds, so that their failures are seen first.
    Quick,
    /// The build of all programs and tests.
    Build,
}

/// The stage that builds all programs and tests.
pub const BUILD: &str = "build";

/// Processors of a stage that fills all of them, or measures time.
pub const ALL: usize = usize::MAX;

/// Everything that a run of the simulator can depend on.
const RUNS: Reach = Reach { crates: &["lab"], paths: &[] };

/// Everything that a program on sockets can depend on.
const SOCKETS: Reach =
    Reach { crates: &["gateway", "net"], paths: &["crates/cli/src", "crates/cli/Cargo.toml"] };

/// All stages, those that fail fast first.
pub const STAGES: &[Stage] = &[
    Stage {
        name: "tidy",
        proves: "directions, sizes, names, words, circles, dependencies, links, citations",
        args: &["tidy"],
        needs: Needs::Nothing,
        ..PUSH
    },
    Stage {
        name: "formatting",
        proves: "rustfmt changes no file",
        args: &["check", "formatting"],
        needs: Needs::Nothing,
        ..PUSH
    },
    Stage {
        name: "deny",
        proves: "licences, sources and bans of `deny.toml`; advisories if their database is reachable",
        args: &["deny"],
        needs: Needs::Nothing,
        cores: 0,
        external: true,
        ..PUSH
    },
    Stage {
        name: BUILD,
        proves: "all programs and tests build",
        args: &["check", "build"],
        cores: ALL,
        ..PUSH
    },
    Stage {
        name: "tests",
        proves: "the tests of all crates pass",
        args: &["check", "tests"],
        needs: Needs::Build,
        cores: ALL,
        ..PUSH
    },
    Stage {
        name: "long-tests",
        proves: "tests that take minutes pass: error rates of verdicts, the trace of Grenoble, floods of fragments",
        args: &["check", "long-tests"],
        when: When::Reached(Reach {
            crates: &["lab", "realtime"],
            paths: &[
                ".config/nextest.toml",
                "crates/lab/src/claims/judge",
                "crates/lab/tests",
                "crates/realtime/tests",
            ],
        }),
        needs: Needs::Build,
        ..PUSH
    },
    Stage {
        name: "lints",
        proves: "the compiler and clippy warn of nothing, tests included",
        args: &["check", "lints"],
        needs: Needs::Build,
        cores: ALL,
        ..PUSH
    },
    Stage {
        name: "rustdoc",
        proves: "`cargo doc` warns of nothing, and every example in it runs",
        args: &["check", "rustdoc"],
        needs: Needs::Build,
        cores: ALL,
        ..PUSH
    },
    Stage {
        name: "package",
        proves: "every crate that can be published can be packaged",
        args: &["package"],
        long: Some(&["package", "--verify"]),
        needs: Needs::Build,
        ..PUSH
    },
    Stage {
        name: "determinism",
        proves: "one seed gives one trace, on one thread and on two",
        args: &["determinism"],
        needs: Needs::Build,
        ..PUSH
    },
    Stage {
        name: "traces",
        proves: "built-in scenarios give the recorded traces",
        args: &["traces", "--scenarios"],
        needs: Needs::Build,
        ..PUSH
    },
    Stage {
        name: "swarm",
        proves: "random scenarios keep the invariants, and repeat",
        args: &["swarm", "--count", "20", "--seed", SEED],
        long: Some(&["swarm", "--count", "500", "--seed", SEED]),
        needs: Needs::Build,
        ..PUSH
    },
    Stage {
        name: "liveness",
        proves: "random networks have their routes back within ten minutes of what happens to them",
        args: &["swarm", "--liveness", "--count", "100"],
        needs: Needs::Build,
        ..PUSH
    },
    Stage {
        name: "fuzz",
        proves: "no mutated message makes a decoder or an endpoint panic",
        args: &["fuzz", "1", "--seed", SEED],
        long: Some(&["fuzz", "20", "--seed", SEED]),
        needs: Needs::Build,
        ..PUSH
    },
    Stage {
        name: "no-std",
        proves: "device crates compile for a Cortex-M4",
        args: &["no-std"],
        when: When::Reached(Reach {
            crates: &["group", "shares", "stack", "wired"],
            paths: &["xtask/src/tidy/direction.rs"],
        }),
        needs: Needs::Build,
        cores: ALL,
        ..PUSH
    },
    Stage {
        name: "examples",
        proves: "the programs in `examples/` build outside of the workspace, and run",
        args: &["examples"],
        when: When::Reached(Reach { crates: &["gateway", "lab"], paths: &["examples"] }),
        needs: Needs::Build,
        cores: ALL,
        ..PUSH
    },
    Stage {
        name: "reproductions",
        proves: "the quick reproductions give the recorded traces",
        args: &["traces", "--reproductions"],
        when: When::Reached(Reach { paths: &["xtask/traces.txt"], ..RUNS }),
        needs: Needs::Build,
        cores: ALL,
        ..PUSH
    },
    Stage {
        name: "pages",
        proves: "commands on pages print what the pages show",
        args: &["docs"],
        when: When::Reached(Reach {
            crates: &["lowmesh"],
            paths: &["README.md", "docs", "examples"],
        }),
        needs: Needs::Build,
        ..PUSH
    },
    Stage {
        name: "figures",
        proves: "`docs/figures` and the numbers of README are those of real runs",
        args: &["figures", "--check"],
        when: When::Reached(Reach {
            crates: &["lowmesh"],
            paths: &[
                "README.md",
                "docs/figures",
                "docs/topics/results.md",
                "docs/tutorials/first-figure.md",
                "xtask/src/tidy/direction.rs",
            ],
        }),
        needs: Needs::Build,
        ..PUSH
    },
    Stage {
        name: "capture",
        proves: "tshark reads every frame of captured meshes",
        args: &["capture"],
        when: When::Reached(RUNS),
        needs: Needs::Build,
        external: true,
        ..PUSH
    },
    Stage {
        name: "zep",
        proves: "tshark reads a conversation over ZEP",
        args: &["zep"],
        when: When::Reached(Reach {
            crates: &["realtime"],
            paths: &["crates/realtime/tests", "xtask/src/capture.rs"],
        }),
        needs: Needs::Build,
        cores: 0,
        external: true,
        ..PUSH
    },
    Stage {
        name: "scapy",
        proves: "scapy reads our 6LoWPAN frames, and we read its frames",
        args: &["scapy"],
        when: When::Reached(Reach {
            paths: &[
                "crates/lowpan/tests",
                "tests/vectors/lowpan",
                "xtask/python",
                "xtask/src/capture.rs",
                "xtask/src/python.rs",
            ],
            ..RUNS
        }),
        needs: Needs::Build,
        external: true,
        ..PUSH
    },
    Stage {
        name: "interop",
        proves: "libcoap and aiocoap understand us, and we understand them; tshark reads the messages",
        args: &["interop"],
        when: When::Reached(Reach {
            crates: &["gateway", "net", "realtime"],
            paths: &["crates/cli/src", "xtask/interop", "xtask/src/python.rs"],
        }),
        needs: Needs::Build,
        external: true,
        ..PUSH
    },
    Stage {
        name: "siege",
        proves: "honest clients of `serve` and `proxy` are served while others attack",
        args: &["siege", "--short"],
        long: Some(&["siege", "--long"]),
        when: When::Reached(SOCKETS),
        needs: Needs::Build,
        cores: ALL,
        ..PUSH
    },
    Stage {
        name: "stale-store",
        proves: "a changed program takes no stored runs of the program before the change",
        args: &["stale-store"],
        when: When::Nightly,
        needs: Needs::Build,
        cores: ALL,
        ..PUSH
    },
];

/// What most stages of a push have in common.
const PUSH: Stage = Stage {
    name: "",
    proves: "",
    args: &[],
    long: None,
    when: When::Push,
    needs: Needs::Quick,
    cores: 1,
    external: false,
};
