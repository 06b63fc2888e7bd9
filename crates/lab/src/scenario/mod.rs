//! Scenarios: everything that a run depends on besides its seed, read from TOML.
//!
//! A scenario has a few keys of its own and one section for each part of the network. Every key has a
//! default (the RFC's, Contiki-NG's or the reproduced paper's), a bound, and a line in
//! `docs/topics/scenarios.md`. What the simulator makes of it is the business of [`crate::simulate`].

mod border;
mod builtin;
mod catalogue;
mod chosen;
mod conflicts;
mod error;
mod event;
mod event_file;
mod fragments;
mod groups;
mod happenings;
mod key;
mod keys;
mod mac;
mod mesh;
mod numbers;
mod radio;
mod range;
mod rows;
mod section;
mod source;
pub mod sweep;
mod tcp;
#[cfg(test)]
mod tests;
mod topology;
mod traffic;
mod value;

use std::cell::RefCell;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use lowmesh_multicast::Engine;
use lowmesh_registry::Choice;
use lowmesh_sixtop::SchedulingFunction;
use lowmesh_units::{Duration, Seed};
use toml::de::DeTable;

pub use border::{Backbone, BorderRouter, MeshRange, SerialLine, WiredLink};
pub use builtin::{BUILTINS, Builtin};
pub(crate) use chosen::ordered;
pub use error::{ConfigError, ConfigErrors, Fault, Origin, Place, similar};
pub use event::{Event, Nodes, What};
pub use fragments::{EndToEnd, Forwarded, Fragments, HopWise, Recovered};
pub use groups::{Ect, Emt, Entity, Eo, Groups};
pub use key::Key;
pub use mac::{Ack, Cca, Contiki2014, Csma, Duplicates, Mac, Thin, Tsch};
pub use mesh::{Clock, Energy, Ipv6, Lowpan, Probe, Routes, Rpl, RplMode};
pub use radio::{Burst, Radio, Wifi};
pub use rows::{Listed, Rows};
pub use tcp::Tcp;
pub use topology::{
    Addresses, Grid, Line, Placed, Places, Positions, Random, Star, Table, Topology, Tree,
};
pub use traffic::{Application, Arrivals, Coap, Collector, Traffic, Transport};
pub(crate) use value::literal;
pub(crate) use value::quoted as literal_of_text;
pub use value::{Group, Hopping, Named};

use section::{Cursor, Lines, Section, section};
use source::Source;
use value::{Any, NotEmpty, Within, quoted};

section! {
    /// The keys at the top of a scenario.
    Head {
        /// Name in reports.
        name: String = String::new(), NotEmpty;
        /// One sentence about the purpose of the scenario.
        description: String = String::new(), Any;
        /// Simulated time of a run.
        duration: Duration = Duration::from_secs(3600), Within(Duration::from_secs(1), Duration::from_secs(31 * 86_400));
        /// Requests issued before this are not measured (Righetti et al. 2023, table 1: 12 min).
        warmup: Duration = Duration::from_secs(720), Within(Duration::ZERO, Duration::from_secs(31 * 86_400));
        /// Where routes come from.
        routes: Routes = Routes::Rpl, Any;
        /// Number of runs, each with its own seed.
        seeds: u32 = 10, Within(1, 100_000);
        /// Seed of the first run; each further run uses the next number.
        seed: u64 = 1, Any;
    }
}

/// One scenario with all its values.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// Name, length, number of runs.
    pub head: Head,
    /// Where nodes stand.
    pub topology: Topology,
    /// Which addresses they have.
    pub addresses: Addresses,
    /// The seed of positions and links, if it is not that of the run.
    pub topology_seed: Option<u64>,
    /// The medium.
    pub radio: Radio,
    /// Medium access.
    pub mac: Mac,
    /// Scheduling function.
    pub schedule: Choice<dyn SchedulingFunction>,
    /// Routing.
    pub rpl: Rpl,
    /// 6LoWPAN adaptation.
    pub lowpan: Lowpan,
    /// How nodes carry packets larger than a frame.
    pub fragments: Fragments,
    /// IPv6 forwarding.
    pub ipv6: Ipv6,
    /// Forwarding of packets to groups.
    pub multicast: Choice<dyn Engine>,
    /// CoAP endpoints.
    pub coap: Coap,
    /// TCP under CoAP.
    pub tcp: Tcp,
    /// Requests.
    pub traffic: Traffic,
    /// The Entity Manager and its client.
    pub groups: Groups,
    /// `[[entity]]`: entities.
    pub entities: Vec<Entity>,
    /// Clocks.
    pub clock: Clock,
    /// Charge of the radio.
    pub energy: Energy,
    /// `[[border_router]]`: border routers besides node 0.
    pub border_routers: Vec<BorderRouter>,
    /// The wire between border routers.
    pub backbone: Backbone,
    /// `[[link]]`: constrained links between border routers.
    pub links: Vec<WiredLink>,
    /// `[[serial]]`: serial lines to border routers.
    pub serials: Vec<SerialLine>,
    /// `[[event]]`: what happens to the network.
    pub events: Vec<Event>,
}

impl Section for Scenario {
    fn keys(rows: &Rows) -> Vec<Key> {
        rows.keys()
    }
    fn read(cursor: &mut Cursor<'_, '_>) -> Self {
        cursor.elsewhere("sweep");
        let head = Head::read(cursor);
        let Placed { topology, addresses, seed } = cursor.section("topology");
        let mut coap: Coap = cursor.section("coap");
        cursor.numbers(&mut coap.congestion);
        let tcp = Tcp::read_for(coap.transport, cursor);
        let mut schedule = cursor.section("schedule");
        cursor.numbers(&mut schedule);
        let mut radio: Radio = cursor.section("radio");
        cursor.numbers(&mut radio.medium);
        let mut rpl: Rpl = cursor.section("rpl");
        cursor.numbers(&mut rpl.objective);
        let mut groups: Groups = cursor.section("groups");
        cursor.numbers(&mut groups.gate);
        Self {
            head,
            topology,
            addresses,
            topology_seed: seed,
            radio,
            mac: cursor.section("mac"),
            schedule,
            rpl,
            lowpan: cursor.section("lowpan"),
            fragments: cursor.section("fragments"),
            ipv6: cursor.section("ipv6"),
            multicast: cursor.section("multicast"),
            coap,
            tcp,
            traffic: cursor.section("traffic"),
            groups,
            entities: cursor.sections("entity"),
            clock: cursor.section("clock"),
            energy: cursor.section("energy"),
            border_routers: cursor.sections("border_router"),
            backbone: cursor.section("backbone"),
            links: cursor.sections("link"),
            serials: cursor.sections("serial"),
            events: cursor.sections("event"),
        }
    }
    fn write(&self, lines: &mut Lines) {
        self.head.write(lines);
        let (topology, addresses) = (self.topology.clone(), self.addresses);
        let seed = self.topology_seed;
        lines.section("topology", &Placed { topology, addresses, seed });
        lines.section("radio", &self.radio);
        lines.numbers(&self.radio.medium);
        lines.section("mac", &self.mac);
        lines.section("schedule", &self.schedule);
        lines.numbers(&self.schedule);
        lines.section("rpl", &self.rpl);
        lines.numbers(&self.rpl.objective);
        lines.section("lowpan", &self.lowpan);
        lines.section("fragments", &self.fragments);
        lines.section("ipv6", &self.ipv6);
        lines.section("multicast", &self.multicast);
        lines.section("coap", &self.coap);
        lines.numbers(&self.coap.congestion);
        if self.coap.transport == Transport::Tcp {
            lines.section("tcp", &self.tcp);
        }
        lines.section("traffic", &self.traffic);
        lines.section("groups", &self.groups);
        lines.numbers(&self.groups.gate);
        lines.sections("entity", &self.entities);
        lines.section("clock", &self.clock);
        lines.section("energy", &self.energy);
        lines.sections("border_router", &self.border_routers);
        if !self.border_routers.is_empty() {
            lines.section("backbone", &self.backbone);
        }
        lines.sections("link", &self.links);
        lines.sections("serial", &self.serials);
        lines.sections("event", &self.events);
    }
}

/// Keys that decide which keys their section has.
pub const CHOICES: [&str; 6] = [
    "topology.kind",
    "radio.medium",
    "mac.kind",
    "schedule.function",
    "fragments.mode",
    "multicast.engine",
];

/// Every key that a scenario can have, dotted.
pub fn every_key() -> Vec<String> {
    Rows::default().keys().into_iter().map(|key| key.name).collect()
}

/// Why a scenario could not be loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// There is no such built-in, and no such file.
    #[error("there is no built-in scenario and no file `{name}`{}", suggestion(similar.as_ref()))]
    Unknown {
        /// What was asked for.
        name: String,
        /// A built-in with a similar name.
        similar: Option<String>,
    },
    /// The file cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The text is wrong.
    #[error(transparent)]
    Config(#[from] ConfigErrors),
}

fn suggestion(similar: Option<&String>) -> String {
    similar.map_or_else(String::new, |name| format!("; did you mean `{name}`?"))
}

/// The text of a scenario, found by its name.
struct Text {
    text: String,
    /// The folder that names of files are relative to; none for a built-in.
    folder: Option<PathBuf>,
}

impl Text {
    /// The built-in called `name`, or the file at that path: a scenario, or a link table.
    fn find(name: &str) -> Result<Self, LoadError> {
        if let Some(builtin) = BUILTINS.iter().find(|builtin| builtin.name == name) {
            return Ok(Self { text: builtin.text.to_owned(), folder: None });
        }
        let path = Path::new(name);
        let looks_like_a_file =
            path.extension().is_some() || path.components().count() > 1 || path.is_file();
        if !looks_like_a_file {
            let similar = similar(name, BUILTINS.iter().map(|builtin| builtin.name));
            return Err(LoadError::Unknown { name: name.to_owned(), similar });
        }
        let folder = Some(path.parent().unwrap_or(Path::new("")).to_owned());
        let text = match Self::of_link_table(path) {
            Some(text) => text,
            None => std::fs::read_to_string(path)
                .map_err(|source| LoadError::Read { path: path.to_owned(), source })?,
        };
        Ok(Self { text, folder })
    }

    /// The scenario of a bare link table: a CSV file, whose medium and topology it is.
    fn of_link_table(path: &Path) -> Option<String> {
        path.extension().filter(|ending| ending.eq_ignore_ascii_case("csv"))?;
        let literal = |name: Option<&OsStr>| quoted(&name.unwrap_or_default().to_string_lossy());
        let (name, file) = (literal(path.file_stem()), literal(path.file_name()));
        Some(format!(
            "name = {name}\n[topology]\nkind = \"table\"\n\
             [radio]\nmedium = \"link-table\"\nfile = {file}\n"
        ))
    }
}

impl Scenario {
    /// Loads a built-in by its name or a file by its path, with overrides of the form `key=value`.
    pub fn load(name: &str, overrides: &[String]) -> Result<Self, LoadError> {
        let text = Text::find(name)?;
        let mut scenario = Self::parse(name, &text.text, overrides)?;
        scenario.settle(text.folder.as_deref());
        Ok(scenario)
    }

    /// The names of the files that it is read from besides its own.
    pub fn files_mut(&mut self) -> Vec<&mut String> {
        let mut files = Vec::new();
        if let Topology::Positions(positions) = &mut self.topology {
            files.push(&mut positions.file);
        }
        files.extend(self.radio.medium.files_mut());
        files.extend(self.events.iter_mut().filter_map(Event::file_mut));
        files
    }

    /// Settles what depends on files: their whole names, then the number of nodes in a table.
    fn settle(&mut self, folder: Option<&Path>) {
        self.anchor_files(folder);
        let is_open = matches!(self.topology, Topology::Table(Table { nodes: None }));
        let counted = is_open.then(|| crate::air::table_nodes(self)).flatten();
        if let (Topology::Table(table), Some(nodes)) = (&mut self.topology, counted) {
            table.nodes = u16::try_from(nodes).ok();
        }
    }

    /// Makes names of files that are relative to `folder` whole, so that they hold wherever a copy of the
    /// scenario is kept.
    fn anchor_files(&mut self, folder: Option<&Path>) {
        let Some(folder) = folder else { return };
        for file in self.files_mut() {
            let path = folder.join(&*file);
            let whole = std::path::absolute(&path).unwrap_or(path);
            *file = whole.to_string_lossy().into_owned();
        }
    }

    /// Reads a scenario from its text; `source` is what errors call it.
    pub fn parse(source: &str, text: &str, overrides: &[String]) -> Result<Self, ConfigErrors> {
        Self::of(&Source::new(source, text, overrides)?)
    }

    /// Reads a scenario that is one, not a sweep of many.
    fn of(source: &Source) -> Result<Self, ConfigErrors> {
        let table = source.table()?;
        if let Some((_, swept)) = table.iter().find(|(key, _)| key.get_ref() == "sweep") {
            let why = "the file sweeps many scenarios, and this command needs one";
            let origin = source.origin("sweep", swept.span());
            return Err(ConfigErrors(vec![source.error(origin, "sweep", why)]));
        }
        Self::read_from(source, &table)
    }

    /// Reads the scenario that `table` of `source` holds.
    fn read_from(source: &Source, table: &DeTable<'_>) -> Result<Self, ConfigErrors> {
        let faults = RefCell::new(Vec::new());
        let mut cursor = Cursor::new(source, String::new(), Some(table), &faults);
        let scenario = Self::read(&mut cursor);
        cursor.finish();
        let mut errors = faults.into_inner();
        if errors.is_empty() {
            errors = scenario.conflicts(&source.name);
            for error in &mut errors {
                error.origin = source.locate(table, &error.key).unwrap_or(Origin::Whole);
            }
        }
        errors.sort_by(|a, b| (&a.origin, &a.key).cmp(&(&b.origin, &b.key)));
        if errors.is_empty() { Ok(scenario) } else { Err(ConfigErrors(errors)) }
    }

    /// The scenario as TOML, every key written out; reading it gives the same scenario.
    pub fn to_toml(&self) -> String {
        let mut lines = Lines::default();
        self.write(&mut lines);
        lines.into_text()
    }

    /// The same, with the meaning of every key as a comment.
    pub fn to_commented_toml(&self) -> String {
        let mut lines = Lines::commented();
        self.write(&mut lines);
        lines.into_text()
    }

    /// The seed of positions and links in the run with `seed`.
    pub fn place_seed(&self, seed: Seed) -> Seed {
        self.topology_seed.map_or(seed, Seed)
    }

    /// The same scenario with the positions that the run with `seed` has in its text, so that they stay when nodes,
    /// seeds or the program change; `None` if its medium needs no positions.
    pub fn frozen(&self, seed: Seed) -> Result<Option<Self>, lowmesh_sim::air::error::BuildError> {
        let seed = self.place_seed(seed);
        let topology = crate::air::topology(self).place(seed)?;
        let needs_places = self.radio.medium.row().make.needs.is_places();
        let Some(positions) = topology.positions().filter(|_| needs_places) else {
            return Ok(None);
        };
        let axis = |of: fn(&lowmesh_sim::air::Position) -> f64| positions.iter().map(of).collect();
        let heights: Vec<f64> = axis(|place| place.z_m);
        let is_flat = heights.iter().all(|height| *height == 0.0);
        let places = Places {
            x_m: axis(|place| place.x_m),
            y_m: axis(|place| place.y_m),
            z_m: if is_flat { Vec::new() } else { heights },
            nodes: None,
        };
        let topology = Topology::Places(places);
        Ok(Some(Self { topology, topology_seed: Some(seed.0), ..self.clone() }))
    }

    /// The seeds of its runs.
    pub fn seeds(&self) -> impl Iterator<Item = Seed> + use<> {
        let Head { seed, seeds, .. } = self.head;
        (0..u64::from(seeds)).map(move |i| Seed(seed.wrapping_add(i)))
    }
}
