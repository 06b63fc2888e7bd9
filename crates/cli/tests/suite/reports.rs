//! `--report` through the built command.

use crate::folder::{Folder, line_of_three, lowmesh, stderr};

#[test]
fn a_report_is_a_page_and_its_figures_and_twice_the_same() {
    let folder = Folder::new("report");
    let file = folder.write("line.toml", line_of_three(2, ""));
    let page = folder.path("page.html");
    let written = || {
        let output = lowmesh(&["run", &file, "--report", &page]);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        assert!(stderr(&output).contains(&format!("report: {page}")), "{}", stderr(&output));
        folder.read("page.html")
    };
    let html = written();
    assert!(html.starts_with("<!doctype html>") && html.ends_with("</html>\n"));
    for figure in ["delay-distribution", "delay-by-hops", "rtt-rto", "topology-1", "schedule-1"] {
        assert!(html.contains(&format!("<figure id=\"{figure}\">")), "{figure}");
        let svg = folder.read(&format!("page-figures/{figure}.svg"));
        assert!(svg.starts_with("<svg xmlns=") && svg.ends_with("</svg>\n"), "{figure}");
    }
    assert!(html.contains(&format!("lowmesh run {file} --seeds 2 --seed 1</code>")));
    assert_eq!(html, written());
}

#[test]
fn a_place_that_cannot_be_written_is_refused_before_any_run() {
    let folder = Folder::new("report-refused");
    let file = folder.write("line.toml", line_of_three(2, ""));
    for place in [folder.path("no/such/page.html"), folder.path("")] {
        let output = lowmesh(&["run", &file, "--report", &place]);
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
        assert!(stderr(&output).starts_with("error: --report"), "{}", stderr(&output));
    }
    assert_eq!(folder.names(), ["line.toml"]);
}
