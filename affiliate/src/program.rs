//! The program: looked up, set up, and its campaigns.

pub mod campaigns;
pub mod lookup;
pub mod onboarding;
