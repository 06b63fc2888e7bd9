//! The events of a scenario as the simulator takes them, those of files included.

use lowmesh_sim::air::error::{BuildError, ConfigError as SimError};
use lowmesh_sim::event::{Event as Happening, Memory};
use lowmesh_units::{Instant, NodeId};

use super::Scenario;
use super::event::{Event, File, What};
use super::event_file::read_file;

impl Event {
    /// The events in the simulator's own type; those of a file are read.
    fn happenings(&self) -> Result<Vec<(Instant, Happening)>, BuildError> {
        if let What::File(File { file }) = &self.what {
            let rows = read_file(file)?.into_iter();
            let late = |event: &Self| Instant::ZERO + self.at + event.at;
            let all = rows.flat_map(|event| {
                let at = late(&event);
                event.what.happenings().into_iter().map(move |one| (at, one))
            });
            return Ok(all.collect());
        }
        let at = Instant::ZERO + self.at;
        Ok(self.what.happenings().into_iter().map(|event| (at, event)).collect())
    }
}

impl Scenario {
    /// All events in the simulator's own type, with those of files and of `traffic.failures`.
    pub fn happenings(&self) -> Result<Vec<(Instant, Happening)>, BuildError> {
        let mut all = Vec::new();
        for failure in &self.traffic.failures {
            let (node, memory) = (NodeId(failure.node), Memory::Lost);
            all.push((Instant::ZERO + failure.time, Happening::Off { node, memory }));
        }
        for event in &self.events {
            all.extend(event.happenings()?);
        }
        Ok(all)
    }

    /// Checks the events against a network of so many nodes, files included.
    pub(crate) fn check_events(&self, nodes: usize) -> Result<(), BuildError> {
        for (at, event) in self.happenings()? {
            event.check(nodes).map_err(|error| {
                let key = format!("event `{}` at {at} s: {}", event.name(), error.key);
                SimError::new(key, &error.value, error.allowed)
            })?;
        }
        Ok(())
    }

    /// Whether each event is possible in this network.
    pub(super) fn event_conflicts(&self, check: &mut impl FnMut(bool, &str, String)) {
        let duration = self.head.duration;
        let nodes = self.topology.nodes().unwrap_or(u32::from(u16::MAX) + 1);
        for (index, event) in self.events.iter().enumerate() {
            let key = |name: &str| format!("event[{index}].{name}");
            let message = format!("{} is not before the end of the run at {duration}", event.at);
            check(event.at >= duration, &key("at"), message);
            for one in event.what.happenings() {
                if let Err(error) = one.check(nodes as usize) {
                    let message = format!("{}: {}", error.value, error.allowed);
                    check(true, &key(error.key), message);
                }
            }
            let is_placed = self.radio.medium.row().make.needs.is_places();
            let message = format!(
                "the medium \"{}\" has no positions, so that no node can move; change links with `cut`, `restore` and `link`",
                self.radio.medium.name()
            );
            let moves = matches!(event.what, What::Move(_));
            check(moves && !is_placed, &key("kind"), message);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "name = \"x\"\nduration = \"1h\"\n[topology]\nkind = \"line\"\nnodes = 6\n";

    fn parse(more: &str) -> Scenario {
        let scenario = Scenario::parse("x.toml", &format!("{HEAD}{more}"), &[]);
        scenario.unwrap_or_else(|errors| panic!("{errors}"))
    }
    fn told(more: &str) -> String {
        let scenario = Scenario::parse("x.toml", &format!("{HEAD}{more}"), &[]);
        scenario.expect_err(more).to_string()
    }

    #[test]
    fn every_kind_is_read_and_written() {
        let mut text = String::new();
        for (kind, keys) in [
            ("off", "node = [2, 3]\nmemory = \"kept\""),
            ("on", "node = 2"),
            ("reboot", "node = 0\ndark = \"5s\""),
            ("battery", "node = 5"),
            ("cut", "node = 1\npeer = [2, 3]"),
            ("restore", "node = 1\npeer = 2"),
            ("link", "node = 1\npeer = 2\npdr = 0.5\nloss_db = 3"),
            ("move", "node = 4\nx_m = 3\ny_m = 4.5"),
            ("load", "period = \"1s\""),
            ("noise", "power_dbm = -60\nchannels = [11, 12]"),
            ("channels", "channels = \"4_4\""),
        ] {
            let event = ["[[event]]\nat = \"10min\"\nkind = \"", kind, "\"\n", keys, "\n"];
            text.extend(event);
        }
        let scenario = parse(&text);
        assert_eq!(Scenario::parse("x", &scenario.to_toml(), &[]), Ok(scenario.clone()));
        let happenings = scenario.happenings().expect("no files");
        // Two nodes off, two links cut, both directions of a link.
        assert_eq!(happenings.len(), 11 + 3);
        assert!(happenings.iter().all(|(at, _)| *at == Instant::from_secs(600)));
        let keys = scenario.keys();
        assert_eq!(keys["event[1].node"], "2");
    }

    #[test]
    fn failures_are_short_for_off() {
        let happenings = parse("[traffic]\nfailures = [\"3@10min\"]\n").happenings().expect("none");
        let off = Happening::Off { node: NodeId(3), memory: Memory::Lost };
        assert_eq!(happenings, [(Instant::from_secs(600), off)]);
    }

    #[test]
    fn what_cannot_happen_is_told_with_place_and_remedy() {
        for (text, expected) in [
            ("kind = \"off\"", "event[0].node is missing: it must be the number of a node"),
            ("kind = \"of\"\nnode = 1", "did you mean `off`?"),
            (
                "kind = \"off\"\nnode = 9",
                "event[0].node: 9: there is no such node; write a node from 0 to 5",
            ),
            ("kind = \"on\"\nnode = 1\npeer = 2", "event[0].peer: does not apply to kind = \"on\""),
            ("kind = \"cut\"\nnode = 1\npeer = 1", "a node has no link to itself"),
            ("kind = \"on\"\nnode = 1\nat = \"2h\"", "event[0].at: 2h is not before the end"),
        ] {
            let error = told(&format!("[[event]]\n{text}\n"));
            assert!(error.contains(expected), "{error}");
        }
        let error = told(
            "[radio]\nmedium = \"pdr-matrix\"\nmatrix = [[0.0]]\n[[event]]\nkind = \"move\"\nnode = 1\n",
        );
        assert!(error.contains("change links with `cut`"), "{error}");
    }
}
