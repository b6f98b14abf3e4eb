//! Publishing records: a real name server changed by dynamic update. The providers with interfaces of their own are
//! played in tests/providers, the plan is tried in dns/tests/plan.rs.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used)]

#[path = "../../../tests/world/domain.rs"]
mod domain;
mod dynamic_update;
mod knot;
#[path = "../../../tests/world/zone.rs"]
mod zone;
