//! Sorted sets.
//!
//! Where things are: `layout` (the records), `set` (one set, and writing it), `ranked` (its quick
//! form in memory), `walk` (reading it in order from one or the other), `bounds` (ranges as
//! commands spell them), `reply`; then the commands.

mod add;
mod bounds;
mod combine;
mod layout;
mod pop;
mod range;
mod ranked;
mod read;
mod reply;
mod set;
mod walk;

use std::ops::{Bound, ControlFlow};

use crate::command_spec::{Command, CommandName, Context, Keys, RunOnKeys, flag::*};
use crate::fault::Result;
use crate::store::Txn;

pub(crate) use add::{Options, add};
pub(crate) use bounds::ScoreRange;
pub(crate) use layout::{member_key, member_of};
pub(crate) use set::SortedSet;
pub(crate) use walk::{Walk, Window};

/// Shows every member of a sorted set that is there, with its score, in the order of the names from
/// one name on, until told to stop.
pub(crate) fn each_member(
    txn: &Txn<'_>,
    key: &[u8],
    from: &[u8],
    mut see: impl FnMut(&[u8], f64) -> Result<ControlFlow<()>>,
) -> Result<()> {
    let low = layout::member_key(from);
    let (low, high) = (Bound::Included(low.as_slice()), Bound::Excluded(layout::INDEX_START));
    txn.each_part(key, low, high, false, |sk, value| {
        see(sk.get(1..).unwrap_or_default(), layout::read_score(value)?)
    })
}

/// Stores the result of a command under a key, in the place of whatever it holds, and replies how
/// many members that are. It counts as so many changes.
pub(crate) fn store_result(
    context: &mut Context<'_, '_>,
    key: &[u8],
    members: &[(Vec<u8>, f64)],
    event: &'static str,
    changes: u64,
) -> Result<()> {
    let given = members.iter().map(|(member, score)| (member.as_slice(), *score));
    let was_there = SortedSet::replace(context.txn, key, given)?;
    if !members.is_empty() {
        context.txn.notify_counted('z', event, key, changes);
    } else if was_there {
        context.txn.notify_counted('g', "del", key, 1);
    }
    context.out.integer(members.len() as i64);
    Ok(())
}

/// As many as the second argument says, and the first.
const COUNTED_AND_TARGET: Keys = Keys::Counted { count: 2, also: 1 };

/// The flags of what stores what it makes of several sets.
const STORES: u32 = WRITE | DENYOOM | MOVABLE_KEYS;

const fn command(name: CommandName, arity: i32, flags: u32, keys: Keys, run: RunOnKeys) -> Command {
    Command::on_keys(name, arity, flags, keys, "sortedset", run)
}

pub(super) const COMMANDS: &[Command] = &[
    command("zadd", -4, WRITE | DENYOOM | FAST, Keys::FIRST, add::zadd),
    command("zincrby", 4, WRITE | DENYOOM | FAST, Keys::FIRST, add::zincrby),
    command("zrem", -3, WRITE | FAST, Keys::FIRST, add::zrem),
    command("zremrangebyrank", 4, WRITE, Keys::FIRST, range::zremrangebyrank),
    command("zremrangebyscore", 4, WRITE, Keys::FIRST, range::zremrangebyscore),
    command("zremrangebylex", 4, WRITE, Keys::FIRST, range::zremrangebylex),
    command("zunionstore", -4, STORES, COUNTED_AND_TARGET, combine::zunionstore),
    command("zinterstore", -4, STORES, COUNTED_AND_TARGET, combine::zinterstore),
    command("zdiffstore", -4, STORES, COUNTED_AND_TARGET, combine::zdiffstore),
    command("zunion", -3, READONLY | MOVABLE_KEYS, Keys::COUNTED, combine::zunion),
    command("zinter", -3, READONLY | MOVABLE_KEYS, Keys::COUNTED, combine::zinter),
    command("zdiff", -3, READONLY | MOVABLE_KEYS, Keys::COUNTED, combine::zdiff),
    command("zintercard", -3, READONLY | MOVABLE_KEYS, Keys::COUNTED, combine::zintercard),
    command("zrange", -4, READONLY, Keys::FIRST, range::zrange),
    command("zrangestore", -5, WRITE | DENYOOM, Keys::FIRST_TWO, range::zrangestore),
    command("zrangebyscore", -4, READONLY, Keys::FIRST, range::zrangebyscore),
    command("zrevrangebyscore", -4, READONLY, Keys::FIRST, range::zrevrangebyscore),
    command("zrangebylex", -4, READONLY, Keys::FIRST, range::zrangebylex),
    command("zrevrangebylex", -4, READONLY, Keys::FIRST, range::zrevrangebylex),
    command("zrevrange", -4, READONLY, Keys::FIRST, range::zrevrange),
    command("zcount", 4, READONLY | FAST, Keys::FIRST, read::zcount),
    command("zlexcount", 4, READONLY | FAST, Keys::FIRST, read::zlexcount),
    command("zcard", 2, READONLY | FAST, Keys::FIRST, read::zcard),
    command("zscore", 3, READONLY | FAST, Keys::FIRST, read::zscore),
    command("zmscore", -3, READONLY | FAST, Keys::FIRST, read::zmscore),
    command("zrank", -3, READONLY | FAST, Keys::FIRST, read::zrank),
    command("zrevrank", -3, READONLY | FAST, Keys::FIRST, read::zrevrank),
    command("zrandmember", -2, READONLY, Keys::FIRST, read::zrandmember),
    command("zpopmin", -2, WRITE | FAST, Keys::FIRST, pop::zpopmin),
    command("zpopmax", -2, WRITE | FAST, Keys::FIRST, pop::zpopmax),
    command("zmpop", -4, WRITE | MOVABLE_KEYS, Keys::COUNTED, pop::zmpop),
    command("bzpopmin", -3, WRITE | NOSCRIPT | BLOCKING | FAST, Keys::ALL_BUT_LAST, pop::bzpopmin),
    command("bzpopmax", -3, WRITE | NOSCRIPT | BLOCKING | FAST, Keys::ALL_BUT_LAST, pop::bzpopmax),
    command("bzmpop", -5, WRITE | BLOCKING | MOVABLE_KEYS, Keys::COUNTED_SECOND, pop::bzmpop),
];
