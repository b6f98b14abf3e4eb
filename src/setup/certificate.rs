//! Waits until the server has a certificate by ACME for its hostname.

use std::time::Duration;

use jiff::Timestamp;
use net::clock::Clock;
use serde_json::Value;
use tokio::time::{Instant, sleep};

use super::dialog::{Dialog, printable};
use super::error::SetupError;
use super::installation::Installation;
use super::options::SetupOptions;
use crate::admin::AdminRequest;

/// Time in which the certificate is issued. An order takes seconds; the authority may validate slowly.
const WAIT_MAX: Duration = Duration::from_secs(5 * 60);
const POLL: Duration = Duration::from_millis(500);

/// Status of the certificate, from the admin socket.
#[derive(Debug, PartialEq, Eq)]
enum OrderStatus {
    Issued {
        expires_at: String,
    },
    /// No order has failed since the last success.
    Ordering,
    Failed {
        failures: u64,
        reason: String,
    },
}

impl OrderStatus {
    fn from_view(view: &Value, now: Timestamp) -> Self {
        let is_valid = |expires_at: &&str| expires_at.parse::<Timestamp>().is_ok_and(|expires_at| expires_at > now);
        if let Some(expires_at) = view["expires_at"].as_str().filter(is_valid) {
            return Self::Issued { expires_at: expires_at.to_owned() };
        }
        match view["last_failure"].as_str() {
            Some(reason) => {
                Self::Failed { failures: view["failures"].as_u64().unwrap_or(0), reason: printable(reason) }
            }
            None => Self::Ordering,
        }
    }
}

pub(super) async fn wait(
    dialog: &mut dyn Dialog,
    options: &SetupOptions,
    installation: &Installation,
) -> Result<(), SetupError> {
    const ACTION: &str = "order the certificate";
    let (admin, config) = (installation.admin(), &installation.config);
    if config.tls.acme.is_none() {
        dialog.print("The configuration names certificate files, or no certificate ([tls]): nothing to order.");
        return Ok(());
    }
    // An order before the DNS was complete has failed, and its next try may be hours away.
    let before = admin.request(&AdminRequest::CertificateOrder).await.map_err(SetupError::admin(ACTION))?;
    let until = Instant::now() + WAIT_MAX;
    let failures_known = match OrderStatus::from_view(&before, Clock::default().now()) {
        OrderStatus::Failed { failures, .. } => failures,
        // The first order is in progress. If it fails, the requested one follows.
        OrderStatus::Ordering => 1,
        OrderStatus::Issued { .. } => 0,
    };
    loop {
        let view = admin.request(&AdminRequest::CertificateShow).await.map_err(SetupError::admin(ACTION))?;
        match OrderStatus::from_view(&view, Clock::default().now()) {
            OrderStatus::Issued { expires_at } => {
                dialog.print(&format!(
                    "The certificate of {} is valid until {expires_at}; the server renews it.",
                    config.hostname
                ));
                return Ok(());
            }
            OrderStatus::Failed { failures, reason } if failures > failures_known => {
                return Err(failure(options, &reason));
            }
            OrderStatus::Failed { reason, .. } if Instant::now() >= until => return Err(failure(options, &reason)),
            OrderStatus::Ordering if Instant::now() >= until => {
                return Err(failure(options, "the certificate authority has not answered yet"));
            }
            OrderStatus::Ordering | OrderStatus::Failed { .. } => {}
        }
        let authority = view["directory"].as_str().unwrap_or_default();
        dialog.show_live(&[format!("  waiting for {}", printable(authority))]);
        sleep(POLL).await;
    }
}

fn failure(options: &SetupOptions, reason: &str) -> SetupError {
    let reason = format!(
        "{reason}. The server retries automatically; after correcting the cause, `{}` orders a certificate at once",
        options.command_again()
    );
    SetupError::NoCertificate { reason }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_status_is_read_from_the_admin_socket() {
        let now: Timestamp = "2027-02-01T00:00:00Z".parse().unwrap();
        let issued = json!({"expires_at": "2027-02-24T00:00:00Z", "failures": 0, "last_failure": null});
        assert!(matches!(OrderStatus::from_view(&issued, now), OrderStatus::Issued { .. }));
        let expired = json!({"expires_at": "2027-01-31T00:00:00Z", "failures": 0, "last_failure": null});
        assert_eq!(OrderStatus::from_view(&expired, now), OrderStatus::Ordering);
        let failed = json!({"expires_at": null, "failures": 2, "last_failure": "port 443\n"});
        assert_eq!(
            OrderStatus::from_view(&failed, now),
            OrderStatus::Failed { failures: 2, reason: "port 443 ".to_owned() }
        );
        assert_eq!(OrderStatus::from_view(&json!({"failures": 0}), now), OrderStatus::Ordering);
    }
}
