//! The mail queue: intake, routing, scheduling, delivery, DSNs, the cluster and the operator's commands.
//!
//! [`intake`] accepts all mail and commits it with its tasks. [`scheduler`] knows which tasks are in memory and which on
//! disk, and puts them into the ready queues of destinations, within the limits of pace and connections. [`routing`] finds
//! the mail hosts of a domain and the TLS policy for them. [`delivery`] attempts tasks with the SMTP client, decides what
//! follows from each attempt and commits it. [`dsn`] reports failures to senders by SMTP. [`cluster`] shares the work among
//! nodes, and [`admin`] executes the operator's commands.
//!
//! [`subsystems`] builds these, and [`background_tasks`] starts them. [`services`] are the handles that each is built with.
//!
//! The crate `events` has what follows from a recorded event, `inbound` has received mail, and `accounts` has users, domains
//! and suppressions. They use this crate, and it does not use them: [`cluster::PartitionListener`] tells them of partitions.

pub mod admin;
pub mod background_tasks;
pub mod cluster;
pub mod delivery;
pub mod dsn;
pub mod intake;
pub mod recent_events;
pub mod routing;
pub mod scheduler;
pub mod sealed_body;
pub mod services;
pub mod subsystems;
mod supervisor;
pub mod suppression_event;
