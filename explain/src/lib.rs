//! "Why is it not there yet": an email explained for each recipient, in the words of the dashboard and the command line.

pub mod explanation;
pub mod reply;
pub mod wait;
