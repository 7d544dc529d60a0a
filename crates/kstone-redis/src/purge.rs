//! Deletes keys and members, then erases their bytes from all files.
//!
//! Where the bytes of a key can be:
//! - Its head and its parts are records of one partition, and so in one stripe: in that stripe's
//!   files, and in the log until all stripes are flushed. Overwritten and deleted ones stay there
//!   until a compaction passes.
//! - A key with an expiry, or a hash with a field that has one, is named in the stripe's expiry
//!   index, also by entries that are out of date.
//! - The parts of a key too large for one commit are in an annex, a partition of another stripe, and
//!   nobody knows any more which annexes a key has had. So once there are any, all stripes count.
//! - Element by element: a member of a set, a field of a hash and a member of a sorted set are in the
//!   sort keys of their records, an element of a list and an entry of a stream in values. A list
//!   that loses an element moves others to its place, so what held it may hold another by now.
//! - The manifest has the first and last key of every file, and each checkpoint has all of this as
//!   it was.
//!
//! So the deletes are done by commands, as if a client had sent them: locks, caches, watchers,
//! events, indexes and the policy see them. The same is done in each checkpoint, which is opened as
//! a database for that. Then the engine removes the remains, that is what nobody can read any more,
//! of the stripes concerned, here and in the checkpoints. It does not matter what else was written
//! meanwhile: what is there stays.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use kstone_core::{PurgeSnapshots, PurgeTarget, stripe_of};
use kstone_ports::items::PurgeReport;
use kstone_ports::keys::PurgeKeys;
use kstone_ports::{Error, Result};

use crate::Redis;
use crate::port::LocalKeys;
use crate::port::local::{execute, reply};
use crate::reply::Value;
use crate::server::slowlog;
use crate::session::Session;
use crate::store::databases::DATABASES;

/// Keys or members that are deleted by one command.
const TOGETHER: usize = 64;
/// How long readers have that still see what was deleted. Then they are ended.
const PATIENCE: Duration = Duration::from_secs(1);

/// What [`Keys::purge`](kstone_ports::keys::Keys::purge) does.
pub(crate) async fn purge(keys: &LocalKeys, request: &PurgeKeys) -> Result<PurgeReport> {
    let redis = keys.redis();
    let named = request.keys.iter().map(|(db, _)| db);
    if named
        .chain(request.members.iter().map(|(db, ..)| db))
        .any(|db| usize::from(*db) >= DATABASES)
    {
        return Err(Error::Refused("ERR DB index is out of range".to_owned()));
    }
    let server = &redis.server;
    let first_seq = server.engine.applied_seq();
    let mut has_annexes = server.databases.have_annexes();
    let records = delete(redis, request).await?;
    let last_seq = server.engine.applied_seq();
    forget(redis, request);
    if request.files_later {
        return Ok(PurgeReport { records, first_seq, last_seq, ..PurgeReport::default() });
    }
    for path in server.engine.checkpoints() {
        let Some(database) = server.database.open_checkpoint(&path).map_err(unavailable)? else {
            continue;
        };
        if let Some(copy) = Redis::open_if_any(&database).map_err(unavailable)? {
            has_annexes |= copy.server.databases.have_annexes();
            delete(&copy, request).await?;
        }
    }
    let snapshots = PurgeSnapshots::EndAfter(PATIENCE);
    // From here on this thread is busy for long.
    server.task_handoff.hand_off();
    let purged = server.engine.purge(&targets(request, has_annexes), snapshots);
    let purged = purged.map_err(unavailable)?;
    Ok(PurgeReport {
        records,
        stripes: purged.stripes,
        checkpoints: purged.checkpoints.len() as u64,
        missing_checkpoints: purged.missing,
        first_seq,
        last_seq: last_seq.max(purged.last_seq),
        read_bytes: purged.read_bytes,
        took: purged.took,
    })
}

fn targets(request: &PurgeKeys, has_annexes: bool) -> Vec<PurgeTarget> {
    if request.remains || has_annexes {
        return vec![PurgeTarget::Remains];
    }
    let keys = request.keys.iter().map(|(_, key)| key);
    let all = keys.chain(request.members.iter().map(|(_, key, _)| key));
    let stripes: HashSet<u8> = all.map(|key| stripe_of(key)).collect();
    stripes.into_iter().map(|stripe| PurgeTarget::RemainsIn { stripe }).collect()
}

fn unavailable(error: impl std::fmt::Display) -> Error {
    Error::Unavailable(error.to_string())
}

/// Forgets what is kept in memory of commands that named them, and shown: SLOWLOG, ACL LOG. Who wants
/// all bytes gone of what was there may not know what commands said: a person may be named in a value
/// that was rewritten since, or in a key that is long gone. Then nothing of the logs stays.
fn forget(redis: &Redis, request: &PurgeKeys) {
    if request.remains || request.files_later {
        redis.server.slowlog.clear();
        redis.server.acl.log.clear();
        return;
    }
    let keys = request.keys.iter().map(|(_, key)| key.as_ref());
    let members = request.members.iter().map(|(_, _, member)| member.as_ref());
    let named = keys.chain(members);
    let shown = |name: &[u8]| slowlog::shortened(&[name]).into_iter().chain([name.to_vec()]);
    let gone: HashSet<Vec<u8>> = named.flat_map(shown).collect();
    redis.server.slowlog.forget(|arg| gone.contains(arg));
    redis.server.acl.log.forget(|object| gone.contains(object));
}

/// Deletes by commands. Returns how many keys and members were there.
async fn delete(redis: &Redis, request: &PurgeKeys) -> Result<u64> {
    let mut keys: BTreeMap<u8, Vec<&Bytes>> = BTreeMap::new();
    for (db, key) in &request.keys {
        keys.entry(*db).or_default().push(key);
    }
    let mut members: BTreeMap<(u8, &Bytes), Vec<&Bytes>> = BTreeMap::new();
    for (db, key, member) in &request.members {
        members.entry((*db, key)).or_default().push(member);
    }
    let mut deleted = 0;
    for (db, keys) in keys {
        let mut session = Session::inside(Arc::clone(&redis.server), db);
        for some in keys.chunks(TOGETHER) {
            deleted += count(&mut session, "UNLINK", some.iter().copied()).await?;
        }
    }
    for ((db, key), members) in members {
        let mut session = Session::inside(Arc::clone(&redis.server), db);
        deleted += delete_members(&mut session, key, &members).await?;
    }
    Ok(deleted)
}

async fn delete_members(session: &mut Session, key: &Bytes, members: &[&Bytes]) -> Result<u64> {
    let kind = reply(execute(session, &[Bytes::from_static(b"TYPE"), key.clone()]).await?)?;
    let Value::Simple(kind) = kind else { return Ok(0) };
    let (name, together) = match kind.as_str() {
        "hash" => ("HDEL", TOGETHER),
        "set" => ("SREM", TOGETHER),
        "zset" => ("ZREM", TOGETHER),
        "stream" => ("XDEL", 1),
        "list" => ("LREM", 1),
        // There is none, or it has no members.
        _ => return Ok(0),
    };
    let every = Bytes::from_static(b"0");
    let mut deleted = 0;
    for some in members.chunks(together) {
        let count_of = (name == "LREM").then_some(&every);
        let args = std::iter::once(key).chain(count_of).chain(some.iter().copied());
        deleted += match count(session, name, args).await {
            // What is no ID names no entry.
            Err(Error::Reply(fault)) if name == "XDEL" && fault.message().contains("ID") => 0,
            done => done?,
        };
    }
    Ok(deleted)
}

/// Executes a command that answers how many it deleted.
async fn count<'b>(
    session: &mut Session,
    name: &'static str,
    args: impl Iterator<Item = &'b Bytes>,
) -> Result<u64> {
    let name = Bytes::from_static(name.as_bytes());
    let given: Vec<Bytes> = std::iter::once(name).chain(args.cloned()).collect();
    match reply(execute(session, &given).await?)? {
        Value::Integer(deleted) => Ok(u64::try_from(deleted).unwrap_or(0)),
        _ => Ok(0),
    }
}
