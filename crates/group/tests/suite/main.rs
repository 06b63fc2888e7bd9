//! The Entity Manager from outside: entities, observations and random sequences, in a world of members and clients.

mod answers;
mod blocks;
mod entities;
mod names;
mod observation;
mod random;
mod silence;
mod world;
