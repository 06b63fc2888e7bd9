//! The name of a run: a hash over everything that its outcome depends on.
//!
//! The name depends on the scenario with every value, the contents of the files that it names, the seed, and the build of
//! the program. It does not depend on the name and description of the scenario, the folder of its files, the number of
//! seeds, or the number of threads.

use std::fmt;
use std::str::FromStr;

use lowmesh_units::Seed;
use xxhash_rust::xxh3::xxh3_128;

use crate::build::BuildId;
use crate::scenario::Scenario;

/// The name of a run, 32 hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RunId(pub u128);

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

/// A text that is not the name of a run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a run: the name of a run has 32 hexadecimal digits")]
pub struct NoRunId(pub String);

impl FromStr for RunId {
    type Err = NoRunId;

    fn from_str(text: &str) -> Result<Self, NoRunId> {
        let plain = text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let id = if plain { u128::from_str_radix(text, 16).ok() } else { None };
        id.map(Self).ok_or_else(|| NoRunId(text.to_owned()))
    }
}

/// A scenario's share of the names of its runs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Identity(String);

impl Identity {
    /// The part of `scenario` that determines outcomes. Reads the files that it names.
    pub fn of(scenario: &Scenario) -> Self {
        let mut scenario = bare(scenario);
        for file in scenario.files_mut() {
            // A file that cannot be read fails the run, which is then not kept.
            if let Ok(contents) = std::fs::read(&*file) {
                *file = format!("{:032x}", xxh3_128(&contents));
            }
        }
        Self(scenario.to_toml())
    }

    /// The name of the run with `seed` by this program.
    pub fn run(&self, seed: Seed) -> RunId {
        self.run_by(BuildId::own(), seed)
    }

    /// The name of the run with `seed` by the program called `build`.
    pub fn run_by(&self, build: BuildId, seed: Seed) -> RunId {
        let text = format!("lowmesh build {build} seed {}\n{}", seed.0, self.0);
        RunId(xxh3_128(text.as_bytes()))
    }
}

/// The scenario without the texts for people, and with one seed.
pub fn bare(scenario: &Scenario) -> Scenario {
    let mut bare = scenario.clone();
    "run".clone_into(&mut bare.head.name);
    bare.head.description.clear();
    (bare.head.seeds, bare.head.seed) = (1, 1);
    bare
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(text: &str, seed: u64) -> RunId {
        let scenario = Scenario::parse("x", text, &[]).unwrap_or_else(|errors| panic!("{errors}"));
        Identity::of(&scenario).run(Seed(seed))
    }

    #[test]
    fn the_name_depends_on_what_decides_the_outcome_alone() {
        let first = id("name = \"x\"", 1);
        assert_eq!(id("name = \"y\"\ndescription = \"z\"\nseeds = 3\nseed = 9", 1), first);
        assert_eq!(id("name = \"x\"\n[coap]\ncongestion = \"default\"", 1), first);
        assert_ne!(id("name = \"x\"", 2), first);
        assert_ne!(id("name = \"x\"\n[coap]\ncongestion = \"cocoa\"", 1), first);
        assert_ne!(id("name = \"x\"\nwarmup = \"11min\"", 1), first);
    }

    #[test]
    fn another_build_gives_another_name() {
        let scenario = Scenario::parse("x", "name = \"x\"", &[]).expect("a valid scenario");
        let identity = Identity::of(&scenario);
        let (own, other) = (BuildId::own(), BuildId(BuildId::own().0 ^ 1));
        assert_eq!(identity.run_by(own, Seed(1)), identity.run(Seed(1)));
        assert_ne!(identity.run_by(other, Seed(1)), identity.run(Seed(1)));
    }

    #[test]
    fn a_named_file_counts_by_its_contents_not_its_place() {
        let file = |name: &str, text: &str| {
            let name = format!("lowmesh-identity-{name}-{}", std::process::id());
            let path = std::env::temp_dir().join(name);
            std::fs::write(&path, text).expect("the folder for temporary files is writable");
            path.to_str().expect("ASCII").to_owned()
        };
        let files = [file("a", "x_m,y_m\n0,0\n"), file("b", "x_m,y_m\n0,0\n"), file("c", "x_m\n")];
        let ids = files.each_ref().map(|path| {
            id(&format!("name = \"x\"\n[topology]\nkind = \"positions\"\nfile = \"{path}\""), 1)
        });
        for path in &files {
            _ = std::fs::remove_file(path);
        }
        assert_eq!(ids[0], ids[1]);
        assert_ne!(ids[0], ids[2]);
    }

    #[test]
    fn a_name_is_read_back_from_its_text() {
        let run = id("name = \"x\"", 1);
        assert_eq!(run.to_string().parse(), Ok(run));
        assert_eq!(run.to_string().len(), 32);
        for wrong in ["", "abc", "+0000000000000000000000000000001", "zz"] {
            assert!(wrong.parse::<RunId>().is_err(), "{wrong}");
        }
    }
}
