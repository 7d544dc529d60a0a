//! A walk over all keys, for a policy that has come to keys which were there before it.

use std::ops::{Bound, ControlFlow};

use kstone::policy::{Footprint, KeyWrite};

use crate::fault::Result;
use crate::server::Server;
use crate::server::governed::{made, some_at_a_time};
use crate::session::call;
use crate::store::spaces::DATABASES;
use crate::store::strings::StringValue;
use crate::store::{Kind, State};
use crate::{Fault, Redis};

/// So many names of keys are held at a time.
const NAMES: usize = 256;

/// A key as [`Redis::survey`] shows it. One with very many members is shown several times, each time
/// with others of them.
#[derive(Debug, Clone, Copy)]
pub struct Surveyed<'k> {
    /// The key as if it had just been made, with its value, its fields or its members.
    pub write: KeyWrite<'k>,
    /// What it takes; `None` where the key was shown already.
    pub footprint: Option<Footprint>,
    /// How many members of a collection, entries of a stream, are in `write`.
    pub members: u32,
    /// The bytes of these.
    pub member_bytes: u64,
}

impl Redis {
    /// Shows every key of every logical database, until that fails. Each is shown as it is at some
    /// moment of the walk: what is made or removed meanwhile may be shown or not.
    pub fn survey<E: From<Fault>>(
        &self,
        mut see: impl FnMut(&Surveyed<'_>) -> Result<(), E>,
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

/// Who is shown keys.
type See<'s> = dyn FnMut(&Surveyed<'_>) -> Result<()> + 's;

fn survey(server: &Server, see: &mut See<'_>) -> Result<()> {
    for db in 0..DATABASES as u8 {
        for stripe in 0..=u8::MAX {
            let mut names: Vec<Vec<u8>> = Vec::new();
            loop {
                let after = names.pop();
                names.clear();
                // Without waiting for anybody: whether a name is still one is seen under its lock.
                let _ = server.begin(db).scan_stripe(stripe, after.as_deref(), |key, _| {
                    names.push(key.to_vec());
                    match names.len() < NAMES {
                        true => ControlFlow::Continue(()),
                        false => ControlFlow::Break(()),
                    }
                })?;
                for key in &names {
                    survey_key(server, db, key, see)?;
                }
                if names.len() < NAMES {
                    break;
                }
            }
        }
    }
    Ok(())
}

fn survey_key(server: &Server, db: u8, key: &[u8], see: &mut See<'_>) -> Result<()> {
    let Some(gate) = call::wait(server.locks.share(), || None) else { return Ok(()) };
    let _locked = server.locks.keys(&gate, &server.way, std::iter::once(key));
    let mut txn = server.begin(db);
    let Some(entry) = txn.lookup_quietly(key)? else { return Ok(()) };
    let state = State::of_entry(key, &entry);
    let write = made(db, key, txn.now_ms(), state);
    let mut footprint = Some(state.footprint);
    if matches!(entry.kind, Kind::String | Kind::LongString) {
        let Some(value) = StringValue::from_entry(entry)? else { return Ok(()) };
        let value = txn.string_bytes(key, &value)?;
        let write = KeyWrite { value: Some(&value), ..write };
        return see(&Surveyed { write, footprint, members: 0, member_bytes: 0 });
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
            see(&Surveyed {
                write: KeyWrite { fields, members, ..write },
                footprint: footprint.take(),
                members: parts.written,
                member_bytes: parts.written_bytes,
            })
        },
    )
}
