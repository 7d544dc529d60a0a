//! Where the store is, and how patient to be with it.

use std::sync::Arc;
use std::time::Duration;

use aws_sdk_dynamodb::config::retry::RetryConfig;
use aws_sdk_dynamodb::config::timeout::TimeoutConfig;
use aws_sdk_dynamodb::config::{
    BehaviorVersion, Credentials, Region, SharedCredentialsProvider, SharedHttpClient,
    StalledStreamProtectionConfig,
};
use aws_sdk_dynamodb::{Client, Config};
use kstone_core::env::{Random, SystemRandom};
use kstone_ports::{Error, Result};

/// How long an idle connection is kept. Servers close idle connections, and a write that meets such a
/// close has an unknown outcome: so ours go first.
const CONNECTION_IDLE: Duration = Duration::from_secs(20);

/// What requests are signed with.
#[derive(Debug, Clone)]
pub enum Login {
    /// This key. A store that does not check signatures takes any.
    Key {
        /// The access key's id.
        id: String,
        /// Its secret.
        secret: String,
        /// The session's token, of a key that is lent for some hours.
        session: Option<String>,
    },
    /// Whatever this gives, for instance the SDK's ordinary chain of environment, profile and role,
    /// as `aws_config` makes it.
    Provider(SharedCredentialsProvider),
}

impl Login {
    /// A key without a session.
    pub fn key(id: impl Into<String>, secret: impl Into<String>) -> Login {
        Login::Key { id: id.into(), secret: secret.into(), session: None }
    }

    fn provider(self) -> SharedCredentialsProvider {
        match self {
            Login::Key { id, secret, session } => SharedCredentialsProvider::new(Credentials::new(
                id,
                secret,
                session,
                None,
                "the options",
            )),
            Login::Provider(provider) => provider,
        }
    }
}

/// How to reach a store, and how to treat it.
#[derive(Debug, Clone)]
pub struct RemoteItemsOptions {
    /// Its address, such as `http://127.0.0.1:8000` or `https://dynamodb.eu-central-1.amazonaws.com`.
    pub url: String,
    /// The region that signatures name.
    pub region: String,
    /// What requests are signed with.
    pub login: Login,
    /// How long connecting may take.
    pub connect_timeout: Duration,
    /// How long one attempt may take, connecting included.
    pub answer_timeout: Duration,
    /// How often a request is sent at most, the first time included. At least once.
    pub attempts: u32,
    /// The longest pause before the second attempt; it doubles with each attempt. How much of it is
    /// waited is random, so that many clients do not come back at the same moment.
    pub pause: Duration,
    /// The longest pause of all.
    pub pause_max: Duration,
    /// Whether tables that are missing are made. Otherwise asking for one that is missing is an error,
    /// for stores where tables are an administrator's business.
    pub make_tables: bool,
    /// How long a table that was made may take until it can be used.
    pub table_timeout: Duration,
    /// Whether the store has transactions. ScyllaDB Alternator has none.
    pub transactions: bool,
    /// Where the lengths of pauses and the tokens of transactions come from.
    pub random: Arc<dyn Random>,
}

impl RemoteItemsOptions {
    /// The store at this address, with patience for a service in the same region.
    pub fn new(url: impl Into<String>, region: impl Into<String>, login: Login) -> Self {
        RemoteItemsOptions {
            url: url.into(),
            region: region.into(),
            login,
            connect_timeout: Duration::from_secs(2),
            answer_timeout: Duration::from_secs(10),
            attempts: 8,
            pause: Duration::from_millis(50),
            pause_max: Duration::from_secs(2),
            make_tables: true,
            table_timeout: Duration::from_secs(300),
            transactions: true,
            random: Arc::new(SystemRandom),
        }
    }

    /// Refuses an address that no request could reach, before it looks like a store that is down.
    pub(crate) fn check(&self) -> Result<()> {
        let url = &self.url;
        let wrong = |what: &str| Err(Error::Invalid(format!("the store's address {url:?} {what}")));
        match url.split_once("://") {
            Some(("http", host)) if !host.is_empty() => Ok(()),
            Some(("https", host)) if !host.is_empty() => match cfg!(feature = "tls") {
                true => Ok(()),
                false => wrong("needs TLS, which this program was built without"),
            },
            _ => wrong("does not begin with http:// or https:// and a host"),
        }
    }

    pub(crate) fn client(&self) -> Client {
        let timeouts = TimeoutConfig::builder()
            .connect_timeout(self.connect_timeout)
            .operation_attempt_timeout(self.answer_timeout)
            .build();
        let config = Config::builder()
            .behavior_version(BehaviorVersion::v2026_01_12())
            .endpoint_url(&self.url)
            .region(Region::new(self.region.clone()))
            .credentials_provider(self.login.clone().provider())
            .http_client(http_client())
            // `attempts` repeats what may be repeated.
            .retry_config(RetryConfig::disabled())
            .timeout_config(timeouts)
            // It would cut off answers that are slow to begin.
            .stalled_stream_protection(StalledStreamProtectionConfig::disabled())
            .build();
        Client::from_conf(config)
    }
}

#[cfg(not(feature = "tls"))]
fn http_client() -> SharedHttpClient {
    aws_smithy_http_client::Builder::new().pool_idle_timeout(CONNECTION_IDLE).build_http()
}

#[cfg(feature = "tls")]
fn http_client() -> SharedHttpClient {
    use aws_smithy_http_client::tls::Provider;
    use aws_smithy_http_client::tls::rustls_provider::CryptoMode;

    aws_smithy_http_client::Builder::new()
        .pool_idle_timeout(CONNECTION_IDLE)
        .tls_provider(Provider::Rustls(CryptoMode::Ring))
        .build_https()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_that_no_request_could_reach_is_refused() {
        let checked = |url: &str| {
            RemoteItemsOptions::new(url, "us-east-1", Login::key("id", "secret")).check()
        };
        checked("http://127.0.0.1:8000").unwrap();
        assert_eq!(checked("https://127.0.0.1:8000").is_ok(), cfg!(feature = "tls"));
        for wrong in ["", "127.0.0.1:8000", "http://", "redis://127.0.0.1"] {
            let error = checked(wrong).unwrap_err();
            assert!(matches!(error, Error::Invalid(_)), "{wrong}: {error:?}");
        }
    }
}
