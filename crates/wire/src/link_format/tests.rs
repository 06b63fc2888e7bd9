//! Tests of the link format: the examples of RFC 6690 s5, filters, bad documents.

use proptest::prelude::*;

use super::*;

/// RFC 6690 s5, the third example, in one line.
const EXAMPLE: &str = "</sensors>;ct=40;title=\"Sensor Index\",\
     </sensors/temp>;rt=\"temperature-c\";if=\"sensor\",\
     </sensors/light>;rt=\"light-lux\";if=\"sensor\",\
     <http://www.example.com/sensors/t123>;anchor=\"/sensors/temp\";rel=\"describedby\",\
     </t>;anchor=\"/sensors/temp\";rel=\"alternate\"";

fn all(document: &str) -> Result<Vec<Link<'_>>, DecodeError> {
    links(document).collect()
}

fn targets<'a>(document: &'a str, argument: &str) -> Vec<&'a str> {
    let filter = Filter::parse(argument).expect("a filter");
    let links = all(document).expect("a document");
    links.iter().filter(|link| filter.matches(link)).map(|link| link.target).collect()
}

#[test]
fn the_example_of_rfc_6690_is_read_and_written_again() {
    let links = all(EXAMPLE).expect("the RFC's own");
    assert_eq!(links.len(), 5);
    assert_eq!(links[0].attribute("title").as_deref(), Some("Sensor Index"));
    assert_eq!(links[3].target, "http://www.example.com/sensors/t123");
    let mut writer = Writer::new();
    for link in &links {
        writer.link(link.target);
        for attribute in link.attributes() {
            match (attribute.name, attribute.value()) {
                ("ct", Some(value)) => writer.number("ct", value.parse().expect("a number")),
                (name, Some(value)) => writer.quoted(name, &value),
                (name, None) => writer.flag(name),
            };
        }
    }
    assert_eq!(writer.finish(), EXAMPLE);
}

#[test]
fn the_empty_document_has_no_link() {
    assert_eq!(all(""), Ok(vec![]));
    assert_eq!(all(" \r\n"), Ok(vec![]));
}

#[test]
fn a_comma_or_semicolon_inside_quotes_or_a_target_separates_nothing() {
    let document = r#"</a,b;c>;title="x,y;z>",</d>"#;
    let links = all(document).expect("well-formed");
    assert_eq!(links.len(), 2);
    assert_eq!(links[0].target, "/a,b;c");
    assert_eq!(links[0].attribute("title").as_deref(), Some("x,y;z>"));
}

#[test]
fn escapes_in_quotes_are_undone_and_written() {
    let mut writer = Writer::new();
    writer.link("/a").quoted("title", r#"say "hi" \o/"#).quoted("n", "");
    let document = writer.finish();
    assert_eq!(document, r#"</a>;title="say \"hi\" \\o/";n="""#);
    let links = all(&document).expect("own output");
    assert_eq!(links[0].attribute("title").as_deref(), Some(r#"say "hi" \o/"#));
    assert_eq!(links[0].attribute("n").as_deref(), Some(""));
}

#[test]
fn blanks_between_parts_are_skipped() {
    let links = all("</a> ; ct = 40 ; obs ,\r\n </b>").expect("lenient");
    assert_eq!(links.len(), 2);
    assert_eq!(links[0].attribute("ct").as_deref(), Some("40"));
    assert_eq!(links[0].attribute("obs").as_deref(), Some(""));
}

#[test]
fn a_bad_document_is_an_error_that_names_field_and_octet() {
    for (document, field, offset) in [
        ("/a", "target", 0),
        ("</a", "target", 1),
        ("</a>,", "target", 5),
        ("</a></b>", "separator", 4),
        ("</a>;", "attribute name", 5),
        ("</a>;ct=", "attribute value", 8),
        ("</a>;ct=,</b>", "attribute value", 8),
        ("</a>;rt=\"open", "attribute value", 9),
        ("</a>;rt=\"open\\\"", "attribute value", 9),
        ("</a>;ct=4 0", "separator", 10),
        ("</a>;\u{e4}=1", "attribute name", 5),
    ] {
        let error = all(document).expect_err(document);
        assert_eq!((error.field, error.offset), (field, offset), "{document}");
    }
}

#[test]
fn the_walk_ends_with_its_first_error() {
    assert_eq!(links("</a>,b,</c>").count(), 2);
}

#[test]
fn every_prefix_of_a_document_is_shorter_or_an_error() {
    let whole = all(EXAMPLE).expect("the RFC's own");
    for end in 0..EXAMPLE.len() {
        if let Ok(shorter) = all(&EXAMPLE[..end]) {
            assert_ne!(shorter, whole, "{end} octets");
        }
    }
}

#[test]
fn a_filter_matches_whole_values_and_with_a_star_their_start() {
    assert_eq!(targets(EXAMPLE, "href=/sensors"), ["/sensors"]);
    assert_eq!(targets(EXAMPLE, "href=/sensors*").len(), 3);
    assert_eq!(targets(EXAMPLE, "rt=temp*"), ["/sensors/temp"]);
    assert_eq!(targets(EXAMPLE, "rt=temp"), Vec::<&str>::new());
    assert_eq!(targets(EXAMPLE, "title=Sensor*"), ["/sensors"]);
    assert_eq!(targets(EXAMPLE, "rt=*").len(), 2);
}

#[test]
fn a_filter_on_a_list_matches_any_member_but_on_a_title_only_all_of_it() {
    let document = r#"</a>;rt="light temp";ct="0 40",</b>;title="light temp""#;
    assert_eq!(targets(document, "rt=temp"), ["/a"]);
    assert_eq!(targets(document, "ct=40"), ["/a"]);
    assert_eq!(targets(document, "title=temp"), Vec::<&str>::new());
}

#[test]
fn an_argument_without_name_or_equals_sign_is_no_filter() {
    for argument in ["obs", "=x", "", "a b=c"] {
        assert_eq!(Filter::parse(argument), None, "{argument}");
    }
}

proptest! {
    #[test]
    fn any_text_is_links_or_an_error_within_it(text in "[</>;,= a\"\\\\*\u{e4}]{0,24}") {
        match all(&text) {
            Ok(links) => for link in links {
                prop_assert!(text.contains(link.target));
                prop_assert!(link.attributes().all(|one| !one.name.is_empty()));
            },
            Err(error) => prop_assert!(error.offset <= text.len()),
        }
    }

    #[test]
    fn what_is_written_reads_back(target in "[^>]{0,12}", value in ".{0,12}") {
        let mut writer = Writer::new();
        writer.link(&target).quoted("v", &value).flag("f");
        let document = writer.finish();
        let links = all(&document).expect("own output");
        prop_assert_eq!(links[0].target, &target);
        let read = links[0].attribute("v").expect("written");
        prop_assert_eq!(&*read, &value[..]);
        prop_assert_eq!(links[0].attributes().count(), 2);
    }
}
