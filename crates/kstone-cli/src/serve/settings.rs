//! The settings of a server: flags and the file of `--config`, which have the same names.

use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::{Context, Result, anyhow, bail};
use kstone::Durability;
use kstone_dapr::KeyPrefix;
use kstone_keyspace::UnknownKeys;
use serde::Deserialize;

use super::dapr;
use crate::args::Serve;

/// Where the data of `--demo` goes unless another folder is named.
const DEMO_DIR: &str = "kstone-demo";

/// Everything settled.
#[derive(Debug)]
pub struct Settings {
    /// The folder; `None` is memory.
    pub dir: Option<PathBuf>,
    /// Whether to fill the demo's table.
    pub demo: bool,
    /// Where DynamoDB's protocol is spoken.
    pub dynamodb: Listen,
    /// What a write at that door waits for.
    pub dynamodb_durability: Durability,
    /// Where Redis's protocol is spoken.
    pub redis: Listen,
    /// What a write at that door waits for.
    pub redis_durability: Durability,
    /// What its clients must say.
    pub redis_password: Option<Password>,
    /// Where Dapr's state API is spoken over HTTP; `None` is the usual place, if it is free.
    pub dapr_http: Option<Listen>,
    /// The same over gRPC.
    pub dapr_grpc: Option<Listen>,
    /// What a write at that door waits for.
    pub dapr_durability: Durability,
    /// The names of its state store.
    pub dapr_stores: Vec<String>,
    /// What stands before each of its keys.
    pub dapr_key_prefix: KeyPrefix,
    /// Where a sidecar plugs it in; nowhere unless it is said.
    pub dapr_component_socket: Option<PathBuf>,
    /// What its clients must send.
    pub dapr_api_token: Option<Password>,
    /// Where the console and the REST API are; `None` is the usual place, if it is free.
    pub console: Option<Listen>,
    /// What a write through them waits for.
    pub console_durability: Durability,
    /// What their clients must send.
    pub console_token: Option<Password>,
    /// Whether each client of the REST API may only ask so often in a minute.
    pub has_rest_limits: bool,
    /// Where alerts are sent.
    pub alert_webhook: Option<String>,
    /// The catalogues of declared keys to keep to.
    pub keyspace: Vec<String>,
    /// What becomes of writes to keys that none of them declares, if that is said.
    pub unknown_keys: Option<UnknownKeys>,
    /// Memory for write buffers and caches, if not the default.
    pub memory_budget: Option<ByteSize>,
    /// The keys that requests must be signed with.
    pub keys: Vec<AccessKey>,
}

/// The file of `--config`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct File {
    data: Option<PathBuf>,
    #[serde(default)]
    memory: bool,
    #[serde(default)]
    demo: bool,
    dynamodb: Option<Listen>,
    durability: Option<DurabilityChoice>,
    dynamodb_durability: Option<DurabilityChoice>,
    redis: Option<Listen>,
    redis_durability: Option<DurabilityChoice>,
    redis_password: Option<Password>,
    dapr_http: Option<Listen>,
    dapr_grpc: Option<Listen>,
    dapr_durability: Option<DurabilityChoice>,
    #[serde(default)]
    dapr_store: Vec<String>,
    dapr_key_prefix: Option<String>,
    dapr_app_id: Option<String>,
    dapr_component_socket: Option<PathBuf>,
    dapr_api_token: Option<Password>,
    console: Option<Listen>,
    console_token: Option<Password>,
    rest_limits: Option<Switch>,
    alert_webhook: Option<String>,
    #[serde(default)]
    keyspace: Vec<String>,
    unknown_keys: Option<String>,
    memory_budget: Option<ByteSize>,
    #[serde(default)]
    access_key: Vec<AccessKey>,
}

impl Settings {
    /// Whether there is a door to open, and for the demo the one that it needs.
    pub fn check_doors(&self) -> Result<()> {
        let is_off = self.dynamodb == Listen::Off && self.redis == Listen::Off;
        if is_off && dapr::is_off(self) && self.console == Some(Listen::Off) {
            bail!(
                "nothing to serve: --dynamodb is off, and --redis, --dapr-http, --dapr-grpc and \
                 --console too"
            );
        }
        if self.demo && self.dynamodb == Listen::Off {
            bail!("--demo shows what to ask DynamoDB's door, and --dynamodb is off");
        }
        Ok(())
    }

    /// Of each setting the flag counts, then the file, then the default.
    pub fn of(args: &Serve) -> Result<Settings> {
        let file = match &args.config {
            Some(path) => File::read(path)?,
            None => File::default(),
        };
        if file.data.is_some() && file.memory {
            bail!("the configuration has both `data` and `memory = true`: keep one");
        }
        let demo = args.demo || file.demo;
        let dir = match (&args.data, args.memory) {
            (Some(dir), _) => Some(dir.clone()),
            (None, true) => None,
            (None, false) if file.memory => None,
            (None, false) => match file.data {
                Some(dir) => Some(dir),
                None if demo => Some(PathBuf::from(DEMO_DIR)),
                None => bail!("where is the data? give --data DIR, or --memory"),
            },
        };
        let durability = args.durability.or(file.durability);
        let dynamodb_durability = args.dynamodb_durability.or(file.dynamodb_durability);
        let redis_durability = args.redis_durability.or(file.redis_durability);
        let dapr_durability = args.dapr_durability.or(file.dapr_durability);
        let dapr_api_token = args.dapr_api_token.clone().map(Password);
        let mut dapr_stores = match args.dapr_store.is_empty() {
            true => file.dapr_store,
            false => args.dapr_store.clone(),
        };
        if dapr_stores.is_empty() {
            dapr_stores = kstone_dapr::DoorOptions::default().stores;
        }
        let strategy = args.dapr_key_prefix.as_deref().or(file.dapr_key_prefix.as_deref());
        let app_id = args.dapr_app_id.as_deref().or(file.dapr_app_id.as_deref());
        // Where a sidecar has it from, too.
        let namespace = std::env::var("NAMESPACE").ok();
        let dapr_key_prefix =
            KeyPrefix::of_strategy(strategy.unwrap_or("none"), app_id, namespace.as_deref())
                .map_err(|error| anyhow!("--dapr-key-prefix: {error}"))?;
        Ok(Settings {
            dir,
            demo,
            dynamodb: args.dynamodb.clone().or(file.dynamodb).unwrap_or_default(),
            dynamodb_durability: dynamodb_durability.or(durability).unwrap_or_default().into(),
            redis: args.redis.clone().or(file.redis).unwrap_or_else(Listen::redis),
            // What Redis's own users are used to: their data outlives all but the last second.
            redis_durability: redis_durability
                .or(durability)
                .unwrap_or(DurabilityChoice::Interval)
                .into(),
            redis_password: args.redis_password.clone().map(Password).or(file.redis_password),
            dapr_http: args.dapr_http.clone().or(file.dapr_http),
            dapr_grpc: args.dapr_grpc.clone().or(file.dapr_grpc),
            dapr_durability: dapr_durability.or(durability).unwrap_or_default().into(),
            dapr_stores,
            dapr_key_prefix,
            dapr_component_socket: args
                .dapr_component_socket
                .clone()
                .or(file.dapr_component_socket),
            dapr_api_token: dapr_api_token.or(file.dapr_api_token),
            console: args.console.clone().or(file.console),
            console_durability: durability.unwrap_or_default().into(),
            console_token: args.console_token.clone().map(Password).or(file.console_token),
            has_rest_limits: args.rest_limits.or(file.rest_limits).unwrap_or(Switch::On).is_on(),
            alert_webhook: args.alert_webhook.clone().or(file.alert_webhook),
            keyspace: match args.keyspace.is_empty() {
                true => file.keyspace,
                false => args.keyspace.clone(),
            },
            unknown_keys: match (args.unknown_keys, file.unknown_keys) {
                (Some(rule), _) => Some(rule),
                (None, Some(rule)) => {
                    Some(rule.parse().map_err(|error| anyhow!("unknown-keys: {error}"))?)
                }
                (None, None) => None,
            },
            memory_budget: args.memory_budget.or(file.memory_budget),
            keys: match args.access_key.is_empty() {
                true => file.access_key,
                // Not parsed as an argument: what is wrong with one would be printed with it.
                false => args.access_key.iter().map(|key| key.parse()).collect::<Result<_>>()?,
            },
        })
    }
}

impl File {
    fn read(path: &Path) -> Result<File> {
        let shown = path.display();
        let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {shown}"))?;
        toml::from_str(&text).map_err(|error: toml::de::Error| {
            let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
            let line = before.matches('\n').count() + 1;
            anyhow!("{shown}, line {line}: {}", error.message().replace('\n', " "))
        })
    }
}

/// What a write waits for before it is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DurabilityChoice {
    /// It is on disk
    #[default]
    Sync,
    /// It will be on disk within a second
    Interval,
    /// It is on disk whenever the operating system writes it
    Os,
}

impl From<DurabilityChoice> for Durability {
    fn from(promise: DurabilityChoice) -> Durability {
        match promise {
            DurabilityChoice::Sync => Durability::Sync,
            DurabilityChoice::Interval => Durability::Interval,
            DurabilityChoice::Os => Durability::Os,
        }
    }
}

/// On or off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Switch {
    /// It is done
    On,
    /// It is not done
    Off,
}

impl Switch {
    fn is_on(self) -> bool {
        self == Switch::On
    }
}

/// Where a door listens.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub enum Listen {
    /// Nowhere.
    Off,
    /// `HOST:PORT`
    At(String),
}

impl Listen {
    /// Where Redis is usually found.
    fn redis() -> Self {
        Listen::At("127.0.0.1:6379".to_owned())
    }
}

impl Default for Listen {
    fn default() -> Self {
        Listen::At("127.0.0.1:8000".to_owned())
    }
}

impl FromStr for Listen {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        if text == "off" {
            return Ok(Listen::Off);
        }
        if text.parse::<u16>().is_ok() {
            return Ok(Listen::At(format!("127.0.0.1:{text}")));
        }
        let is_name_and_port = || {
            let (host, port) = text.rsplit_once(':')?;
            let host_is_plain = !host.is_empty() && !host.contains([':', '/', ' ']);
            (host_is_plain && port.parse::<u16>().is_ok()).then_some(())
        };
        if text.parse::<SocketAddr>().is_err() && is_name_and_port().is_none() {
            bail!("`{text}` is no address: write HOST:PORT (127.0.0.1:8000), PORT, or off");
        }
        Ok(Listen::At(text.to_owned()))
    }
}

impl TryFrom<String> for Listen {
    type Error = anyhow::Error;

    fn try_from(text: String) -> Result<Self> {
        text.parse()
    }
}

/// A number of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct ByteSize(pub usize);

impl FromStr for ByteSize {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let (number, unit) = text.split_at(digits);
        let factor = match unit.trim_start() {
            "KiB" => Some(1 << 10),
            "MiB" => Some(1 << 20),
            "GiB" => Some(1 << 30),
            "B" => Some(1),
            _ => None,
        };
        let bytes = number.parse::<usize>().ok().zip(factor).and_then(|(n, f)| n.checked_mul(f));
        match bytes {
            Some(bytes) => Ok(ByteSize(bytes)),
            None => bail!("`{text}` is no size: write it as 64MiB or 1GiB"),
        }
    }
}

impl TryFrom<String> for ByteSize {
    type Error = anyhow::Error;

    fn try_from(text: String) -> Result<Self> {
        text.parse()
    }
}

/// What clients must say. It is never shown.
#[derive(Clone, PartialEq, Eq, Deserialize)]
pub struct Password(pub String);

impl fmt::Debug for Password {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Password")
    }
}

/// A key that requests are signed with.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct AccessKey {
    /// What the client sends.
    pub id: String,
    /// What it does not send.
    pub secret: String,
}

impl FromStr for AccessKey {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        // The text itself stays out of the message: it may be a secret.
        match text.split_once(':') {
            Some((id, secret)) if !id.is_empty() && !secret.is_empty() => {
                Ok(AccessKey { id: id.to_owned(), secret: secret.to_owned() })
            }
            _ => bail!("an access key is an id and a secret with a colon between: ID:SECRET"),
        }
    }
}

impl TryFrom<String> for AccessKey {
    type Error = anyhow::Error;

    fn try_from(text: String) -> Result<Self> {
        text.parse()
    }
}

impl fmt::Debug for AccessKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("AccessKey").field("id", &self.id).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_a_host_and_a_port_or_a_port_or_off() {
        let at = |text: &str| Listen::At(text.to_owned());
        assert_eq!("off".parse::<Listen>().unwrap(), Listen::Off);
        assert_eq!("8001".parse::<Listen>().unwrap(), at("127.0.0.1:8001"));
        for good in ["0.0.0.0:0", "localhost:8000", "[::1]:8000", "db.example.org:80"] {
            assert_eq!(good.parse::<Listen>().unwrap(), at(good));
        }
        for bad in ["", "localhost", ":8000", "::1:8000", "1.2.3.4:70000", "http://localhost:80"] {
            assert!(bad.parse::<Listen>().is_err(), "{bad}");
        }
    }

    #[test]
    fn sizes_have_a_unit() {
        assert_eq!("64MiB".parse::<ByteSize>().unwrap(), ByteSize(64 << 20));
        assert_eq!("1 GiB".parse::<ByteSize>().unwrap(), ByteSize(1 << 30));
        for bad in ["", "64", "MiB", "-1MiB", "1.5GiB", "64mb", "99999999999999GiB"] {
            assert!(bad.parse::<ByteSize>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_secret_is_never_shown() {
        let key: AccessKey = "AKID:very:secret".parse().unwrap();
        assert_eq!((key.id.as_str(), key.secret.as_str()), ("AKID", "very:secret"));
        assert!(!format!("{key:?}").contains("secret"));
        assert!(!format!("{:?}", "justasecret".parse::<AccessKey>()).contains("justasecret"));
    }
}
