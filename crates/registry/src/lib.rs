//! Algorithms as rows: one declaration has the name, the summary, the parameters and the constructor.
//!
//! - [`Row`]: the declaration. It is in the file of its algorithm.
//! - [`Parameter`]: a value that a user can replace, with default, bounds, unit, source and range of search.
//! - [`Registry`]: the rows that a program knows. A caller extends the built-in ones and passes the registry on.
//! - [`Kind`]: the rows of a registry without their types, for lists of everything.
//! - [`Choice`]: a row with the numbers that replace its defaults.
//!
//! Scenario files, flags, lists in the help, the manual and the search of parameters all read the rows.
//!
//! ```
//! use lowmesh_registry::{Algorithm, Breach, Choice, Parameter, Registry, Row};
//!
//! trait Greeter { fn greet(&self) -> String; }
//! impl Algorithm for dyn Greeter {
//!     const NOUN: &'static str = "greeter";
//!     const KEY: &'static str = "visit.greeter";
//!     const BUILTIN: &'static [&'static Row<Self>] = &[&POLITE];
//!     type Make = fn(&Choice<dyn Greeter>) -> Box<dyn Greeter>;
//!     fn conformance(row: &'static Row<Self>) -> Result<(), Breach> {
//!         row.check()?;
//!         let is_polite = (row.make)(&row.into()).greet().contains("good day");
//!         if is_polite { Ok(()) } else { Err(row.breach("it does not say good day")) }
//!     }
//! }
//!
//! struct Polite(usize);
//! impl Greeter for Polite {
//!     fn greet(&self) -> String { "good day ".repeat(self.0) }
//! }
//! static POLITE: Row<dyn Greeter> = Row {
//!     name: "polite",
//!     summary: "Says good day",
//!     section: "polite",
//!     parameters: &[Parameter::whole("times", 1, 1, 9, "How often it says so").source("ours")],
//!     make: |choice| Box::new(Polite(choice.whole("times"))),
//! };
//!
//! let greeters = Registry::<dyn Greeter>::builtin();
//! let choice = greeters.choose("polite")?.with("times", 2_u64)?;
//! assert_eq!((choice.row().make)(&choice).greet(), "good day good day ");
//! assert!(greeters.choose("rude").is_err() && greeters.breaches().is_empty());
//! assert!(greeters.choose("polite")?.with("times", 10_u64).is_err());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![cfg_attr(not(test), no_std)]
extern crate alloc;

mod choice;
mod error;
mod kind;
mod parameter;
mod registry;
mod row;
mod similar;

pub use choice::Choice;
pub use error::{Breach, ParameterError, Unknown};
pub use kind::{Declaration, Kind};
pub use parameter::{Bounded, Domain, Order, Parameter, Scale, Search, Value};
pub use registry::Registry;
pub use row::{Algorithm, Row};
pub use similar::similar;
