//! Publishing records to a real name server by dynamic update. The providers with their own APIs are simulated in
//! tests/providers; the planner is tested in dns/tests/plan.rs.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used)]

#[path = "../../../tests/world/domain.rs"]
mod domain;
mod dynamic_update;
mod knot;
#[path = "../../../tests/world/zone.rs"]
mod zone;
