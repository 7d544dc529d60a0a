//! The contract on a cluster, and what becomes of calls when one of its masters is killed.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use kstone_ports::Error;
use kstone_ports::keys::{Keys, Value, slot_of};
use kstone_remote_keys::{RemoteKeys, RemoteOptions};
use tokio::time::{Instant, timeout};

use super::servers::{Cluster, PATIENCE, Server, are_installed, wait_until};

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_keeps_the_contract_of_keys_and_survives_its_masters() {
    if !are_installed() {
        return;
    }
    let mut cluster = Cluster::start().await;
    let keys = RemoteKeys::open(&cluster.url(), RemoteOptions::default()).unwrap();
    assert!(keys.database(1).is_none());
    let keys: Arc<dyn Keys> = Arc::new(keys);
    kstone_contract::keys::check(Arc::clone(&keys), "cluster").await;
    a_slot_moves_under_the_calls(&cluster, &keys).await;
    counters_outlive_a_master(&mut cluster, &keys).await;
    a_master_that_hangs_is_replaced(&cluster).await;
}

/// A master hangs, so that nobody says that its slots are elsewhere: writes end with an unknown
/// outcome, but not for longer than until the cluster has another master.
async fn a_master_that_hangs_is_replaced(cluster: &Cluster) {
    let reply_timeout = Duration::from_millis(200);
    let options =
        RemoteOptions { reply_timeout, connect_timeout: reply_timeout, ..RemoteOptions::default() };
    let keys = RemoteKeys::open(&cluster.url(), options).unwrap();
    let has_replica = |node: &&Server| {
        node.is_master() && node.info("replication", "connected_slaves").is_some_and(|it| it == "1")
    };
    let victim = cluster.nodes.iter().find(has_replica).unwrap();
    let slots = slots_of(victim);
    let key = (0..).map(|at| format!("hang{at}"));
    let key =
        key.into_iter().find(|key| slots.iter().any(|it| it.contains(&slot_of(key.as_bytes()))));
    let incr = [Bytes::from_static(b"INCR"), Bytes::from(key.unwrap())];
    assert_eq!(keys.command(&incr).await, Ok(Value::Integer(1)));
    victim.stop();
    let (began, mut unknown) = (Instant::now(), 0);
    let value = loop {
        match keys.command(&incr).await {
            Ok(Value::Integer(value)) => break value,
            Err(Error::OutcomeUnknown(_)) => unknown += 1,
            Err(Error::Unavailable(_)) => (),
            other => panic!("{other:?}"),
        }
        assert!(began.elapsed() < PATIENCE, "nobody took its place");
    };
    assert!(unknown > 0 && value <= unknown + 2, "{value} after {unknown} unknown");
}

/// One slot moves from a master to another, key by key, while callers count, commit and walk: each
/// call is executed once, at the one or at the other.
async fn a_slot_moves_under_the_calls(cluster: &Cluster, keys: &Arc<dyn Keys>) {
    let words = |line: &str| -> Vec<Bytes> {
        line.split(' ').map(|word| Bytes::copy_from_slice(word.as_bytes())).collect()
    };
    let masters: Vec<&Server> = cluster.nodes.iter().filter(|node| node.is_master()).collect();
    let slot = slot_of(b"moving");
    let has = |node: &&&Server| slots_of(node).iter().any(|range| range.contains(&slot));
    let from = *masters.iter().find(has).unwrap();
    let to = *masters.iter().find(|node| !has(node)).unwrap();
    let names: Vec<String> = (0..10).map(|at| format!("{{moving}}{at}")).collect();
    for name in &names {
        keys.command(&words(&format!("SET {name} 0"))).await.unwrap();
    }
    let id = |node: &Server| node.say(&["CLUSTER", "MYID"]).trim().to_owned();
    let (from_id, to_id, slot) = (id(from), id(to), slot.to_string());
    to.say(&["CLUSTER", "SETSLOT", &slot, "IMPORTING", &from_id]);
    from.say(&["CLUSTER", "SETSLOT", &slot, "MIGRATING", &to_id]);
    let port = to.port.to_string();
    for (at, name) in names.iter().enumerate() {
        assert_eq!(from.say(&["MIGRATE", "127.0.0.1", &port, name, "0", "5000"]).trim(), "OK");
        // Some keys are here and some are there.
        for name in &names {
            keys.command(&words(&format!("INCR {name}"))).await.unwrap();
        }
        let incr = [words(&format!("INCR {name}")), words(&format!("GET {name}"))];
        let replies = keys.transaction(&incr).await.unwrap();
        assert_eq!(replies[1], Ok(Value::bulk((at + 2).to_string())));
        let other = &names[(at + 5) % 10];
        let pipeline: Vec<_> = [name, other].map(|name| words(&format!("INCRBY {name} 0"))).into();
        assert!(keys.pipeline(&pipeline).await.unwrap().iter().all(Result::is_ok));
        let mut watch = keys.watch(&[Bytes::from(name.clone())]).await.unwrap();
        let read = watch.command(&words(&format!("GET {name}"))).await;
        assert_eq!(read, Ok(Value::bulk((at + 2).to_string())));
        let set = [words(&format!("INCR {name}"))];
        assert_eq!(watch.commit(&set).await, Ok(Some(vec![Ok(int(at + 3))])));
        keys.command(&words(&format!("DECRBY {name} 2"))).await.unwrap();
    }
    // Keys on both sides are waited for until the move is over.
    let both = words(&format!("MGET {} {{moving}}none", names[0]));
    let (asking, keys_too) = (both.clone(), Arc::clone(keys));
    let waiting = tokio::spawn(async move { keys_too.command(&asking).await });
    for node in [to, from] {
        node.say(&["CLUSTER", "SETSLOT", &slot, "NODE", &to_id]);
    }
    assert!(waiting.await.unwrap().is_ok());
    for name in &names {
        let value = keys.command(&words(&format!("GET {name}"))).await;
        assert_eq!(value, Ok(Value::bulk("10")), "{name}");
    }
    let watch = keys.watch(&[Bytes::from(names[0].clone())]).await.unwrap();
    assert!(watch.commit(&[both]).await.unwrap().is_some());
}

fn int(number: usize) -> Value {
    Value::Integer(number.try_into().unwrap())
}

/// What a writer knows of its key.
#[derive(Debug, Default)]
struct Known {
    acknowledged: AtomicU64,
    unknown: AtomicU64,
    /// The most that a call took.
    longest_ms: AtomicU64,
}

/// Several writers count up a key each while a master is killed. Nothing is counted twice, so that
/// no counter is above what was acknowledged and what nobody knows of. A counter of a master that
/// lives is not below what was acknowledged; one of the killed master is not below what its replica
/// had when that was last seen: the failover of a cluster may take back the rest.
async fn counters_outlive_a_master(cluster: &mut Cluster, keys: &Arc<dyn Keys>) {
    let known: Arc<BTreeMap<String, Known>> =
        Arc::new((0..24).map(|at| (format!("count{at}"), Known::default())).collect());
    let is_over = Arc::new(AtomicBool::new(false));
    let writers: Vec<_> = known
        .keys()
        .cloned()
        .map(|key| {
            let (keys, known, is_over) =
                (Arc::clone(keys), Arc::clone(&known), Arc::clone(&is_over));
            tokio::spawn(async move {
                let command = [Bytes::from_static(b"INCR"), Bytes::from(key.clone())];
                while !is_over.load(Ordering::Relaxed) {
                    count(&keys, &command, &known[&key]).await;
                }
            })
        })
        .collect();
    let all_beyond = |before: &BTreeMap<&String, u64>, more: u64| {
        known.iter().all(|(key, it)| {
            it.acknowledged.load(Ordering::Relaxed) >= before.get(key).copied().unwrap_or(0) + more
        })
    };
    let acknowledged = || -> BTreeMap<&String, u64> {
        known.iter().map(|(key, it)| (key, it.acknowledged.load(Ordering::Relaxed))).collect()
    };
    wait_until("everybody writes", || all_beyond(&BTreeMap::new(), 20)).await;
    // What was acknowledged by now will be at the replica.
    let floor = acknowledged();
    let (victim, slots) = master(cluster);
    let number = |text: Option<String>| text.and_then(|text| text.parse::<u64>().ok());
    let written = number(cluster.nodes[victim].info("replication", "master_repl_offset")).unwrap();
    let victims_port = cluster.nodes[victim].port.to_string();
    let replica = cluster.nodes.iter().find(|node| {
        node.info("replication", "master_port").is_some_and(|port| port == victims_port)
    });
    let replica = replica.unwrap();
    wait_until("the replica has it", || {
        number(replica.info("replication", "slave_repl_offset")).is_some_and(|it| it >= written)
    })
    .await;
    cluster.nodes[victim].kill();
    let after_kill = acknowledged();
    let began = Instant::now();
    wait_until("everybody writes again", || all_beyond(&after_kill, 20)).await;
    let outage = began.elapsed();
    is_over.store(true, Ordering::Relaxed);
    for writer in writers {
        timeout(PATIENCE, writer).await.unwrap().unwrap();
    }
    let longest = known.values().map(|it| it.longest_ms.load(Ordering::Relaxed)).max().unwrap();
    assert!(longest < 12_000, "a call took {longest} ms");
    let mut of_victim = 0;
    for (key, it) in known.iter() {
        let value = keys.command(&[Bytes::from_static(b"GET"), Bytes::from(key.clone())]).await;
        let Ok(Value::Bulk(text)) = value else { panic!("{key}: {value:?}") };
        let value: u64 = String::from_utf8(text).unwrap().parse().unwrap();
        let sure = it.acknowledged.load(Ordering::Relaxed);
        let most = sure + it.unknown.load(Ordering::Relaxed);
        let was_killed = slots.iter().any(|range| range.contains(&slot_of(key.as_bytes())));
        of_victim += u64::from(was_killed);
        let least = if was_killed { floor[key] } else { sure };
        assert!((least..=most).contains(&value), "{key}: {least} <= {value} <= {most}");
    }
    assert!(of_victim > 0, "no key was on the master that was killed");
    eprintln!("a master was replaced after {outage:?}, the longest call took {longest} ms");
}

/// Counts one up.
async fn count(keys: &Arc<dyn Keys>, command: &[Bytes], known: &Known) {
    let began = Instant::now();
    match keys.command(command).await {
        Ok(Value::Integer(_)) => known.acknowledged.fetch_add(1, Ordering::Relaxed),
        Err(Error::OutcomeUnknown(_)) => known.unknown.fetch_add(1, Ordering::Relaxed),
        // Certainly not done.
        Err(Error::Unavailable(_) | Error::Throttled(_)) => 0,
        other => panic!("{other:?}"),
    };
    let took = u64::try_from(began.elapsed().as_millis()).unwrap();
    known.longest_ms.fetch_max(took, Ordering::Relaxed);
    // The writers are many, and the machine has other work.
    tokio::time::sleep(Duration::from_millis(1)).await;
}

/// A master: its position among the nodes, and its slots.
fn master(cluster: &Cluster) -> (usize, Vec<RangeInclusive<u16>>) {
    let at = cluster.nodes.iter().position(Server::is_master).unwrap();
    (at, slots_of(&cluster.nodes[at]))
}

/// The slots of a node.
fn slots_of(node: &Server) -> Vec<RangeInclusive<u16>> {
    let all = node.say(&["CLUSTER", "NODES"]);
    let own = all.lines().find(|line| line.contains("myself")).unwrap();
    let range = |range: &str| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        Some(first.parse().ok()?..=last.parse().ok()?)
    };
    own.split(' ').skip(8).filter_map(range).collect()
}
