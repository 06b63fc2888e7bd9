//! Sets of methods (RFC 7252 s5.8, RFC 8132).

use core::ops::BitOr;

use lowmesh_wire::coap::Code;

/// The methods that a resource has; joined with `|`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Methods(u8);

impl Methods {
    /// No method at all.
    pub const NONE: Self = Self(0);
    /// The method GET alone.
    pub const GET: Self = Self::of(Code::GET);
    /// The method POST alone.
    pub const POST: Self = Self::of(Code::POST);
    /// The method PUT alone.
    pub const PUT: Self = Self::of(Code::PUT);
    /// The method DELETE alone.
    pub const DELETE: Self = Self::of(Code::DELETE);
    /// FETCH (RFC 8132 s2).
    pub const FETCH: Self = Self::of(Code::FETCH);
    /// PATCH (RFC 8132 s3).
    pub const PATCH: Self = Self::of(Code::PATCH);
    /// iPATCH (RFC 8132 s3).
    pub const IPATCH: Self = Self::of(Code::IPATCH);
    /// The seven methods that have a meaning.
    pub const ALL: Self = Self(0xfe);

    /// The set of one method; of no method if nobody has given the code a meaning.
    pub const fn of(method: Code) -> Self {
        match method.0 {
            1..=7 => Self(1 << method.0),
            _ => Self::NONE,
        }
    }
    /// True if `method` is in the set.
    pub const fn contains(self, method: Code) -> bool {
        let one = Self::of(method);
        one.0 != 0 && self.0 & one.0 != 0
    }
}

impl BitOr for Methods {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_contains_what_was_joined_and_nothing_else() {
        let set = Methods::GET | Methods::IPATCH;
        for code in 0..=u8::MAX {
            let method = Code(code);
            let expected = method == Code::GET || method == Code::IPATCH;
            assert_eq!(set.contains(method), expected, "{method}");
            assert_eq!(Methods::ALL.contains(method), (1..=7).contains(&code), "{method}");
        }
    }
}
