//! Names that a mistyped name was probably meant to be.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

/// The name among `names` that `wrong` resembles most; `None` if no name is near enough to be a typing error.
///
/// ```
/// use lowmesh_registry::similar;
/// assert_eq!(similar("cocao", ["default", "cocoa"]).as_deref(), Some("cocoa"));
/// assert_eq!(similar("zebra", ["default", "cocoa"]), None);
/// ```
pub fn similar<'n>(wrong: &str, names: impl IntoIterator<Item = &'n str>) -> Option<String> {
    let letters = wrong.chars().count();
    let near = |name: &str, distance: usize| {
        // A third of the letters wrong, or another ending of the same word.
        let stem = wrong.chars().zip(name.chars()).take_while(|(a, b)| a == b).count();
        distance <= letters.max(3) / 3 || (stem >= 3 && stem * 4 >= letters * 3)
    };
    names
        .into_iter()
        .map(|name| (distance(wrong, name), name))
        .filter(|(distance, name)| near(name, *distance))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name.to_string())
}

/// Letters to insert, remove or replace, and neighbours to swap, until one word is the other (optimal string alignment).
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    // Distances of the first letters of `a` from those of `b`: of two letters of `a` fewer, of one fewer, of all so far.
    let mut before = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = Vec::with_capacity(b.len() + 1);
        row.push(i);
        for j in 1..=b.len() {
            let replaced = last[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut least = replaced.min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                let swapped: &Vec<usize> = &before;
                least = least.min(swapped[j - 2] + 1);
            }
            row.push(least);
        }
        before = core::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_near_names_are_suggested() {
        assert_eq!(similar("gird", ["grid", "line", "star"]).as_deref(), Some("grid"));
        assert_eq!(similar("retry", ["retries", "kind"]).as_deref(), Some("retries"));
        assert_eq!(similar("spaceing_m", ["spacing_m", "rows"]).as_deref(), Some("spacing_m"));
        assert_eq!(similar("zebra", ["grid", "line", "star"]), None);
        assert_eq!(similar("x", []), None);
    }

    #[test]
    fn distances_count_letters_and_swaps_of_neighbours() {
        for (a, b, expected) in [
            ("", "", 0),
            ("", "abc", 3),
            ("abc", "", 3),
            ("kitten", "sitting", 3),
            ("ab", "ba", 1),
            ("cocoa", "cocao", 1),
            ("ca", "abc", 3),
        ] {
            assert_eq!(distance(a, b), expected, "{a} {b}");
        }
    }
}
