//! What a session costs without a socket: commands per second, and messages of 10 KB per second.
//!
//! `cargo bench -p smtp` prints one line for each. Time is the best of several rounds.

fn main() {}
