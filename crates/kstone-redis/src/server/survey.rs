//! Shows all existing keys to a newly installed write policy, or after a bulk change.

use std::ops::{Bound, ControlFlow};

use kstone::policy::{KeySize, KeyWrite, WritePolicy};
use kstone_core::{Durability, WriteBatch};

use crate::fault::Result;
use crate::server::Server;
use crate::server::governed::{made, some_at_a_time};
use crate::session::call;
use crate::store::databases::DATABASES;
use crate::store::strings::StringValue;
use crate::store::{KeyState, Kind, Txn};
use crate::{Fault, Redis};

/// Names of keys that are held at a time.
const NAMES: usize = 256;
/// How many bytes of entries of the index of persons are written at a time.
const PIECE_LEN: usize = 1 << 20;

/// A key as [`Redis::survey`] shows it. One with very many members is shown several times, each
/// time with others of them.
#[derive(Debug, Clone, Copy)]
pub struct SurveyedKey<'k> {
    /// The key as if it had just been made, with its value, its fields or its members.
    pub write: KeyWrite<'k>,
    /// What it takes; `None` where the key was shown already.
    pub key_size: Option<KeySize>,
    /// How many members of a collection, entries of a stream, are in `write`.
    pub members: u32,
    /// The bytes of these.
    pub member_bytes: u64,
}

/// What is stored under a key that was [looked](Redis::inspect_key) at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyPresence {
    /// The value that was shown.
    Shown,
    /// One whose time is over, which is shown to nobody until it is reclaimed; or nobody can tell,
    /// because the database is being closed.
    Hidden,
    /// Nothing at all.
    Nothing,
}

impl Redis {
    /// Shows every key of every logical database, until that fails. Each is shown as it is at some
    /// moment of the walk: what is made or removed meanwhile may be shown or not.
    pub fn survey<E: From<Fault>>(
        &self,
        mut see: impl FnMut(&SurveyedKey<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut failure = None;
        let walked = survey(&self.server, &mut |key| {
            see(key).map_err(|error| {
                failure = Some(error);
                Fault::fixed("ERR the walk was ended")
            })
        });
        match failure {
            Some(error) => Err(error),
            None => walked.map_err(E::from),
        }
    }
}

impl Redis {
    /// Shows a key as it is, unless it is not there, and does something while still nobody else can
    /// write it. That hears whether anything is stored under the key.
    pub fn inspect_key<T, E: From<Fault>>(
        &self,
        db: u8,
        key: &[u8],
        see: &mut dyn FnMut(&SurveyedKey<'_>),
        then: impl FnOnce(KeyPresence) -> Result<T, E>,
    ) -> Result<T, E> {
        let server = &self.server;
        let Some(gate) = call::wait(server.locks.share(), || None) else {
            return then(KeyPresence::Hidden);
        };
        let _locked = server.locks.keys(&gate, &server.task_handoff, std::iter::once(key));
        let (mut txn, mut stored) = (server.begin(db), KeyPresence::Nothing);
        show(&mut txn, db, key, &mut |surveyed| {
            stored = KeyPresence::Shown;
            see(surveyed);
            Ok(())
        })?;
        if stored == KeyPresence::Nothing && txn.is_stored(key)? {
            stored = KeyPresence::Hidden;
        }
        then(stored)
    }
}

/// The function that is shown keys.
type OnKey<'s> = dyn FnMut(&SurveyedKey<'_>) -> Result<()> + 's;

fn survey(server: &Server, see: &mut OnKey<'_>) -> Result<()> {
    for db in 0..DATABASES as u8 {
        let mut names = KeyNames::default();
        // Without waiting for anybody: whether a name is still one is seen under its lock.
        while names.next(&server.begin(db))? {
            for key in &names.found {
                let Some(gate) = call::wait(server.locks.share(), || None) else { return Ok(()) };
                let _locked =
                    server.locks.keys(&gate, &server.task_handoff, std::iter::once(&key[..]));
                show(&mut server.begin(db), db, key, see)?;
            }
        }
    }
    Ok(())
}

impl Server {
    /// Two logical databases are about to change places: the keys of each get the entries of the
    /// index of persons that they need in the other. The entries that they had stay, and are found
    /// to be wrong by a reader. The caller has the whole keyspace to itself.
    ///
    /// This is a walk over all keys of both. The entries are written ahead of the commit, which
    /// could not hold them: if it fails, the index has more than it need have.
    pub(crate) fn index_for_swap(&self, txn: &mut Txn<'_>, one: u8, other: u8) -> Result<()> {
        let Some(policy) = txn.take_policy() else { return Ok(()) };
        let indexed = [(one, other), (other, one)].into_iter().try_for_each(|(from, to)| {
            let here = txn.select(from);
            let indexed = self.index_elsewhere(&*policy, txn, to);
            txn.select(here);
            indexed
        });
        txn.put_policy(policy);
        indexed
    }

    fn index_elsewhere(&self, policy: &dyn WritePolicy, txn: &mut Txn<'_>, to: u8) -> Result<()> {
        let (mut names, mut batch) = (KeyNames::default(), WriteBatch::new());
        // What the commit deletes would be gone again, though it is written here.
        let deleted = txn.index_entries_deleted();
        let mut wanted_after_all = Vec::new();
        let write = |batch: &mut WriteBatch, len_min: usize| {
            if batch.encoded_len() > len_min {
                // The log keeps the order: this is durable if the swap is.
                drop(self.engine.write(batch, Durability::Os)?);
                *batch = WriteBatch::new();
            }
            Ok(())
        };
        while names.next(txn)? {
            for key in &names.found {
                show(txn, to, key, &mut |surveyed| {
                    let admitted = policy.admit_key(&surveyed.write);
                    let admitted = admitted.map_err(|refused| {
                        Fault::new(format!("ERR keys that break rules cannot be moved: {refused}"))
                    })?;
                    for entry in &admitted.index {
                        self.databases.note_subject(entry, true, &mut batch)?;
                        if deleted.contains(entry) {
                            wanted_after_all.push(entry.clone());
                        }
                    }
                    write(&mut batch, PIECE_LEN)
                })?;
            }
        }
        txn.note_index(wanted_after_all, true);
        write(&mut batch, 0)
    }
}

/// The names of all keys of a database, some at a time.
#[derive(Debug, Default)]
struct KeyNames {
    found: Vec<Vec<u8>>,
    stripe: Option<u8>,
}

impl KeyNames {
    /// Finds those that come next in the database that is selected; false if there are no more.
    fn next(&mut self, txn: &Txn<'_>) -> Result<bool> {
        loop {
            let is_cut = self.found.len() >= NAMES;
            let after = self.found.pop().filter(|_| is_cut);
            let stripe = match self.stripe {
                Some(stripe) if is_cut => stripe,
                Some(u8::MAX) => return Ok(false),
                last => last.map_or(0, |last| last + 1),
            };
            self.stripe = Some(stripe);
            self.found.clear();
            let _ = txn.scan_stripe(stripe, after.as_deref(), |key, _| {
                self.found.push(key.to_vec());
                match self.found.len() < NAMES {
                    true => ControlFlow::Continue(()),
                    false => ControlFlow::Break(()),
                }
            })?;
            if !self.found.is_empty() {
                return Ok(true);
            }
        }
    }
}

/// Shows a key of the database that is selected, as if it were in this one.
fn show(txn: &mut Txn<'_>, db: u8, key: &[u8], see: &mut OnKey<'_>) -> Result<()> {
    let Some(entry) = txn.lookup_quietly(key)? else { return Ok(()) };
    let state = KeyState::of_entry(key, &entry);
    let write = made(db, key, txn.now_ms(), &state);
    let mut key_size = Some(state.key_size);
    if matches!(entry.kind, Kind::String | Kind::LongString) {
        let Some(value) = StringValue::from_entry(entry)? else { return Ok(()) };
        let value = txn.string_bytes(key, &value)?;
        let value_len = Some(value.len() as u64);
        let write = KeyWrite { value: Some(&value), value_len, ..write };
        return see(&SurveyedKey { write, key_size, members: 0, member_bytes: 0 });
    }
    some_at_a_time(
        entry.kind,
        |part| {
            txn.each_part(key, Bound::Unbounded, Bound::Unbounded, false, |sk, value| {
                part(sk, value).map(ControlFlow::Continue)
            })
        },
        |parts| {
            let (fields, members) = (parts.fields.as_slice(), parts.members.as_slice());
            see(&SurveyedKey {
                write: KeyWrite { fields, members, ..write },
                key_size: key_size.take(),
                members: parts.written.members,
                member_bytes: parts.written.bytes,
            })
        },
    )
}
