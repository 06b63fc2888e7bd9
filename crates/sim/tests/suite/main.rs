//! Whole worlds: scenario in, outcome out.
//!
//! | file | asks |
//! |---|---|
//! | `worlds` | (plain and random worlds to try things on) |
//! | `backbone` | what goes from one mesh to another, in from outside, and out? |
//! | `determinism` | same seed, same run, with any observers? |
//! | `events` | what do outages and restarts do, and what does the record say of them? |
//! | `forms` | does each form of traffic do what it says? |
//! | `invariants` | what holds in every world, and at rest? |
//! | `slots` | does the air keep its rules in every slot? |
//! | `outages` | what happens when a link is silent for a while? |
//! | `recovery` | do recoverable fragments keep the books under load, and what do windows do? |
//! | `carrier` | what happens where nodes sense the channel instead of keeping slots? |
//! | `groups` | who gets packets to a group, and why not? |
//! | `leaves` | are nodes that run no RPL reached, and reached again when a router fails? |
//! | `memberships` | do nodes join what clients ask for? |
//! | `indicators` | what do three small worlds come to? |

mod backbone;
mod carrier;
mod determinism;
mod events;
mod forms;
mod groups;
mod indicators;
mod invariants;
mod leaves;
mod memberships;
mod modes;
mod outages;
mod recovery;
mod slots;
mod worlds;
