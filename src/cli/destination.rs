//! `postrider admin destination`: what is ordered about destinations while the server runs.

use std::time::Duration;

use clap::{Args, Subcommand};
use mail::address::Name;
use mail::destination::{Destination, OrderedPace};

use super::queue::WayArguments;
use crate::admin::{DestinationOrder, Question};
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
        named: Named,
        /// For so long (`90m`, `2h`, `3d`); until it is resumed unless given
        #[arg(long = "for", value_parser = read_duration)]
        duration: Option<Duration>,
        /// Why, in one short line: it is shown to whoever asks what mail waits for, customers too
        #[arg(long, value_name = "TEXT", value_parser = mail::destination::because)]
        because: Option<String>,
    },
    /// Serve a suspended destination again
    Resume(Named),
    /// Serve mail hosts at another pace than the configuration's; what is not named is as configured
    Pace {
        /// The mail hosts of this name, or under it
        #[arg(long, value_name = "NAME")]
        mail_host: Name,
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
        to: Name,
        /// Which way
        #[command(flatten)]
        way: WayArguments,
    },
}

/// A destination.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub struct Named {
    /// The recipients' domain
    #[arg(long, value_name = "DOMAIN")]
    to: Option<Name>,
    /// The mail hosts of this name, or under it, whatever domains they serve
    #[arg(long, value_name = "NAME")]
    mail_host: Option<Name>,
}

impl Named {
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
pub fn question(command: &DestinationCommand) -> Result<Question, String> {
    let (destination, order) = match command {
        DestinationCommand::List => return Ok(Question::DestinationList),
        DestinationCommand::Suspend { named, duration, because } => {
            let seconds = duration.map(|duration| duration.as_secs());
            (named.destination()?, DestinationOrder::Suspend { seconds, because: because.clone() })
        }
        DestinationCommand::Resume(named) => (named.destination()?, DestinationOrder::Resume),
        DestinationCommand::Pace { mail_host, connections, per_second } => {
            let pace = OrderedPace { connections_max: *connections, messages_per_second: *per_second };
            (Destination::MailHost(mail_host.clone()), DestinationOrder::Pace(pace))
        }
        DestinationCommand::Route { to, way } => {
            (Destination::Domain(to.clone()), DestinationOrder::Route(way.way()))
        }
    };
    let (to, mail_host) = match destination {
        Destination::Domain(name) => (Some(name), None),
        Destination::MailHost(name) => (None, Some(name)),
    };
    Ok(Question::Destination { to, mail_host, order })
}
