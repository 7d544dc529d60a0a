//! Where keys live: Redis's keys on the engine's records.
//!
//! A logical database is an engine table, a key is a partition of it. The partition's record
//! without sort key, the *head*, says what the key is: a byte for its [`Kind`], then whatever the
//! type wants to know at once (a string's value, a hash's number of fields, a list's ends). The
//! parts of a larger type are further records of the same partition, under sort keys that the type
//! chooses. So one key is one stripe, deleting or replacing it is one mark in the engine however
//! large it is, and no part outlives its head.
//!
//! The key's expiry is the engine's expiry of the head: exact on read. Who finds a head whose time
//! is over removes the key with all its parts; what nobody asks for is removed in the background.
//!
//! [`Txn`] is the only way to read or write: it shows a command its own writes and commits them all
//! at once. [`databases`] knows which table is which database.

pub(crate) mod accesses;
mod annex;
mod changes;
mod copy;
mod counts;
pub(crate) mod databases;
pub(crate) mod elements;
pub(crate) mod fields;
mod key_state;
mod parts;
pub(crate) mod record_cache;
pub(crate) mod strings;
mod txn;

pub(crate) use key_state::KeyState;
pub(crate) use txn::governed::{DatabaseChange, Pending, PolicyRef, TouchedKey};
pub(crate) use txn::{Committed, Entry, Event, Listeners, Txn};

/// What a key holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Kind {
    String,
    List,
    Set,
    SortedSet,
    Hash,
    Stream,
    /// A string too long for one record: its parts are pieces of it.
    LongString,
}

impl Kind {
    /// The head's first byte.
    pub(crate) fn tag(self) -> u8 {
        match self {
            Kind::String => 1,
            Kind::List => 2,
            Kind::Set => 3,
            Kind::SortedSet => 4,
            Kind::Hash => 5,
            Kind::Stream => 6,
            Kind::LongString => 7,
        }
    }

    pub(crate) fn from_tag(tag: u8) -> Option<Kind> {
        Some(match tag {
            1 => Kind::String,
            2 => Kind::List,
            3 => Kind::Set,
            4 => Kind::SortedSet,
            5 => Kind::Hash,
            6 => Kind::Stream,
            7 => Kind::LongString,
            _ => return None,
        })
    }

    /// Whether the key can have parts beside its head.
    pub(crate) fn has_parts(self) -> bool {
        self != Kind::String
    }

    /// What `TYPE` answers.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::String | Kind::LongString => "string",
            Kind::List => "list",
            Kind::Set => "set",
            Kind::SortedSet => "zset",
            Kind::Hash => "hash",
            Kind::Stream => "stream",
        }
    }
}
