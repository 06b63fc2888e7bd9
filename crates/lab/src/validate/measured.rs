//! Reads a folder of ECOAP measurements (Vallati et al. 2020): the tree, what each condition came to, and the
//! transactions of its runs.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;

use super::condition::Figures;
use crate::statistics::percentile;

/// Why a folder cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("{}: {reason}", path.display())]
pub struct DataError {
    path: PathBuf,
    reason: String,
}

/// The scenario whose tree is fixed, as the files call it.
const SCENARIO: &str = "constant_pint_static";
/// First attempts at this period and above see an idle network, ms.
const LIGHT_MS: u32 = 5_000;

/// What was measured on the fixed tree.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// The parent of node 1, 2, ... of the simulation; the testbed's nodes in the order of their numbers.
    pub parents: Vec<u16>,
    /// Nodes that only forward: no run has a transaction of theirs.
    pub silent: Vec<u16>,
    /// By algorithm and period in ms.
    pub conditions: BTreeMap<(String, u32), Figures>,
    /// Median time of first attempts under the default timer in an idle network, by hops.
    pub light_rtt_ms: BTreeMap<u32, f64>,
}

impl Measured {
    /// Reads the folder.
    pub fn read(folder: &Path) -> Result<Self, DataError> {
        let tree = Table::read(&folder.join("topology_pint_static.csv"))?;
        let mut nodes: Vec<(u16, Option<u16>, u32)> = Vec::new();
        for row in &tree.rows {
            let parent = tree.text(row, "parent")?;
            let parent = if parent.is_empty() { None } else { Some(tree.number(row, "parent")?) };
            nodes.push((tree.number(row, "node")?, parent, tree.number(row, "hops")?));
        }
        nodes.sort_unstable();
        let place = |node: u16| nodes.binary_search_by_key(&node, |n| n.0).ok().map(|i| i as u16);
        let mut parents = Vec::new();
        for (node, parent, _) in nodes.iter().skip(1) {
            let parent = parent.and_then(place);
            let missing = || tree.error(format!("node {node} has no parent in the file"));
            parents.push(parent.ok_or_else(missing)?);
        }
        let hops = nodes.iter().map(|(node, _, hops)| (*node, *hops)).collect();
        let (light_rtt_ms, clients) = light(folder, &hops)?;
        let silent = nodes.iter().skip(1).map(|n| n.0).filter(|node| !clients.contains(node));
        Ok(Self {
            parents,
            silent: silent.filter_map(place).collect(),
            conditions: conditions(&folder.join("conditions.csv"))?,
            light_rtt_ms,
        })
    }
}

fn conditions(path: &Path) -> Result<BTreeMap<(String, u32), Figures>, DataError> {
    let table = Table::read(path)?;
    let mut conditions = BTreeMap::new();
    for row in &table.rows {
        let algorithm = table.text(row, "alg")?;
        if table.text(row, "scenario")? != SCENARIO || !["default", "cocoa"].contains(&algorithm) {
            continue;
        }
        let number = |column| table.number(row, column);
        let figures = Figures {
            throughput_tps: number("throughput_mean")?,
            tdr: number("tdr_mean")?,
            rtt_p50_ms: number("rtt_p50_ms")?,
            rtt_p95_ms: number("rtt_p95_ms")?,
            link_success: number("mac_attempt_success")?,
            first_attempts: number("rtx0")?,
        };
        conditions.insert((algorithm.to_owned(), table.number(row, "period")?), figures);
    }
    if conditions.is_empty() {
        return Err(table.error(format!("no condition of {SCENARIO}")));
    }
    Ok(conditions)
}

/// Times of first attempts at light load by hops, and every node that sent.
fn light(
    folder: &Path,
    hops: &BTreeMap<u16, u32>,
) -> Result<(BTreeMap<u32, f64>, Vec<u16>), DataError> {
    let folder = folder.join("tx").join(SCENARIO);
    let wrong = |reason: String| DataError { path: folder.clone(), reason };
    let mut names: Vec<String> = std::fs::read_dir(&folder)
        .map_err(|error| wrong(error.to_string()))?
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| period_of(name).is_some_and(|period| period >= LIGHT_MS))
        .collect();
    names.sort_unstable();
    let (mut times, mut clients): (BTreeMap<u32, Vec<f64>>, Vec<u16>) = Default::default();
    for name in names {
        let table = Table::read(&folder.join(name))?;
        for row in &table.rows {
            let node = table.number(row, "node")?;
            if let Err(place) = clients.binary_search(&node) {
                clients.insert(place, node);
            }
            if table.text(row, "ok")? == "1" && table.text(row, "n_rtx")? == "0" {
                let Some(hops) = hops.get(&node) else { continue };
                times.entry(*hops).or_default().push(table.number(row, "rtt_ms")?);
            }
        }
    }
    let median = |(hops, mut times): (u32, Vec<f64>)| {
        times.sort_unstable_by(f64::total_cmp);
        Some((hops, percentile(&times, 50.0)?))
    };
    Ok((times.into_iter().filter_map(median).collect(), clients))
}

/// The period in the name of a run's file under the default timer, as `..._default_p5000_r1.csv.gz`.
fn period_of(name: &str) -> Option<u32> {
    let (_, rest) = name.split_once("_default_p")?;
    rest.split_once('_')?.0.parse().ok()
}

/// A CSV file with the names of its columns in its first line; no field of these has quotes.
struct Table {
    path: PathBuf,
    columns: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    fn read(path: &Path) -> Result<Self, DataError> {
        let wrong =
            |error: std::io::Error| DataError { path: path.into(), reason: error.to_string() };
        let octets = std::fs::read(path).map_err(wrong)?;
        let mut text = String::new();
        if octets.starts_with(&[0x1f, 0x8b]) {
            GzDecoder::new(&*octets).read_to_string(&mut text).map_err(wrong)?;
        } else {
            (&*octets).read_to_string(&mut text).map_err(wrong)?;
        }
        let fields = |line: &str| line.trim_end().split(',').map(str::to_owned).collect();
        let mut lines = text.lines();
        let columns = lines.next().map(fields).unwrap_or_default();
        Ok(Self { path: path.into(), columns, rows: lines.map(fields).collect() })
    }

    fn error(&self, reason: String) -> DataError {
        DataError { path: self.path.clone(), reason }
    }

    fn text<'r>(&self, row: &'r [String], column: &str) -> Result<&'r str, DataError> {
        let place = self.columns.iter().position(|name| name == column);
        let found = place.and_then(|place| row.get(place));
        found.map(String::as_str).ok_or_else(|| self.error(format!("no `{column}` in a line")))
    }

    fn number<T: std::str::FromStr>(&self, row: &[String], column: &str) -> Result<T, DataError> {
        let text = self.text(row, column)?;
        text.parse()
            .map_err(|_| self.error(format!("`{column}` is `{text}`, which is not a number")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder with a small testbed in it.
    pub fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("lowmesh-{name}-{}", std::process::id()));
        let runs = folder.join("tx").join(SCENARIO);
        std::fs::create_dir_all(&runs).expect("writable");
        let put = |path: PathBuf, text: &str| std::fs::write(path, text).expect("writable");
        put(
            folder.join("topology_pint_static.csv"),
            "node,parent,hops\n1,,0\n7,9,2\n9,1,1\n12,1,1\n",
        );
        put(
            folder.join("conditions.csv"),
            "scenario,alg,period,tdr_mean,throughput_mean,rtt_p50_ms,rtt_p95_ms,rtx0,mac_attempt_success\n\
             constant_pint_static,default,250,0.99,20,46,2700,0.88,0.65\n\
             constant_pint_rpl,default,250,0.9,10,40,2000,0.8,0.6\n\
             constant_pint_static,rpl,250,0.9,10,40,2000,0.8,0.6\n",
        );
        put(
            runs.join("constant_pint_static_default_p5000_r1.csv"),
            "t_ms,node,ok,rtt_ms,n_rtx\n0,7,1,30,0\n5,7,1,34,0\n9,7,1,32,0\n10,9,1,23,0\n11,9,1,2500,1\n12,9,0,,3\n",
        );
        put(runs.join("constant_pint_static_default_p250_r1.csv"), "not read\n");
        folder
    }

    #[test]
    fn a_folder_gives_the_tree_the_conditions_and_the_times_at_light_load() {
        let folder = folder("measured");
        let measured = Measured::read(&folder);
        _ = std::fs::remove_dir_all(&folder);
        let measured = measured.expect("a good folder");
        // The testbed's 1, 7, 9, 12 are nodes 0 to 3.
        assert_eq!((measured.parents, measured.silent), (vec![2, 0, 0], vec![3]));
        assert_eq!(measured.light_rtt_ms, BTreeMap::from([(1, 23.0), (2, 32.0)]));
        let keys: Vec<_> = measured.conditions.keys().cloned().collect();
        assert_eq!(keys, [("default".to_owned(), 250)]);
    }

    #[test]
    fn a_folder_that_is_not_there_is_told_by_its_file() {
        let error = Measured::read(Path::new("no/such")).expect_err("it is not there");
        assert!(error.to_string().starts_with("no/such/topology_pint_static.csv: "), "{error}");
    }
}
