//! The Entity Manager from outside: entities, observations and random sequences, in a world of members and clients.

mod entities;
mod observation;
mod random;
mod world;
