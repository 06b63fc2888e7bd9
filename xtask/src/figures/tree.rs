//! Panel a: the routing tree, one column a hop, links drawn by their measured quality.

use super::links::Qualities;
use super::svg::{Anchor, GREEN, INK, ORANGE, Stroke, Svg, VERMILLION};
use super::trace::Node;

/// Classes of link quality: from this share on, drawn so, called so.
const CLASSES: [(f64, Stroke, &str); 3] = [
    (0.9, Stroke::solid(GREEN, 3.0), "0.9 to 1"),
    (0.6, Stroke::solid(ORANGE, 2.0), "0.6 to 0.9"),
    (0.0, Stroke { colour: VERMILLION, width: 1.6, dashed: true }, "below 0.6"),
];
/// Radius of a node; smaller where rows are close.
const RADIUS: f64 = 9.0;
/// Room below the tree for the numbers of hops and the legend.
const FOOT: f64 = 72.0;

/// Draws the tree into the area.
pub fn draw(svg: &mut Svg, children: &[Vec<Node>], links: &Qualities, area: (f64, f64, f64, f64)) {
    let (left, top, width, height) = area;
    let places = places(children);
    let columns = places.iter().flatten().map(|place| place.0).fold(1.0, f64::max);
    let rows = places.iter().flatten().map(|place| place.1).fold(1.0, f64::max);
    let step = (width - 4.0 * RADIUS) / columns;
    let spread = (height - FOOT - 2.0 * RADIUS) / rows;
    let pixels = |(column, row): (f64, f64)| {
        (left + RADIUS + 4.0 + column * step, top + RADIUS + row * spread)
    };
    for (parent, child) in
        children.iter().enumerate().flat_map(|(p, c)| c.iter().map(move |c| (p, *c)))
    {
        if let (Some(from), Some(to)) = (places[parent], places[child]) {
            let quality = links.get(child, parent);
            let class = CLASSES.iter().find(|(least, ..)| quality >= *least);
            let (_, stroke, _) = class.unwrap_or(&CLASSES[2]);
            svg.curve(pixels(from), pixels(to), *stroke);
        }
    }
    for (node, place) in places.iter().enumerate() {
        let Some(place) = *place else { continue };
        let (x, y) = pixels(place);
        let (fill, word) = if node == 0 { (INK, "#ffffff") } else { ("#ffffff", INK) };
        svg.disk((x, y), RADIUS.min(spread / 2.0 - 0.5), fill, INK);
        svg.tiny(x, y + 3.8, &node.to_string(), word);
    }
    let bottom = top + height - FOOT + 24.0;
    for hops in 0..=columns as u32 {
        let (x, _) = pixels((f64::from(hops), 0.0));
        svg.small(x, bottom, &hops.to_string(), Anchor::Middle);
    }
    svg.small(left + width / 2.0, bottom + 22.0, "hops to the root (node 0)", Anchor::Middle);
    legend(svg, left, bottom + 52.0);
}

fn legend(svg: &mut Svg, left: f64, y: f64) {
    svg.small(left, y, "share of frames that arrive:", Anchor::Start);
    let mut x = left + 214.0;
    for (row, (_, stroke, name)) in CLASSES.into_iter().enumerate() {
        svg.line(&[(x, y - 5.0), (x + 20.0, y - 5.0)], stroke);
        svg.small(x + 25.0, y, name, Anchor::Start);
        x += [94.0, 106.0, 0.0][row];
    }
}

/// Column and row of each node that hangs on the tree: leaves one below the other, parents amid their
/// children,
fn places(children: &[Vec<Node>]) -> Vec<Option<(f64, f64)>> {
    let mut places = vec![None; children.len()];
    if !children.is_empty() {
        place(children, 0, 0.0, &mut 0.0, &mut places);
    }
    places
}

/// Places `node` and what hangs on it; trees are no deeper than the network has nodes.
fn place(
    children: &[Vec<Node>],
    node: Node,
    column: f64,
    next_row: &mut f64,
    places: &mut [Option<(f64, f64)>],
) -> f64 {
    let below = &children[node];
    let rows: Vec<f64> =
        below.iter().map(|child| place(children, *child, column + 1.0, next_row, places)).collect();
    let row = if let (Some(first), Some(last)) = (rows.first(), rows.last()) {
        f64::midpoint(*first, *last)
    } else {
        let free = *next_row;
        *next_row += 1.0;
        free
    };
    places[node] = Some((column, row));
    row
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parents_stand_amid_their_children_and_leaves_do_not_meet() {
        let children = [vec![1, 2], vec![3, 4], vec![], vec![], vec![], vec![]];
        let places = places(&children);
        assert_eq!(places[3], Some((2.0, 0.0)));
        assert_eq!(places[4], Some((2.0, 1.0)));
        assert_eq!(places[1], Some((1.0, 0.5)));
        assert_eq!(places[2], Some((1.0, 2.0)));
        assert_eq!(places[0], Some((0.0, 1.25)));
        assert_eq!(places[5], None, "it hangs on nothing");
    }
}
