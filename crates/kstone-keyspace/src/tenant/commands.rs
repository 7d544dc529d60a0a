//! Lists the Redis commands that touch nothing but the keys they name.

/// In order. A command that is not here is refused to tenants: adding one to the port means to
/// find out first whether it reads or changes anything else, or tells of it.
#[rustfmt::skip]
const CONFINED: &[&str] = &[
    "append", "bitcount", "bitfield", "bitfield_ro", "bitop", "bitpos", "copy", "decr", "decrby",
    "del", "dump", "echo", "exists", "expire", "expireat", "expiretime", "geoadd", "geodist",
    "geohash", "geopos", "georadius", "georadius_ro", "georadiusbymember", "georadiusbymember_ro",
    "geosearch", "geosearchstore", "get", "getbit", "getdel", "getex", "getrange", "getset",
    "hdel", "hexists", "hexpire", "hexpireat", "hexpiretime", "hget", "hgetall", "hgetdel",
    "hgetex", "hincrby", "hincrbyfloat", "hkeys", "hlen", "hmget", "hmset", "hpersist",
    "hpexpire", "hpexpireat", "hpexpiretime", "hpttl", "hrandfield", "hscan", "hset", "hsetex",
    "hsetnx", "hstrlen", "httl", "hvals", "incr", "incrby", "incrbyfloat", "lcs", "lindex",
    "linsert", "llen", "lmove", "lmpop", "lpop", "lpos", "lpush", "lpushx", "lrange", "lrem",
    "lset", "ltrim", "memory|usage", "mget", "mset", "msetnx", "object|encoding", "object|freq",
    "object|idletime", "object|refcount", "persist", "pexpire", "pexpireat", "pexpiretime",
    "pfadd", "pfcount", "pfmerge", "ping", "psetex", "pttl", "rename", "renamenx", "restore",
    "rpop", "rpoplpush", "rpush", "rpushx", "sadd", "scard", "sdiff", "sdiffstore", "set",
    "setbit", "setex", "setnx", "setrange", "sinter", "sintercard", "sinterstore", "sismember",
    "smembers", "smismember", "smove", "sort", "sort_ro", "spop", "srandmember", "srem", "sscan",
    "strlen", "substr", "sunion", "sunionstore", "time", "touch", "ttl", "type", "unlink", "xack",
    "xadd", "xautoclaim", "xclaim", "xdel", "xgroup|create", "xgroup|createconsumer",
    "xgroup|delconsumer", "xgroup|destroy", "xgroup|setid", "xinfo|consumers", "xinfo|groups",
    "xinfo|stream", "xlen", "xpending", "xrange", "xread", "xreadgroup", "xrevrange", "xsetid",
    "xtrim", "zadd", "zcard", "zcount", "zdiff", "zdiffstore", "zincrby", "zinter", "zintercard",
    "zinterstore", "zlexcount", "zmpop", "zmscore", "zpopmax", "zpopmin", "zrandmember", "zrange",
    "zrangebylex", "zrangebyscore", "zrangestore", "zrank", "zrem", "zremrangebylex",
    "zremrangebyrank", "zremrangebyscore", "zrevrange", "zrevrangebylex", "zrevrangebyscore",
    "zrevrank", "zscan", "zscore", "zunion", "zunionstore",
];

/// Whether a command, or a subcommand as `object|encoding`, touches nothing but the keys it names.
pub(super) fn are_confined(name: &str) -> bool {
    CONFINED.binary_search(&name).is_ok()
}

#[cfg(test)]
mod tests {
    use kstone_redis::port::known_commands;

    use super::*;

    /// Commands that name keys and are refused to tenants, or by the port to everybody.
    const NOT_CONFINED: [&str; 19] = [
        "blmove",
        "blmpop",
        "blpop",
        "brpop",
        "brpoplpush",
        "bzmpop",
        "bzpopmax",
        "bzpopmin",
        "eval",
        "eval_ro",
        "evalsha",
        "evalsha_ro",
        "fcall",
        "fcall_ro",
        "migrate",
        "move",
        "pfdebug",
        "restore-asking",
        "watch",
    ];

    #[test]
    fn every_command_that_names_keys_was_thought_of() {
        let known: Vec<&str> = known_commands().map(|command| command.name).collect();
        for name in CONFINED.iter().chain(&NOT_CONFINED) {
            assert!(known.contains(name), "there is no {name}");
        }
        let mut undecided: Vec<&str> = known_commands()
            .filter(|command| command.names_keys)
            .map(|command| command.name)
            .filter(|name| are_confined(name) == NOT_CONFINED.contains(name))
            .collect();
        undecided.sort_unstable();
        assert_eq!(undecided, Vec::<&str>::new());
        assert!(CONFINED.is_sorted());
    }
}
