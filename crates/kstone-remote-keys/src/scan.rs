//! A walk over the keys of all nodes: [`scan`].
//!
//! A cluster's nodes know only cursors of their own, and slots change hands during a walk. So the
//! cursor of the port names the node, its cursor, the slots that it had when its turn began, and the
//! slots that are done. Slots that the node lost meanwhile are not done, and come again at another.

use bytes::Bytes;
use kstone_ports::keys::{KeysPage, SLOTS, ScanKeys};
use kstone_ports::{Error, Result};
use redis::{Pipeline, cmd};

use crate::form::{Form, reply_of};
use crate::node::{NoReply, Node};
use crate::patience::Patience;
use crate::reply::{error_of, verdict_of_error};
use crate::slots::Slots;
use crate::store::{Again, Store};

/// Some keys of the store.
pub(crate) async fn scan(store: &Store, request: &ScanKeys) -> Result<KeysPage> {
    let wrong = || Error::invalid("this is no cursor of a walk over keys");
    let after = match &request.after {
        Some(text) => {
            Some(std::str::from_utf8(text).ok().and_then(Place::parse).ok_or_else(wrong)?)
        }
        None => None,
    };
    let mut place = after.unwrap_or_default();
    let mut patience = Patience::of(store.options.patience);
    loop {
        let slots = store.slots().await?;
        let again = match place.node(&slots) {
            None => Again::unsent("CLUSTERDOWN a slot has no node".to_owned()),
            Some(node) => match page_of(&node, &place.cursor, request).await? {
                Ok((cursor, keys)) => {
                    place.cursor = cursor;
                    let next = place.advance(&slots).then(|| Bytes::from(place.to_string()));
                    return Ok(KeysPage { keys, next });
                }
                Err(again) => again,
            },
        };
        if !store.prepare(slots.version, &again, &mut patience).await {
            return Err(again.why);
        }
    }
}

/// One page of a node: its next cursor, and keys.
async fn page_of(
    node: &Node,
    cursor: &str,
    request: &ScanKeys,
) -> Result<Result<(String, Vec<Bytes>), Again>> {
    let mut command = cmd("SCAN");
    command.arg(cursor).arg("COUNT").arg(request.count.max(1));
    if let Some(pattern) = &request.pattern {
        command.arg("MATCH").arg(pattern.as_ref());
    }
    if let Some(kind) = request.kind {
        command.arg("TYPE").arg(kind);
    }
    let mut message = Pipeline::with_capacity(1);
    message.add_command(command);
    let mut replies = match node.send(&message).await {
        Ok(replies) => replies,
        Err(NoReply::NotSent(why)) => return Ok(Err(Again::unsent(why))),
        Err(NoReply::Lost(why)) => return Ok(Err(Again::lost_read(&node.address, &why))),
    };
    match replies.pop().unwrap_or_default() {
        redis::Value::Array(parts) => {
            let mut parts = parts.into_iter();
            match (parts.next(), parts.next()) {
                (Some(redis::Value::BulkString(next)), Some(redis::Value::Array(keys))) => {
                    let keys = keys.into_iter().filter_map(|key| match key {
                        redis::Value::BulkString(key) => Some(Bytes::from(key)),
                        _ => None,
                    });
                    Ok(Ok((String::from_utf8_lossy(&next).into_owned(), keys.collect())))
                }
                other => Err(Error::Unreadable(format!("SCAN answered {other:?}"))),
            }
        }
        other => match reply_of(other, Form::Plain) {
            Ok(other) => Err(Error::Unreadable(format!("SCAN answered {other:?}"))),
            Err(error) => match Again::after(verdict_of_error(error, None, &node.address)) {
                Ok(again) => Ok(Err(again)),
                Err(Err(error)) => Err(error_of(error)),
                Err(Ok(other)) => Err(Error::Unreadable(format!("SCAN answered {other:?}"))),
            },
        },
    }
}

/// How far a walk has come. As text: the node, its cursor, the slots that it had, the slots that are
/// done; separated by spaces.
#[derive(Debug, Clone, PartialEq)]
struct Place {
    node: String,
    cursor: String,
    of_node: SlotSet,
    done: SlotSet,
}

impl Default for Place {
    /// The beginning.
    fn default() -> Place {
        Place {
            node: String::new(),
            cursor: "0".to_owned(),
            of_node: SlotSet::default(),
            done: SlotSet::default(),
        }
    }
}

impl Place {
    fn parse(text: &str) -> Option<Place> {
        let mut words = text.split(' ');
        let mut next = || words.next();
        let (node, cursor, of_node, done) = (next()?, next()?, next()?, next()?);
        let is_number = !cursor.is_empty() && cursor.bytes().all(|byte| byte.is_ascii_digit());
        Some(Place {
            node: node.to_owned(),
            cursor: is_number.then(|| cursor.to_owned())?,
            of_node: SlotSet::parse(of_node)?,
            done: SlotSet::parse(done)?,
        })
    }

    /// The node whose turn it is: the one of the page before while it is still there, or else that
    /// of the first slot that is not done.
    fn node(&mut self, slots: &Slots) -> Option<std::sync::Arc<Node>> {
        let masters = || slots.masters().iter();
        if let Some(node) = masters().find(|it| it.address == self.node && !self.node.is_empty()) {
            return Some(std::sync::Arc::clone(node));
        }
        let slot = self.done.first_missing()?;
        let node = slots.owner(Some(slot))?;
        self.node = node.address.clone();
        self.cursor = "0".to_owned();
        self.of_node = SlotSet::of(slots, &self.node);
        Some(std::sync::Arc::clone(node))
    }

    /// Goes on to the next node if this one has shown all; `false` if that was the last.
    fn advance(&mut self, slots: &Slots) -> bool {
        if self.cursor != "0" {
            return true;
        }
        self.done.add_both(&self.of_node, &SlotSet::of(slots, &self.node));
        self.node = String::new();
        self.of_node = SlotSet::default();
        self.done.first_missing().is_some()
    }
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {} {} {}", self.node, self.cursor, self.of_node, self.done)
    }
}

/// Some slots: as text, ranges such as `0-99,200-200`.
#[derive(Clone, PartialEq)]
struct SlotSet(Vec<bool>);

impl Default for SlotSet {
    fn default() -> SlotSet {
        SlotSet(vec![false; usize::from(SLOTS)])
    }
}

impl SlotSet {
    /// Those of a node.
    fn of(slots: &Slots, address: &str) -> SlotSet {
        let is_there = |slot| slots.owner(Some(slot)).is_some_and(|it| it.address == address);
        SlotSet((0..SLOTS).map(is_there).collect())
    }

    fn parse(text: &str) -> Option<SlotSet> {
        let mut set = SlotSet::default();
        for range in text.split(',').filter(|range| !range.is_empty()) {
            let (first, last) = range.split_once('-')?;
            let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
            set.0.get_mut(first..last.checked_add(1)?)?.fill(true);
        }
        Some(set)
    }

    fn first_missing(&self) -> Option<u16> {
        self.0.iter().position(|has| !has).and_then(|slot| slot.try_into().ok())
    }

    /// Adds what is in both of these.
    fn add_both(&mut self, one: &SlotSet, other: &SlotSet) {
        for (here, (one, other)) in self.0.iter_mut().zip(one.0.iter().zip(&other.0)) {
            *here |= one & other;
        }
    }
}

impl std::fmt::Display for SlotSet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut at = 0;
        for run in self.0.chunk_by(|one, next| one == next) {
            if run.first() == Some(&true) {
                write!(f, "{}{at}-{}", if at == 0 { "" } else { "," }, at + run.len() - 1)?;
            }
            at += run.len();
        }
        Ok(())
    }
}

impl std::fmt::Debug for SlotSet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{self}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_survives_its_text() {
        let place = Place {
            node: "[::1]:7000".to_owned(),
            cursor: "123".to_owned(),
            of_node: SlotSet::parse("5-5,9-16383").unwrap(),
            done: SlotSet::parse("0-4").unwrap(),
        };
        assert_eq!(Place::parse(&place.to_string()), Some(place.clone()));
        assert_eq!(place.done.first_missing(), Some(5));
        for wrong in ["", "0", "a x 0-1 0-1", "a 0 0-99999 ", "a 0 5-1 ", "a 0 x "] {
            assert_eq!(Place::parse(wrong), None, "{wrong}");
        }
    }
}
