//! Where nodes stand, how good their links are, and the tree that RPL made of them.
//!
//! Qualities are those of the scenario's medium before anything is disturbed, as mean over the hopping channels
//! and both directions. A network without places is drawn as its tree, a row for each hop.

use lowmesh_sim::air::{Medium, build};
use lowmesh_units::{NodeId, Seed};

use super::grid::WIDTH;
use super::sheet::{Anchor, Point, Sheet};
use super::{Data, Figure};
use crate::air;
use crate::detail::NodeDetail;
use crate::results::PointResult;
use crate::scenario::Scenario;
use crate::settings;

/// Topologies drawn at most.
const TOPOLOGIES_MAX: usize = 3;
/// Nodes of which links are still drawn; more of them are a grey field.
const LINKS_NODES_MAX: usize = 150;
/// Octets of the frame whose chance of arriving is drawn: the longest (IEEE 802.15.4: 127).
const FRAME_OCTETS: usize = 127;
/// Links below this quality are not drawn.
const QUALITY_MIN: f64 = 0.05;
const MARGIN: f64 = 44.0;
const HEAD: f64 = 40.0;

struct Link {
    from: usize,
    to: usize,
    quality: f64,
}

/// The first few different networks among the points, each with the tree of its first run.
pub fn draw(slice: &[(String, &PointResult)]) -> Vec<Figure> {
    let mut seen: Vec<&Scenario> = Vec::new();
    let mut figures = Vec::new();
    for (words, point) in slice {
        let scenario = &point.point.scenario;
        let same = |other: &&Scenario| {
            other.topology == scenario.topology && other.radio == scenario.radio
        };
        if seen.iter().any(same) || figures.len() == TOPOLOGIES_MAX {
            continue;
        }
        let Some(run) = point.runs.first().filter(|run| !run.detail.nodes.is_empty()) else {
            continue;
        };
        seen.push(scenario);
        let nodes = &run.detail.nodes;
        let eui64 = |node: usize| {
            settings::addressing(scenario).eui64(run.seed, NodeId(node as u16)).to_string()
        };
        let (places, links) = network(scenario, run.seed, nodes);
        let comma = if words.is_empty() { "" } else { ", " };
        figures.push(Figure {
            name: format!("topology-{}", figures.len() + 1),
            title: format!("Topology and RPL tree{comma}{words}, seed {}", run.seed.0),
            caption: "Thin lines: links. Their width and shade show the link quality (frames of 127 octets, no interference). \
                      Black: preferred parents at the end. The square is the root; \
                      the colour changes with each hop."
                .to_owned(),
            sheet: sheet(&places, &links, nodes),
            data: data(&point.anchor(), &links, nodes, eui64),
        });
    }
    figures
}

/// Where to draw the nodes (in any unit), and their links.
fn network(scenario: &Scenario, seed: Seed, nodes: &[NodeDetail]) -> (Vec<Point>, Vec<Link>) {
    let seed = scenario.place_seed(seed);
    let topology = air::topology(scenario).place(seed).ok();
    let few = topology.as_ref().filter(|_| nodes.len() <= LINKS_NODES_MAX);
    let medium = few.and_then(|topology| build(scenario.radio.medium.clone(), topology, seed).ok());
    let placed = topology.as_ref().and_then(|topology| topology.positions());
    let places = match placed.filter(|positions| positions.len() == nodes.len()) {
        Some(positions) => positions.iter().map(|position| (position.x_m, -position.y_m)).collect(),
        None => tree_places(nodes),
    };
    let links = match medium {
        Some(medium) => links(medium.as_ref(), scenario, nodes.len()),
        None => Vec::new(),
    };
    (places, links)
}

fn links(medium: &dyn Medium, scenario: &Scenario, nodes: usize) -> Vec<Link> {
    let mut channels = scenario.mac.channels();
    channels.sort_unstable();
    channels.dedup();
    let mut links = Vec::new();
    for from in 0..nodes {
        for to in from + 1..nodes {
            let (a, b) = (NodeId(from as u16), NodeId(to as u16));
            let both = |channel| {
                medium.reception_probability(a, b, channel, FRAME_OCTETS)
                    + medium.reception_probability(b, a, channel, FRAME_OCTETS)
            };
            let sum: f64 = channels.iter().map(|&channel| both(channel)).sum();
            let quality = sum / (2.0 * channels.len().max(1) as f64);
            if quality >= QUALITY_MIN {
                links.push(Link { from, to, quality });
            }
        }
    }
    links
}

/// A row for each number of hops, children near their parents; nodes without a way stand in a last row.
fn tree_places(nodes: &[NodeDetail]) -> Vec<Point> {
    let farthest = nodes.iter().filter_map(|node| node.hops).max().unwrap_or(0);
    let mut places = vec![(0.5, f64::from(farthest) + 1.0); nodes.len()];
    for depth in (0..=farthest).map(Some).chain([None]) {
        let mut row: Vec<usize> = (0..nodes.len()).filter(|&n| nodes[n].hops == depth).collect();
        let parent_x = |node: usize| -> f64 {
            let parent = nodes[node].parent.map(usize::from);
            parent.and_then(|parent| places.get(parent)).map_or(0.5, |place| place.0)
        };
        row.sort_by(|&a, &b| parent_x(a).total_cmp(&parent_x(b)).then(a.cmp(&b)));
        let count = row.len() as f64;
        for (index, node) in row.into_iter().enumerate() {
            places[node].0 = (index as f64 + 0.5) / count;
            places[node].1 = f64::from(depth.unwrap_or(farthest + 1));
        }
    }
    // Rows are drawn twice as wide as high.
    let high = f64::from(farthest.max(1));
    places.into_iter().map(|(x, y)| (x * 2.0, y / high)).collect()
}

/// Pixels of the places, with the height that they need.
fn fitted(places: &[Point]) -> (Vec<Point>, f64) {
    let range = |pick: fn(&Point) -> f64| {
        let values = places.iter().map(pick).filter(|value| value.is_finite());
        values.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| (l.min(v), h.max(v)))
    };
    let ((left, right), (top, bottom)) = (range(|p| p.0), range(|p| p.1));
    let room = (WIDTH - 2.0 * MARGIN, 560.0);
    let spans = ((right - left).max(1e-9), (bottom - top).max(1e-9));
    let scale = (room.0 / spans.0).min(room.1 / spans.1);
    let indent = (WIDTH - scale * (right - left)) / 2.0;
    let at = |(x, y): &Point| (indent + (x - left) * scale, HEAD + MARGIN + (y - top) * scale);
    (places.iter().map(at).collect(), HEAD + 2.0 * MARGIN + (bottom - top) * scale)
}

fn sheet(places: &[Point], links: &[Link], nodes: &[NodeDetail]) -> Sheet {
    let (at, height) = fitted(places);
    let mut sheet = Sheet::new(WIDTH, height);
    // The best links on top.
    let mut order: Vec<&Link> = links.iter().collect();
    order.sort_by(|a, b| a.quality.total_cmp(&b.quality));
    for link in order {
        sheet.line(&[at[link.from], at[link.to]], quality_class(link.quality));
    }
    for (node, detail) in nodes.iter().enumerate() {
        if let Some(&parent) = detail.parent.and_then(|parent| at.get(usize::from(parent))) {
            sheet.line(&[at[node], parent], "tree");
        }
    }
    let radius = if nodes.len() <= 100 { 12.0 } else { 7.0 };
    for (node, detail) in nodes.iter().enumerate() {
        draw_node(&mut sheet, at[node], radius, node, detail);
    }
    legend(&mut sheet);
    sheet
}

fn draw_node(sheet: &mut Sheet, at: Point, radius: f64, node: usize, detail: &NodeDetail) {
    let tdr = detail.tdr.map_or_else(|| "none".to_owned(), |tdr| format!("{tdr:.3}"));
    let hops = detail.hops.map_or_else(|| "no way".to_owned(), |hops| format!("{hops} hops"));
    let tip = format!("node {node}: {hops}, transaction delivery ratio {tdr}");
    if node == 0 {
        let (left, top) = (at.0 - radius, at.1 - radius);
        let area = super::sheet::Area { left, top, width: 2.0 * radius, height: 2.0 * radius };
        sheet.rectangle(area, "f3 edge", "node 0: the root");
    } else {
        let class = match detail.hops {
            None => "none",
            Some(hops) => ["f2", "f5", "f1", "f4"][(hops as usize).saturating_sub(1) % 4],
        };
        sheet.disk(at, radius, &format!("{class} edge"), &tip);
    }
    if radius > 10.0 {
        sheet.text((at.0, at.1 + 4.0), &node.to_string(), Anchor::Middle, "tiny node");
    }
}

const QUALITIES: [(&str, f64); 4] =
    [("q0 link", 0.05), ("q1 link", 0.3), ("q2 link", 0.6), ("q3 link", 0.9)];

fn quality_class(quality: f64) -> &'static str {
    let reached = QUALITIES.iter().rfind(|(_, from)| quality >= *from);
    reached.map_or(QUALITIES[0].0, |(class, _)| class)
}

fn legend(sheet: &mut Sheet) {
    let words = ["0.05 to 0.3", "0.3 to 0.6", "0.6 to 0.9", "0.9 to 1"];
    for (index, ((class, _), words)) in QUALITIES.iter().zip(words).enumerate() {
        let left = 14.0 + index as f64 * 160.0;
        sheet.line(&[(left, 22.0), (left + 34.0, 22.0)], class);
        sheet.text((left + 42.0, 27.0), words, Anchor::Start, "small");
    }
    sheet.line(&[(660.0, 22.0), (694.0, 22.0)], "tree");
    sheet.text((702.0, 27.0), "preferred parent", Anchor::Start, "small");
}

fn data(
    anchor: &str,
    links: &[Link],
    nodes: &[NodeDetail],
    eui64: impl Fn(usize) -> String,
) -> Data {
    let columns = ["kind", "node", "other", "quality", "hops", "tdr", "duty_cycle", "eui64"];
    let mut data = Data::new(&columns);
    for (node, detail) in nodes.iter().enumerate() {
        let row = vec![
            "parent".to_owned(),
            node.to_string(),
            detail.parent.map_or_else(String::new, |parent| parent.to_string()),
            String::new(),
            detail.hops.map_or_else(String::new, |hops| hops.to_string()),
            Data::number(detail.tdr.map(f64::from)),
            Data::number(detail.duty_cycle.map(f64::from)),
            eui64(node),
        ];
        data.push(anchor, row);
    }
    for Link { from, to, quality } in links {
        let mut row = vec!["link".to_owned(), from.to_string(), to.to_string()];
        row.push(Data::number(Some((quality * 1e4).round() / 1e4)));
        row.resize(data.columns.len(), String::new());
        data.push(anchor, row);
    }
    data
}
