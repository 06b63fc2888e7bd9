//! A list of links to results and a report, in one command.

use crate::folder::{Folder, lowmesh, stderr, succeed};

/// Settings of a short run.
const SHORT: [&str; 10] = [
    "--seeds",
    "1",
    "--set",
    "duration=6min",
    "--set",
    "warmup=3min",
    "--set",
    "traffic.start=2min",
    "--set",
    "mac.eb_period=4",
];

#[test]
fn three_columns_become_a_report() {
    let folder = Folder::new("links");
    let text = "src,dst,pdr\n0,1,1\n1,0,1\n1,2,1\n2,1,1\n";
    let (list, page) = (folder.write("street.csv", text), folder.path("page.html"));
    let (table, _) = succeed(&[&["run", &list, "--report", &page], &SHORT[..]].concat());
    assert!(table.starts_with("street: 1 run of 6min"), "{table}");
    let value = |name: &str| {
        let row = table.lines().find(|line| line.trim_start().starts_with(name)).expect(name);
        row.split_whitespace().nth(1).expect("a mean").to_owned()
    };
    assert_eq!(value("joined"), "2");
    let html = folder.read("page.html");
    assert!(html.contains("<figure id=\"topology-1\">"));
}

#[test]
fn a_line_is_for_both_directions_on_request_only() {
    let folder = Folder::new("links-one-way");
    let list = folder.write("street.csv", "src,dst,etx\n0,1,1\n1,2,1.01\n");
    let run = [&["run", &list], &SHORT[..]].concat();
    let refused = lowmesh(&run);
    assert_eq!(refused.status.code(), Some(2));
    let told = stderr(&refused);
    assert!(told.starts_with("error: radio.symmetric = false: every link of "), "{told}");
    let (table, _) = succeed(&[&run[..], &["--set", "radio.symmetric=true"]].concat());
    assert!(table.starts_with("street: 1 run"), "{table}");
}

#[test]
fn figures_show_links_at_the_places_of_their_nodes() {
    let folder = Folder::new("links-places");
    folder.write("places.csv", "x_m,y_m\n0,0\n30,5\n55,20\n");
    let text = "src,dst,pdr\n0,1,1\n1,0,1\n1,2,1\n2,1,1\n";
    let (list, page) = (folder.write("street.csv", text), folder.path("page.html"));
    let placed = ["--set", "topology.kind=positions", "--set", "topology.file=places.csv"];
    let run = [&["run", &list, "--report", &page], &SHORT[..], &placed].concat();
    succeed(&run);
    let figure = folder.read("page-figures/topology-1.svg");
    // The places are drawn to scale: the second link is 29 m long, the first 30 m.
    let circles: Vec<f64> = figure
        .split("<circle ")
        .skip(1)
        .filter_map(|mark| mark.split("cx=\"").nth(1)?.split('"').next()?.parse().ok())
        .collect();
    assert!(circles.len() >= 2, "{figure}");
    let wrong = ["--set", "topology.file=two.csv"];
    folder.write("two.csv", "x_m,y_m\n0,0\n30,5\n");
    let refused = lowmesh(&[&run[..], &wrong].concat());
    let told = stderr(&refused).replace(&folder.path(""), "");
    let mismatch =
        "error: radio.file = street.csv: 3 nodes, and the topology has 2; write the same number";
    assert!(told.starts_with(mismatch), "{told}");
}

#[test]
fn a_list_that_is_not_there_is_named() {
    let refused = lowmesh(&["run", "no/such.csv"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(stderr(&refused).contains("no/such.csv: "), "{}", stderr(&refused));
}
