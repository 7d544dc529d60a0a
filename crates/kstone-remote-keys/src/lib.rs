//! The port to keys on Redis or Valkey, one server or a cluster.
//!
//! Whoever starts a system opens [`RemoteKeys`] at a URL, and hands it on as the `Keys` of
//! kstone-ports; the system does not notice the difference from the keys of its own process, apart
//! from what it asks for beforehand as a capability. This crate calls servers that speak Redis's
//! protocol, and nothing else of this project than the port and the wrapper around a mutex.
//!
//! - What the port refuses is refused here, before anything is sent.
//! - Replies arrive in RESP2, and get the forms that our own engine gives at the port.
//! - A command that a node has refused for certain (its slot is elsewhere, the cluster elects a
//!   master, the server is loading) is sent again until [`RemoteOptions::patience`] is over. One
//!   whose fate is not known is sent again only if it changes nothing; otherwise the caller gets
//!   `OutcomeUnknown`.
//! - In a pipeline, commands on one slot are executed in order, except while the slot moves to
//!   another node: then those on keys that have moved may be overtaken by those on keys that have
//!   not.
//! - A pipeline of which nothing was executed fails as a whole, and so does one of which a command's
//!   fate is not known. Otherwise what was not executed is answered with an error, `CLUSTERDOWN`.
//! - A walk over the keys may miss a key while its slot is on the way from one node to another.
//! - A key whose time is over is never shown. Bytes cannot be purged. A failover of a cluster may
//!   take back what was acknowledged.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

mod address;
mod exec;
mod form;
mod keys;
mod node;
mod options;
mod part;
mod patience;
mod reads;
mod reply;
mod scan;
mod slots;
mod store;
mod watch;

pub use keys::RemoteKeys;
pub use options::RemoteOptions;
