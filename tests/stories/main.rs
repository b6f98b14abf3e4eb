//! Stories: what users live through, told to a whole postrider in this process. A file a story.

#[path = "../world/mod.rs"]
mod world;

mod delivery;
mod give_up;
mod operator;
mod restart;
mod retention;
mod retry;
mod slow_destination;
