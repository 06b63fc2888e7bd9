//! Reports as HTML pages that need nothing else: no network, no script, light and dark.
//!
//! A page is made from results alone, so the same results give the same bytes: it holds no date and no time
//! that a run took. There are three: [`sweep`](sweep_page) of a scenario, [`claims`](claims_page) of a publication,
//! [`search`](search_page) of a timer's numbers.

mod claims;
mod document;
mod markup;
mod points;
mod search;
mod sweep;
#[cfg(test)]
mod tests;

pub use claims::{Extent, claims_page};
pub use document::Page;
pub use search::search_page;
pub use sweep::sweep_page;
