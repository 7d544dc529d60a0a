//! What a command does with each of its keys (reads, writes, deletes), for COMMAND GETKEYSANDFLAGS
//! and ACLs.

use crate::args;
use crate::command_spec::{Command, flag};

/// What is done with one key.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Access {
    /// As COMMAND GETKEYSANDFLAGS words it, separated by spaces: `RW access delete`.
    pub(crate) words: &'static str,
    /// Whether what is there may show in the reply or in another key.
    pub(crate) reads: bool,
    /// Whether it is changed.
    pub(crate) writes: bool,
}

const UPDATE: &str = "OW update";
const READ: &str = "RO access";
const POP: &str = "RW access delete";

/// The access to a command's key, the `order`-th of its keys.
pub(crate) fn of(command: &Command, given: &[&[u8]], order: usize) -> Access {
    let is_first = order == 0;
    let first_or = |first, other| if is_first { first } else { other };
    let has = |option| given.iter().skip(2).any(|arg| args::is(arg, option));
    let words = match command.name {
        "set" if has("get") => "RW access update",
        "set" | "mset" | "psetex" | "setex" | "restore" => UPDATE,
        "bitfield" if !has("set") && !has("incrby") => READ,
        "msetnx" | "setnx" => "OW insert",
        "append"
        | "hsetnx"
        | "linsert"
        | "lpush"
        | "lpushx"
        | "pfadd"
        | "rpush"
        | "rpushx"
        | "sadd"
        | "xgroup|create"
        | "xgroup|createconsumer" => "RW insert",
        "bitop" | "geosearchstore" | "sdiffstore" | "sunionstore" | "zdiffstore"
        | "zinterstore" | "zrangestore" | "zunionstore" => first_or(UPDATE, READ),
        "sinterstore" => first_or("RW update", READ),
        "blmove" | "brpoplpush" | "lmove" | "rpoplpush" | "smove" => first_or(POP, "RW insert"),
        "blmpop" | "blpop" | "brpop" | "bzmpop" | "bzpopmax" | "bzpopmin" | "getdel" | "lmpop"
        | "lpop" | "rpop" | "spop" | "zmpop" | "zpopmax" | "zpopmin" | "migrate" => POP,
        "copy" | "sort" | "georadius" | "georadiusbymember" => first_or(READ, UPDATE),
        "rename" => first_or(POP, UPDATE),
        "renamenx" => first_or(POP, "OW insert"),
        "del" | "unlink" => "RM delete",
        "exists" | "hexists" | "hlen" | "hstrlen" | "llen" | "memory|usage" | "object|encoding"
        | "object|freq" | "object|idletime" | "object|refcount" | "scard" | "sismember"
        | "strlen" | "touch" | "type" | "watch" | "xlen" | "zcard" => "RO",
        "expire" | "expireat" | "geoadd" | "hmset" | "hset" | "lset" | "persist" | "pexpire"
        | "pexpireat" | "setrange" | "xack" | "xadd" | "xclaim" | "xgroup|setid" | "xsetid"
        | "zadd" => "RW update",
        "hdel" | "lrem" | "ltrim" | "srem" | "xautoclaim" | "xdel" | "xgroup|delconsumer"
        | "xgroup|destroy" | "xtrim" | "zrem" | "zremrangebylex" | "zremrangebyrank"
        | "zremrangebyscore" => "RW delete",
        "pfcount" | "pfdebug" => "RW access",
        "pfmerge" => first_or("RW access insert", READ),
        "xreadgroup" => READ,
        _ if command.has(flag::READONLY) => READ,
        _ => "RW access update",
    };
    let has_word = |word| words.split(' ').any(|have| have == word);
    let writes = has_word("update") || has_word("insert") || has_word("delete");
    Access { words, reads: has_word("access"), writes }
}
