//! The table of all parameters.

/// One parameter.
#[derive(Debug)]
pub(crate) struct Parameter {
    pub(crate) name: &'static str,
    /// Another name for the same, as older versions called it; empty if there is none.
    pub(crate) alias: &'static str,
    pub(crate) kind: Kind,
    /// As CONFIG SET would be told.
    pub(crate) default: &'static str,
    pub(crate) access: Access,
}

/// What a parameter's values are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// `yes` or `no`.
    Bool,
    /// A number between two others.
    Number(i64, i64),
    /// A number of bytes between two others, with or without a unit.
    Memory(i64, i64),
    /// A number of bytes, or a percentage of the memory there is, which is kept negative.
    MemoryOrPercent,
    /// One of these.
    Choice(&'static [&'static str]),
    /// Any text.
    Text,
    /// Pairs of seconds and changes.
    Save,
    /// For each class of clients: hard limit, soft limit, and for how long.
    OutputLimits,
    /// Letters for classes of events.
    Events,
    /// Percentages.
    Percentiles,
}

/// Whether a parameter may be seen and changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// May be changed.
    Open,
    /// May be changed; shown only when asked for by its full name.
    Hidden,
    /// May be changed; not written to any log.
    Secret,
    /// Says how the server was started.
    Immutable,
    /// Says what this server always does: may be set to that and to nothing else.
    Fixed,
}

use Access::{Fixed, Hidden, Immutable, Open, Secret};
use Kind::{
    Bool, Choice, Events, Memory, MemoryOrPercent, Number, OutputLimits, Percentiles, Save, Text,
};

const INT_MAX: i64 = i32::MAX as i64;
const INT_MIN: i64 = i32::MIN as i64;
const LONG_MAX: i64 = i64::MAX;
const POLICIES: &[&str] = &[
    "volatile-lru",
    "volatile-lfu",
    "volatile-random",
    "volatile-ttl",
    "allkeys-lru",
    "allkeys-lfu",
    "allkeys-random",
    "noeviction",
];

const fn of(
    name: &'static str,
    alias: &'static str,
    kind: Kind,
    default: &'static str,
    access: Access,
) -> Parameter {
    Parameter { name, alias, kind, default, access }
}

/// See the module. In the order of CONFIG GET's answer.
pub(crate) static PARAMETERS: [Parameter; 73] = [
    // How large a thing may be before OBJECT ENCODING calls it by another name.
    of("hash-max-listpack-entries", "hash-max-ziplist-entries", Number(0, LONG_MAX), "512", Open),
    of("hash-max-listpack-value", "hash-max-ziplist-value", Memory(0, LONG_MAX), "64", Open),
    of("list-compress-depth", "", Number(0, INT_MAX), "0", Open),
    of("list-max-listpack-size", "list-max-ziplist-size", Number(INT_MIN, INT_MAX), "-2", Open),
    of("set-max-intset-entries", "", Number(0, LONG_MAX), "512", Open),
    of("zset-max-listpack-entries", "zset-max-ziplist-entries", Number(0, LONG_MAX), "128", Open),
    of("zset-max-listpack-value", "zset-max-ziplist-value", Memory(0, LONG_MAX), "64", Open),
    of("hll-sparse-max-bytes", "", Memory(0, LONG_MAX), "3000", Open),
    of("stream-node-max-bytes", "", Memory(0, LONG_MAX), "4096", Open),
    of("stream-node-max-entries", "", Number(0, LONG_MAX), "100", Open),
    // Memory.
    of("maxmemory", "", Memory(0, LONG_MAX), "0", Open),
    of("maxmemory-clients", "", MemoryOrPercent, "0", Open),
    of("maxmemory-eviction-tenacity", "", Number(0, 100), "10", Open),
    of("maxmemory-policy", "", Choice(POLICIES), "noeviction", Open),
    of("maxmemory-samples", "", Number(1, INT_MAX), "5", Open),
    of("client-output-buffer-limit", "", OutputLimits, OUTPUT_LIMITS, Open),
    of("client-query-buffer-limit", "", Memory(1 << 20, LONG_MAX), "1073741824", Open),
    of("proto-max-bulk-len", "", Memory(1 << 20, LONG_MAX), "536870912", Open),
    of("tracking-table-max-keys", "", Number(0, LONG_MAX), "1000000", Open),
    of("lfu-decay-time", "", Number(0, INT_MAX), "1", Open),
    of("lfu-log-factor", "", Number(0, INT_MAX), "10", Open),
    // Connections.
    of("bind", "", Text, "", Fixed),
    of("port", "", Number(0, 65535), "0", Open),
    of("maxclients", "", Number(1, u32::MAX as i64), "10000", Open),
    of("timeout", "", Number(0, INT_MAX), "0", Open),
    of("tcp-backlog", "", Number(0, INT_MAX), "1024", Immutable),
    of("tcp-keepalive", "", Number(0, INT_MAX), "300", Open),
    of("protected-mode", "", Bool, "no", Fixed),
    // Who may do what.
    of("requirepass", "", Text, "", Secret),
    of("aclfile", "", Text, "", Immutable),
    of("acllog-max-len", "", Number(0, LONG_MAX), "128", Open),
    of("acl-pubsub-default", "", Choice(&["allchannels", "resetchannels"]), "resetchannels", Open),
    // What is kept, and how. The engine's log is what Redis calls its append-only file.
    of("appendonly", "", Bool, "yes", Fixed),
    of("appendfsync", "", Choice(&["everysec", "always", "no"]), "everysec", Fixed),
    of("save", "", Save, "", Open),
    of("dir", "", Text, "", Immutable),
    of("databases", "", Number(1, INT_MAX), "16", Immutable),
    of("sanitize-dump-payload", "", Choice(&["no", "yes", "clients"]), "no", Open),
    of("stop-writes-on-bgsave-error", "", Bool, "yes", Open),
    // Scripts.
    of("busy-reply-threshold", "lua-time-limit", Number(0, LONG_MAX), "5000", Open),
    // What is watched.
    of("notify-keyspace-events", "", Events, "", Open),
    of("slowlog-log-slower-than", "", Number(-1, LONG_MAX), "10000", Open),
    of("slowlog-max-len", "", Number(0, LONG_MAX), "128", Open),
    of("latency-monitor-threshold", "", Number(0, LONG_MAX), "0", Open),
    of("latency-tracking", "", Bool, "yes", Open),
    of("latency-tracking-info-percentiles", "", Percentiles, "50 99 99.9", Open),
    of("loglevel", "", Choice(&["debug", "verbose", "notice", "warning"]), "notice", Open),
    // Expiry.
    of("active-expire-effort", "", Number(1, 10), "1", Open),
    of("hz", "", Number(0, INT_MAX), "10", Open),
    of("dynamic-hz", "", Bool, "yes", Open),
    // Large keys are always removed in the background here.
    of("lazyfree-lazy-eviction", "", Bool, "no", Open),
    of("lazyfree-lazy-expire", "", Bool, "no", Open),
    of("lazyfree-lazy-server-del", "", Bool, "no", Open),
    of("lazyfree-lazy-user-del", "", Bool, "no", Open),
    of("lazyfree-lazy-user-flush", "", Bool, "no", Open),
    of("activerehashing", "", Bool, "yes", Open),
    // Replicas, of which there are none.
    of("replicaof", "slaveof", Text, "", Immutable),
    of("repl-backlog-size", "", Memory(1, LONG_MAX), "1048576", Open),
    of("repl-timeout", "", Number(1, INT_MAX), "60", Open),
    of("repl-ping-replica-period", "repl-ping-slave-period", Number(1, INT_MAX), "10", Open),
    of("min-replicas-to-write", "min-slaves-to-write", Number(0, INT_MAX), "0", Open),
    of("min-replicas-max-lag", "min-slaves-max-lag", Number(0, INT_MAX), "10", Open),
    of("replica-read-only", "slave-read-only", Bool, "yes", Open),
    of("replica-serve-stale-data", "slave-serve-stale-data", Bool, "yes", Open),
    of("masterauth", "", Text, "", Secret),
    of("masteruser", "", Text, "", Secret),
    of("cluster-enabled", "", Bool, "no", Immutable),
    // The process.
    of("daemonize", "", Bool, "no", Immutable),
    of("enable-debug-command", "", Choice(&["no", "yes", "local"]), "yes", Immutable),
    of("enable-module-command", "", Choice(&["no", "yes", "local"]), "no", Immutable),
    of("enable-protected-configs", "", Choice(&["no", "yes", "local"]), "no", Immutable),
    of("io-threads", "", Number(1, 128), "1", Immutable),
    // For tests of Redis itself.
    of("key-load-delay", "", Number(INT_MIN, INT_MAX), "0", Hidden),
];

const OUTPUT_LIMITS: &str = "normal 0 0 0 slave 268435456 67108864 60 pubsub 33554432 8388608 60";

/// A parameter by its place in the table: found when the program is compiled, so that reading one
/// on a hot path is a load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ParameterIndex(pub(super) usize);

/// The place of a parameter.
pub(crate) const fn index_of(name: &str) -> ParameterIndex {
    let mut index = 0;
    while index < PARAMETERS.len() {
        #[expect(clippy::indexing_slicing, reason = "in the bounds of the loop, and compiled away")]
        if is_same(PARAMETERS[index].name.as_bytes(), name.as_bytes()) {
            return ParameterIndex(index);
        }
        index += 1;
    }
    #[expect(
        clippy::panic,
        reason = "compiled away: a name that is not in the table is no program"
    )]
    {
        panic!("no parameter has this name")
    }
}

#[expect(clippy::indexing_slicing, reason = "in the bounds of the loop, and compiled away")]
const fn is_same(one: &[u8], other: &[u8]) -> bool {
    if one.len() != other.len() {
        return false;
    }
    let mut index = 0;
    while index < one.len() {
        if one[index] != other[index] {
            return false;
        }
        index += 1;
    }
    true
}
