//! The file format of libcoap.

use proptest::prelude::*;

use super::*;
use crate::Mistake;

/// The example of the manual page, for a server.
const SERVER: &str = r#"
# Master Secret (same for both client and server)
master_secret,hex,"0102030405060708090a0b0c0d0e0f10"
master_salt,hex,"9e7ca92223786340"
sender_id,ascii,"server"
recipient_id,ascii,"client"
replay_window,integer,30
aead_alg,integer,10
hkdf_alg,integer,-10
"#;

fn mistake(line: &str) -> (usize, Mistake) {
    let text = format!("master_secret,ascii,x\nsender_id,ascii,a\n{line}\nrecipient_id,ascii,b");
    let error = Configuration::parse(&text).expect_err(line);
    (error.line, error.mistake)
}

#[test]
fn the_example_of_the_manual_gives_a_context() {
    let configuration = Configuration::parse(SERVER).expect("libcoap's own");
    let contexts = configuration.contexts();
    assert_eq!(contexts.len(), 1);
    assert_eq!(contexts[0].sender_id().as_bytes(), b"server");
    assert_eq!(contexts[0].recipient_id().as_bytes(), b"client");
    assert!(configuration.echo_after_loss());
}

#[test]
fn a_server_may_have_several_recipients_and_names_for_algorithms() {
    let text = "master_secret,ascii,s\r\nsender_id,hex,\r\nrecipient_id,hex,01\r\n\
                recipient_id,hex,\"02\"\r\naead_alg,text,\"AES-CCM-16-64-128\"\r\n\
                hkdf_alg,text,direct+HKDF-SHA-256\nrfc8613_b_1_2,bool,false\nssn_freq,integer,8\n\
                rfc8613_b_2,bool,false\nid_context,ascii,ctx";
    let configuration = Configuration::parse(text).expect("all allowed");
    let ids: Vec<_> = configuration.contexts().iter().map(SecurityContext::recipient_id).collect();
    assert_eq!(ids, [identity(&[1]), identity(&[2])]);
    assert!(!configuration.echo_after_loss());
}

#[test]
fn ssn_freq_says_how_often_is_stored() {
    let text = SERVER.to_owned() + "ssn_freq,integer,5";
    let mut context = Configuration::parse(&text).expect("allowed").contexts().remove(0);
    let mut writes = 0;
    for _ in 0..10 {
        if let Some(reservation) = context.reservation_needed() {
            context.confirm(reservation);
            writes += 1;
        }
        context.protect_request(&get("/a")).expect("plain");
    }
    assert_eq!(writes, 2);
}

#[test]
fn a_mistake_is_told_with_its_line() {
    assert_eq!(mistake("replay_window"), (3, Mistake::Form));
    assert_eq!(mistake("replay_windw,integer,3"), (3, Mistake::Keyword("replay_windw".into())));
    assert_eq!(mistake("sender_id,ascii,c"), (3, Mistake::Repeated("sender_id".into())));
    assert_eq!(mistake("recipient_id,ascii,b").0, 4);
    assert_eq!(mistake("recipient_id,ascii,a"), (4, Mistake::SameIdentity));
    let unsupported = Mistake::Unsupported("break_sender_key".into());
    assert_eq!(mistake("break_sender_key,bool,true"), (3, unsupported));
    for (line, message) in [
        (
            "recipient_id,ascii,12345678",
            "line 3: recipient_id cannot be 12345678; allowed: at most 7 octets",
        ),
        ("replay_window,integer,64", "line 3: replay_window cannot be 64; allowed: 1 to 63"),
        ("aead_alg,integer,24", "line 3: aead_alg cannot be 24; allowed: AES-CCM-16-64-128"),
        ("ssn_freq,hex,01", "line 3: ssn_freq cannot be given as \"hex\"; allowed: integer"),
        (
            "recipient_id,hex,0",
            "line 3: recipient_id cannot be the hex 0; allowed: pairs of hexadecimal digits",
        ),
    ] {
        let (line, mistake) = mistake(line);
        assert_eq!(format!("line {line}: {mistake}"), message);
    }
}

#[test]
fn what_is_missing_is_named_and_a_secret_is_not_shown() {
    let missing = |text| Configuration::parse(text).expect_err("incomplete").mistake;
    assert_eq!(missing(""), Mistake::Missing("master_secret"));
    assert_eq!(missing("master_secret,ascii,x"), Mistake::Missing("sender_id"));
    assert_eq!(
        missing("master_secret,ascii,x\nsender_id,ascii,a"),
        Mistake::Missing("recipient_id")
    );
    let shown = missing("master_secret,hex,abcdefgh").to_string();
    assert!(!shown.contains("abcdefgh"), "{shown}");
}

proptest! {
    #[test]
    fn any_text_is_a_configuration_or_a_mistake_in_one_of_its_lines(
        lines in prop::collection::vec("[a-z_]{0,14},[a-z]{0,8},[\"a-f0-9é]{0,9}|.{0,20}", 0..6),
    ) {
        let text = lines.join("\n");
        if let Err(error) = Configuration::parse(&text) {
            prop_assert!(error.line >= 1 && error.line <= text.lines().count().max(1));
        }
    }
}
