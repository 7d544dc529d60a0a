//! Which node has which slot: [`Slots`], as a cluster tells it.

use std::sync::Arc;

use kstone_ports::keys::SLOTS;

use crate::node::Node;
use crate::reply::endpoint;

/// Stands for no node.
const NOBODY: u16 = u16::MAX;

/// Which node has which slot.
#[derive(Debug, Clone, Default)]
pub(crate) struct Slots {
    /// Grows with every answer of a cluster, so that of many callers who found out that this is
    /// outdated, one asks.
    pub version: u64,
    /// The masters, by address.
    masters: Vec<Arc<Node>>,
    /// The replicas, who can be asked when masters are gone.
    pub replicas: Vec<String>,
    /// The position among the masters, for each slot.
    owners: Vec<u16>,
}

impl Slots {
    /// One node that has all of them.
    pub fn all_at(node: Arc<Node>) -> Slots {
        let owners = vec![0; usize::from(SLOTS)];
        Slots { version: 1, masters: vec![node], replicas: Vec::new(), owners }
    }

    /// What a cluster answered. `node` finds or makes the node at an address.
    pub fn of(version: u64, answer: Ranges, mut node: impl FnMut(String) -> Arc<Node>) -> Slots {
        let mut owners = vec![NOBODY; usize::from(SLOTS)];
        let mut names: Vec<String> = answer.ranges.iter().map(|it| it.master.clone()).collect();
        names.sort_unstable();
        names.dedup();
        for range in answer.ranges {
            let owner = names.binary_search(&range.master).ok().and_then(|it| it.try_into().ok());
            let Some(owned) = owners.get_mut(usize::from(range.first)..=usize::from(range.last))
            else {
                continue;
            };
            owned.fill(owner.unwrap_or(NOBODY));
        }
        let masters = names.into_iter().map(&mut node).collect();
        Slots { version, masters, replicas: answer.replicas, owners }
    }

    /// Who has a slot; of no slot, anybody.
    pub fn owner(&self, slot: Option<u16>) -> Option<&Arc<Node>> {
        let Some(slot) = slot else { return self.masters.first() };
        let owner = *self.owners.get(usize::from(slot))?;
        self.masters.get(usize::from(owner))
    }

    /// All masters, by address.
    pub fn masters(&self) -> &[Arc<Node>] {
        &self.masters
    }
}

/// What CLUSTER SLOTS answers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Ranges {
    ranges: Vec<Range>,
    replicas: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Range {
    first: u16,
    last: u16,
    master: String,
}

impl Ranges {
    /// Reads the answer of the node at `asked`; `None` if it is none, or names no slot.
    pub fn of(answer: &redis::Value, asked: &str) -> Option<Ranges> {
        let mut all = Ranges::default();
        for row in array(answer)? {
            let [first, last, master, replicas @ ..] = array(row)? else { return None };
            let (first, last) = (slot(first)?, slot(last)?);
            if first > last {
                return None;
            }
            all.ranges.push(Range { first, last, master: address(master, asked)? });
            all.replicas.extend(replicas.iter().filter_map(|it| address(it, asked)));
        }
        all.replicas.sort_unstable();
        all.replicas.dedup();
        (!all.ranges.is_empty()).then_some(all)
    }
}

fn array(value: &redis::Value) -> Option<&[redis::Value]> {
    match value {
        redis::Value::Array(values) => Some(values),
        _ => None,
    }
}

fn slot(value: &redis::Value) -> Option<u16> {
    match value {
        redis::Value::Int(slot) => u16::try_from(*slot).ok().filter(|slot| *slot < SLOTS),
        _ => None,
    }
}

/// `host:port` of a node that is described by its host, its port and more.
fn address(node: &redis::Value, asked: &str) -> Option<String> {
    let [host, redis::Value::Int(port), ..] = array(node)? else { return None };
    let host = match host {
        redis::Value::BulkString(host) => std::str::from_utf8(host).ok()?,
        redis::Value::SimpleString(host) => host,
        _ => "",
    };
    // A node that does not know its own name writes nothing or `?`.
    let host = if host == "?" { "" } else { host };
    Some(endpoint(&format!("{host}:{port}"), asked))
}

#[cfg(test)]
mod tests {
    use redis::Value::{Array, BulkString, Int, Nil};

    use super::*;
    use crate::address::Address;
    use crate::options::RemoteOptions;

    #[test]
    fn an_answer_names_the_owner_of_each_slot() {
        let node = |host: redis::Value, port| Array(vec![host, Int(port), Nil]);
        let named = |host: &str, port| node(BulkString(host.as_bytes().to_vec()), port);
        let answer = Array(vec![
            Array(vec![Int(0), Int(99), named("10.0.0.2", 1), named("10.0.0.3", 1)]),
            Array(vec![Int(200), Int(16_383), node(Nil, 7)]),
        ]);
        let ranges = Ranges::of(&answer, "10.0.0.9:5").unwrap();
        let store = Address::parse("redis-cluster://10.0.0.9:5").unwrap();
        let make = |at| Arc::new(Node::new(at, &store, &RemoteOptions::default()));
        let slots = Slots::of(3, ranges, make);
        let owner = |slot| slots.owner(Some(slot)).map(|it| it.address.as_str());
        assert_eq!(owner(99), Some("10.0.0.2:1"));
        assert_eq!((owner(100), owner(16_383)), (None, Some("10.0.0.9:7")));
        assert_eq!(slots.replicas, ["10.0.0.3:1"]);
        assert_eq!(Ranges::of(&Array(vec![]), "h:1"), None);
        assert_eq!(Ranges::of(&Array(vec![Array(vec![Int(9), Int(99_999)])]), "h:1"), None);
    }
}
