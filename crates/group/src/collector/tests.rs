//! Tests of the collector: operations, partial results, formats.

use super::*;
use lowmesh_wire::problem_details::ProblemDetails;
use lowmesh_wire::senml::parse_json;

fn question(operation: Operation, replies: usize) -> Question {
    Question { name: "room".into(), label: "e/room".into(), operation, replies, writes: false }
}

fn number(label: &str, value: f64) -> Outcome {
    let reading = Reading::plain(label.into(), Some("Cel".into()), Value::Number(value));
    of_readings(label, vec![reading])
}

fn of_readings(label: &str, readings: Vec<Reading>) -> Outcome {
    let answer = Answer {
        code: Code::CONTENT,
        readings,
        max_age_s: 30,
        rtt: None,
        is_combined: false,
        combined: Vec::new(),
        failures: Vec::new(),
    };
    (label.into(), Ok(answer))
}

/// A member that answers with this pack of SenML.
fn pack_of(label: &str, pack: &str) -> Outcome {
    use lowmesh_wire::coap::{Kind, Message, MessageId};
    let mut message = Message::new(Kind::Acknowledgement, Code::CONTENT, MessageId(1));
    let format = ContentFormat::SENML_JSON.0;
    message.options.insert_uint(OptionNumber::CONTENT_FORMAT, format.into());
    message.payload = pack.as_bytes().to_vec();
    (label.into(), crate::outcome::read(label, &message, None))
}

fn silent(label: &str) -> Outcome {
    (label.into(), Err(Reason::Silent))
}

fn text_of(operation: Operation, outcomes: Vec<Outcome>) -> String {
    let answer = collect(&question(operation, 1), outcomes).expect("enough answers");
    String::from_utf8(response(&answer, None).payload).expect("text")
}

#[test]
fn each_operation_makes_its_number() {
    let outcomes = || vec![number("a/t", 20.0), number("b/t", 23.0), silent("c/t")];
    assert_eq!(text_of(Operation::Average, outcomes()), "21.5");
    assert_eq!(text_of(Operation::Minimum, outcomes()), "20");
    assert_eq!(text_of(Operation::Maximum, outcomes()), "23");
    let list = "a/t 20 Cel\nb/t 23 Cel\nc/t ! 5.04 silent\n";
    assert_eq!(text_of(Operation::List, outcomes()), list);
}

#[test]
fn each_quantity_has_a_number_of_its_own() {
    let station = |label: &str, base: &str, temp: f64, hum: &str| {
        let pack = format!(
            r#"[{{"bn":"{base}","n":"temp","u":"Cel","v":{temp}}}{hum},{{"n":"batt","u":"V","v":3}}]"#
        );
        pack_of(label, &pack)
    };
    let hum = r#",{"n":"hum","u":"%RH","v":50}"#;
    let outcomes =
        || vec![station("a/s", "urn:dev:mac:1_", 20.0, hum), station("b/s", "x/", 22.0, "")];
    let text = text_of(Operation::Average, outcomes());
    assert_eq!(text, "e/room/avg/temp 21 Cel\ne/room/avg/hum 50 %RH\ne/room/avg/batt 3 V\n");
    let answer = collect(&question(Operation::Maximum, 2), outcomes()).expect("two answers");
    let payload = response(&answer, Some(ContentFormat::SENML_JSON)).payload;
    let text = String::from_utf8(payload).expect("JSON");
    assert!(text.starts_with(r#"[{"n":"e/room/max/temp","u":"Cel","v":22},"#), "{text}");
    // An entity above combines by the same quantities.
    let above = collect(&question(Operation::Average, 1), vec![("e/room".into(), Ok(answer))]);
    assert_eq!(above.expect("an answer").readings[0].quantity(), "temp");
}

#[test]
fn a_member_with_another_unit_has_failed() {
    let kelvin = || {
        let reading = Reading::plain("k/t".into(), Some("K".into()), Value::Number(293.15));
        of_readings("k/t", vec![reading])
    };
    for operation in [Operation::Average, Operation::Minimum, Operation::Maximum] {
        let outcomes = || vec![kelvin(), number("a/t", 20.0), number("b/t", 20.0)];
        assert_eq!(text_of(operation, outcomes()), "20");
        let answer = collect(&question(operation, 1), outcomes()).expect("two answers");
        assert_eq!(answer.readings[0].unit.as_deref(), Some("Cel"));
        assert_eq!(answer.failures[0].0, "k/t");
        // Of two with different units the first counts; if both are needed, there is no number.
        let outcomes = || vec![number("a/t", 20.0), kelvin()];
        assert_eq!(text_of(operation, outcomes()), "20");
        let refusal = collect(&question(operation, 2), outcomes()).expect_err("one of two");
        assert!(refusal.detail.contains("k/t: 5.02 its unit is another"), "{refusal:?}");
    }
    // A list shows each with its own.
    let list = text_of(Operation::List, vec![number("a/t", 20.0), kelvin()]);
    assert_eq!(list, "a/t 20 Cel\nk/t 293.15 K\n");
    // A text without a unit says nothing against the others.
    let bare = of_readings("c/t", vec![Reading::plain("c/t".into(), None, Value::Number(26.0))]);
    assert_eq!(text_of(Operation::Average, vec![number("a/t", 20.0), bare]), "23");
}

#[test]
fn a_member_with_a_history_weighs_as_much_as_others_and_keeps_its_times() {
    let history =
        || pack_of("a/t", r#"[{"u":"Cel","bn":"s","v":22,"t":-10},{"v":100,"u":"Cel","t":-60}]"#);
    assert_eq!(text_of(Operation::Average, vec![history(), number("b/t", 20.0)]), "21");
    let answer = collect(&question(Operation::List, 1), vec![history()]).expect("an answer");
    let payload = response(&answer, Some(ContentFormat::SENML_JSON)).payload;
    let records = parse_json(&payload).expect("our own");
    let times: Vec<_> = records.iter().map(|record| record.time).collect();
    assert_eq!(times, [Some(-60.0), Some(-10.0)]);
    let text = text_of(Operation::List, vec![history()]);
    assert_eq!(text, "a/t/s 100 Cel t=-60\na/t/s 22 Cel t=-10\n");
}

#[test]
fn a_mean_of_large_numbers_is_finite() {
    let outcomes = || vec![number("a/t", f64::MAX), number("b/t", f64::MAX)];
    let answer = collect(&question(Operation::Average, 1), outcomes()).expect("enough answers");
    assert_eq!(answer.readings[0].number(), Some(f64::MAX));
}

#[test]
fn a_member_cannot_add_a_line_in_the_name_of_another() {
    let (label, answer) = number("a/t", 20.0);
    let mut answer = answer.expect("a number");
    answer.readings[0].value = Value::Text("on\nb/t ! 5.04 silent".into());
    answer.readings[0].unit = Some("\nb/t".into());
    let list = text_of(Operation::List, vec![(label, Ok(answer)), number("b/t", 23.0)]);
    assert_eq!(list.lines().count(), 2, "{list}");
    assert!(list.ends_with("\nb/t 23 Cel\n"), "{list}");
}

#[test]
fn senml_names_values_members_and_failures() {
    let outcomes = vec![number("a/t", 20.0), silent("c/t")];
    let answer = collect(&question(Operation::Average, 1), outcomes).expect("one answer");
    let response = response(&answer, Some(ContentFormat::SENML_JSON));
    assert_eq!(
        response.payload,
        br#"[{"n":"e/room/avg","u":"Cel","v":20},{"n":"a/t/code","vs":"2.05"},{"n":"c/t/code","vs":"5.04"},{"n":"c/t/reason","vs":"silent"}]"#
    );
    assert!(parse_json(&response.payload).is_ok());
    assert_eq!(response.options.get_uint(OptionNumber::MAX_AGE), Some(30));
}

#[test]
fn too_few_answers_are_a_problem_that_names_every_failure() {
    let outcomes = vec![number("a/t", 20.0), silent("b/t"), silent("c/t")];
    let refusal = collect(&question(Operation::List, 2), outcomes).expect_err("one of two");
    assert_eq!(refusal.code, Code::GATEWAY_TIMEOUT);
    let payload = refusal.into_response().payload;
    let detail = ProblemDetails::parse(&payload).expect("our own").detail.expect("a detail");
    assert_eq!(detail, "1 of 3 members answered, 2 are needed; b/t: 5.04 silent; c/t: 5.04 silent");
}

#[test]
fn an_error_that_all_members_agree_on_is_passed_on() {
    let refused = |label: &str| {
        let reason = Reason::Refused { code: Code::METHOD_NOT_ALLOWED, detail: String::new() };
        (label.to_string(), Err(reason))
    };
    let refusal = collect(&question(Operation::List, 1), vec![refused("a"), refused("b")]);
    assert_eq!(refusal.expect_err("no answer").code, Code::METHOD_NOT_ALLOWED);
}

#[test]
fn a_text_is_no_number_for_an_average() {
    let mut on = number("a/t", 0.0);
    if let Ok(answer) = &mut on.1 {
        answer.readings[0].value = Value::Text("on".into());
    }
    let refusal = collect(&question(Operation::Average, 1), vec![on]).expect_err("no number");
    assert_eq!(refusal.code, Code::BAD_GATEWAY);
    assert!(refusal.detail.contains("no number"), "{refusal:?}");
}

#[test]
fn writes_report_a_code_for_each_member() {
    let mut written = number("a/t", 0.0);
    if let Ok(answer) = &mut written.1 {
        answer.code = Code::CHANGED;
        answer.readings.clear();
    }
    let question = Question { writes: true, ..question(Operation::List, 1) };
    let answer = collect(&question, vec![written, silent("b/t")]).expect("one did it");
    assert_eq!(answer.code, Code::CHANGED);
    let text = String::from_utf8(response(&answer, None).payload).expect("text");
    assert_eq!(text, "a/t/code 2.04\nb/t ! 5.04 silent\n");
}

#[test]
fn a_result_of_more_records_than_senml_holds_is_refused_and_not_cut() {
    let reading = |number: usize| {
        Reading::plain(format!("room/{number}"), None, Value::Number(number as f64))
    };
    let readings = |count| (0..count).map(reading).collect();
    let (_, answer) = number("room", 0.0);
    let mut answer = answer.expect("a number");
    answer.readings = readings(RECORDS_MAX);
    for format in [ContentFormat::SENML_JSON, ContentFormat::SENML_CBOR] {
        assert_eq!(response(&answer, Some(format)).code, Code::CONTENT);
    }
    answer.failures = vec![("lamp".into(), Reason::Silent)];
    for format in [ContentFormat::SENML_JSON, ContentFormat::SENML_CBOR] {
        assert_eq!(response(&answer, Some(format)).code, Code::BAD_GATEWAY);
    }
    assert!(response(&answer, None).payload.ends_with(b"lamp ! 5.04 silent\n"));
}

/// The work grows with the readings, not with their square: members choose the names of their readings.
#[test]
#[expect(clippy::disallowed_methods, reason = "the time that the work takes is what is tested")]
fn many_quantities_take_no_long_time() {
    let reading =
        |name: String| Reading { quantity_at: 2, ..Reading::plain(name, None, Value::Number(1.0)) };
    let member = |member: usize| {
        let names = (0..300).map(|one| format!("m/{member}-{one}"));
        of_readings("m", names.map(reading).collect())
    };
    let outcomes: Vec<Outcome> = (0..200).map(member).collect();
    let started = std::time::Instant::now();
    let answer = collect(&question(Operation::Average, 1), outcomes).expect("enough answers");
    assert_eq!(answer.readings.len(), 60_000);
    assert!(started.elapsed().as_secs() < 20, "{:?}", started.elapsed());
}
