//! Finds the data that is stored about a person.
//!
//! The index of persons says where to look, and says too much rather than too little: a key may be
//! gone by now, or may name somebody else. So every place is looked at before it is believed.

use std::collections::{BTreeMap, BTreeSet};

use kstone_ports::items::{BatchGet, BatchGetTable, Projection};
use kstone_ports::keys::Value as Reply;
use kstone_ports::value::{Item, ItemRef};

use super::shared::{self, Named, Share};
use super::stores::{Result, Stores, TableKey, TableKeys, bytes_of, command, pipeline};
use crate::index::{IndexEntryKey, Location, pk_of_subject, pk_via};
use crate::keyspace::{ItemKeyParts, KeyStore, Keyspace, Match, WHOLE_KEY};
use crate::pattern::{SubjectSource, ValueType};
use crate::subject::Subject;

/// A key, member or item that holds data of a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PersonalDataLocation {
    /// The pattern, as in `mastery.daily_mastery`; empty when none declares the key any more.
    pub pattern: String,
    /// The tenant.
    pub tenant: Option<String>,
    /// Where it is.
    pub location: Location,
    /// When it ends.
    pub expires_at_ms: Option<u64>,
    /// Whether it holds data of others too, so that only the person's part of it is theirs.
    pub is_shared: bool,
}

/// A place that the index of persons names, and who owns what is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SurveyedPlace {
    pub(super) indexed: IndexEntryKey,
    pub(super) pattern: String,
    pub(super) ownership: Ownership,
}

/// Who owns the data at a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ownership {
    Theirs {
        expires_at_ms: Option<u64>,
        is_shared: bool,
    },
    /// Nothing is there, or nothing that anybody can read.
    Gone,
    /// It names others by now.
    Others,
}

/// The keys of one batch of reads, as DynamoDB has it.
const BATCH_MAX: usize = 100;

impl Stores {
    /// All data of a person: in the tenant that is named, or in all of them.
    pub async fn holdings(&self, subject: &Subject) -> Result<Vec<PersonalDataLocation>> {
        let seen = self.survey(subject).await?;
        let theirs = seen.into_iter().filter_map(|it| match it.ownership {
            Ownership::Theirs { expires_at_ms, is_shared } => Some(PersonalDataLocation {
                pattern: it.pattern,
                tenant: it.indexed.tenant,
                location: it.indexed.location,
                expires_at_ms,
                is_shared,
            }),
            Ownership::Gone | Ownership::Others => None,
        });
        Ok(theirs.collect())
    }

    /// The keys of a person through which other keys are found to be theirs.
    pub(super) async fn link_keys_of(&self, subject: &Subject) -> Result<Vec<Location>> {
        let links = LinkPatterns::of(&self.keyspace);
        let mut entries = self.entries(&pk_of_subject(&subject.id)).await?;
        entries.retain(|it| {
            let pattern = match_of(&self.keyspace, &it.location);
            (subject.tenant.is_none() || subject.tenant == it.tenant)
                && pattern.is_some_and(|found| links.contains(&found.pattern.full_name()))
        });
        let seen = self.look(entries, Some(subject), &mut TableKeys::new()).await?;
        let theirs = seen.into_iter().filter(|it| it.ownership != Ownership::Others);
        Ok(theirs.map(|it| it.indexed.location).collect())
    }

    /// Those of these places through which other keys are found.
    pub(super) fn link_keys_among<'p>(&self, places: &'p [IndexEntryKey]) -> Vec<&'p Location> {
        let links = LinkPatterns::of(&self.keyspace);
        let is_link_key = |place: &&Location| {
            let found = match_of(&self.keyspace, place);
            found.is_some_and(|found| links.contains(&found.pattern.full_name()))
        };
        places.iter().map(|it| &it.location).filter(is_link_key).collect()
    }

    /// Looks at every place that the index names for a person.
    pub(super) async fn survey(&self, subject: &Subject) -> Result<Vec<SurveyedPlace>> {
        let mut tables = TableKeys::new();
        let mut entries = self.entries(&pk_of_subject(&subject.id)).await?;
        entries.retain(|it| subject.tenant.is_none() || subject.tenant == it.tenant);
        let mut seen = self.look(entries, Some(subject), &mut tables).await?;
        let links = LinkPatterns::of(&self.keyspace);
        let mut behind = Vec::new();
        for place in seen.iter().filter(|it| it.ownership != Ownership::Others) {
            if links.contains(&place.pattern) {
                behind.extend(self.entries(&pk_via(&place.indexed.location)).await?);
            }
        }
        // What is found through a key may be found by name too, and counts once.
        let known: BTreeSet<IndexEntryKey> = match behind.is_empty() {
            true => return Ok(seen),
            false => seen.iter().map(|it| it.indexed.clone()).collect(),
        };
        behind.retain(|it| !known.contains(it));
        seen.extend(self.look(behind, None, &mut tables).await?);
        Ok(seen)
    }

    /// Determines the ownership of these places. Without a subject they belong to the owner of the
    /// key that links to them.
    pub(super) async fn look(
        &self,
        mut entries: Vec<IndexEntryKey>,
        subject: Option<&Subject>,
        tables: &mut TableKeys,
    ) -> Result<Vec<SurveyedPlace>> {
        // An entry for each tenant may lead to one place: it is looked at once.
        entries.sort_by(|one, other| one.location.cmp(&other.location));
        entries.dedup();
        let mut places: Vec<&Location> = entries.iter().map(|it| &it.location).collect();
        places.dedup();
        let mut by_db: BTreeMap<u8, Vec<usize>> = BTreeMap::new();
        let mut by_table: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for (at, place) in places.iter().enumerate() {
            match place {
                Location::Key { db, .. } | Location::Member { db, .. } => {
                    by_db.entry(*db).or_default().push(at);
                }
                Location::Item { table, .. } => by_table.entry(table).or_default().push(at),
            }
        }
        let mut standings = vec![Ownership::Gone; places.len()];
        let these = |at: &[usize]| -> Vec<&Location> {
            at.iter().filter_map(|at| places.get(*at).copied()).collect()
        };
        let mut note = |at: &[usize], found: Vec<Ownership>| {
            for (at, ownership) in at.iter().zip(found) {
                if let Some(place) = standings.get_mut(*at) {
                    *place = ownership;
                }
            }
        };
        for (db, at) in by_db {
            note(&at, self.look_at_keys(db, &these(&at), subject).await?);
        }
        for (table, at) in by_table {
            note(&at, self.look_at_items(table, &these(&at), subject, tables).await?);
        }
        let mut standings = places.iter().zip(standings).peekable();
        let mut seen = Vec::with_capacity(entries.len());
        for indexed in &entries {
            while standings.next_if(|(place, _)| **place < &indexed.location).is_some() {}
            seen.push(SurveyedPlace {
                pattern: match_of(&self.keyspace, &indexed.location)
                    .map(|found| found.pattern.full_name())
                    .unwrap_or_default(),
                ownership: standings.peek().map_or(Ownership::Gone, |(_, ownership)| *ownership),
                indexed: indexed.clone(),
            });
        }
        Ok(seen)
    }

    async fn look_at_keys(
        &self,
        db: u8,
        places: &[&Location],
        subject: Option<&Subject>,
    ) -> Result<Vec<Ownership>> {
        let mut commands = Vec::with_capacity(places.len());
        let mut is_asked = Vec::with_capacity(places.len());
        for place in places {
            let (Location::Key { key, .. } | Location::Member { key, .. }) = place else {
                continue;
            };
            commands.push(command([&b"PEXPIRETIME"[..], key]));
            let question = self.question(place, key);
            is_asked.push(question.is_some());
            commands.extend(question);
        }
        let mut replies = pipeline(&*self.keys_of(db)?, &commands).await?.into_iter();
        let mut standings = Vec::with_capacity(places.len());
        for (place, is_asked) in places.iter().zip(is_asked) {
            let ends = replies.next();
            let answer = if is_asked { replies.next() } else { None };
            standings.push(match ends {
                Some(Reply::Integer(ends)) if ends != -2 => {
                    let expires_at_ms = u64::try_from(ends).ok();
                    let answer = answer.unwrap_or(Reply::Null);
                    self.ownership_of_key(place, &answer, expires_at_ms, subject)
                }
                _ => Ownership::Gone,
            });
        }
        Ok(standings)
    }

    /// The command that reads who owns a key, if its name does not say that.
    fn question(&self, place: &Location, key: &[u8]) -> Option<Vec<bytes::Bytes>> {
        let found = match_of(&self.keyspace, place);
        let kind = found.as_ref().map(|found| found.pattern.value_type);
        if let Location::Member { member, .. } = place {
            let name: &[u8] = match kind {
                Some(ValueType::Zset) => b"ZSCORE",
                Some(ValueType::Set) => b"SISMEMBER",
                Some(ValueType::Hash) => b"HEXISTS",
                Some(ValueType::List) => b"LPOS",
                _ => return None,
            };
            return Some(command([name, key, member]));
        }
        let field = found.as_ref().and_then(|found| match &found.pattern.subject {
            SubjectSource::Field(field) => Some(field.as_bytes()),
            _ => None,
        });
        Some(match (kind, field?) {
            (Some(ValueType::Hash), field) => command([&b"HGET"[..], key, field]),
            (Some(ValueType::Stream), _) => command([&b"XRANGE"[..], key, b"-", b"+"]),
            _ => command([&b"GET"[..], key]),
        })
    }

    fn ownership_of_key(
        &self,
        place: &Location,
        answer: &Reply,
        expires_at_ms: Option<u64>,
        subject: Option<&Subject>,
    ) -> Ownership {
        let found = match_of(&self.keyspace, place);
        if let Location::Member { .. } = place {
            let is_there = match answer {
                // A list answers with a position, which may be the first.
                Reply::Integer(0) => is_list(&found),
                Reply::Null | Reply::NullArray => false,
                _ => true,
            };
            return match is_there {
                true => Ownership::Theirs { expires_at_ms, is_shared: true },
                false => Ownership::Gone,
            };
        }
        let named = found.as_ref().and_then(|found| match &found.pattern.subject {
            SubjectSource::Field(field) => Some((found, field)),
            _ => None,
        });
        let (Some((found, field)), Some(subject)) = (named, subject) else {
            return Ownership::Theirs { expires_at_ms, is_shared: false };
        };
        let named = match (found.pattern.value_type, bytes_of(answer)) {
            (ValueType::Stream, _) => Named::in_entries(found, field, answer),
            (ValueType::Hash, Some(id)) => Named::single(found, id),
            (_, Some(value)) => Named::in_json(found, field, value),
            (_, None) => Named::default(),
        };
        named.ownership(subject, expires_at_ms)
    }

    async fn look_at_items(
        &self,
        table: &str,
        places: &[&Location],
        subject: Option<&Subject>,
        tables: &mut TableKeys,
    ) -> Result<Vec<Ownership>> {
        let Some(key) = self.table(tables, table).await? else {
            return Ok(vec![Ownership::Gone; places.len()]);
        };
        let mut standings = Vec::with_capacity(places.len());
        for batch in places.chunks(BATCH_MAX) {
            // A key that cannot be written down any more is of a table that was made anew.
            let wanted: Vec<Option<Item>> = batch.iter().map(|it| item_key(key, it)).collect();
            let found = self.read(table, key, batch, wanted.iter().flatten().cloned()).await?;
            let mut found = found.iter().map(|item| item.as_ref()).peekable();
            for place in batch {
                let Location::Item { pk, sk, .. } = place else { continue };
                // They come in the order in which they were asked for.
                let item = found.next_if(|item| key.is(*item, pk, sk.as_deref()));
                standings.push(match item {
                    None => Ownership::Gone,
                    Some(item) => self.ownership_of_item(place, key, item, subject),
                });
            }
        }
        Ok(standings)
    }

    /// Reads items, as many of them as there are, in the order of their keys; of each what tells
    /// whose it is.
    async fn read(
        &self,
        table: &str,
        key: &TableKey,
        places: &[&Location],
        wanted: impl Iterator<Item = Item>,
    ) -> Result<Vec<kstone_ports::value::ItemBytes>> {
        let mut names: BTreeSet<&str> = BTreeSet::from([key.pk.name.as_str()]);
        names.extend(key.sk.as_ref().map(|sk| sk.name.as_str()));
        names.extend(key.ttl.as_deref());
        let matches: Vec<_> =
            places.iter().filter_map(|place| match_of(&self.keyspace, place)).collect();
        for found in &matches {
            if let SubjectSource::Field(field) = &found.pattern.subject {
                names.extend([field.as_str(), shared::VALUE]);
            }
        }
        let names = names.into_iter().map(str::to_owned).collect();
        let projection = Some(Projection::Attributes(names));
        let mut keys: Vec<Item> = wanted.collect();
        let mut found = Vec::with_capacity(keys.len());
        while !keys.is_empty() {
            let mut asked = BatchGet {
                tables: vec![BatchGetTable {
                    table: table.to_owned(),
                    keys,
                    projection: projection.clone(),
                    consistent_read: true,
                    ..BatchGetTable::default()
                }],
                ..BatchGet::default()
            };
            let output = self.items.batch_get(&asked).await?;
            found.extend(output.found.into_iter().flat_map(|(_, items)| items));
            // What did not fit into one answer comes last, so the order stays.
            let left: Vec<usize> = output.unprocessed.into_iter().flat_map(|(_, at)| at).collect();
            keys = asked.tables.pop().map(|table| table.keys).unwrap_or_default();
            let mut at = 0;
            keys.retain(|_| {
                at += 1;
                left.contains(&(at - 1))
            });
        }
        Ok(found)
    }

    fn ownership_of_item(
        &self,
        place: &Location,
        key: &TableKey,
        item: ItemRef<'_>,
        subject: Option<&Subject>,
    ) -> Ownership {
        let expires_at_ms = key.expires_at_ms(item);
        let found = match_of(&self.keyspace, place);
        match (found.as_ref().map(|found| (found, &found.pattern.subject)), subject) {
            (Some((found, SubjectSource::Field(field))), Some(subject)) => {
                Named::in_item(found, field, item).ownership(subject, expires_at_ms)
            }
            _ => Ownership::Theirs { expires_at_ms, is_shared: false },
        }
    }
}

/// The pattern that a place belongs to.
pub(super) fn match_of<'s, 'k>(
    keyspace: &'s Keyspace,
    place: &'k Location,
) -> Option<Match<'s, 'k>> {
    match place {
        Location::Key { key, .. } | Location::Member { key, .. } => {
            keyspace.find(KeyStore::Redis, key)
        }
        Location::Item { table, pk, sk } => {
            let sk = sk.as_deref().unwrap_or(WHOLE_KEY);
            keyspace.find_item(table, ItemKeyParts { pk, sk })
        }
    }
}

/// The key attributes of the item at a place.
pub(super) fn item_key(key: &TableKey, place: &Location) -> Option<Item> {
    match place {
        Location::Item { pk, sk, .. } => key.item(pk, sk.as_deref()),
        Location::Key { .. } | Location::Member { .. } => None,
    }
}

fn is_list(found: &Option<Match<'_, '_>>) -> bool {
    found.as_ref().is_some_and(|found| found.pattern.value_type == ValueType::List)
}

/// The patterns whose keys link to keys of other patterns.
struct LinkPatterns(BTreeSet<String>);

impl LinkPatterns {
    fn of(keyspace: &Keyspace) -> LinkPatterns {
        let targets = keyspace.patterns().iter().filter_map(|pattern| match &pattern.subject {
            SubjectSource::Through(other) => Some(format!("{}.{other}", pattern.application)),
            _ => None,
        });
        LinkPatterns(targets.collect())
    }

    fn contains(&self, pattern: &str) -> bool {
        self.0.contains(pattern)
    }
}

impl Named {
    /// Who owns a value that names these persons.
    fn ownership(&self, subject: &Subject, expires_at_ms: Option<u64>) -> Ownership {
        match self.share_of(subject) {
            Share::Whole => Ownership::Theirs { expires_at_ms, is_shared: false },
            Share::Part => Ownership::Theirs { expires_at_ms, is_shared: true },
            Share::Nothing => Ownership::Others,
        }
    }
}
