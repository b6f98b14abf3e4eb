//! The supported DNS providers, with their names and the fields of their credentials.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::credentials::{CredentialField, optional, plain, secret};

/// Defines one provider per line: its variant, its name in requests, its display name, the fields of its credentials.
macro_rules! providers {
    ($($variant:ident $word:literal $display_name:literal $credentials:expr,)*) => {
        /// A DNS provider.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
        pub enum Provider {
            $(#[doc = $display_name] #[serde(rename = $word)] $variant,)*
        }

        impl Provider {
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The name in requests.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word,)* }
            }

            pub(crate) const fn display_name(self) -> &'static str {
                match self { $(Self::$variant => $display_name,)* }
            }

            /// The fields of its credentials.
            pub const fn credential_fields(self) -> &'static [CredentialField] {
                match self { $(Self::$variant => const { $credentials },)* }
            }
        }
    };
}

/// Credentials that are one API token.
const TOKEN: &[CredentialField] = &[secret("api_token", "API token")];
/// Keys of an AWS user or role.
const AWS: &[CredentialField] = &[
    plain("access_key_id", "Access key id"),
    secret("secret_access_key", "Secret access key"),
    optional(secret("session_token", "Session token")),
    optional(plain("region", "Region")),
    optional(plain("hosted_zone_id", "Hosted zone id")),
];
/// A key for dynamic updates (RFC 8945).
const TSIG: &[CredentialField] = &[
    plain("server", "Name server"),
    plain("key_name", "Name of the TSIG key"),
    optional(plain("algorithm", "Algorithm of the TSIG key")),
    secret("secret", "TSIG key in base64"),
];

providers! {
    Cloudflare "cloudflare" "Cloudflare" TOKEN,
    Route53 "route53" "Route 53" AWS,
    Digitalocean "digitalocean" "DigitalOcean" TOKEN,
    Hetzner "hetzner" "Hetzner" TOKEN,
    Gandi "gandi" "Gandi" TOKEN,
    Rfc2136 "rfc2136" "the name server" TSIG,
    Bunny "bunny" "bunny.net" TOKEN,
    Desec "desec" "deSEC" TOKEN,
    Dnsimple "dnsimple" "DNSimple" &[plain("account_id", "Account id"), secret("api_token", "API token")],
    Gcore "gcore" "Gcore" TOKEN,
    Godaddy "godaddy" "GoDaddy" &[secret("api_key", "API key"), secret("api_secret", "API secret")],
    Hostinger "hostinger" "Hostinger" TOKEN,
    Infomaniak "infomaniak" "Infomaniak" TOKEN,
    Ionos "ionos" "IONOS" TOKEN,
    Linode "linode" "Linode" TOKEN,
    NameCom "namecom" "Name.com" &[plain("username", "User name"), secret("api_token", "API token")],
    Netlify "netlify" "Netlify" TOKEN,
    Ns1 "ns1" "NS1" TOKEN,
    Porkbun "porkbun" "Porkbun" &[secret("api_key", "API key"), secret("secret_api_key", "Secret API key")],
    Scaleway "scaleway" "Scaleway" TOKEN,
    Vercel "vercel" "Vercel" TOKEN,
    Vultr "vultr" "Vultr" TOKEN,
}

impl Provider {
    /// The name in a list of providers.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Rfc2136 => "Your own name server (RFC 2136)",
            Self::Route53 => "Amazon Route 53",
            _ => self.display_name(),
        }
    }
}

impl fmt::Display for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.display_name())
    }
}

/// The name is not that of a supported provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("unknown DNS provider")]
pub struct UnknownProvider;

impl FromStr for Provider {
    type Err = UnknownProvider;

    fn from_str(text: &str) -> Result<Self, UnknownProvider> {
        Self::ALL.iter().copied().find(|provider| provider.as_str() == text).ok_or(UnknownProvider)
    }
}
