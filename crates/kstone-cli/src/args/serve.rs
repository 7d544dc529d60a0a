//! The arguments of `kstone serve`. Each has the same name in the file of `--config`.

use std::path::PathBuf;

use clap::Args;
use kstone_keyspace::UnknownKeys;

use crate::serve::settings::{ByteSize, DurabilityChoice, Listen, Switch};

/// `kstone serve`
#[derive(Debug, Args)]
pub struct Serve {
    /// Folder of the database; made if missing
    #[arg(
        long,
        value_name = "DIR",
        conflicts_with = "memory",
        required_unless_present_any = ["memory", "demo", "config"]
    )]
    pub data: Option<PathBuf>,
    /// Keep everything in memory; it is gone when the server stops
    #[arg(long)]
    pub memory: bool,
    /// Fill a school and a table to play with, and show what to ask them; kept in ./kstone-demo, or
    /// in --data
    #[arg(long)]
    pub demo: bool,
    /// Where DynamoDB's protocol is spoken: HOST:PORT, PORT, or off [default: 127.0.0.1:8000]
    #[arg(long, value_name = "ADDR")]
    pub dynamodb: Option<Listen>,
    /// Where Redis's protocol is spoken: HOST:PORT, PORT, or off [default: 127.0.0.1:6379]
    #[arg(long, value_name = "ADDR")]
    pub redis: Option<Listen>,
    /// Where Dapr's state API is spoken over HTTP: HOST:PORT, PORT, or off
    /// [default: 127.0.0.1:3500]
    #[arg(long, value_name = "ADDR")]
    pub dapr_http: Option<Listen>,
    /// Where Dapr's state API is spoken over gRPC: HOST:PORT, PORT, or off
    /// [default: 127.0.0.1:50001]
    #[arg(long, value_name = "ADDR")]
    pub dapr_grpc: Option<Listen>,
    /// When a write is answered, at every door: sync (it is on disk), interval (it will be within
    /// a second), os (whenever the system writes it) [default: sync; for Redis interval]
    #[arg(long, value_name = "WHEN")]
    pub durability: Option<DurabilityChoice>,
    /// The same for DynamoDB's protocol alone
    #[arg(long, value_name = "WHEN")]
    pub dynamodb_durability: Option<DurabilityChoice>,
    /// The same for Redis's protocol alone
    #[arg(long, value_name = "WHEN")]
    pub redis_durability: Option<DurabilityChoice>,
    /// The same for Dapr's state API alone
    #[arg(long, value_name = "WHEN")]
    pub dapr_durability: Option<DurabilityChoice>,
    /// The name of Dapr's state store; may be given several times [default: statestore]
    #[arg(long, value_name = "NAME")]
    pub dapr_store: Vec<String>,
    /// What stands before each key of Dapr's clients, with || between: none, name (of the store),
    /// appid, namespace, or a text. A sidecar does this by itself [default: none]
    #[arg(long, value_name = "STRATEGY")]
    pub dapr_key_prefix: Option<String>,
    /// The application's name, for --dapr-key-prefix appid and namespace
    #[arg(long, value_name = "NAME", env = "APP_ID")]
    pub dapr_app_id: Option<String>,
    /// Where a Dapr sidecar finds the store as a component to plug in: a socket in its folder of
    /// components. Its name is that of the component: kstone.sock is state.kstone
    #[arg(long, value_name = "PATH")]
    pub dapr_component_socket: Option<PathBuf>,
    /// What Dapr's clients must send as dapr-api-token. Without it, only this machine may connect
    #[arg(long, value_name = "TOKEN", env = "KSTONE_DAPR_API_TOKEN", hide_env_values = true)]
    pub dapr_api_token: Option<String>,
    /// What Redis's clients must say with AUTH. Without it, only this machine may connect
    #[arg(long, value_name = "PASSWORD", env = "KSTONE_REDIS_PASSWORD", hide_env_values = true)]
    pub redis_password: Option<String>,
    /// Where the console and the REST API are: HOST:PORT, PORT, or off [default: 127.0.0.1:8080]
    #[arg(long, value_name = "ADDR")]
    pub console: Option<Listen>,
    /// What clients of the REST API must send as a bearer token, and browsers as the password.
    /// Without it, only this machine may connect
    #[arg(long, value_name = "TOKEN", env = "KSTONE_CONSOLE_TOKEN", hide_env_values = true)]
    pub console_token: Option<String>,
    /// Whether each client of the REST API may only ask so often in a minute: on or off
    /// [default: on]
    #[arg(long, value_name = "SWITCH")]
    pub rest_limits: Option<Switch>,
    /// Where the learning platform's alerts are sent, as JSON, beside the log and the console
    #[arg(long, value_name = "URL")]
    pub alert_webhook: Option<String>,
    /// A catalogue of declared keys to keep to at every door, or `shipped` for those of the product;
    /// may be given several times. `none` keeps to nothing [default: what the database kept to]
    #[arg(long, value_name = "FILE")]
    pub keyspace: Vec<String>,
    /// What becomes of writes to keys that no catalogue declares: allow, warn or refuse
    /// [default: allow]
    #[arg(long, value_name = "RULE")]
    pub unknown_keys: Option<UnknownKeys>,
    /// Memory for write buffers and caches, at most [default: 256MiB]
    #[arg(long, value_name = "SIZE")]
    pub memory_budget: Option<ByteSize>,
    /// A key that requests must be signed with; may be given several times. Without any, only this
    /// machine may connect and every signature passes
    #[arg(
        long,
        value_name = "ID:SECRET",
        env = "KSTONE_ACCESS_KEY",
        hide_env_values = true,
        value_delimiter = ','
    )]
    pub access_key: Vec<String>,
    /// A TOML file with any of these, under the same names; flags win over it
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
}
