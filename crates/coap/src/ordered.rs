//! A map in the order of its keys, for keys that come in ascending order and leave soon afterwards, the oldest first.
//!
//! Then an entry comes and leaves without a search and without an allocation. Any other order is right too: it costs a
//! search by halves, and the shorter side of the list moves.

use alloc::collections::VecDeque;

/// Entries in the order of their keys, each key once.
#[derive(Debug)]
pub(crate) struct Ordered<K, V>(VecDeque<(K, V)>);

impl<K: Ord, V> Ordered<K, V> {
    /// No entries, without allocation.
    pub(crate) const fn new() -> Self {
        Self(VecDeque::new())
    }
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
    /// The place of a key, or where it would be.
    fn place(&self, key: &K) -> Result<usize, usize> {
        match (self.0.front(), self.0.back()) {
            (_, Some((last, _))) if last < key => Err(self.0.len()),
            (Some((first, _)), _) if first == key => Ok(0),
            _ => self.0.binary_search_by(|(one, _)| one.cmp(key)),
        }
    }
    /// Adds an entry, in place of one with the same key.
    pub(crate) fn insert(&mut self, key: K, value: V) {
        match self.place(&key) {
            Ok(place) => self.0[place].1 = value,
            Err(place) => self.0.insert(place, (key, value)),
        }
    }
    pub(crate) fn get(&self, key: &K) -> Option<&V> {
        self.place(key).ok().map(|place| &self.0[place].1)
    }
    pub(crate) fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        let place = self.place(key).ok()?;
        Some(&mut self.0[place].1)
    }
    pub(crate) fn remove(&mut self, key: &K) -> Option<V> {
        match self.place(key).ok()? {
            0 => self.pop_first(),
            place => self.0.remove(place),
        }
        .map(|(_, value)| value)
    }
    /// The entry with the least key.
    pub(crate) fn first(&self) -> Option<&(K, V)> {
        self.0.front()
    }
    pub(crate) fn pop_first(&mut self) -> Option<(K, V)> {
        self.0.pop_front()
    }
    /// All entries, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &(K, V)> {
        self.0.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeMap;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_holds_what_a_sorted_map_holds(
            steps in proptest::collection::vec((0_u8..4, 0_u8..24), 0..200),
        ) {
            let (mut map, mut expected) = (Ordered::new(), BTreeMap::new());
            for (number, (step, key)) in steps.into_iter().enumerate() {
                match step {
                    0 | 1 => {
                        map.insert(key, number);
                        expected.insert(key, number);
                    }
                    2 => prop_assert_eq!(map.remove(&key), expected.remove(&key)),
                    _ => prop_assert_eq!(map.pop_first(), expected.pop_first()),
                }
                prop_assert_eq!(map.get(&key), expected.get(&key));
                prop_assert_eq!(map.get_mut(&key), expected.get_mut(&key));
                prop_assert_eq!(map.first().map(|one| one.0), expected.keys().next().copied());
                let all: Vec<_> = map.iter().copied().collect();
                prop_assert_eq!(all, expected.clone().into_iter().collect::<Vec<_>>());
                prop_assert_eq!(map.len(), expected.len());
            }
        }
    }
}
