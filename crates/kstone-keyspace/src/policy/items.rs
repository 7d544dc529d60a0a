//! Applies the rules of a keyspace to writes of table items.
//!
//! An item of a pattern of type json, string or counter holds its value in the attribute `value`, as
//! the Dapr door writes it, or (json only) has the fields as attributes of its own. The key
//! attributes, `etag` and the attribute that the table expires by are no fields, unless the pattern
//! declares them.

use kstone::policy::{
    Admitted, Expiry, IndexEntry, ItemRemoval, ItemWrite, PatternId, Refused, RequestedTtl,
};
use kstone::{ItemRef, ListRef, ValueRef};

use super::erased::Erased;
use super::keys::{ids_in_json, never_without_end};
use super::{Governor, erased_refusal, refused};
use crate::field::FieldType;
use crate::index::{Location, entry_for_item, pk_of_subject, pk_via};
use crate::keyspace::{ItemKeyParts, KeyStore, Match, WHOLE_KEY};
use crate::pattern::{Pattern, SubjectSource, ValueType};
use crate::rules::{Admission, Refusal, Rule, StoredType, Write};
use crate::subject::Subject;
use crate::value::FieldValue;

/// The attribute that holds the whole value.
const VALUE: &str = "value";
/// The attribute that holds the version.
const ETAG: &str = "etag";

/// An item's key attributes.
#[derive(Clone, Copy)]
struct Address<'w> {
    table: &'w str,
    pk: &'w [u8],
    sk: Option<&'w [u8]>,
}

impl Governor {
    pub(super) fn item(&self, write: &ItemWrite<'_>) -> Result<Admitted, Refused> {
        let parts = ItemKeyParts { pk: write.pk, sk: write.sk.unwrap_or(WHOLE_KEY) };
        let found = match self.keyspace.find_split(write.table, parts) {
            Some(Ok(found)) => found,
            Some(Err(misplaced)) => return Err(refused(misplaced.pattern.misplaced(write.pk))),
            None => {
                return self.unknown.admit(&self.keyspace, KeyStore::Table(write.table), write.pk);
            }
        };
        let pattern = found.pattern;
        let address = Address { table: write.table, pk: write.pk, sk: write.sk };
        let is_free = self.exempt.has(|| address.location());
        let admission = match pattern.admit_item(write) {
            Err(_) if is_free => Admission { expiry: Expiry::Keep, trim_to: None },
            admission => admission.map_err(refused)?,
        };
        let had = write.before.map(|before| before.expires_at_ms);
        let expiry = match write.asked {
            // The attribute says it already.
            RequestedTtl::Ms(_) => Expiry::Keep,
            _ => never_without_end(pattern, write.effect, admission.expiry, had),
        };
        let id = Some(self.counts.id_of_item(found.index, write.table));
        let plain = Admitted { pattern: id, expiry, ..Admitted::AS_IT_IS };
        if self.is_nobody_new(pattern, write.before.is_none()) {
            return Ok(plain);
        }
        let mut admitted = plain;
        match is_free {
            true => self.index_item(&Erased::nobody(), &found, write, &mut admitted)?,
            false => self.index_item(&self.erased, &found, write, &mut admitted)?,
        }
        Ok(admitted)
    }

    fn index_item(
        &self,
        erased: &Erased,
        found: &Match<'_, '_>,
        write: &ItemWrite<'_>,
        admitted: &mut Admitted,
    ) -> Result<(), Refused> {
        let pattern = found.pattern;
        let is_new = write.before.is_none();
        let address = Address { table: write.table, pk: write.pk, sk: write.sk };
        if self.is_link_key(found) && erased.any() && erased.has_via(&pk_via(&address.location())) {
            return Err(erased_refusal(pattern));
        }
        match &pattern.subject {
            SubjectSource::Nobody => Ok(()),
            SubjectSource::Placeholder(_) | SubjectSource::Through(_) => {
                self.index_owner(erased, found, 0, is_new, admitted, |pk, tenant| {
                    address.entry(pk, tenant)
                })
            }
            SubjectSource::Field(field) => {
                let named = persons(found, field, write.item);
                for subject in &named {
                    erased.check(pattern, &subject.id, subject.tenant.as_deref())?;
                }
                let before = match write.old {
                    Some(old) => persons(found, field, old),
                    None => Vec::new(),
                };
                let entries = |these: &[Subject], without: &[Subject]| -> Vec<IndexEntry> {
                    let rest = these.iter().filter(|it| !without.contains(it));
                    rest.map(|it| address.entry_of(it)).collect()
                };
                admitted.unindex = entries(&before, &named);
                admitted.index = entries(&named, &before);
                Ok(())
            }
            SubjectSource::Members => Ok(()),
        }
    }

    pub(super) fn item_goes(&self, removal: &ItemRemoval<'_>) -> Admitted {
        let parts = ItemKeyParts { pk: removal.pk, sk: removal.sk.unwrap_or(WHOLE_KEY) };
        let Some(found) = self.keyspace.find_item(removal.table, parts) else {
            return Admitted::AS_IT_IS;
        };
        let pattern = Some(self.counts.id_of_item(found.index, removal.table));
        let mut admitted = Admitted { pattern, ..Admitted::AS_IT_IS };
        let address = Address { table: removal.table, pk: removal.pk, sk: removal.sk };
        match (&found.pattern.subject, self.is_link_key(&found)) {
            // Others may be found by it alone: its entries stay until those are gone, too.
            (_, true) => self.sweep.note(),
            (subject, false) => {
                if let SubjectSource::Through(_) = subject {
                    self.sweep.note();
                }
                admitted.unindex = self.entries_of_item(&found, address, removal.old);
            }
        }
        admitted
    }

    /// All index entries of an item.
    fn entries_of_item(
        &self,
        found: &Match<'_, '_>,
        address: Address<'_>,
        item: ItemRef<'_>,
    ) -> Vec<IndexEntry> {
        match &found.pattern.subject {
            SubjectSource::Nobody | SubjectSource::Members => Vec::new(),
            SubjectSource::Placeholder(name) => {
                let tenant = found.tenant();
                let id = found.text(name);
                let entry = |id: &str| {
                    let (id, tenant) = Subject::canonical_parts(id, tenant.as_deref());
                    address.entry(pk_of_subject(id), tenant)
                };
                id.as_deref().map(entry).into_iter().collect()
            }
            SubjectSource::Through(_) => {
                let tenant = found.tenant();
                let entry = |pk| address.entry(pk, tenant.as_deref());
                self.link_pk(found, 0).map(entry).into_iter().collect()
            }
            SubjectSource::Field(field) => {
                persons(found, field, item).iter().map(|it| address.entry_of(it)).collect()
            }
        }
    }

    /// The same by table and key: what a pass over all items writes.
    pub(super) fn entries_of(
        &self,
        table: &str,
        pk: &[u8],
        sk: Option<&[u8]>,
        item: ItemRef<'_>,
    ) -> Option<(PatternId, Vec<IndexEntry>)> {
        let parts = ItemKeyParts { pk, sk: sk.unwrap_or(WHOLE_KEY) };
        let found = self.keyspace.find_item(table, parts)?;
        let id = self.counts.id_of_item(found.index, table);
        Some((id, self.entries_of_item(&found, Address { table, pk, sk }, item)))
    }
}

impl Address<'_> {
    fn entry(&self, pk: String, tenant: Option<&str>) -> IndexEntry {
        entry_for_item(pk, tenant, self.table, self.pk, self.sk)
    }

    fn entry_of(&self, subject: &Subject) -> IndexEntry {
        self.entry(pk_of_subject(&subject.id), subject.tenant.as_deref())
    }

    fn location(&self) -> Location {
        Location::Item {
            table: self.table.to_owned(),
            pk: self.pk.to_vec(),
            sk: self.sk.map(<[u8]>::to_vec),
        }
    }
}

/// The persons whom a field of an item names, each once.
fn persons(found: &Match<'_, '_>, field: &str, item: ItemRef<'_>) -> Vec<Subject> {
    let tenant = found.tenant();
    let mut persons = Vec::new();
    let mut add = |id: &str| {
        if !id.is_empty() {
            persons.push(Subject::canonical(id, tenant.as_deref()));
        }
    };
    if let Some(named) = item.get(field) {
        each_text(named, &mut add);
    }
    match item.get(VALUE) {
        Some(ValueRef::S(json)) => {
            ids_in_json(json.as_bytes(), field).iter().for_each(|id| add(id));
        }
        Some(ValueRef::B(json)) => ids_in_json(json, field).iter().for_each(|id| add(id)),
        Some(ValueRef::M(map)) => {
            if let Some(named) = map.get(field) {
                each_text(named, &mut add);
            }
        }
        _ => {}
    }
    persons.sort();
    persons.dedup();
    persons
}

fn each_text(value: ValueRef<'_>, add: &mut impl FnMut(&str)) {
    let mut one = |value: ValueRef<'_>| match value {
        ValueRef::S(text) => add(text),
        ValueRef::N(number) => add(number.decimal().as_str()),
        _ => {}
    };
    match value {
        ValueRef::L(list) => ListRef::iter(&list).for_each(one),
        ValueRef::Ss(set) | ValueRef::Ns(set) => set.iter().for_each(one),
        value => one(value),
    }
}

impl Pattern {
    fn misplaced(&self, pk: &[u8]) -> Box<Refusal> {
        let found = || FieldValue::Raw(pk).describe();
        self.refuse(Rule::Partition, || format!("`{}`", self.partition()), found)
    }

    fn admit_item(&self, write: &ItemWrite<'_>) -> Result<Admission, Box<Refusal>> {
        let key_bytes = (write.pk.len() + write.sk.map_or(0, |sk| sk.len() + 1)) as u64;
        let size = |most: u64| match write.item.is_surely_within(most as usize) {
            true => None,
            false => Some(write.item.size() as u64),
        };
        let whole_bytes = self.limits.value_bytes.and_then(size);
        let checked = Write {
            key_bytes,
            shape: StoredType::Item,
            // What is missing is looked for below: the fields are not copied for it.
            effect: write.effect,
            ttl: self.life_of_item(write),
            value: None,
            fields: &[],
            members: &[],
            members_after: None,
            whole_bytes,
        };
        match self.value_of(write.item) {
            Some(value) => self.admit_value(checked, value, write),
            None => {
                let admission = self.admit_whole(&checked)?;
                let seen = self.check_attributes(write, |_| false)?;
                if seen < self.required() {
                    // An item from before the pattern was declared may be changed as it is.
                    let was_there = |name: &str| write.old.is_none_or(|old| old.contains(name));
                    self.check_missing(|_, name| write.item.contains(name) || !was_there(name))?;
                }
                Ok(admission)
            }
        }
    }

    /// The TTL that an item asks for. It names the second of expiry, so the intended TTL may be up
    /// to a second shorter or longer: the allowed one is taken.
    fn life_of_item(&self, write: &ItemWrite<'_>) -> RequestedTtl {
        let RequestedTtl::Ms(ms) = write.asked else { return write.asked };
        let whole_seconds = ms / 1000 * 1000;
        let meant = [ms, whole_seconds, whole_seconds.saturating_add(1000)].map(RequestedTtl::Ms);
        let is_allowed = |asked: &RequestedTtl| self.ttl.answer(*asked, write.effect).is_ok();
        meant.into_iter().find(is_allowed).unwrap_or(write.asked)
    }

    /// The attribute that holds the whole value, if this item is of that form.
    fn value_of<'i>(&self, item: ItemRef<'i>) -> Option<ValueRef<'i>> {
        use ValueType::{Counter, Json, String};
        if !matches!(self.value_type, Json | String | Counter) {
            return None;
        }
        let is_field = self.fields.iter().any(|field| field.name == VALUE);
        item.get(VALUE).filter(|_| !is_field || item.contains(ETAG))
    }

    fn admit_value(
        &self,
        checked: Write<'_>,
        value: ValueRef<'_>,
        write: &ItemWrite<'_>,
    ) -> Result<Admission, Box<Refusal>> {
        self.check_attributes(write, |name| name == VALUE.as_bytes())?;
        let digits;
        let bytes = match (self.value_type, value) {
            (_, ValueRef::S(text)) => text.as_bytes(),
            (_, ValueRef::B(bytes)) => bytes,
            (ValueType::String | ValueType::Counter, ValueRef::N(number)) => {
                digits = number.decimal();
                digits.as_bytes()
            }
            (ValueType::Json, ValueRef::M(map)) => {
                let admission = self.admit_whole(&checked)?;
                for (name, value) in map.iter() {
                    self.check_field(name, &field_value(value))?;
                }
                self.check_missing(|_, name| map.contains(name))?;
                return Ok(admission);
            }
            (ValueType::Json, value) => {
                let admission = self.admit_whole(&checked)?;
                self.check_value(&field_value(value))?;
                return Ok(admission);
            }
            (_, value) => {
                let found = || value.type_name().to_owned();
                return Err(self.refuse(Rule::Type, || self.value_type.to_string(), found));
            }
        };
        self.judge(&Write { shape: StoredType::Bytes, value: Some(bytes), ..checked })
    }

    /// How many fields may not be missing.
    fn required(&self) -> usize {
        self.fields.iter().filter(|field| !field.optional).count()
    }

    /// Checks the attributes that are fields of their own; answers how many of those that may not be
    /// missing there are.
    fn check_attributes(
        &self,
        write: &ItemWrite<'_>,
        is_other: impl Fn(&[u8]) -> bool,
    ) -> Result<usize, Box<Refusal>> {
        let mut required = 0;
        // What is stored is text where it should be; to look at it anew is for who needs it.
        for (name, value) in write.item.iter_as::<[u8]>() {
            if is_other(name) {
                continue;
            }
            let declared = self.fields.iter().find(|field| field.name.as_bytes() == name);
            required += usize::from(declared.is_some_and(|field| !field.optional));
            let kind = declared.map(|field| &field.kind).or(self.other_fields.as_ref());
            if matches!(kind, Some(FieldType::Any)) {
                continue;
            }
            let is_ttl = || write.ttl_attribute.is_some_and(|it| it.as_bytes() == name);
            let is_plumbing = || name == ETAG.as_bytes() || is_ttl() || is_key(&value, write);
            if declared.is_none() && is_plumbing() {
                continue;
            }
            let name = std::str::from_utf8(name).unwrap_or("\u{fffd}");
            self.check_as(declared, name, &field_value_of(&value))?;
        }
        Ok(required)
    }
}

/// Whether an attribute may be one of the key: who declares no field of its name says that it is.
fn is_key(value: &ValueRef<'_, [u8]>, write: &ItemWrite<'_>) -> bool {
    let is = |bytes: &[u8]| bytes == write.pk || Some(bytes) == write.sk;
    match value {
        ValueRef::S(bytes) | ValueRef::B(bytes) => is(bytes),
        ValueRef::N(number) => is(number.decimal().as_bytes()),
        _ => false,
    }
}

/// A value as the rules see it.
fn field_value(value: ValueRef<'_>) -> FieldValue<'_> {
    match value {
        ValueRef::S(text) => FieldValue::Text(text.into()),
        value => other_value(&value),
    }
}

/// The same for a value whose text was not parsed yet.
fn field_value_of<'v>(value: &ValueRef<'v, [u8]>) -> FieldValue<'v> {
    match value {
        ValueRef::S(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => FieldValue::Text(text.into()),
            Err(_) => FieldValue::Binary,
        },
        value => other_value(value),
    }
}

/// The same for a value that is no text.
fn other_value<'v, T: ?Sized>(value: &ValueRef<'v, T>) -> FieldValue<'v> {
    match value {
        ValueRef::N(number) => match number.to_i64() {
            Some(whole) => FieldValue::Int(whole),
            None => FieldValue::number(number.decimal().as_str()),
        },
        ValueRef::Bool(truth) => FieldValue::Bool(*truth),
        ValueRef::Null => FieldValue::Null,
        ValueRef::M(_) => FieldValue::Map,
        ValueRef::L(_) | ValueRef::Ss(_) | ValueRef::Ns(_) | ValueRef::Bs(_) => {
            FieldValue::List(Vec::new())
        }
        ValueRef::S(_) | ValueRef::B(_) => FieldValue::Binary,
    }
}
