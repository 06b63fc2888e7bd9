//! Why a request is refused: one response code with a problem detail (RFC 9290).

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;

use lowmesh_coap::ResponseTemplate;
use lowmesh_wire::coap::{Code, ContentFormat};
use lowmesh_wire::problem_details::ProblemDetails;

use crate::params::DETAIL_MAX;

/// A 4.xx or 5.xx response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The response code.
    pub code: Code,
    /// What sort of problem it is; the same each time.
    pub title: &'static str,
    /// Where the problem is, and what mends it.
    pub detail: String,
}

impl Refusal {
    /// A refusal with a detail, which is cut to [`DETAIL_MAX`] octets.
    pub fn new(code: Code, title: &'static str, detail: impl Into<String>) -> Self {
        let mut detail = detail.into();
        if detail.len() > DETAIL_MAX {
            let end = (0..=DETAIL_MAX - 3).rev().find(|end| detail.is_char_boundary(*end));
            detail.truncate(end.unwrap_or(0));
            detail.push_str("...");
        }
        Self { code, title, detail }
    }
    /// 4.00: a field of a profile, or an argument of a query.
    pub fn field(detail: impl Into<String>) -> Self {
        Self::new(Code::BAD_REQUEST, "malformed profile", detail)
    }
    /// The response.
    pub fn into_response(self) -> ResponseTemplate {
        let details = ProblemDetails {
            title: Some(Cow::Borrowed(self.title)),
            detail: (!self.detail.is_empty()).then_some(Cow::Owned(self.detail)),
            ..ProblemDetails::default()
        };
        let mut payload = Vec::new();
        details.emit(&mut payload);
        ResponseTemplate::new(self.code)
            .with_payload(payload)
            .with_format(ContentFormat::PROBLEM_DETAILS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_a_response_with_title_and_detail() {
        let response = Refusal::field("enr: 0 is not 1 to 256").into_response();
        assert_eq!(response.code, Code::BAD_REQUEST);
        let details = ProblemDetails::parse(&response.payload).expect("our own");
        assert_eq!(details.title.as_deref(), Some("malformed profile"));
        assert_eq!(details.detail.as_deref(), Some("enr: 0 is not 1 to 256"));
    }

    #[test]
    fn a_long_detail_is_cut_between_characters() {
        let refusal = Refusal::field("ä".repeat(DETAIL_MAX));
        assert!(refusal.detail.len() <= DETAIL_MAX);
        assert!(refusal.detail.ends_with("ä..."));
    }
}
