//! Files: what they may say, and the line of what they may not.

use super::*;
use crate::group::{Configuration, GroupError, Mistake};

fn hex(octets: &[u8]) -> String {
    octets.iter().map(|octet| format!("{octet:02x}")).collect::<Vec<_>>().concat()
}

fn credential(number: u8) -> String {
    hex(&credential_of(SignatureAlgorithm::EdDsa, &[number; 32]).expect("a key"))
}

/// The lines of a good file.
fn lines() -> Vec<String> {
    vec![
        "master_secret,hex,\"0102030405060708090a0b0c0d0e0f10\"".to_owned(),
        "group_id,ascii,\"floor\"".to_owned(),
        "sender_id,hex,\"01\"".to_owned(),
        format!("private_key,hex,\"{}\"", hex(&[1; 32])),
        format!("credential,hex,\"{}\"", credential(1)),
        "member_id,hex,\"02\"".to_owned(),
        format!("member_credential,hex,\"{}\"", credential(2)),
    ]
}

fn refused(lines: &[String]) -> (usize, Mistake) {
    let error = Configuration::parse(&lines.join("\n")).expect_err("not allowed");
    (error.line, error.mistake)
}

#[test]
fn a_file_gives_a_group_with_its_members() {
    let mut lines = lines();
    lines.extend([
        "# more".to_owned(),
        "master_salt,hex,9e7ca92223786340".to_owned(),
        "sign_alg,text,EdDSA".to_owned(),
        format!("group_manager_credential,hex,{}", credential(9)),
        "responses,text,group".to_owned(),
        "replay_window,integer,16".to_owned(),
        "ssn_freq,integer,8".to_owned(),
        "sign_protected,bool,true".to_owned(),
        "member_id,ascii,lamp".to_owned(),
        format!("member_credential,hex,{}", credential(3)),
    ]);
    let group = Configuration::parse(&lines.join("\n")).expect("good").group();
    assert_eq!((group.group_id(), group.sender_id()), (&b"floor"[..], identity(1)));
    let members: Vec<_> = group.members().map(|one| one.as_bytes().to_vec()).collect();
    assert_eq!(members, [&b"\x02"[..], b"lamp"]);
    assert_eq!(group.reservation_needed().map(|one| one.end()), Some(8));
    assert_eq!(group.common.responses, Mode::Group);
    assert!(group.common.with_sign_protected);
}

#[test]
fn each_line_that_must_be_there_is_missed() {
    for (at, keyword) in ["master_secret", "group_id", "sender_id", "private_key", "credential"]
        .into_iter()
        .enumerate()
    {
        let mut lines = lines();
        lines.remove(at);
        assert_eq!(refused(&lines), (6, Mistake::Missing(keyword)));
    }
    assert_eq!(refused(&lines()[..5]), (5, Mistake::Missing("member_id")));
    assert_eq!(refused(&lines()[..6]), (6, Mistake::Pair));
}

#[test]
fn what_does_not_fit_is_named_with_its_line() {
    let replaced = |at: usize, line: String| {
        let mut lines = lines();
        lines[at] = line;
        refused(&lines)
    };
    let value = |keyword: &str, allowed| Mistake::Value { keyword: keyword.to_owned(), allowed };
    for (at, line, mistake) in [
        (0, "master_secret".to_owned(), Mistake::Form),
        (0, "secret,hex,01".to_owned(), Mistake::Keyword("secret".to_owned())),
        (2, "sender_id,hex,0".to_owned(), value("sender_id", "pairs of hexadecimal digits")),
        (2, "sender_id,ascii,eightlong".to_owned(), value("sender_id", "at most 7 octets")),
        (3, "private_key,hex,0102".to_owned(), value("private_key", "32 octets")),
        (4, format!("credential,hex,{}", credential(2)), Mistake::Group(GroupError::OtherKey)),
        (5, "member_id,hex,01".to_owned(), Mistake::Group(GroupError::Identity)),
        (
            6,
            "member_credential,hex,a0".to_owned(),
            Mistake::Group(GroupError::Credential(crate::group::CredentialError::Form)),
        ),
        (1, "replay_window,integer,64".to_owned(), value("replay_window", "1 to 63")),
        (1, "sign_alg,text,RS256".to_owned(), value("sign_alg", "-8, EdDSA, -7, ES256")),
        (1, "responses,text,none".to_owned(), value("responses", "group or pairwise")),
    ] {
        // An identity that is taken shows at the credential behind it.
        let shown = if at == 5 { 7 } else { at + 1 };
        assert_eq!(replaced(at, line.clone()), (shown, mistake), "{line}");
    }
    let mut twice = lines();
    twice.push(twice[0].clone());
    assert_eq!(refused(&twice), (8, Mistake::Repeated("master_secret".to_owned())));
    let mut pairs = lines();
    pairs.push("member_credential,hex,a0".to_owned());
    assert_eq!(refused(&pairs), (8, Mistake::Pair));
}

#[test]
fn no_error_shows_a_secret() {
    let mut lines = lines();
    lines[3] = "private_key,hex,\"5ec12e7\"".to_owned();
    let error = Configuration::parse(&lines.join("\n")).expect_err("not allowed");
    assert!(!format!("{error} {error:?}").contains("5ec1"), "{error}");
}
