//! Publishing records: the plan, and a real name server changed by dynamic update. The providers with interfaces of
//! their own are played in tests/providers.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used)]

#[path = "../../../tests/world/domain.rs"]
mod domain;
mod dynamic_update;
mod knot;
mod plan;
#[path = "../../../tests/world/zone.rs"]
mod zone;
