//! Which wire or line a packet takes: a path of the fewest, found once for each end that packets go to.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use lowmesh_units::NodeId;

/// One step of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hop {
    /// Over the wire to this node.
    Wire(NodeId),
    /// Over the line with this index.
    Line(usize),
}

/// The paths between ends.
#[derive(Debug, Default)]
pub(super) struct Routes {
    lines: Vec<[NodeId; 2]>,
    wired: BTreeSet<NodeId>,
    /// The next hop of every node towards an end.
    towards: RefCell<BTreeMap<NodeId, BTreeMap<NodeId, Hop>>>,
}

impl Routes {
    /// Paths over these lines, and over a wire that connects `wired`.
    pub fn new(lines: Vec<[NodeId; 2]>, wired: BTreeSet<NodeId>) -> Self {
        Self { lines, wired, towards: RefCell::default() }
    }

    /// The first step from `from` to `to`, if there is a path.
    pub fn next(&self, from: NodeId, to: NodeId) -> Option<Hop> {
        let mut towards = self.towards.borrow_mut();
        towards.entry(to).or_insert_with(|| self.search(to)).get(&from).copied()
    }

    /// The next hop of every node that has a path to `to`, from the end backwards.
    fn search(&self, to: NodeId) -> BTreeMap<NodeId, Hop> {
        let (mut hops, mut open) = (BTreeMap::new(), VecDeque::from([to]));
        // The first node on the wire reaches all others on it, so a later one has nothing to add.
        let mut wired = Some(&self.wired);
        while let Some(node) = open.pop_front() {
            let lines = self.lines.iter().enumerate().filter_map(|(index, ends)| match *ends {
                [near, far] if near == node => Some((far, Hop::Line(index))),
                [near, far] if far == node => Some((near, Hop::Line(index))),
                _ => None,
            });
            let on_wire = wired.take_if(|wired| wired.contains(&node)).into_iter().flatten();
            let on_wire = on_wire.map(|other| (*other, Hop::Wire(node)));
            for (other, hop) in lines.chain(on_wire).collect::<Vec<_>>() {
                if other != to && !hops.contains_key(&other) {
                    hops.insert(other, hop);
                    open.push_back(other);
                }
            }
        }
        hops
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_has_the_fewest_steps() {
        // 0 and 1 and 2 on the wire, 3 behind 2, 4 behind 3; 5 is alone.
        let wired = [0, 1, 2].map(NodeId).into_iter().collect();
        let lines = vec![[NodeId(2), NodeId(3)], [NodeId(3), NodeId(4)]];
        let routes = Routes::new(lines, wired);
        let next = |from, to| routes.next(NodeId(from), NodeId(to));
        assert_eq!(next(0, 1), Some(Hop::Wire(NodeId(1))));
        assert_eq!(next(0, 4), Some(Hop::Wire(NodeId(2))));
        assert_eq!(next(2, 4), Some(Hop::Line(0)));
        assert_eq!(next(4, 0), Some(Hop::Line(1)));
        assert_eq!(next(3, 0), Some(Hop::Line(0)));
        assert_eq!((next(0, 5), next(5, 0), next(1, 1)), (None, None, None));
    }

    #[test]
    fn every_end_of_a_long_wire_is_one_step_away() {
        let wired = (0..1_000).map(NodeId).collect();
        let routes = Routes::new(vec![[NodeId(7), NodeId(5_000)]], wired);
        for to in (0..1_000).step_by(100) {
            let wire = Hop::Wire(NodeId(to));
            assert_eq!(routes.next(NodeId(999), NodeId(to)), Some(wire));
            assert_eq!(routes.next(NodeId(5_000), NodeId(to)), Some(Hop::Line(0)));
        }
    }
}
