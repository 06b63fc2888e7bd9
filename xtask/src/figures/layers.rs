//! Where the crates of the architecture go: rows by floor, an order with few crossings, and the arrows that say something
//! that no other arrow implies.

use std::collections::{BTreeMap, BTreeSet};

use crate::metadata::Package;

/// The share of a row from which on one arrow of the row replaces those of its boxes.
const COMMON: f64 = 0.8;
/// Boxes that a row needs for that.
const COMMON_MIN: usize = 4;
/// Sweeps over the rows that shorten arrows.
const SWEEPS: usize = 12;

/// Names of the crates that each crate uses.
pub type Uses = BTreeMap<String, BTreeSet<String>>;

/// An arrow.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Arrow {
    /// Where it begins.
    pub from: Start,
    /// The crate at its end.
    pub to: String,
}

/// Where an arrow begins.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Start {
    /// At a crate.
    Crate(String),
    /// At a whole row, from above counted from 0.
    Row(usize),
}

/// What lies in a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// A crate.
    Crate(String),
    /// Room for an arrow that crosses the row, by its number.
    Passage(usize),
}

/// Rows from above, each from left to right, and the arrows between them.
#[derive(Debug)]
pub struct Layers {
    /// The rows.
    pub rows: Vec<Vec<Place>>,
    /// The arrows.
    pub arrows: Vec<Arrow>,
}

impl Layers {
    /// Arranges crates; `rows` has their names from above.
    pub fn arrange(rows: &[Vec<String>], uses: &Uses) -> Self {
        let arrows = arrows(rows, uses);
        let row_of = |name: &String| rows.iter().position(|row| row.contains(name));
        let mut places: Vec<Vec<Place>> =
            rows.iter().map(|row| row.iter().cloned().map(Place::Crate).collect()).collect();
        for (number, arrow) in arrows.iter().enumerate() {
            let start = match &arrow.from {
                Start::Crate(name) => row_of(name),
                Start::Row(row) => Some(*row),
            };
            if let (Some(start), Some(end)) = (start, row_of(&arrow.to)) {
                for row in &mut places[(start + 1).min(end)..end] {
                    row.push(Place::Passage(number));
                }
            }
        }
        let mut layers = Self { rows: places, arrows };
        for _ in 0..SWEEPS {
            for row in 0..layers.rows.len() {
                layers.order(row);
            }
            for row in (0..layers.rows.len()).rev() {
                layers.order(row);
            }
        }
        layers
    }

    /// Orders a row by the mean place of what its places are joined with.
    fn order(&mut self, row: usize) {
        let means: Vec<f64> = (0..self.rows[row].len()).map(|at| self.mean(row, at)).collect();
        let mut order: Vec<usize> = (0..means.len()).collect();
        order.sort_by(|a, b| means[*a].total_cmp(&means[*b]));
        let mut sorted: Vec<Place> = order.iter().map(|at| self.rows[row][*at].clone()).collect();
        for arrow in &self.arrows {
            self.bring_together(&mut sorted, arrow);
        }
        self.rows[row] = sorted;
    }

    /// Puts a crate next to the one of its own row that it uses: on the left, and the next such crate on the right.
    fn bring_together(&self, row: &mut Vec<Place>, arrow: &Arrow) {
        let Start::Crate(from) = &arrow.from else { return };
        let find = |row: &[Place], name: &str| {
            row.iter().position(|place| matches!(place, Place::Crate(other) if other == name))
        };
        let (Some(at), Some(_)) = (find(row, from), find(row, &arrow.to)) else { return };
        let place = row.remove(at);
        let Some(target) = find(row, &arrow.to) else { return };
        let users = self.arrows.iter().filter(|other| other.to == arrow.to);
        let earlier = users
            .take_while(|other| *other != arrow)
            .filter(|other| matches!(&other.from, Start::Crate(name) if find(row, name).is_some()));
        row.insert(target + earlier.count() % 2, place);
    }

    /// The mean place, from 0 at the left to 1 at the right, of what a place is joined with in the rows around it.
    fn mean(&self, row: usize, at: usize) -> f64 {
        let place = &self.rows[row][at];
        let around = [row.checked_sub(1), Some(row + 1)].into_iter().flatten();
        let mut shares = Vec::new();
        for other in around.filter(|other| *other < self.rows.len()) {
            let count = self.rows[other].len() as f64;
            for (index, neighbour) in self.rows[other].iter().enumerate() {
                if self.joined(place, neighbour) {
                    shares.push((index as f64 + 0.5) / count);
                }
            }
        }
        let own = (at as f64 + 0.5) / self.rows[row].len() as f64;
        if shares.is_empty() { own } else { shares.iter().sum::<f64>() / shares.len() as f64 }
    }

    /// Whether an arrow joins two places of neighbouring rows.
    fn joined(&self, a: &Place, b: &Place) -> bool {
        let ends = |arrow: &Arrow, name: &String| {
            arrow.to == *name || arrow.from == Start::Crate(name.clone())
        };
        match (a, b) {
            (Place::Crate(a), Place::Crate(b)) => {
                self.arrows.iter().any(|arrow| ends(arrow, a) && ends(arrow, b))
            }
            (Place::Crate(name), Place::Passage(number))
            | (Place::Passage(number), Place::Crate(name)) => ends(&self.arrows[*number], name),
            (Place::Passage(a), Place::Passage(b)) => a == b,
        }
    }
}

/// What the packages use, without tests' own dependencies, for the crates in `rows` alone.
pub fn uses(packages: &[Package], rows: &[Vec<String>]) -> Uses {
    let shown = |name: &String| rows.iter().any(|row| row.contains(name));
    let used = |package: &Package| {
        let ours =
            package.dependencies.iter().filter(|dependency| dependency.ours && !dependency.dev);
        ours.map(|dependency| dependency.name.clone()).filter(shown).collect()
    };
    packages
        .iter()
        .filter(|package| shown(&package.name))
        .map(|p| (p.name.clone(), used(p)))
        .collect()
}

/// The arrows that no others imply; what most boxes of a row use is one arrow of the row.
fn arrows(rows: &[Vec<String>], uses: &Uses) -> Vec<Arrow> {
    let mut arrows = BTreeSet::new();
    let mut common = BTreeSet::new();
    for (number, row) in rows.iter().enumerate().filter(|(_, row)| row.len() >= COMMON_MIN) {
        let reached: Vec<BTreeSet<String>> = row.iter().map(|name| reach(name, uses)).collect();
        let below: BTreeSet<&String> =
            reached.iter().flatten().filter(|name| !row.contains(name)).collect();
        let many = |name: &&String| {
            let users = reached.iter().filter(|set| set.contains(*name)).count();
            users as f64 >= COMMON * row.len() as f64
        };
        let shared: BTreeSet<String> = below.into_iter().filter(many).cloned().collect();
        for name in &shared {
            if !shared.iter().any(|other| reach(other, uses).contains(name)) {
                arrows.insert(Arrow { from: Start::Row(number), to: name.clone() });
            }
            common.extend(row.iter().map(|user| (user.clone(), name.clone())));
        }
    }
    for (name, used) in uses {
        for target in used {
            let implied =
                used.iter().any(|other| other != target && reach(other, uses).contains(target));
            if !implied && !common.contains(&(name.clone(), target.clone())) {
                arrows.insert(Arrow { from: Start::Crate(name.clone()), to: target.clone() });
            }
        }
    }
    arrows.into_iter().collect()
}

/// Everything that a crate uses, directly or through others.
fn reach(name: &str, uses: &Uses) -> BTreeSet<String> {
    let mut reached = BTreeSet::new();
    let mut open: Vec<&String> = uses.get(name).into_iter().flatten().collect();
    while let Some(next) = open.pop() {
        if reached.insert(next.clone()) {
            open.extend(uses.get(next).into_iter().flatten());
        }
    }
    reached
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    fn uses_of(text: &str) -> Uses {
        let line = |line: &str| {
            let (name, used) = line.split_once(':').expect("name: used");
            (name.to_owned(), names(used).into_iter().collect())
        };
        text.split(';').map(line).collect()
    }

    fn arrow(from: &str, to: &str) -> Arrow {
        Arrow { from: Start::Crate(from.to_owned()), to: to.to_owned() }
    }

    #[test]
    fn an_arrow_that_others_imply_is_left_out() {
        let rows = ["top", "mid", "low"].map(names);
        let found = arrows(&rows, &uses_of("top:mid low;mid:low;low:"));
        assert_eq!(found, [arrow("mid", "low"), arrow("top", "mid")]);
    }

    #[test]
    fn what_a_row_has_in_common_is_one_arrow() {
        let rows = ["a b c d e", "x y"].map(names);
        let found = arrows(&rows, &uses_of("a:x;b:x;c:x y;d:x;e:;x:;y:"));
        let row = Arrow { from: Start::Row(0), to: "x".to_owned() };
        assert_eq!(found, [arrow("c", "y"), row]);
    }

    #[test]
    fn a_long_arrow_has_a_passage_in_each_row_that_it_crosses() {
        let rows = ["top other", "mid", "low"].map(names);
        let layers = Layers::arrange(&rows, &uses_of("top:mid;other:low;mid:;low:"));
        let number = layers.arrows.iter().position(|one| *one == arrow("other", "low"));
        let passage = Place::Passage(number.expect("it is there"));
        assert!(layers.rows[1].contains(&passage) && layers.rows[1].len() == 2);
        assert_eq!((layers.rows[0].len(), layers.rows[2].len()), (2, 1));
    }

    #[test]
    fn rows_are_ordered_so_that_arrows_do_not_cross() {
        let rows = ["a b", "x y"].map(names);
        let layers = Layers::arrange(&rows, &uses_of("a:y;b:x;x:;y:"));
        let straight =
            |row: &[Place]| matches!(&row[0], Place::Crate(name) if name == "a" || name == "y");
        assert_eq!(straight(&layers.rows[0]), straight(&layers.rows[1]));
    }

    #[test]
    fn crates_of_one_row_that_use_each_other_are_neighbours() {
        let rows = ["top", "coap x y oscore group"].map(names);
        let layers = Layers::arrange(&rows, &uses_of("top:x y;coap:;x:;y:;oscore:coap;group:coap"));
        let at = |name: &str| {
            layers.rows[1].iter().position(|place| *place == Place::Crate(name.to_owned()))
        };
        let middle = at("coap").expect("it is there");
        for name in ["oscore", "group"] {
            assert_eq!(at(name).expect("it is there").abs_diff(middle), 1, "{:?}", layers.rows);
        }
    }
}
