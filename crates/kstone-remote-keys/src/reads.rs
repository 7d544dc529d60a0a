//! Which commands change nothing, so that they may be sent again when nobody knows what became of them.

use kstone_ports::keys::PortCommand;

/// In lower case. What is not here counts as a write, which is always safe.
#[rustfmt::skip]
const READS: &[&str] = &[
    "bitcount", "bitfield_ro", "bitpos", "dump", "echo", "eval_ro", "evalsha_ro", "exists",
    "expiretime", "fcall_ro", "geodist", "geohash", "geopos", "georadius_ro",
    "georadiusbymember_ro", "geosearch", "get", "getbit", "getrange", "hexists", "hexpiretime",
    "hget", "hgetall", "hkeys", "hlen", "hmget", "hpexpiretime", "hpttl", "hrandfield", "hscan",
    "hstrlen", "httl", "hvals", "lcs", "lindex", "llen", "lpos", "lrange", "memory|usage", "mget",
    "object|encoding", "object|freq", "object|idletime", "object|refcount", "pexpiretime", "ping",
    "pttl", "scard", "sdiff", "sinter", "sintercard", "sismember", "smembers", "smismember",
    "sort_ro", "srandmember", "sscan", "strlen", "substr", "sunion", "time", "touch", "ttl", "type",
    "xinfo|consumers", "xinfo|groups", "xinfo|stream", "xlen", "xpending", "xrange", "xread",
    "xrevrange", "zcard", "zcount", "zdiff", "zinter", "zintercard", "zlexcount", "zmscore",
    "zrandmember", "zrange", "zrangebylex", "zrangebyscore", "zrank", "zrevrange",
    "zrevrangebylex", "zrevrangebyscore", "zrevrank", "zscan", "zscore", "zunion",
];

/// Whether a command changes nothing.
pub(crate) fn only_reads(command: &PortCommand) -> bool {
    READS.contains(&command.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_a_command_of_the_port() {
        for name in READS {
            assert!(PortCommand::names().any(|known| known == *name), "{name}");
        }
    }
}
