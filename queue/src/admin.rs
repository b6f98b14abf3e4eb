//! Commands and reads of the operator: queued mail, holds, destinations and source pools.

pub mod destination_admin;
pub mod hold_admin;
pub mod pool_admin;
pub mod queue_admin;
pub mod queue_command;
