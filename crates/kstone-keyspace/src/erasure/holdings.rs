//! What there is of a person.
//!
//! The index of persons says where to look, and says too much rather than too little: a key may be
//! gone by now, or may name somebody else. So every place is looked at before it is believed.

use std::collections::{BTreeMap, BTreeSet};

use kstone::ops::{BatchGet, BatchGetTable, Projection};
use kstone::{Item, ItemRef};
use kstone_redis::Value as Reply;

use super::shared::{self, Named};
use super::stores::{Result, Stores, TableKey, TableKeys, bytes_of, command, pipeline};
use crate::index::{Indexed, Location, pk_of_subject, pk_via};
use crate::keyspace::{Keyspace, Match, Parts, Place, WHOLE_KEY};
use crate::pattern::{SubjectSource, ValueType};
use crate::subject::Subject;

/// A place that holds data of a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holding {
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

/// A place that the index names, and what is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) indexed: Indexed,
    pub(super) pattern: String,
    pub(super) standing: Standing,
}

/// Whose what is there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
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
    /// Everything that there is of a person: in the tenant that is named, or in all of them.
    pub async fn holdings(&self, subject: &Subject) -> Result<Vec<Holding>> {
        let seen = self.survey(subject).await?;
        let theirs = seen.into_iter().filter_map(|it| match it.standing {
            Standing::Theirs { expires_at_ms, is_shared } => Some(Holding {
                pattern: it.pattern,
                tenant: it.indexed.tenant,
                location: it.indexed.location,
                expires_at_ms,
                is_shared,
            }),
            Standing::Gone | Standing::Others => None,
        });
        Ok(theirs.collect())
    }

    /// The places of a person through which others are found.
    pub(super) async fn ways_of(&self, subject: &Subject) -> Result<Vec<Location>> {
        let ways = Ways::of(&self.keyspace);
        let mut entries = self.entries(&pk_of_subject(&subject.id)).await?;
        entries.retain(|it| {
            let pattern = match_of(&self.keyspace, &it.location);
            (subject.tenant.is_none() || subject.tenant == it.tenant)
                && pattern.is_some_and(|found| ways.is_one(&found.pattern.full_name()))
        });
        let seen = self.look(entries, Some(subject), &mut TableKeys::new()).await?;
        let theirs = seen.into_iter().filter(|it| it.standing != Standing::Others);
        Ok(theirs.map(|it| it.indexed.location).collect())
    }

    /// Every place that the index names for a person, and what is there.
    pub(super) async fn survey(&self, subject: &Subject) -> Result<Vec<Seen>> {
        let mut tables = TableKeys::new();
        let mut entries = self.entries(&pk_of_subject(&subject.id)).await?;
        entries.retain(|it| subject.tenant.is_none() || subject.tenant == it.tenant);
        let mut seen = self.look(entries, Some(subject), &mut tables).await?;
        let ways = Ways::of(&self.keyspace);
        let mut behind = Vec::new();
        for place in seen.iter().filter(|it| it.standing != Standing::Others) {
            if ways.is_one(&place.pattern) {
                behind.extend(self.entries(&pk_via(&place.indexed.location)).await?);
            }
        }
        seen.extend(self.look(behind, None, &mut tables).await?);
        let mut known = BTreeSet::new();
        seen.retain(|it| known.insert(it.indexed.clone()));
        Ok(seen)
    }

    /// What is at these places. Without a subject they belong to whoever the other key belongs to.
    pub(super) async fn look(
        &self,
        mut entries: Vec<Indexed>,
        subject: Option<&Subject>,
        tables: &mut TableKeys,
    ) -> Result<Vec<Seen>> {
        entries.sort_by(|one, other| one.location.cmp(&other.location));
        entries.dedup();
        let mut standings: BTreeMap<&Location, Standing> = BTreeMap::new();
        let mut by_db: BTreeMap<u8, Vec<&Location>> = BTreeMap::new();
        let mut by_table: BTreeMap<&str, Vec<&Location>> = BTreeMap::new();
        for Indexed { location, .. } in &entries {
            match location {
                Location::Key { db, .. } | Location::Member { db, .. } => {
                    push_new(by_db.entry(*db).or_default(), location);
                }
                Location::Item { table, .. } => {
                    push_new(by_table.entry(table).or_default(), location);
                }
            }
        }
        for (db, places) in by_db {
            let found = self.look_at_keys(db, &places, subject).await?;
            standings.extend(places.into_iter().zip(found));
        }
        for (table, places) in by_table {
            let found = self.look_at_items(table, &places, subject, tables).await?;
            standings.extend(places.into_iter().zip(found));
        }
        let seen = entries.iter().map(|indexed| Seen {
            pattern: match_of(&self.keyspace, &indexed.location)
                .map(|found| found.pattern.full_name())
                .unwrap_or_default(),
            standing: standings.get(&indexed.location).copied().unwrap_or(Standing::Gone),
            indexed: indexed.clone(),
        });
        Ok(seen.collect())
    }

    async fn look_at_keys(
        &self,
        db: u8,
        places: &[&Location],
        subject: Option<&Subject>,
    ) -> Result<Vec<Standing>> {
        let mut commands = Vec::with_capacity(2 * places.len());
        for place in places {
            let (Location::Key { key, .. } | Location::Member { key, .. }) = place else {
                continue;
            };
            commands.push(command([&b"PEXPIRETIME"[..], key]));
            commands.push(self.question(place, key));
        }
        let replies = pipeline(&*self.keys_of(db)?, &commands).await?;
        let mut answers = replies.chunks(2);
        let standings = places.iter().map(|place| match answers.next() {
            Some([Reply::Integer(ends), answer]) if *ends != -2 => {
                let expires_at_ms = u64::try_from(*ends).ok();
                self.standing_of_key(place, answer, expires_at_ms, subject)
            }
            _ => Standing::Gone,
        });
        Ok(standings.collect())
    }

    /// What to ask a key in order to know whose it is. Always something, so that questions and
    /// answers stay in step.
    fn question(&self, place: &Location, key: &[u8]) -> Vec<bytes::Bytes> {
        let found = match_of(&self.keyspace, place);
        let kind = found.as_ref().map(|found| found.pattern.value_type);
        if let Location::Member { member, .. } = place {
            let name: &[u8] = match kind {
                Some(ValueType::Zset) => b"ZSCORE",
                Some(ValueType::Set) => b"SISMEMBER",
                Some(ValueType::Hash) => b"HEXISTS",
                Some(ValueType::List) => b"LPOS",
                _ => return command([&b"EXISTS"[..], key]),
            };
            return command([name, key, member]);
        }
        let field = found.as_ref().and_then(|found| match &found.pattern.subject {
            SubjectSource::Field(field) => Some(field.as_bytes()),
            _ => None,
        });
        match (kind, field) {
            (Some(ValueType::Hash), Some(field)) => command([&b"HGET"[..], key, field]),
            (Some(ValueType::Stream), Some(_)) => command([&b"XRANGE"[..], key, b"-", b"+"]),
            (_, Some(_)) => command([&b"GET"[..], key]),
            (_, None) => command([&b"EXISTS"[..], key]),
        }
    }

    fn standing_of_key(
        &self,
        place: &Location,
        answer: &Reply,
        expires_at_ms: Option<u64>,
        subject: Option<&Subject>,
    ) -> Standing {
        let found = match_of(&self.keyspace, place);
        if let Location::Member { .. } = place {
            return match answer {
                Reply::Null | Reply::NullArray | Reply::Integer(0) if !is_list(&found) => {
                    Standing::Gone
                }
                Reply::Null => Standing::Gone,
                _ => Standing::Theirs { expires_at_ms, is_shared: true },
            };
        }
        let named = found.as_ref().and_then(|found| match &found.pattern.subject {
            SubjectSource::Field(field) => Some((found, field)),
            _ => None,
        });
        let (Some((found, field)), Some(subject)) = (named, subject) else {
            return Standing::Theirs { expires_at_ms, is_shared: false };
        };
        let named = match (found.pattern.value_type, bytes_of(answer)) {
            (ValueType::Stream, _) => Named::in_entries(found, field, answer),
            (ValueType::Hash, Some(id)) => Named::single(found, id),
            (_, Some(value)) => Named::in_json(found, field, value),
            (_, None) => Named::default(),
        };
        named.standing(subject, expires_at_ms)
    }

    async fn look_at_items(
        &self,
        table: &str,
        places: &[&Location],
        subject: Option<&Subject>,
        tables: &mut TableKeys,
    ) -> Result<Vec<Standing>> {
        let Some(key) = self.table(tables, table).await? else {
            return Ok(vec![Standing::Gone; places.len()]);
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
                    None => Standing::Gone,
                    Some(item) => self.standing_of_item(place, key, item, subject),
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
    ) -> Result<Vec<kstone::ItemBytes>> {
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
        let mut request = BatchGet {
            tables: vec![BatchGetTable {
                table: table.to_owned(),
                keys: wanted.collect(),
                projection: Some(Projection::Attributes(
                    names.into_iter().map(str::to_owned).collect(),
                )),
                consistent_read: true,
                ..BatchGetTable::default()
            }],
            ..BatchGet::default()
        };
        let mut found = Vec::new();
        while let Some(table) = request.tables.first_mut().filter(|it| !it.keys.is_empty()) {
            let asked = std::mem::take(&mut table.keys);
            let request_now = BatchGet {
                tables: vec![BatchGetTable { keys: asked.clone(), ..table.clone() }],
                ..BatchGet::default()
            };
            let output = self.items.batch_get(&request_now).await?;
            found.extend(output.found.into_iter().flat_map(|(_, items)| items));
            // What did not fit into one answer comes last, so the order stays.
            let left: Vec<usize> = output.unprocessed.into_iter().flat_map(|(_, at)| at).collect();
            table.keys = left.iter().filter_map(|at| asked.get(*at).cloned()).collect();
        }
        Ok(found)
    }

    fn standing_of_item(
        &self,
        place: &Location,
        key: &TableKey,
        item: ItemRef<'_>,
        subject: Option<&Subject>,
    ) -> Standing {
        let expires_at_ms = key.expires_at_ms(item);
        let found = match_of(&self.keyspace, place);
        match (found.as_ref().map(|found| (found, &found.pattern.subject)), subject) {
            (Some((found, SubjectSource::Field(field))), Some(subject)) => {
                Named::in_item(found, field, item).standing(subject, expires_at_ms)
            }
            _ => Standing::Theirs { expires_at_ms, is_shared: false },
        }
    }
}

/// The pattern of what is at a place.
pub(super) fn match_of<'s, 'k>(
    keyspace: &'s Keyspace,
    place: &'k Location,
) -> Option<Match<'s, 'k>> {
    match place {
        Location::Key { key, .. } | Location::Member { key, .. } => {
            keyspace.find(Place::Redis, key)
        }
        Location::Item { table, pk, sk } => {
            let sk = sk.as_deref().unwrap_or(WHOLE_KEY);
            keyspace.find_item(table, Parts { pk, sk })
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

/// Adds what is not there already. The places come in order.
fn push_new<'l>(places: &mut Vec<&'l Location>, place: &'l Location) {
    if places.last() != Some(&place) {
        places.push(place);
    }
}

/// The patterns through whose keys those of others are found.
struct Ways(BTreeSet<String>);

impl Ways {
    fn of(keyspace: &Keyspace) -> Ways {
        let targets = keyspace.patterns().iter().filter_map(|pattern| match &pattern.subject {
            SubjectSource::Through(other) => Some(format!("{}.{other}", pattern.application)),
            _ => None,
        });
        Ways(targets.collect())
    }

    fn is_one(&self, pattern: &str) -> bool {
        self.0.contains(pattern)
    }
}

impl Named {
    /// Whose a value is that names these.
    fn standing(&self, subject: &Subject, expires_at_ms: Option<u64>) -> Standing {
        match self.persons.iter().any(|named| subject.covers(named)) {
            true => Standing::Theirs { expires_at_ms, is_shared: self.is_list },
            false => Standing::Others,
        }
    }
}
