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

/// The metric `name` of the table.
fn value(table: &str, name: &str) -> String {
    let row = table.lines().find(|line| line.split_whitespace().next() == Some(name)).expect(name);
    row.split_whitespace().nth(1).expect("a mean").to_owned()
}

#[test]
fn a_partition_is_told_before_and_after_the_run_and_its_nodes_count() {
    let folder = Folder::new("links-gap");
    let text = "src,dst,pdr\n0,1,1\n1,0,1\n2,3,1\n3,2,1\n";
    let (list, page) = (folder.write("gap.csv", text), folder.path("page.html"));
    let run = [&["run", &list, "--report", &page], &SHORT[..]].concat();
    let (table, told) = succeed(&run);
    let before =
        "warning: no path of links leads from the root to nodes 2, 3, so they cannot join; ";
    assert!(told.contains(before), "{told}");
    let after = "warning: 2 of 3 nodes never joined: 2, 3; ";
    assert!(told.contains(after), "{told}");
    assert!(folder.read("page.html").contains("Warning: 2 of 3 nodes never joined: 2, 3; "));
    let number = |name: &str| value(&table, name).parse::<f64>().expect(name);
    // A reading in half a minute for three minutes: six of each node, give or take one.
    assert!((10.0..=14.0).contains(&number("unsent")), "{table}");
    assert!((0.25..=0.4).contains(&number("tdr")), "{table}");
    assert_eq!(value(&table, "never_joined"), "2");
    let udp = ["--set", "traffic.application=udp"];
    let (table, _) = succeed(&[&["run", &list], &SHORT[..], &udp].concat());
    let pdr: f64 = value(&table, "datagram_pdr").parse().expect("a ratio");
    assert!((0.25..=0.4).contains(&pdr), "{table}");
    let quiet = lowmesh(&[&["run", &list, "--quiet"], &SHORT[..]].concat());
    assert_eq!(stderr(&quiet), "");
}

#[test]
fn links_on_one_channel_of_sixteen_are_told_with_the_way_out() {
    let folder = Folder::new("links-channel");
    let list = folder.write("one.csv", "\u{feff}src,dst,channel,pdr\n0,1,15,1\n1,0,15,1\n");
    let (_, told) = succeed(&[&["run", &list], &SHORT[..]].concat());
    assert!(told.contains("to node 1, so it cannot join; "), "{told}");
    assert!(
        told.contains("list them for every channel in use, or use these channels alone"),
        "{told}"
    );
    let only = ["--set", "mac.hopping=[15]"];
    let (table, told) = succeed(&[&["run", &list], &SHORT[..], &only].concat());
    assert!(!told.contains("warning"), "{told}");
    assert_eq!(value(&table, "joined"), "1");
}

#[test]
fn a_file_of_positions_without_any_is_told() {
    let folder = Folder::new("links-nowhere");
    folder.write("none.csv", "x_m,y_m\n");
    let text = "name = \"none\"\n[topology]\nkind = \"positions\"\nfile = \"none.csv\"\n";
    let refused = lowmesh(&["run", &folder.write("none.toml", text)]);
    let told = stderr(&refused);
    assert!(told.contains("none.csv: the file has no positions; write a line `x_m,y_m`"), "{told}");
    assert!(!told.contains("65535"), "{told}");
}

#[test]
fn a_random_square_without_room_advises_keys_that_exist() {
    let text = "name = \"thin\"\n[topology]\nkind = \"random\"\nnodes = 1000\nside_m = 12403\n\
        [radio]\nmedium = \"pister-hack\"\n";
    let folder = Folder::new("links-thin");
    let told = stderr(&lowmesh(&["run", &folder.write("thin.toml", text)]));
    assert!(
        told.contains("write a smaller side_m, or another seed: topology.seed holds"),
        "{told}"
    );
}

#[test]
fn a_list_that_is_not_there_is_named() {
    let refused = lowmesh(&["run", "no/such.csv"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(stderr(&refused).contains("no/such.csv: "), "{}", stderr(&refused));
}
