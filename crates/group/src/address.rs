//! Group addresses: `ff1e::89:N`, in sequence (S002 s4.2).

use core::net::Ipv6Addr;

use crate::params::{GROUP_FLAGS, GROUP_IDENTIFIER, GROUP_NUMBER_MAX};

/// The group address with this number and scope.
pub fn group_address(scope: u8, number: u16) -> Ipv6Addr {
    let first = 0xff00 | u16::from(GROUP_FLAGS) << 4 | u16::from(scope & 0x0f);
    Ipv6Addr::new(first, 0, 0, 0, 0, 0, GROUP_IDENTIFIER, number)
}

/// Allocator of the numbers of group addresses. None is given out twice before all of them have been (S002 s5.1.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Numbers {
    /// The number that is tried next.
    next: u16,
}

impl Default for Numbers {
    fn default() -> Self {
        Self { next: 1 }
    }
}

impl Numbers {
    /// Goes on from where numbers that were stored ended.
    pub(crate) const fn from_next(next: u16) -> Self {
        Self { next: if next == 0 { 1 } else { next } }
    }
    pub(crate) const fn next(self) -> u16 {
        self.next
    }
    /// A number that is not in use; `None` if all are.
    pub(crate) fn allocate(&mut self, is_used: impl Fn(u16) -> bool) -> Option<u16> {
        for _ in 0..GROUP_NUMBER_MAX {
            let number = self.next;
            self.next = if number == GROUP_NUMBER_MAX { 1 } else { number + 1 };
            if !is_used(number) {
                return Some(number);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_those_of_the_publication() {
        // Ishaq et al. 2016, s4.2: ff1e::89:1 is the first.
        assert_eq!(group_address(0xe, 1).to_string(), "ff1e::89:1");
        assert_eq!(group_address(3, 0x1234).to_string(), "ff13::89:1234");
    }

    #[test]
    fn a_number_comes_again_only_after_all_others() {
        let mut numbers = Numbers::default();
        let held = [3, 7];
        let mut seen = std::collections::BTreeSet::new();
        for _ in 0..usize::from(GROUP_NUMBER_MAX) - held.len() {
            let number = numbers.allocate(|number| held.contains(&number)).expect("a free one");
            assert!(seen.insert(number), "{number} came twice");
        }
        assert_eq!(numbers.allocate(|number| held.contains(&number)), Some(1));
        assert_eq!(numbers.allocate(|_| true), None);
    }
}
