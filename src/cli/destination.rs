//! `postrider admin destination`: overrides of destinations in the running server.

use std::time::Duration;

use clap::{Args, Subcommand};
use message::address::DomainName;
use model::destination::{Destination, PaceOverride};

use super::queue::RouteArguments;
use crate::admin::{AdminRequest, DestinationAction};
use crate::config::read_duration;

/// Commands of `admin destination`.
#[derive(Debug, Subcommand)]
pub enum DestinationCommand {
    /// List operator overrides
    List,
    /// Pause delivery to a destination: its mail is accepted and stays queued
    Suspend {
        #[command(flatten)]
        target: DestinationArguments,
        /// Duration (`90m`, `2h`, `3d`) [default: until resumed]
        #[arg(long = "for", value_parser = read_duration)]
        duration: Option<Duration>,
        /// Short reason; shown in traces, also to customers
        #[arg(long, value_name = "TEXT", value_parser = model::destination::parse_reason)]
        because: Option<String>,
    },
    /// Resume delivery to a suspended destination
    Resume(DestinationArguments),
    /// Override connection and rate limits; omitted limits keep their configured values
    Pace {
        /// Mail hosts with this name, or below it
        #[arg(long, value_name = "NAME")]
        mail_host: DomainName,
        /// Maximum number of connections
        #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
        connections: Option<u32>,
        /// Maximum messages per second
        #[arg(long, value_parser = rate)]
        per_second: Option<f64>,
    },
    /// Override the route of a domain's mail
    Route {
        /// Recipient domain
        #[arg(long, value_name = "DOMAIN")]
        to: DomainName,
        #[command(flatten)]
        route: RouteArguments,
    },
}

/// Selects a destination.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub struct DestinationArguments {
    /// Recipient domain
    #[arg(long, value_name = "DOMAIN")]
    to: Option<DomainName>,
    /// Mail hosts with this name, or below it, for all domains that they serve
    #[arg(long, value_name = "NAME")]
    mail_host: Option<DomainName>,
}

impl DestinationArguments {
    fn destination(&self) -> Result<Destination, String> {
        let host = self.mail_host.clone().map(Destination::MailHost);
        self.to.clone().map(Destination::Domain).or(host).ok_or_else(|| "a destination is required".to_owned())
    }
}

fn rate(text: &str) -> Result<f64, String> {
    let rate = text.parse().ok().filter(|rate: &f64| rate.is_finite() && *rate > 0.0);
    rate.ok_or_else(|| "must be a number above 0; to stop delivery, use `destination suspend`".to_owned())
}

/// Builds the admin request.
pub fn build_request(command: &DestinationCommand) -> Result<AdminRequest, String> {
    let (destination, order) = match command {
        DestinationCommand::List => return Ok(AdminRequest::DestinationList),
        DestinationCommand::Suspend { target, duration, because } => {
            let seconds = duration.map(|duration| duration.as_secs());
            (target.destination()?, DestinationAction::Suspend { seconds, because: because.clone() })
        }
        DestinationCommand::Resume(target) => (target.destination()?, DestinationAction::Resume),
        DestinationCommand::Pace { mail_host, connections, per_second } => {
            let pace = PaceOverride { connections_max: *connections, messages_per_second: *per_second };
            (Destination::MailHost(mail_host.clone()), DestinationAction::Pace(pace))
        }
        DestinationCommand::Route { to, route } => {
            (Destination::Domain(to.clone()), DestinationAction::Route(route.route()))
        }
    };
    let (to, mail_host) = match destination {
        Destination::Domain(name) => (Some(name), None),
        Destination::MailHost(name) => (None, Some(name)),
    };
    Ok(AdminRequest::Destination { to, mail_host, order })
}
