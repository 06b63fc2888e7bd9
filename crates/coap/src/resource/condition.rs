//! Conditional requests: If-Match and If-None-Match (RFC 7252 s5.10.8).

use lowmesh_wire::coap::{Code, OptionNumber, Options};

use super::EntityTag;

/// What exists at the target of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// The request has no precondition.
    Absent,
    /// A resource, whose representation has this tag, if tags are kept for it.
    Present(Option<EntityTag>),
}

/// Checks the conditions of a request; `Err` is the code to answer with, and the method MUST NOT be performed.
///
/// ```
/// use lowmesh_coap::resource::{EntityTag, State, check_conditions};
/// use lowmesh_wire::coap::{Code, OptionNumber, Options};
/// let mut options = Options::new();
/// options.insert(OptionNumber::IF_NONE_MATCH, b"");
/// assert_eq!(check_conditions(&options, State::Absent), Ok(()));
/// assert_eq!(check_conditions(&options, State::Present(None)), Err(Code::PRECONDITION_FAILED));
/// ```
pub fn check_conditions(options: &Options, state: State) -> Result<(), Code> {
    // RFC 7252 s5.10.8.2: the target must not exist.
    let unwanted = options.get(OptionNumber::IF_NONE_MATCH).is_some();
    if unwanted && state != State::Absent {
        return Err(Code::PRECONDITION_FAILED);
    }
    // RFC 7252 s5.10.8.1: one of the tags must fit; the empty one fits whatever exists.
    let mut wanted = options.iter().values(OptionNumber::IF_MATCH).peekable();
    let fits = |octets: &[u8]| match state {
        State::Absent => false,
        State::Present(tag) => octets.is_empty() || tag.is_some_and(|tag| tag.as_bytes() == octets),
    };
    if wanted.peek().is_some() && !wanted.any(fits) {
        return Err(Code::PRECONDITION_FAILED);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const FAILED: Result<(), Code> = Err(Code::PRECONDITION_FAILED);

    fn present(octets: &[u8]) -> State {
        State::Present(EntityTag::new(octets))
    }

    #[test]
    fn a_request_without_conditions_is_always_performed() {
        for state in [State::Absent, State::Present(None), present(b"a")] {
            assert_eq!(check_conditions(&Options::new(), state), Ok(()));
        }
    }

    #[test]
    fn one_of_several_tags_has_to_fit() {
        let mut options = Options::new();
        options.insert(OptionNumber::IF_MATCH, b"a");
        options.insert(OptionNumber::IF_MATCH, b"b");
        assert_eq!(check_conditions(&options, present(b"b")), Ok(()));
        assert_eq!(check_conditions(&options, present(b"c")), FAILED);
        assert_eq!(check_conditions(&options, State::Present(None)), FAILED);
        assert_eq!(check_conditions(&options, State::Absent), FAILED);
    }

    #[test]
    fn the_empty_tag_asks_only_for_existence() {
        let mut options = Options::new();
        options.insert(OptionNumber::IF_MATCH, b"");
        assert_eq!(check_conditions(&options, present(b"c")), Ok(()));
        assert_eq!(check_conditions(&options, State::Present(None)), Ok(()));
        assert_eq!(check_conditions(&options, State::Absent), FAILED);
    }
}
