//! Signing in with another device: the user enters a code on a page of the server (RFC 8628).

use std::time::Duration;

use tokio::time::Instant;

use crate::error::CliError;
use crate::oauth::{AuthorizationServer, DeviceReply, TokenReply};

const INTERVAL_DEFAULT_S: u64 = 5;
/// Bounds of a server's interval.
const INTERVAL_S: std::ops::RangeInclusive<u64> = 1..=60;
/// Added by each `slow_down`.
const SLOW_DOWN: Duration = Duration::from_secs(5);

/// Lets the user sign in with another device.
///
/// # Errors
/// The user denied it or did not answer in time; the server refused.
pub(super) async fn sign_in(server: &AuthorizationServer, scope: &str) -> Result<TokenReply, CliError> {
    let metadata = server.metadata().await?;
    let device = server.begin_device(scope, &metadata.issuer).await??;
    let DeviceReply { user_code, verification_uri, verification_uri_complete, .. } = &device;
    eprintln!("Open this page in a browser:\n\n  {verification_uri}\n\nand enter the code {user_code}");
    if let Some(complete) = verification_uri_complete {
        eprintln!("or open {complete}");
    }
    let mut interval = Duration::from_secs(
        device.interval.unwrap_or(INTERVAL_DEFAULT_S).clamp(*INTERVAL_S.start(), *INTERVAL_S.end()),
    );
    let until = Instant::now() + Duration::from_secs(device.expires_in.min(3_600));
    while Instant::now() < until {
        tokio::time::sleep(interval).await;
        let refusal = match server.poll_device(&device.device_code).await {
            Ok(Ok(tokens)) => return Ok(tokens),
            Ok(Err(refusal)) => refusal,
            // The network failed for a moment.
            Err(CliError::Connection(..) | CliError::Timeout(_)) => continue,
            Err(error) => return Err(error),
        };
        match refusal.code.as_str() {
            "authorization_pending" => {}
            "slow_down" => interval += SLOW_DOWN,
            "access_denied" => return Err(CliError::Failed("access was denied".to_owned())),
            _ => return Err(refusal.into()),
        }
    }
    Err(CliError::Failed("nobody entered the code in time".to_owned()))
}
