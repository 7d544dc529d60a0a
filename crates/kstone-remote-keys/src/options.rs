//! How long a remote store is waited for.

use std::time::Duration;

/// How long a remote store is waited for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteOptions {
    /// For a connection to a node.
    pub connect_timeout: Duration,
    /// For the replies to what was sent. After that the outcome is unknown.
    pub reply_timeout: Duration,
    /// For a store that says that it cannot do it now, for example because a cluster elects a new
    /// master. What a node has refused for certain is asked for again until this is over.
    pub patience: Duration,
}

impl Default for RemoteOptions {
    /// Two seconds to connect, five for replies, ten of patience.
    fn default() -> Self {
        RemoteOptions {
            connect_timeout: Duration::from_secs(2),
            reply_timeout: Duration::from_secs(5),
            patience: Duration::from_secs(10),
        }
    }
}
