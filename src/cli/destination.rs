//! `postrider admin destination`: what is ordered about destinations while the server runs.

use std::time::Duration;

use clap::{Args, Subcommand};
use mail::address::DomainName;
use mail::destination::{Destination, PaceOverride};

use super::queue::RouteArguments;
use crate::admin::{AdminRequest, DestinationAction};
use crate::config::read_duration;

/// Destinations.
#[derive(Debug, Subcommand)]
pub enum DestinationCommand {
    /// What is ordered about destinations
    List,
    /// Leave a destination alone: its mail is accepted, and waits
    Suspend {
        /// Which destination
        #[command(flatten)]
        named: DestinationArguments,
        /// For so long (`90m`, `2h`, `3d`); until it is resumed unless given
        #[arg(long = "for", value_parser = read_duration)]
        duration: Option<Duration>,
        /// Why, in one short line: it is shown to whoever asks what mail waits for, customers too
        #[arg(long, value_name = "TEXT", value_parser = mail::destination::parse_reason)]
        because: Option<String>,
    },
    /// Serve a suspended destination again
    Resume(DestinationArguments),
    /// Serve mail hosts at another pace than the configuration's; what is not named is as configured
    Pace {
        /// The mail hosts of this name, or under it
        #[arg(long, value_name = "NAME")]
        mail_host: DomainName,
        /// Connections at most
        #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
        connections: Option<u32>,
        /// Messages a second at most
        #[arg(long, value_parser = rate)]
        per_second: Option<f64>,
    },
    /// Send a domain's mail another way, from now on
    Route {
        /// The recipients' domain
        #[arg(long, value_name = "DOMAIN")]
        to: DomainName,
        /// Which way
        #[command(flatten)]
        way: RouteArguments,
    },
}

/// A destination.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub struct DestinationArguments {
    /// The recipients' domain
    #[arg(long, value_name = "DOMAIN")]
    to: Option<DomainName>,
    /// The mail hosts of this name, or under it, whatever domains they serve
    #[arg(long, value_name = "NAME")]
    mail_host: Option<DomainName>,
}

impl DestinationArguments {
    fn destination(&self) -> Result<Destination, String> {
        let host = self.mail_host.clone().map(Destination::MailHost);
        self.to.clone().map(Destination::Domain).or(host).ok_or_else(|| "no destination is named".to_owned())
    }
}

fn rate(text: &str) -> Result<f64, String> {
    let rate = text.parse().ok().filter(|rate: &f64| rate.is_finite() && *rate > 0.0);
    rate.ok_or_else(|| "a number above 0; to send nothing, `destination suspend`".to_owned())
}

/// What the server is asked.
///
/// # Errors
/// No destination is named.
pub fn build_request(command: &DestinationCommand) -> Result<AdminRequest, String> {
    let (destination, order) = match command {
        DestinationCommand::List => return Ok(AdminRequest::DestinationList),
        DestinationCommand::Suspend { named, duration, because } => {
            let seconds = duration.map(|duration| duration.as_secs());
            (named.destination()?, DestinationAction::Suspend { seconds, because: because.clone() })
        }
        DestinationCommand::Resume(named) => (named.destination()?, DestinationAction::Resume),
        DestinationCommand::Pace { mail_host, connections, per_second } => {
            let pace = PaceOverride { connections_max: *connections, messages_per_second: *per_second };
            (Destination::MailHost(mail_host.clone()), DestinationAction::Pace(pace))
        }
        DestinationCommand::Route { to, way } => {
            (Destination::Domain(to.clone()), DestinationAction::Route(way.route()))
        }
    };
    let (to, mail_host) = match destination {
        Destination::Domain(name) => (Some(name), None),
        Destination::MailHost(name) => (None, Some(name)),
    };
    Ok(AdminRequest::Destination { to, mail_host, order })
}
