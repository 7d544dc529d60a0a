//! Applies the rules of a keyspace to writes of Redis keys.

use std::borrow::Cow;

use kstone::policy::{
    Admitted, Effect, Expiry, IndexEntry, KeyKind, KeyRemoval, KeyWrite, PatternId, Refused,
    RequestedTtl,
};

use super::erased::Erased;
use super::{Governor, erased_refusal, refused};
use crate::erasure::ids_as_written;
use crate::index::{Location, entry_for_key, entry_for_member, pk_of_subject, pk_via_key};
use crate::keyspace::{KeyStore, Match};
use crate::pattern::{Pattern, Store, SubjectSource};
use crate::rules::{Admission, Refusal, StoredType, Write};
use crate::subject::Subject;
use crate::ttl::Ttl;
use crate::value::{FieldValue, Json};

impl Governor {
    pub(super) fn key(&self, write: &KeyWrite<'_>) -> Result<Admitted, Refused> {
        let is_free = only_removes(write)
            || self.exempt.has(|| Location::Key { db: write.db, key: write.key.to_vec() });
        let found = match write.pattern {
            Some(PatternId(index)) => self.keyspace.known(index, write.key),
            None => self.keyspace.find(KeyStore::Redis, write.key),
        };
        let Some(found) = found else {
            return match self.unknown.admit(&self.keyspace, KeyStore::Redis, write.key) {
                Err(_) if is_free => Ok(Admitted::AS_IT_IS),
                admitted => admitted,
            };
        };
        let pattern = found.pattern;
        let admission = match judge(pattern, write) {
            Err(_) if is_free => Admission { expiry: Expiry::Keep, trim_to: None },
            admission => admission.map_err(refused)?,
        };
        let had = write.before.map(|before| before.expires_at_ms);
        let (id, trim_to) = (Some(PatternId(found.index)), admission.trim_to);
        let expiry = never_without_end(pattern, write.effect, admission.expiry, had);
        let plain = Admitted { pattern: id, expiry, trim_to, ..Admitted::AS_IT_IS };
        if self.is_nobody_new(pattern, is_new(write)) {
            return Ok(plain);
        }
        let mut admitted = plain;
        match is_free {
            true => self.index_key(&Erased::nobody(), &found, write, &mut admitted)?,
            false => self.index_key(&self.erased, &found, write, &mut admitted)?,
        }
        Ok(admitted)
    }

    /// Whether the owner of a write need not be determined: nobody is refused, and what was indexed
    /// when the key was made is still right.
    pub(super) fn is_nobody_new(&self, pattern: &Pattern, is_new: bool) -> bool {
        let is_indexed = match &pattern.subject {
            SubjectSource::Nobody => true,
            // The key says it all.
            SubjectSource::Placeholder(_) | SubjectSource::Through(_) => !is_new,
            SubjectSource::Field(_) | SubjectSource::Members => false,
        };
        is_indexed && !self.erased.any()
    }

    /// All entries that a key has in the index, as far as the write shows it: for a pass over all
    /// keys.
    pub(super) fn entries_of_key(
        &self,
        write: &KeyWrite<'_>,
    ) -> Option<(PatternId, Vec<IndexEntry>)> {
        let found = self.keyspace.find(KeyStore::Redis, write.key)?;
        let mut admitted = Admitted::AS_IT_IS;
        let made = KeyWrite { before: None, ..*write };
        // What is left of an erased person is indexed all the same, so that it is found.
        let _ = self.index_key(&Erased::nobody(), &found, &made, &mut admitted);
        Some((PatternId(found.index), admitted.index))
    }

    /// Determines whose data is written: adds index entries, and refuses data of erased persons.
    fn index_key(
        &self,
        erased: &Erased,
        found: &Match<'_, '_>,
        write: &KeyWrite<'_>,
        admitted: &mut Admitted,
    ) -> Result<(), Refused> {
        let pattern = found.pattern;
        if self.is_link_key(found)
            && erased.any()
            && erased.has_via(&pk_via_key(write.db, write.key))
        {
            return Err(erased_refusal(pattern));
        }
        match &pattern.subject {
            SubjectSource::Nobody => Ok(()),
            SubjectSource::Placeholder(_) | SubjectSource::Through(_) => {
                self.index_owner(erased, found, write.db, is_new(write), admitted, |pk, tenant| {
                    entry_for_key(pk, tenant, write.db, write.key)
                })
            }
            // Who was named before may be named no more; here, too, nobody says who that was.
            SubjectSource::Field(field) => self.index_field(erased, found, field, write, admitted),
            SubjectSource::Members => index_members(erased, found, write, admitted),
        }
    }

    /// Determines the owner whom the key itself or a linked key names: refuses an erased one, and
    /// indexes what is new.
    pub(super) fn index_owner(
        &self,
        erased: &Erased,
        found: &Match<'_, '_>,
        db: u8,
        is_new: bool,
        admitted: &mut Admitted,
        entry: impl FnOnce(String, Option<&str>) -> IndexEntry,
    ) -> Result<(), Refused> {
        let tenant = found.tenant();
        match &found.pattern.subject {
            SubjectSource::Placeholder(name) => {
                let Some(id) = found.text(name) else { return Ok(()) };
                let (id, tenant) = Subject::canonical_parts(&id, tenant.as_deref());
                erased.check(found.pattern, id, tenant)?;
                if is_new {
                    admitted.index.push(entry(pk_of_subject(id), tenant));
                }
            }
            SubjectSource::Through(_) => {
                let Some(pk) = self.link_pk(found, db) else { return Ok(()) };
                if erased.has_via(&pk) {
                    return Err(erased_refusal(found.pattern));
                }
                if is_new {
                    admitted.index.push(entry(pk, tenant.as_deref()));
                }
            }
            SubjectSource::Nobody | SubjectSource::Field(_) | SubjectSource::Members => {}
        }
        Ok(())
    }

    fn index_field(
        &self,
        erased: &Erased,
        found: &Match<'_, '_>,
        field: &str,
        write: &KeyWrite<'_>,
        admitted: &mut Admitted,
    ) -> Result<(), Refused> {
        let is_field = |name: &[u8]| name == field.as_bytes();
        let is_named = write.value.is_some() || write.fields.iter().any(|(name, _)| is_field(name));
        if !is_new(write) && (is_named || write.removed.iter().any(|name| is_field(name))) {
            self.sweep.note();
        }
        let entry = |pk, tenant: Option<&str>| entry_for_key(pk, tenant, write.db, write.key);
        let named = write.fields.iter().filter(|(name, _)| is_field(name));
        for (_, id) in named {
            index_person(erased, found, id, admitted, entry)?;
        }
        let Some(value) = write.value else { return Ok(()) };
        for id in ids_in_json(value, field) {
            index_person(erased, found, id.as_bytes(), admitted, entry)?;
        }
        Ok(())
    }

    pub(super) fn key_goes(&self, removal: &KeyRemoval<'_>) -> Admitted {
        let Some(found) = self.keyspace.find(KeyStore::Redis, removal.key) else {
            return Admitted::AS_IT_IS;
        };
        let mut admitted = Admitted { pattern: Some(PatternId(found.index)), ..Admitted::AS_IT_IS };
        let tenant = found.tenant();
        match &found.pattern.subject {
            // Other keys may be found by it alone: its entry stays until they are gone, too.
            SubjectSource::Placeholder(_) if self.is_link_key(&found) => self.sweep.note(),
            SubjectSource::Placeholder(name) => {
                let Some(id) = found.text(name) else { return admitted };
                let (id, tenant) = Subject::canonical_parts(&id, tenant.as_deref());
                let pk = pk_of_subject(id);
                admitted.unindex.push(entry_for_key(pk, tenant, removal.db, removal.key));
            }
            SubjectSource::Through(_) => {
                let Some(pk) = self.link_pk(&found, removal.db) else { return admitted };
                let tenant = tenant.as_deref();
                admitted.unindex.push(entry_for_key(pk, tenant, removal.db, removal.key));
                // It may have been the last that kept the entry of the other key.
                self.sweep.note();
            }
            // Nobody says who was named. The entries stay until they are swept.
            SubjectSource::Field(_) | SubjectSource::Members => self.sweep.note(),
            SubjectSource::Nobody => {}
        }
        admitted
    }

    /// Whether other keys belong to the owner of this key.
    pub(super) fn is_link_key(&self, found: &Match<'_, '_>) -> bool {
        self.plans.get(found.index as usize).is_some_and(|plan| plan.is_link_key)
    }

    /// The index `pk` of the key through which this key has its owner.
    pub(super) fn link_pk(&self, found: &Match<'_, '_>, db: u8) -> Option<String> {
        let SubjectSource::Through(name) = &found.pattern.subject else { return None };
        let key = found.key_as(name)?;
        let application = &found.pattern.application;
        let mut patterns = self.keyspace.patterns().iter();
        let other = patterns.find(|it| it.application == *application && it.name == *name)?;
        Some(match &other.store {
            Store::Redis => pk_via_key(db, key.as_bytes()),
            Store::Table(table) => {
                let table = table.to_string();
                let parts = self.keyspace.split(&table, key.as_bytes());
                let (pk, sk) = (parts.pk.to_vec(), Some(parts.sk.to_vec()));
                crate::index::pk_via(&crate::index::Location::Item { table, pk, sk })
            }
        })
    }
}

/// Checks a write against the rules of its pattern.
#[inline]
fn judge(pattern: &Pattern, write: &KeyWrite<'_>) -> Result<Admission, Box<Refusal>> {
    let admission = pattern.judge(&Write {
        key_bytes: write.key.len() as u64,
        shape: shape_of(write.kind),
        effect: write.effect,
        ttl: write.asked,
        value: write.value,
        fields: &[],
        members: write.members,
        members_after: write.members_after,
        whole_bytes: write.value_len,
    })?;
    if let (None, Some(len)) = (write.value, write.value_len) {
        pattern.check_unseen(len)?;
    }
    for (name, value) in write.fields {
        pattern.check_raw_field(name, value)?;
    }
    Ok(admission)
}

fn is_new(write: &KeyWrite<'_>) -> bool {
    write.before.is_none()
}

/// Whether a write only takes members away. That breaks no rule that was not broken before, and who
/// may not be written about may still be taken out.
fn only_removes(write: &KeyWrite<'_>) -> bool {
    let had = write.before.map(|before| before.members);
    write.effect == Effect::Changes
        && write.asked == RequestedTtl::Unsaid
        && write.value.is_none()
        && write.fields.is_empty()
        && write.members.is_empty()
        && matches!((had, write.members_after), (Some(had), Some(has)) if has < had)
}

fn index_members(
    erased: &Erased,
    found: &Match<'_, '_>,
    write: &KeyWrite<'_>,
    admitted: &mut Admitted,
) -> Result<(), Refused> {
    let fields_of_hash = write.fields.iter().filter(|_| write.kind == KeyKind::Hash);
    let members = write.members.iter().copied().chain(fields_of_hash.map(|(name, _)| *name));
    for member in members {
        index_person(erased, found, member, admitted, |pk, tenant| {
            entry_for_member(pk, tenant, write.db, write.key, member)
        })?;
    }
    // A list may hold the same member once more.
    if write.kind == KeyKind::List {
        return Ok(());
    }
    let tenant = found.tenant();
    for member in write.removed {
        if let Some(id) = id_of(member) {
            let (id, tenant) = Subject::canonical_parts(id, tenant.as_deref());
            let pk = pk_of_subject(id);
            admitted.unindex.push(entry_for_member(pk, tenant, write.db, write.key, member));
        }
    }
    Ok(())
}

/// Adds the entry of a person who is named in the value.
fn index_person(
    erased: &Erased,
    found: &Match<'_, '_>,
    named: &[u8],
    admitted: &mut Admitted,
    entry: impl FnOnce(String, Option<&str>) -> IndexEntry,
) -> Result<(), Refused> {
    let Some(id) = id_of(named) else { return Ok(()) };
    let tenant = found.tenant();
    let (id, tenant) = Subject::canonical_parts(id, tenant.as_deref());
    erased.check(found.pattern, id, tenant)?;
    admitted.index.push(entry(pk_of_subject(id), tenant));
    Ok(())
}

/// The id that bytes of a value are, if they are text.
fn id_of(bytes: &[u8]) -> Option<&str> {
    std::str::from_utf8(bytes).ok().filter(|id| !id.is_empty())
}

/// The persons whom a field of a JSON object names.
pub(super) fn ids_in_json(value: &[u8], field: &str) -> Vec<String> {
    let Ok(Json::Object(fields)) = Json::parse(value) else { return Vec::new() };
    let mut ids = Vec::new();
    for (_, named) in fields.iter().filter(|(name, _)| name == field) {
        let single = std::slice::from_ref(named);
        let all = match named {
            FieldValue::List(members) => members,
            _ => single,
        };
        // A number that is too long for a machine's is an id all the same, by its digits.
        if all.iter().any(|it| matches!(it, FieldValue::Number(_))) {
            return ids_as_written(value, field);
        }
        ids.extend(all.iter().filter_map(FieldValue::as_id).map(Cow::into_owned));
    }
    ids.retain(|id| !id.is_empty());
    ids
}

/// A key that must expire but has no expiry, because it is older than its pattern, gets one with
/// the first write that changes it.
pub(super) fn never_without_end(
    pattern: &Pattern,
    effect: Effect,
    expiry: Expiry,
    had: Option<Option<u64>>,
) -> Expiry {
    match (&pattern.ttl, expiry, effect, had) {
        (Ttl::Fixed(span), Expiry::Keep, Effect::Changes, Some(None))
            if span.seconds_max.is_some() =>
        {
            Expiry::InMs(span.seconds.saturating_mul(1000))
        }
        _ => expiry,
    }
}

fn shape_of(kind: KeyKind) -> StoredType {
    match kind {
        KeyKind::String => StoredType::Bytes,
        KeyKind::Hash => StoredType::Hash,
        KeyKind::List => StoredType::List,
        KeyKind::Set => StoredType::Set,
        KeyKind::Zset => StoredType::Zset,
        KeyKind::Stream => StoredType::Stream,
    }
}

impl<'k> Match<'_, 'k> {
    /// The value of a placeholder; copied only where it is escaped in the key.
    pub(super) fn text(&self, placeholder: &str) -> Option<Cow<'k, str>> {
        let part = self.capture(placeholder)?;
        match memchr::memchr(b'%', part) {
            None => std::str::from_utf8(part).ok().map(Cow::Borrowed),
            Some(_) => self.value(placeholder).map(Cow::Owned),
        }
    }
}
