//! Hop-Limit of requests between managers (RFC 8768): entities of two managers can contain each other, and no manager sees
//! the whole cycle. A request ends with 5.08 after a number of managers.
//!
//! Only requests for what looks like an entity of another manager have the option; sensors do not.

use lowmesh_coap::RequestTemplate;
use lowmesh_coap::params::HOP_LIMIT_DEFAULT;
use lowmesh_wire::coap::uri::Uri;
use lowmesh_wire::coap::{Code, OptionNumber, Options};

use crate::params::ROOT;
use crate::refusal::Refusal;

/// The limit that requests to members get, by the request of the client that they serve. An endpoint has refused values
/// outside of 1 to 255.
pub(crate) fn onward(options: &Options) -> Result<u32, Refusal> {
    let limit = options.get_uint(OptionNumber::HOP_LIMIT).unwrap_or(HOP_LIMIT_DEFAULT);
    // RFC 8768 s3: each hop takes one away, and forwards nothing that has none left.
    let left = limit.saturating_sub(1);
    if left == 0 {
        let detail = "too many managers one after the other: do their entities form a cycle?";
        return Err(Refusal::new(Code::HOP_LIMIT_REACHED, "hop limit reached", detail));
    }
    Ok(left)
}

/// Limits a request for a resource, if that may be an entity.
pub(crate) fn limit(template: &mut RequestTemplate, uri: &Uri, limit: u32) {
    if matches!(&uri.path[..], [root, _] if root == ROOT) {
        template.options.set_uint(OptionNumber::HOP_LIMIT, limit);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(value: &[u8]) -> Options {
        let mut options = Options::new();
        options.insert(OptionNumber::HOP_LIMIT, value);
        options
    }

    #[test]
    fn each_manager_lowers_the_limit_and_the_last_one_refuses() {
        assert_eq!(onward(&Options::new()), Ok(HOP_LIMIT_DEFAULT - 1));
        assert_eq!((onward(&with(&[255])), onward(&with(&[2]))), (Ok(254), Ok(1)));
        let refused = onward(&with(&[1])).map_err(|refusal| refusal.code);
        assert_eq!(refused, Err(Code::HOP_LIMIT_REACHED));
    }

    #[test]
    fn only_entities_get_a_limit() {
        for (uri, has_limit) in [("coap://a/e/room", true), ("coap://a/t", false)] {
            let mut template = RequestTemplate::get("/");
            limit(&mut template, &uri.parse().expect("a URI"), 7);
            let expected = has_limit.then_some(&[7][..]);
            assert_eq!(template.options.get(OptionNumber::HOP_LIMIT), expected);
        }
    }
}
