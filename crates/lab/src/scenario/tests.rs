//! What users see when a scenario is right, wrong, or overridden.

use lowmesh_units::Duration;

use super::*;

fn errors(text: &str, overrides: &[&str]) -> String {
    let overrides: Vec<String> = overrides.iter().map(|&flag| flag.to_owned()).collect();
    match Scenario::parse("my.toml", text, &overrides) {
        Ok(_) => "no error".to_owned(),
        Err(errors) => errors.to_string(),
    }
}

fn parse(text: &str, overrides: &[&str]) -> Scenario {
    let overrides: Vec<String> = overrides.iter().map(|&flag| flag.to_owned()).collect();
    Scenario::parse("my.toml", text, &overrides).unwrap_or_else(|errors| panic!("{errors}"))
}

#[test]
fn a_scenario_of_a_name_alone_has_defaults() {
    let scenario = parse("name = \"x\"", &[]);
    assert_eq!(scenario.topology, Topology::Grid(Grid::default()));
    assert_eq!(scenario.coap, Coap::default());
    assert_eq!(scenario.head.duration, Duration::from_secs(3600));
}

#[test]
fn a_value_out_of_bounds_is_told_with_line_key_and_bounds() {
    assert_eq!(
        errors("name = \"x\"\n[topology]\nrows = 0\n", &[]),
        "my.toml:3:8: topology.rows = 0: must be a whole number from 1 to 100"
    );
}

#[test]
fn a_value_of_the_wrong_type_is_told_as_it_was_written() {
    assert_eq!(
        errors("name = \"x\"\nduration = true\n", &[]),
        "my.toml:2:12: duration = true: must be a duration, as \"10min\", \"250ms\" or 2 (seconds), from 1s to 31d"
    );
}

#[test]
fn a_misspelt_key_is_told_with_the_one_that_was_meant() {
    assert_eq!(
        errors("name = \"x\"\n[topology]\nspaceing_m = 3\n", &[]),
        "my.toml:3:1: topology.spaceing_m: there is no such key; did you mean `spacing_m`?; \
         known here: kind, rows, cols, spacing_m, addresses, seed"
    );
}

#[test]
fn a_misspelt_name_is_told_with_the_one_that_was_meant() {
    assert_eq!(
        errors("name = \"x\"\n[coap]\ncongestion = \"cocoaa\"\n", &[]),
        "my.toml:3:14: coap.congestion = \"cocoaa\": must be one of default, cocoa, cocoa/table-2, \
         cocoa/paper-text, cocoa/draft-03, cocoa/ecoap, 6cocoa, fasor, rfc6298, fixed; did you mean `cocoa`?"
    );
}

#[test]
fn a_misspelt_kind_gives_one_error_and_none_about_its_keys() {
    assert_eq!(
        errors("name = \"x\"\n[topology]\nkind = \"lines\"\nnodes = 4\n", &[]),
        "my.toml:3:8: topology.kind = \"lines\": must be one of grid, line, star, random, positions, table, tree, places; \
         did you mean `line`?"
    );
}

#[test]
fn a_key_of_another_kind_is_told_apart_from_a_misspelt_one() {
    assert_eq!(
        errors("name = \"x\"\n[topology]\nkind = \"line\"\nrows = 4\n", &[]),
        "my.toml:4:1: topology.rows: does not apply to kind = \"line\", whose keys are nodes, spacing_m, \
         addresses, seed"
    );
}

#[test]
fn a_missing_key_is_told_with_what_it_must_be() {
    assert_eq!(errors("", &[]), "my.toml: name is missing: it must be a text in quotes, not empty");
    assert_eq!(
        errors("name = \"x\"\n[topology]\nkind = \"positions\"", &[]),
        "my.toml: topology.file is missing: it must be a text in quotes, not empty"
    );
}

#[test]
fn all_errors_are_told_in_the_order_of_the_file() {
    let told = errors("nam = \"x\"\n[mac]\nretries = -1\n[rpl]\nmode = 3\n", &["mac.be_min=99"]);
    let lines: Vec<&str> = told.lines().collect();
    assert!(lines[0].starts_with("my.toml:1:1: nam: "), "{told}");
    assert!(lines[1].starts_with("my.toml:3:11: mac.retries = -1: "), "{told}");
    assert!(lines[2].starts_with("my.toml:5:8: rpl.mode = 3: "), "{told}");
    assert!(lines[3].starts_with("--set mac.be_min=99: mac.be_min = 99: "), "{told}");
    assert!(lines[4].starts_with("my.toml: name is missing"), "{told}");
    assert_eq!(lines.len(), 5, "{told}");
}

#[test]
fn text_that_is_not_toml_is_told_with_its_line() {
    let told = errors("name = \"x\"\n[topology\nrows = 1\n", &[]);
    assert!(told.starts_with("my.toml:2:10: not valid TOML: "), "{told}");
}

#[test]
fn values_that_do_not_go_together_are_told() {
    assert_eq!(
        errors("name = \"x\"\nduration = \"10min\"\nwarmup = \"10min\"", &[]),
        "my.toml:3:10: warmup: 10min leaves nothing to measure of a duration of 10min"
    );
    assert!(
        errors("name = \"x\"\n[radio]\nmedium = \"grenoble\"", &[]).contains("kind = \"table\"")
    );
    assert!(errors("name = \"x\"\n[mac]\nbe_min = 8", &[]).contains("mac.be_min: 8 is above"));
}

#[test]
fn numbers_over_a_cocoa_set_reach_the_timer_and_read_back() {
    let text =
        "name = \"x\"\n[coap]\ncongestion = \"6cocoa\"\n[cocoa]\nalpha = 0.5\nvbf_lower = \"3s\"\n";
    let scenario = parse(text, &["cocoa.k_weak=1"]);
    let timer = crate::settings::parts(&scenario).stack.coap.congestion.timer;
    let keys: Vec<_> = timer.replaced().map(|(parameter, _)| parameter.key).collect();
    assert_eq!((timer.name(), keys), ("6cocoa", vec!["alpha", "k_weak", "vbf_lower"]));
    assert_eq!((timer.number("alpha"), timer.number("k_weak")), (0.5, 1.0));
    assert_eq!(timer.time("vbf_lower"), Duration::from_secs(3));
    assert!(
        scenario.to_toml().contains("\n[cocoa]\nalpha = 0.5\nk_weak = 1.0\nvbf_lower = \"3s\"\n")
    );
    assert_eq!(parse(&scenario.to_toml(), &[]), scenario);
}

#[test]
fn values_of_a_scheduling_function_reach_the_nodes_and_read_back() {
    let text = "name = \"x\"\n[schedule]\nfunction = \"msf\"\nmax_num_cells = 32\n";
    let scenario = parse(text, &["schedule.receive_cells=false", "schedule.lim_low=25"]);
    let schedule = crate::settings::parts(&scenario).stack.scheduling;
    let keys: Vec<_> = schedule.replaced().map(|(parameter, _)| parameter.key).collect();
    assert_eq!((schedule.name(), keys), ("msf", vec!["max_num_cells", "receive_cells"]));
    assert!(scenario.to_toml().contains("\nmax_num_cells = 32\nlim_high = 75\n"));
    assert_eq!(parse(&scenario.to_toml(), &[]), scenario);
    let told = errors(text, &["schedule.lim_low=75", "schedule.wait_min=61s"]);
    assert_eq!(
        told,
        "my.toml: schedule.lim_low: 75 is not below schedule.lim_high = 75\n\
         my.toml: schedule.wait_min: 61s is above schedule.wait_max = 1min"
    );
}

#[test]
fn leaves_that_cannot_be_are_refused_with_one_error() {
    let base = "name = \"x\"\n[topology]\nkind = \"line\"\nnodes = 5\n";
    let parse = |more: &str| Scenario::parse("x", &format!("{base}{more}"), &[]);
    assert_eq!(parse("[rpl]\nleaves = [4, 2]\n").map(|good| good.rpl.leaves), Ok(vec![4, 2]));
    for (more, expected) in [
        ("[rpl]\nleaves = [0]\n", "node 0 is a border router"),
        ("[rpl]\nleaves = [5]\n", "or not in the topology: write another node from 1 to 4"),
        ("[rpl]\nleaves = [3]\n[[border_router]]\nnode = 3\n", "node 3 is a border router"),
        (
            "[rpl]\nleaves = [4]\n[multicast]\nengine = \"flood\"\n",
            "write multicast.engine = \"none\"",
        ),
    ] {
        let errors = parse(more).expect_err(expected).to_string();
        assert!(errors.contains("rpl.leaves") && errors.contains(expected), "{errors}");
        assert_eq!(errors.matches("rpl.leaves").count(), 1, "{errors}");
    }
}

#[test]
fn numbers_of_cocoa_are_refused_with_another_timer() {
    let told = errors("name = \"x\"\n[cocoa]\nalpha = 0.5\n", &[]);
    assert!(told.starts_with("my.toml: coap.congestion: \"default\" has none"), "{told}");
    assert!(told.contains("write one of cocoa, cocoa/table-2,"), "{told}");
    assert!(parse("name = \"x\"\n[cocoa]\n", &[]).coap.congestion.is_plain());
    let told = errors("name = \"x\"\ncoap.congestion = \"cocoaa\"\n[cocoa]\nalpha = 0.5\n", &[]);
    assert!(
        told.starts_with("my.toml:2:19: coap.congestion") && told.lines().count() == 1,
        "{told}"
    );
}

#[test]
fn numbers_of_cocoa_are_held_against_bounds_and_against_the_set() {
    let text = "name = \"x\"\n[coap]\ncongestion = \"cocoa\"\n[cocoa]\n";
    assert_eq!(
        errors(&format!("{text}alpha = 1.5\n"), &[]),
        "my.toml:5:9: cocoa.alpha = 1.5: must be a number from 0 to 1"
    );
    // The set's own upper threshold is 3 s.
    assert_eq!(
        errors(&format!("{text}vbf_lower = \"4s\"\n"), &[]),
        "my.toml: cocoa.vbf_lower: 4s is above cocoa.vbf_upper = 3s"
    );
}

#[test]
fn an_override_goes_through_the_same_checks_and_names_its_flag() {
    assert_eq!(parse("name = \"x\"", &["mac.retries=3"]).mac.retries(), 3);
    assert_eq!(
        errors("name = \"x\"", &["mac.retries=many"]),
        "--set mac.retries=many: mac.retries = many: must be a whole number from 0 to 15"
    );
    assert_eq!(
        errors("name = \"x\"", &["mac.retry=3"]),
        "--set mac.retry=3: mac.retry: there is no such key; did you mean `retries`?; known here: kind, \
         queue_frames, queue_per_neighbour, nack_full, retries, burst_frames, be_min, be_max, hopping, eb_period, \
         broadcast_spacing, keepalive, desync, orphan, resume, scan_period, join_neighbours, guard_us, slot_ms"
    );
    assert!(
        errors("name = \"x\"", &["mak.retries=3"])
            .starts_with("--set mak.retries=3: mak: there is")
    );
    assert_eq!(
        errors("name = \"x\"", &["mac.retries"]),
        "--set mac.retries: mac.retries: write a dotted key, an equals sign and a value, as mac.retries=5"
    );
}

#[test]
fn texts_on_flags_need_no_quotes() {
    let flags = ["duration=20min", "coap.congestion=6cocoa", "mac.hopping=16_16", "name=\"y\""];
    let scenario = parse("name = \"x\"", &flags);
    assert_eq!(scenario.head.duration, Duration::from_secs(1200));
    assert_eq!(scenario.coap.congestion.name(), "6cocoa");
    assert_eq!(scenario.mac.tsch().map(|tsch| &tsch.hopping), Some(&Hopping::Sixteen));
    assert_eq!(scenario.head.name, "y");
}

#[test]
fn the_last_of_two_flags_on_one_key_stands() {
    assert_eq!(parse("name = \"x\"", &["seeds=3", "seeds=4"]).head.seeds, 4);
}

#[test]
fn a_flag_that_changes_the_kind_leaves_the_files_keys_of_the_old_kind_behind() {
    let text = "name = \"x\"\n[schedule]\nfunction = \"b-msf\"\nmax_nec = 48\n";
    let scenario = parse(text, &["schedule.function=alice"]);
    assert_eq!(scenario.schedule, (&lowmesh_sixtop::functions::alice::ROW).into());
    let told = errors(text, &["schedule.function=alice", "schedule.max_nec=3"]);
    assert!(
        told.starts_with("--set schedule.max_nec=3: schedule.max_nec: does not apply"),
        "{told}"
    );
}

#[test]
fn interferers_are_read_from_lists_of_sections() {
    let scenario = parse("name = \"x\"\n[[radio.wifi]]\nchannel = 1\n[[radio.wifi]]\n", &[]);
    let channels: Vec<u8> = scenario.radio.wifi.iter().map(|wifi| wifi.channel).collect();
    assert_eq!(channels, [1, 6]);
    assert_eq!(
        errors("name = \"x\"\n[[radio.burst]]\n[[radio.burst]]\nchannel = 27\n", &[]),
        "my.toml:4:11: radio.burst[1].channel = 27: must be a whole number from 11 to 26"
    );
    assert_eq!(parse("name = \"x\"", &["radio.burst=[{channel=12}]"]).radio.burst[0].channel, 12);
    assert!(
        errors("name = \"x\"\n[[radio.burst]]\n", &["radio.burst.channel=12"])
            .contains("set a list as a whole")
    );
}

#[test]
fn a_section_written_as_a_value_is_told() {
    assert_eq!(
        errors("name = \"x\"\nmac = 3\n", &[]),
        "my.toml:2:7: mac = 3: must be a section of keys"
    );
}

#[test]
fn the_resolved_scenario_reads_back_as_itself() {
    let texts = [
        "name = \"a \\\"quoted\\\" name\"\n[mac]\nhopping = [11, 26]\n",
        "name = \"x\"\n[radio]\nmedium = \"pdr-matrix\"\nmatrix = [[0, 0.5], [1, 0]]\n\
         [topology]\nkind = \"table\"\nnodes = 2\n",
        "name = \"x\"\nroutes = \"static\"\n[topology]\nkind = \"tree\"\nparents = [0, 1]\npdr = [1, 0.5]\n\
         [radio]\nmedium = \"links\"\n[mac]\nkind = \"thin\"\n[traffic]\npackets = 3\n",
        "name = \"x\"\n[[radio.wifi]]\n[[radio.burst]]\n[schedule]\nfunction = \"orchestra\"\n",
    ];
    for text in texts {
        let scenario = parse(text, &[]);
        assert_eq!(parse(&scenario.to_toml(), &[]), scenario, "{text}");
    }
}

#[test]
fn values_of_a_medium_are_told_apart_from_those_of_others_and_held_in_order() {
    let text = "name = \"x\"\n[radio]\nmedium = \"unit-disk\"\n";
    let told = errors(text, &["radio.range_m=101"]);
    assert_eq!(told, "my.toml: radio.range_m: 101 is above radio.interference_range_m = 100");
    let told = errors(text, &["radio.noise_dbm=-90"]);
    assert!(told.contains("radio.noise_dbm: does not apply to medium = \"unit-disk\""), "{told}");
    let told = errors(&text.replace("unit-disk", "k7"), &["topology.kind=table"]);
    assert_eq!(told, "my.toml: radio.file is missing: it must be a text in quotes, not empty");
    let matrix = "medium = \"pdr-matrix\"\nmatrix = [[0, 1], [1, 0]]\n[topology]\nkind = \"table\"";
    let told = errors(&format!("name = \"x\"\n[radio]\n{matrix}\nnodes = 3"), &[]);
    assert!(told.contains("topology.nodes: 3 is not the 2 nodes of medium"), "{told}");
}

#[test]
fn seeds_count_up_from_the_first() {
    let scenario = parse("name = \"x\"\nseeds = 3\nseed = 7", &[]);
    let seeds: Vec<u64> = scenario.seeds().map(|seed| seed.0).collect();
    assert_eq!(seeds, [7, 8, 9]);
}

#[test]
fn an_unknown_name_is_told_with_the_built_in_that_was_meant() {
    let told = Scenario::load("grenoble-5", &[]).expect_err("no such built-in").to_string();
    assert_eq!(
        told,
        "there is no built-in scenario and no file `grenoble-5`; did you mean `grenoble-50`?"
    );
    let told = Scenario::load("no/such.toml", &[]).expect_err("no such file").to_string();
    assert!(told.starts_with("cannot read no/such.toml: "), "{told}");
}

#[test]
fn files_are_relative_to_the_folder_of_the_scenario() {
    let folder = std::env::temp_dir().join(format!("lowmesh-scenario-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("the system's folder for temporary files is writable");
    let file = folder.join("street.toml");
    let text = "name = \"x\"\n[topology]\nkind = \"positions\"\nfile = \"street.csv\"\n";
    std::fs::write(&file, text).expect("writable");
    let scenario = Scenario::load(file.to_str().expect("ASCII"), &[]);
    _ = std::fs::remove_dir_all(&folder);
    let Topology::Positions(positions) = scenario.expect("valid").topology else {
        panic!("not the kind that was written")
    };
    assert_eq!(Path::new(&positions.file), folder.join("street.csv"));
}

#[test]
fn every_key_is_in_the_manual() {
    let manual = include_str!("../../../../docs/topics/scenarios.md");
    for key in every_key() {
        let (section, name) = key.rsplit_once('.').unwrap_or(("", &key));
        let heading = match section {
            "" => "\n## Top".to_owned(),
            "radio.wifi" | "radio.burst" | "border_router" | "link" | "serial" | "entity"
            | "event" => {
                format!("\n## `[[{section}]]`")
            }
            _ => format!("\n## `[{section}]`"),
        };
        let start = manual.find(&heading).unwrap_or_else(|| panic!("no section {heading}"));
        let part = &manual[start + heading.len()..];
        let part = &part[..part.find("\n## ").unwrap_or(part.len())];
        assert!(part.contains(&format!("| `{name}`")), "{key} is not under {heading}");
    }
}

#[test]
fn no_text_makes_the_reader_panic() {
    let text = crate::scenario::BUILTINS[1].text;
    for end in 0..text.len() {
        if text.is_char_boundary(end) {
            // Any prefix either reads or is told to be wrong with a reason.
            if let Err(errors) = Scenario::parse("cut", &text[..end], &[]) {
                assert!(errors.to_string().starts_with("cut"), "{errors}");
            }
        }
    }
}

#[test]
fn a_commented_scenario_says_what_keys_mean_and_reads_back() {
    let scenario =
        parse("name = \"x\"\n[coap]\ncongestion = \"6cocoa\"\n[cocoa]\nk_weak = 1\n", &[]);
    let text = scenario.to_commented_toml();
    for line in [
        "rows = 5  # Number of rows.\n",
        "medium = \"mrm\"  # Cooja's multi-path medium, direct ray.\n",
        "tx_power_dbm = 0.0  # Sending power (-60 to 40 dBm; a Cooja mote always sends at 0 dBm).\n",
        "congestion = \"6cocoa\"  # Congestion control. CoCoA tuned for 6TiSCH (Righetti et al. 2023).\n",
        "\n[cocoa]\n# alpha = 0.9  # Gain of RTT: the weight of a new sample (0 to 1; Righetti et al. 2023, table 2).\n",
        "\nk_weak = 1.0  # Weight of RTTVAR in the weak estimator's RTO (0 to 16; Righetti et al. 2023, table 2).\n",
    ] {
        assert!(text.contains(line), "{line} is not in {text}");
    }
    assert_eq!(parse(&text, &[]), scenario);
}

#[test]
fn every_default_in_the_manual_is_the_one_in_force() {
    let manual = include_str!("../../../../docs/topics/scenarios.md");
    let mut compared = 0;
    let mut compare = |heading: &str, section: &dyn Fn(&mut Lines)| {
        let start = manual.find(heading).unwrap_or_else(|| panic!("no section {heading}"));
        let part = &manual[start + heading.len()..];
        let part = &part[..part.find("\n##").unwrap_or(part.len())];
        let mut lines = Lines::default();
        section(&mut lines);
        for (key, literal) in lines.into_text().lines().filter_map(|line| line.split_once(" = ")) {
            let row = format!("| `{key}` | `{literal}` |");
            assert!(literal == "\"\"" || part.contains(&row), "{row} is not under {heading}");
            compared += 1;
        }
    };
    compare("## Top", &|lines| Head::default().write(lines));
    compare("kind = \"grid\"`", &|lines| Grid::default().write(lines));
    compare("kind = \"line\"`", &|lines| Line::default().write(lines));
    compare("kind = \"star\"`", &|lines| Star::default().write(lines));
    compare("kind = \"random\"`", &|lines| Random::default().write(lines));
    compare("kind = \"table\"`", &|lines| Table::default().write(lines));
    compare("## `[[radio.wifi]]`", &|lines| Wifi::default().write(lines));
    compare("## `[[radio.burst]]`", &|lines| Burst::default().write(lines));
    compare("kind = \"tsch\"`", &|lines| Tsch::default().write(lines));
    compare("kind = \"csma\"`", &|lines| Csma::default().write(lines));
    compare("kind = \"thin\"`", &|lines| Thin::default().write(lines));
    compare("kind = \"contiki2014\"`", &|lines| Contiki2014::default().write(lines));
    compare("## `[rpl]`", &|lines| Rpl::default().write(lines));
    compare("## `[lowpan]`", &|lines| Lowpan::default().write(lines));
    compare("mode = \"hwr\"`", &|lines| HopWise::default().write(lines));
    compare("mode = \"ff\"`", &|lines| Forwarded::default().write(lines));
    compare("mode = \"sfr\"`", &|lines| Recovered::default().write(lines));
    compare("## `[ipv6]`", &|lines| Ipv6::default().write(lines));
    compare("## `[coap]`", &|lines| Coap::default().write(lines));
    compare("## `[traffic]`", &|lines| Traffic::default().write(lines));
    compare("## `[clock]`", &|lines| Clock::default().write(lines));
    compare("## `[backbone]`", &|lines| Backbone::default().write(lines));
    compare("## `[energy]`", &|lines| Energy::default().write(lines));
    assert!(compared > 100, "{compared}");
}

proptest::proptest! {
    #[test]
    fn whatever_flag_is_given_it_reads_back_or_is_told_to_be_wrong(flag in "[a-z_.]{0,12}=?.{0,16}") {
        match Scenario::parse("x", "name = \"x\"", std::slice::from_ref(&flag)) {
            Ok(scenario) => {
                let again = Scenario::parse("x", &scenario.to_toml(), &[]);
                proptest::prop_assert_eq!(again, Ok(scenario));
            }
            Err(errors) => proptest::prop_assert!(errors.to_string().contains("--set"), "{}", errors),
        }
    }

    #[test]
    fn any_value_of_a_known_key_reads_back_or_is_told_to_be_wrong(
        key in proptest::sample::select(every_key()),
        value in "-?[0-9]{1,9}(\\.[0-9]{1,3})?(ms|s|min)?|true|\\[[0-9, ]{0,8}\\]|\\{\\}|[a-z0-9_/-]{1,12}",
    ) {
        let flag = format!("{key}={value}");
        if let Ok(scenario) = Scenario::parse("x", "name = \"x\"", &[flag]) {
            let again = Scenario::parse("x", &scenario.to_toml(), &[]);
            proptest::prop_assert_eq!(again, Ok(scenario));
        }
    }
}

#[test]
fn what_needs_a_tree_says_so_and_a_tree_says_what_is_wrong_with_it() {
    let tree = |lines: &str| format!("name = \"x\"\n[topology]\nkind = \"tree\"\n{lines}");
    let links = "[radio]\nmedium = \"links\"\n";
    for (text, expected) in [
        (
            "name = \"x\"\nroutes = \"static\"\n".to_owned(),
            "routes: \"static\" takes the routes of a tree",
        ),
        (format!("name = \"x\"\n{links}"), "medium \"links\" needs a tree"),
        (
            tree(""),
            "topology.parents is missing: it must be a list of whole numbers, 1 to 4095 of them",
        ),
        (
            tree(&format!("parents = [2, 1]\n{links}")),
            "topology.parents: node 1: its parents lead in a circle",
        ),
        (
            tree(&format!("parents = [0, 1]\npdr = [0.5]\n{links}")),
            "topology.pdr: 1 numbers for the 2 nodes",
        ),
        (tree(&format!("parents = [0]\npdr = [1.5]\n{links}")), "each from 0 to 1"),
        (tree("parents = [0]\n"), "medium \"mrm\" needs the positions of nodes"),
    ] {
        let told = errors(&text, &[]);
        assert!(told.contains(expected), "{told}");
    }
}

#[test]
fn keys_of_one_mac_do_not_apply_to_another() {
    let told = errors("name = \"x\"\n[mac]\nkind = \"csma\"\nslot_ms = 10\n", &[]);
    assert!(
        told.starts_with("my.toml:4:1: mac.slot_ms: does not apply to kind = \"csma\""),
        "{told}"
    );
    let told = errors("name = \"x\"\n[traffic]\nhops_min = 2\n", &[]);
    assert!(told.contains("traffic.hops_min: 2 needs routes = \"static\""), "{told}");
}

#[test]
fn functions_that_need_children_refuse_a_mode_that_does_not_tell_them() {
    let flags = |function: &str, variant: &str| -> Vec<String> {
        let function = format!("schedule.function={function}");
        let variant = format!("schedule.variant={variant}");
        let mode = "rpl.mode=non-storing".to_owned();
        if variant.ends_with('=') { vec![function, mode] } else { vec![function, variant, mode] }
    };
    for (function, variant, fits) in
        [("alice", "", false), ("orchestra", "sender", false), ("orchestra", "receiver", true)]
    {
        let result = Scenario::load("grid-25", &flags(function, variant));
        assert_eq!(result.is_ok(), fits, "{function} {variant}");
        if let Err(error) = result {
            assert!(error.to_string().contains("storing"), "{error}");
        }
    }
}

#[test]
fn a_flag_that_one_value_of_a_swept_choice_has_a_use_for_is_left_out_at_the_others() {
    let sweep = |flags: &[&str]| {
        let flags: Vec<String> = flags.iter().map(|&flag| flag.to_owned()).collect();
        sweep::Swept::parse("my.toml", "name = \"x\"", &flags)
    };
    let function = "sweep.schedule.function=msf,alice,b-msf";
    let swept = sweep(&[function, "schedule.negotiated_length=47", "schedule.unicast_length=23"]);
    let points = swept.expect("each flag is of use somewhere").points;
    let lengths = points.iter().map(|(_, scenario)| {
        let keys = scenario.keys();
        ["negotiated_length", "unicast_length"]
            .map(|key| keys.get(&format!("schedule.{key}")).cloned())
    });
    let (negotiated, unicast) = (Some("47".to_owned()), Some("23".to_owned()));
    assert_eq!(
        lengths.collect::<Vec<_>>(),
        [[negotiated.clone(), None], [None, unicast], [negotiated, None]]
    );
    // A flag that no point has a use for is an error, and so is one of a choice that is not swept.
    let refused = |flags: &[&str]| sweep(flags).expect_err("a key of another choice").to_string();
    let nowhere = refused(&[function, "schedule.common_length=31"]);
    assert!(
        nowhere.starts_with(
            "--set schedule.common_length=31: schedule.common_length: does not apply to function"
        ),
        "{nowhere}"
    );
    let unswept = refused(&["sweep.mac.retries=3,4", "schedule.unicast_length=29"]);
    assert!(unswept.contains("does not apply to function = \"b-msf\""), "{unswept}");
}
