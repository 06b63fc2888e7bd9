//! Tests of SenML: the examples of RFC 8428, both forms of the same pack, broken packs.

use proptest::prelude::*;

use super::*;

/// RFC 8428 s5.1.3, the second example.
const CURRENT: &str = r#"[
 {"bn":"urn:dev:ow:10e2073a0108006:","bt":1.276020076001e+09,"bu":"A","bver":5,"n":"voltage","u":"V","v":120.1},
 {"n":"current","t":-5,"v":1.2},
 {"n":"current","t":-4,"v":1.3},
 {"n":"current","t":-3,"v":1.4},
 {"n":"current","t":-2,"v":1.5},
 {"n":"current","t":-1,"v":1.6},
 {"n":"current","v":1.7}
]"#;

/// The same in CBOR, as RFC 8428 s6 prints it.
const CURRENT_CBOR: &str = "\
    87a721781b75726e3a6465763a6f773a3130653230373361303130383030363a22fb41d303a15b0010 62\
    2361412005006776 6f6c746167650161 5602fb405e066666666666a30067637572 72656e74062402fb3ff3\
    333333333333a3006763757272656e74062302fb3ff4cccccccccccda3006763757272656e74062202fb3ff6\
    666666666666a3006763757272656e74062102f93e00a3006763757272656e74062002fb3ff999999999999a\
    a3006763757272656e74060002fb3ffb333333333333";

fn octets(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
    let pair = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).expect("hex"), 16);
    digits.chunks(2).map(|two| pair(two).expect("hex")).collect()
}

fn json(text: &str) -> Result<Vec<Record>, SenmlError> {
    parse_json(text.as_bytes())
}

fn fault(text: &str) -> (usize, Fault) {
    match json(text).and_then(|pack| resolve(&pack, 0.0).map(|_| pack)) {
        Err(SenmlError::Record { record, fault }) => (record, fault),
        other => panic!("{text} gave {other:?}"),
    }
}

#[test]
fn the_cbor_example_of_rfc_8428_is_its_json_example() {
    let from_json = json(CURRENT).expect("the RFC's own");
    let mut from_cbor = parse_cbor(&octets(CURRENT_CBOR)).expect("the RFC's own");
    // The last record says "t": 0 in CBOR and nothing in JSON.
    assert_eq!(from_cbor[6].time, Some(0.0));
    from_cbor[6].time = None;
    assert_eq!(from_cbor, from_json);
}

#[test]
fn base_fields_hold_from_their_record_on() {
    let measurements =
        resolve(&json(CURRENT).expect("valid"), 2e9).expect("every name and value is there");
    assert_eq!(measurements.len(), 7);
    let first = &measurements[0];
    assert_eq!(first.name, "urn:dev:ow:10e2073a0108006:current");
    assert_eq!(first.unit.as_deref(), Some("A"));
    assert!((first.time - 1_276_020_071.001).abs() < 1e-6);
    let voltage = measurements.iter().find(|one| one.name.ends_with("voltage")).expect("one");
    assert_eq!((voltage.unit.as_deref(), &voltage.value), (Some("V"), &Some(Value::Number(120.1))));
}

#[test]
fn every_kind_of_value_is_read() {
    // RFC 8428 s5.1.5.
    let text = r#"[{"bn":"urn:dev:ow:10e2073a01080063:","n":"temp","u":"Cel","v":23.1},
        {"n":"label","vs":"Machine Room"},{"n":"open","vb":false},{"n":"nfc-reader","vd":"aGkgCg"}]"#;
    let values: Vec<_> = json(text).expect("valid").into_iter().filter_map(|r| r.value).collect();
    let data = Value::Data(b"hi \n".to_vec());
    let label = Value::Text("Machine Room".into());
    assert_eq!(values, [Value::Number(23.1), label, Value::Boolean(false), data]);
}

#[test]
fn base_value_and_base_sum_are_added() {
    let pack = json(r#"[{"bn":"m","bv":10,"bs":100,"v":1,"s":2},{"n":"2"},{"n":"3","vs":"x"}]"#);
    let all = resolve(&pack.expect("valid"), 0.0).expect("valid");
    assert_eq!((&all[0].value, all[0].sum), (&Some(Value::Number(11.0)), Some(102.0)));
    assert_eq!((&all[1].value, all[1].sum), (&Some(Value::Number(10.0)), Some(100.0)));
    assert_eq!(all[2].value, Some(Value::Text("x".into())));
}

#[test]
fn a_time_below_two_to_the_28_is_from_now_and_measurements_are_in_order() {
    let pack = json(r#"[{"n":"a","v":1},{"n":"b","t":1000000000,"v":2},{"n":"c","t":-1,"v":3}]"#);
    let all = resolve(&pack.expect("valid"), 1e9 + 10.0).expect("valid");
    let order: Vec<_> = all.iter().map(|one| (&one.name[..], one.time)).collect();
    assert_eq!(order, [("b", 1e9), ("c", 1e9 + 9.0), ("a", 1e9 + 10.0)]);
}

#[test]
fn a_sum_with_a_base_that_is_infinite_is_refused_with_its_record() {
    let huge = |base: &str, field: &str| {
        let more = if field == "t" { r#","v":1"# } else { "" };
        fault(&format!(r#"[{{"{base}":1e308,"n":"a","v":0}},{{"n":"b","{field}":1e308{more}}}]"#))
    };
    for (base, field) in [("bv", "v"), ("bs", "s"), ("bt", "t")] {
        assert_eq!(huge(base, field), (1, Fault::TooLarge(base, field)));
    }
    let both = fault(r#"[{"bv":-1.7e308,"n":"a","v":-1.7e308}]"#);
    assert_eq!(both, (0, Fault::TooLarge("bv", "v")));
}

#[test]
fn a_record_that_breaks_a_rule_is_named_with_it() {
    assert_eq!(fault(r#"[{"v":1}]"#), (0, Fault::Name(String::new())));
    assert_eq!(fault(r#"[{"n":"-a","v":1}]"#), (0, Fault::Name("-a".into())));
    assert_eq!(fault(r#"[{"n":"a","v":1},{"n":"a b","v":1}]"#), (1, Fault::Name("a b".into())));
    assert_eq!(fault(r#"[{"n":"a","v":1,"vs":"x"}]"#), (0, Fault::SeveralValues));
    assert_eq!(fault(r#"[{"n":"a"}]"#), (0, Fault::NoValue));
    assert_eq!(fault(r#"[{"bver":11,"n":"a","v":1}]"#), (0, Fault::Version(11)));
    assert_eq!(fault(r#"[{"bver":10,"n":"a","v":1},{"bver":9}]"#), (1, Fault::Version(9)));
    assert_eq!(fault(r#"[{"n":"a","v":"1"}]"#), (0, Fault::Kind("v")));
    assert_eq!(fault(r#"[{"n":"a","vd":"%"}]"#), (0, Fault::Kind("vd")));
    assert_eq!(fault(r#"[{"bver":1.5,"n":"a"}]"#), (0, Fault::Kind("bver")));
    assert_eq!(fault(r"[7]"), (0, Fault::Kind("record")));
}

#[test]
fn an_unknown_field_is_ignored_unless_its_label_ends_with_an_underscore() {
    let pack = json(r#"[{"n":"a","v":1,"new":[{"deep":1}]}]"#).expect("ignored");
    assert_eq!(pack, [Record { unit: None, ..Record::number("a", "", 1.0) }]);
    assert_eq!(fault(r#"[{"n":"a","new_":1}]"#), (0, Fault::MustUnderstand("new_".into())));
    // {0: "a", 2: 1, "new": [1, {}], 77: h'00'} and {"new_": 1}
    let cbor = octets("81a4 006161 0201 636e6577 8201a0 184d 4100");
    assert_eq!(parse_cbor(&cbor), Ok(pack));
    let error = parse_cbor(&octets("81a1 646e65775f 01")).expect_err("must be understood");
    assert_eq!(error, SenmlError::at(0)(Fault::MustUnderstand("new_".into())));
}

#[test]
fn cbor_takes_labels_as_text_decimal_fractions_and_indefinite_lengths() {
    // [_ {_ "n": "a", "v": 4([-2, 231])}]
    let pack = parse_cbor(&octets("9fbf 616e 6161 6176 c482 21 18e7 ffff")).expect("valid");
    assert_eq!(pack[0].value, Some(Value::Number(2.31)));
}

#[test]
fn a_cbor_field_that_occurs_twice_is_refused() {
    let error = parse_cbor(&octets("81a2 006161 006162")).expect_err("twice");
    assert_eq!(error, SenmlError::at(0)(Fault::Twice("n")));
}

#[test]
fn numbers_that_are_not_finite_are_neither_written_nor_read() {
    let pack = [Record::number("a", "V", f64::NAN)];
    let refused = SenmlError::at(0)(Fault::NotFinite("v"));
    assert_eq!(emit_json(&pack), Err(refused.clone()));
    assert_eq!(emit_cbor(&pack, &mut Vec::new()), Err(refused));
    let infinite = parse_cbor(&octets("81a1 02 f97c00")).expect_err("infinite");
    assert_eq!(infinite, SenmlError::at(0)(Fault::Kind("v")));
    let huge = parse_cbor(&octets("81a1 02 c482 1903e8 01")).expect_err("10^1000");
    assert_eq!(huge, SenmlError::at(0)(Fault::Kind("v")));
}

#[test]
fn a_pack_has_a_bounded_number_of_records() {
    let many = format!("[{}{{}}]", "{},".repeat(RECORDS_MAX));
    assert_eq!(json(&many), Err(SenmlError::TooManyRecords));
    assert_eq!(parse_cbor(&octets("9a ffffffff a0")), Err(SenmlError::TooManyRecords));
    let mut endless = vec![0x9f];
    endless.resize(RECORDS_MAX + 3, 0xa0);
    assert_eq!(parse_cbor(&endless), Err(SenmlError::TooManyRecords));
}

#[test]
fn every_prefix_is_a_syntax_error_at_its_end() {
    let mut cbor = Vec::new();
    emit_cbor(&json(CURRENT).expect("valid"), &mut cbor).expect("finite");
    for end in 0..cbor.len() {
        let error = parse_cbor(&cbor[..end]).expect_err("cut");
        assert!(matches!(error, SenmlError::Syntax(at) if at.offset <= end), "{end}: {error}");
    }
    for end in 0..CURRENT.len() {
        let error = json(&CURRENT[..end]).expect_err("cut");
        assert!(matches!(error, SenmlError::Syntax(at) if at.offset <= end), "{end}: {error}");
    }
}

#[test]
fn octets_behind_a_pack_are_refused() {
    assert!(matches!(json("[] x"), Err(SenmlError::Syntax(_))));
    assert!(matches!(parse_cbor(&[0x80, 0]), Err(SenmlError::Syntax(_))));
}

#[test]
fn deep_nesting_is_refused_or_skipped_without_a_deep_stack() {
    assert!(json(&"[".repeat(100_000)).is_err());
    let mut deep = octets("81a1 6178");
    deep.resize(100_000, 0x81);
    assert!(parse_cbor(&deep).is_err());
}

fn any_record() -> impl Strategy<Value = Record> {
    let number = || prop::option::of(-1e12..1e12_f64);
    let text = || prop::option::of(".{0,8}");
    let value = prop_oneof![
        any::<i32>().prop_map(|one| Value::Number(f64::from(one))),
        (-1e300..1e300_f64).prop_map(Value::Number),
        ".{0,8}".prop_map(Value::Text),
        any::<bool>().prop_map(Value::Boolean),
        prop::collection::vec(any::<u8>(), 0..9).prop_map(Value::Data),
    ];
    let base = (prop::option::of(any::<u32>()), text(), number(), text(), number(), number());
    let own = (text(), text(), prop::option::of(value), number(), number(), number());
    (base, own).prop_map(|(base, own)| Record {
        base_version: base.0,
        base_name: base.1,
        base_time: base.2,
        base_unit: base.3,
        base_value: base.4,
        base_sum: base.5,
        name: own.0,
        unit: own.1,
        value: own.2,
        sum: own.3,
        time: own.4,
        update_time: own.5,
    })
}

proptest! {
    #[test]
    fn a_pack_reads_back_from_both_forms(pack in prop::collection::vec(any_record(), 0..5)) {
        prop_assert_eq!(json(&emit_json(&pack).expect("finite")), Ok(pack.clone()));
        let mut cbor = Vec::new();
        emit_cbor(&pack, &mut cbor).expect("finite");
        prop_assert_eq!(parse_cbor(&cbor), Ok(pack));
    }

    #[test]
    fn random_octets_never_panic(octets in prop::collection::vec(any::<u8>(), 0..40)) {
        for start in [&[0x81, 0xa2][..], b"[{\"v\":", &[]] {
            let whole = [start, &octets].concat();
            let read = [parse_json(&whole), parse_cbor(&whole)];
            for pack in read.into_iter().flatten() {
                let finite = resolve(&pack, 0.0).into_iter().flatten();
                prop_assert!(finite.count() <= whole.len());
            }
        }
    }
}
