//! The supported DNS providers, with their name in requests and their display name.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Defines one provider per line: its variant, its name in requests, its display name.
macro_rules! providers {
    ($($variant:ident $word:literal $display_name:literal,)*) => {
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
        }
    };
}

providers! {
    Cloudflare "cloudflare" "Cloudflare",
    Route53 "route53" "Route 53",
    Digitalocean "digitalocean" "DigitalOcean",
    Hetzner "hetzner" "Hetzner",
    Gandi "gandi" "Gandi",
    Rfc2136 "rfc2136" "the name server",
    Bunny "bunny" "bunny.net",
    Desec "desec" "deSEC",
    Dnsimple "dnsimple" "DNSimple",
    Gcore "gcore" "Gcore",
    Godaddy "godaddy" "GoDaddy",
    Hostinger "hostinger" "Hostinger",
    Infomaniak "infomaniak" "Infomaniak",
    Ionos "ionos" "IONOS",
    Linode "linode" "Linode",
    NameCom "namecom" "Name.com",
    Netlify "netlify" "Netlify",
    Ns1 "ns1" "NS1",
    Porkbun "porkbun" "Porkbun",
    Scaleway "scaleway" "Scaleway",
    Vercel "vercel" "Vercel",
    Vultr "vultr" "Vultr",
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
