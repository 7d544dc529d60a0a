//! [`Keyspace`]: all catalogues together. Finds the pattern that a key belongs to.

use crate::catalogue::Catalogue;
use crate::matcher::{Matcher, Segments};
use crate::overlap;
use crate::pattern::{Pattern, Store};
use crate::placeholder::Placeholder;
use crate::problem::{Problem, Problems, Severity};
use crate::segment::Segment;

/// The declared keys of all applications.
#[derive(Debug)]
pub struct Keyspace {
    catalogues: Vec<Catalogue>,
    patterns: Vec<Pattern>,
    redis: Matcher,
    tables: Vec<(Segment, Matcher)>,
    warnings: Vec<Problem>,
}

/// The store in which a key is looked up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum KeyStore<'p> {
    /// Among the keys of Redis.
    Redis,
    /// In this table of items.
    Table(&'p str),
}

impl KeyStore<'_> {
    /// Splits off the application name that Dapr puts before a key in a table
    /// (`shop||student:s1:profile`): keys are declared without it, so they are the same whichever
    /// application wrote them. Redis keys have none.
    pub(crate) fn owner_and_key<'k>(&self, key: &'k [u8]) -> (&'k [u8], &'k [u8]) {
        if *self == KeyStore::Redis {
            return (&[], key);
        }
        // In most keys there is none: then this is one look at them.
        let end = match memchr::memchr2(b'|', b':', key) {
            Some(at) if key.get(at) == Some(&b'|') => {
                // No name has a colon, and what has one behind it may well have `||` in a text.
                let first = key.split(|byte| *byte == b':').next().unwrap_or_default();
                memchr::memmem::rfind(first, b"||").map_or(0, |at| at + 2)
            }
            _ => 0,
        };
        key.split_at(end)
    }
}

/// The sort key of an item whose whole key is its partition. No declared key has it in a segment.
pub const WHOLE_KEY: &[u8] = b"#";

/// A key as an item's two key attributes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ItemKeyParts<'k> {
    /// The partition key.
    pub pk: &'k [u8],
    /// The sort key; [`WHOLE_KEY`] when the partition key is all of it.
    pub sk: &'k [u8],
}

/// A key and the pattern it belongs to.
#[derive(Debug, Clone, Copy)]
pub struct Match<'s, 'k> {
    /// The pattern.
    pub pattern: &'s Pattern,
    /// Which of the keyspace's patterns it is.
    pub(crate) index: u32,
    keyspace: &'s Keyspace,
    /// What stands before the declared key: an application's name, with `||` at its end.
    owner: &'k [u8],
    segments: Segments<'k>,
}

/// An item has the key of a pattern, but its partition ends elsewhere than the pattern says.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Misplaced<'s> {
    pub(crate) pattern: &'s Pattern,
}

/// The tenant that a key belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tenancy {
    /// The tenant in question.
    Own,
    /// Another tenant.
    Other,
    /// It is declared, and no tenant's.
    Shared,
    /// No pattern says.
    Undeclared,
}

impl Keyspace {
    /// Puts catalogues together. Refuses two patterns that nothing separates, examples that belong
    /// elsewhere, and a first segment that another application reserves.
    pub fn new(catalogues: Vec<Catalogue>) -> Result<Keyspace, Problems> {
        let (keyspace, problems) = Keyspace::with_problems(catalogues);
        let (errors, warnings): (Vec<Problem>, Vec<Problem>) =
            problems.into_iter().partition(|problem| problem.severity == Severity::Error);
        match errors.is_empty() {
            true => Ok(Keyspace { warnings, ..keyspace }),
            false => Err(Problems(errors)),
        }
    }

    /// The same for catalogues that may conflict; the conflicts are returned.
    pub(crate) fn with_problems(catalogues: Vec<Catalogue>) -> (Keyspace, Vec<Problem>) {
        let patterns: Vec<Pattern> =
            catalogues.iter().flat_map(|catalogue| catalogue.patterns.iter().cloned()).collect();
        let of = |store: &Store| {
            let here = |it: &(u32, &Pattern)| it.1.store == *store;
            Matcher::new((0..).zip(&patterns).filter(here))
        };
        let mut tables: Vec<(Segment, Matcher)> = Vec::new();
        for pattern in &patterns {
            if let Store::Table(name) = &pattern.store
                && !tables.iter().any(|(known, _)| known == name)
            {
                tables.push((name.clone(), of(&pattern.store)));
            }
        }
        let redis = of(&Store::Redis);
        let keyspace = Keyspace { catalogues, patterns, redis, tables, warnings: Vec::new() };
        let mut problems = keyspace.check_applications();
        problems.extend(keyspace.check_pairs());
        problems.extend(keyspace.check_examples());
        (keyspace, problems)
    }

    fn check_applications(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        for (index, catalogue) in self.catalogues.iter().enumerate() {
            let earlier = self.catalogues.iter().take(index);
            for same in earlier.filter(|it| it.application == catalogue.application) {
                let what =
                    format!("`{}` has a catalogue already, {}", same.application, same.at.file);
                problems.push(Problem::error(&catalogue.at, what, "give this one another name"));
            }
            for reserved in &catalogue.reserved {
                let taken = self.patterns.iter().filter(|pattern| {
                    let first = pattern.segments.first();
                    pattern.application != catalogue.application
                        && matches!(first, Some(Segment::Literal(word)) if *word == reserved.word)
                });
                for pattern in taken {
                    let what = format!(
                        "keys that begin with `{}` are kept for `{}` ({})",
                        reserved.word, catalogue.application, reserved.at
                    );
                    problems.push(Problem::error(&pattern.at, what, "begin with another word"));
                }
            }
        }
        problems
    }

    fn check_pairs(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        for (index, later) in self.patterns.iter().enumerate() {
            for earlier in self.patterns.iter().take(index) {
                match (&earlier.store, &later.store) {
                    (one, other) if one == other => {
                        problems.extend(overlap::check(earlier, later));
                    }
                    (Store::Table(one), Store::Table(other)) if one.meets(other) => {
                        let what = format!(
                            "the tables `{other}` and `{one}` ({}) may be the same",
                            earlier.full_name()
                        );
                        let help = "give them names that differ in their words";
                        problems.push(Problem::error(&later.at, what, help));
                    }
                    _ => {}
                }
            }
        }
        problems
    }

    fn check_examples(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        for pattern in &self.patterns {
            for example in &pattern.examples {
                let segments = Segments::of(example.key.as_bytes());
                let matcher = self.matcher_of(&pattern.store);
                let found = segments.and_then(|it| matcher?.find(&it)).and_then(|it| self.at(it));
                if found.is_some_and(|found| std::ptr::eq(found, pattern)) {
                    continue;
                }
                let what = format!("`{}` is no key of `{pattern}`", example.key);
                let help = match found {
                    Some(other) => format!("it belongs to `{other}` ({})", other.full_name()),
                    None => crate::explain::mismatch(pattern, example.key.as_bytes()),
                };
                problems.push(Problem::error(&example.at, what, help));
            }
        }
        problems
    }

    /// Warnings: what is allowed but may surprise, such as overlapping patterns.
    pub fn warnings(&self) -> &[Problem] {
        &self.warnings
    }

    /// The catalogues.
    pub fn catalogues(&self) -> &[Catalogue] {
        &self.catalogues
    }

    /// All patterns, in the order of the catalogues.
    pub fn patterns(&self) -> &[Pattern] {
        &self.patterns
    }

    /// The pattern of this name: `mastery.daily_mastery`.
    pub fn pattern(&self, full_name: &str) -> Option<&Pattern> {
        let (application, name) = full_name.split_once('.')?;
        self.patterns.iter().find(|it| *it.application == *application && it.name == name)
    }

    fn at(&self, index: u32) -> Option<&Pattern> {
        self.patterns.get(index as usize)
    }

    fn matcher_of(&self, store: &Store) -> Option<&Matcher> {
        match store {
            Store::Redis => Some(&self.redis),
            Store::Table(name) => {
                self.tables.iter().find(|(known, _)| known == name).map(|(_, matcher)| matcher)
            }
        }
    }

    fn matcher(&self, place: KeyStore<'_>) -> Option<&Matcher> {
        match place {
            KeyStore::Redis => Some(&self.redis),
            KeyStore::Table(name) => {
                let mut known = self.tables.iter();
                known.find(|(table, _)| table.accepts(name.as_bytes())).map(|(_, matcher)| matcher)
            }
        }
    }

    /// The pattern that a key belongs to. Does not allocate.
    #[inline]
    pub fn find<'k>(&self, place: KeyStore<'_>, key: &'k [u8]) -> Option<Match<'_, 'k>> {
        let (owner, key) = place.owner_and_key(key);
        let segments = Segments::of(key)?;
        let index = self.matcher(place)?.find(&segments)?;
        Some(Match { pattern: self.at(index)?, index, keyspace: self, owner, segments })
    }

    /// The same for a Redis key whose pattern was found before.
    #[inline]
    pub(crate) fn known<'k>(&self, index: u32, key: &'k [u8]) -> Option<Match<'_, 'k>> {
        let segments = Segments::of(key)?;
        debug_assert_eq!(self.redis.find(&segments), Some(index), "a key keeps its pattern");
        Some(Match { pattern: self.at(index)?, index, keyspace: self, owner: &[], segments })
    }

    /// The pattern that an item belongs to, by its two key attributes. An item whose partition ends
    /// elsewhere than the pattern says belongs to none. Does not allocate.
    pub fn find_item<'k>(&self, table: &str, parts: ItemKeyParts<'k>) -> Option<Match<'_, 'k>> {
        self.find_split(table, parts).and_then(Result::ok)
    }

    /// The same; an item whose partition ends elsewhere than its pattern says is an error.
    #[inline]
    pub(crate) fn find_split<'k>(
        &self,
        table: &str,
        parts: ItemKeyParts<'k>,
    ) -> Option<Result<Match<'_, 'k>, Misplaced<'_>>> {
        let sk = (parts.sk != WHOLE_KEY).then_some(parts.sk);
        let place = KeyStore::Table(table);
        let (owner, pk) = place.owner_and_key(parts.pk);
        let segments = Segments::of_parts(pk, sk)?;
        let index = self.matcher(place)?.find(&segments)?;
        let found = Match { pattern: self.at(index)?, index, keyspace: self, owner, segments };
        Some(match segments.are_in_first(found.pattern.partition_segments) {
            true => Ok(found),
            false => Err(Misplaced { pattern: found.pattern }),
        })
    }

    /// A key as the two key attributes of its item. A key that no pattern declares is a partition
    /// by itself.
    pub fn split<'k>(&self, table: &str, key: &'k [u8]) -> ItemKeyParts<'k> {
        match self.find(KeyStore::Table(table), key) {
            Some(found) => found.parts(key),
            None => ItemKeyParts { pk: key, sk: WHOLE_KEY },
        }
    }

    /// The application that keeps keys with this beginning for itself, whether or not a pattern
    /// declares this one.
    pub fn reserved_by(&self, key: &[u8]) -> Option<&Catalogue> {
        let first = key.split(|byte| *byte == b':').next()?;
        self.catalogues.iter().find(|catalogue| {
            catalogue.reserved.iter().any(|reserved| reserved.word.as_bytes() == first)
        })
    }

    /// Whether some pattern declares keys of this place.
    pub(crate) fn has_patterns_in(&self, place: KeyStore<'_>) -> bool {
        self.matcher(place).is_some()
    }

    /// Whether a key belongs to a tenant.
    pub fn tenancy(&self, place: KeyStore<'_>, key: &[u8], tenant: &str) -> Tenancy {
        self.find(place, key).map_or(Tenancy::Undeclared, |found| found.tenancy(tenant))
    }

    /// Whether every item that is declared to be in a partition belongs to the tenant, whatever its
    /// sort key: the partition key itself says whose it is.
    pub fn is_tenants_partition(&self, table: &str, pk: &[u8], tenant: &str) -> bool {
        let Some(segments) = Segments::of(pk) else { return false };
        let here = |it: &&Pattern| matches!(&it.store, Store::Table(name) if name.accepts(table.as_bytes()));
        let holds = |it: &&Pattern| {
            let mut first = it.segments.iter().take(it.partition_segments).enumerate();
            it.partition_segments == segments.count()
                && first.all(|(at, segment)| segments.get(at).is_some_and(|it| segment.accepts(it)))
        };
        let is_own = |it: &Pattern| {
            let at = it.tenant.filter(|at| *at < it.partition_segments);
            let slot = at.and_then(|at| it.segments.get(at)?.slot());
            let part = slot.zip(at).and_then(|(slot, at)| slot.capture(segments.get(at)?));
            let read = slot.zip(part).and_then(|(slot, part)| slot.placeholder.kind.read(part));
            read.as_deref() == Some(tenant)
        };
        let mut declared = self.patterns.iter().filter(here).filter(holds).peekable();
        declared.peek().is_some() && declared.all(is_own)
    }

    /// The prefixes of all keys of a tenant in one store: `school:university_abc:`.
    pub fn tenant_prefixes(&self, place: KeyStore<'_>, tenant: &str) -> Vec<String> {
        let here = |store: &Store| match (store, place) {
            (Store::Redis, KeyStore::Redis) => true,
            (Store::Table(name), KeyStore::Table(table)) => name.accepts(table.as_bytes()),
            _ => false,
        };
        let prefix = |pattern: &Pattern| {
            let slot = pattern.segments.get(pattern.tenant?)?.slot()?;
            let part = slot.placeholder.write(tenant).ok()?;
            let before = Pattern::text_of(pattern.segments.get(..pattern.tenant?)?);
            let gap = if before.is_empty() { "" } else { ":" };
            Some(format!("{before}{gap}{}{part}{}:", slot.prefix, slot.suffix))
        };
        let mut prefixes: Vec<String> =
            self.patterns.iter().filter(|it| here(&it.store)).filter_map(prefix).collect();
        prefixes.sort();
        prefixes.dedup();
        prefixes
    }
}

impl<'k> ItemKeyParts<'k> {
    /// The whole key again.
    pub fn key(&self) -> Vec<u8> {
        match self.sk == WHOLE_KEY {
            true => self.pk.to_vec(),
            false => [self.pk, b":", self.sk].concat(),
        }
    }
}

impl<'s, 'k> Match<'s, 'k> {
    /// The part of the key that stands for a placeholder, still escaped.
    pub fn capture(&self, placeholder: &str) -> Option<&'k [u8]> {
        let at = self.pattern.segment_of(placeholder)?;
        self.pattern.segments.get(at)?.slot()?.capture(self.segments.get(at)?)
    }

    /// The value of a placeholder, unescaped.
    pub fn value(&self, placeholder: &str) -> Option<String> {
        let at = self.pattern.segment_of(placeholder)?;
        let kind = &self.pattern.segments.get(at)?.slot()?.placeholder.kind;
        kind.read(self.capture(placeholder)?)
    }

    /// All placeholders and what stands in their places, from left to right.
    pub fn captures(&self) -> impl Iterator<Item = (&'s Placeholder, &'k [u8])> {
        let segments = self.segments;
        self.pattern.segments.iter().enumerate().filter_map(move |(at, segment)| {
            let slot = segment.slot()?;
            Some((&slot.placeholder, slot.capture(segments.get(at)?)?))
        })
    }

    /// How long the partition key is; `None` when it ends elsewhere than the pattern says.
    fn partition_bytes(&self) -> Option<usize> {
        Some(self.owner.len() + self.segments.bytes_of_first(self.pattern.partition_segments)?)
    }

    /// The key, which is the one that was found, as the two key attributes of its item.
    pub fn parts(&self, key: &'k [u8]) -> ItemKeyParts<'k> {
        let split = self.partition_bytes().and_then(|end| key.split_at_checked(end));
        match split {
            Some((pk, [b':', sk @ ..])) => ItemKeyParts { pk, sk },
            _ => ItemKeyParts { pk: key, sk: WHOLE_KEY },
        }
    }

    /// Whether the key belongs to a tenant.
    pub fn tenancy(&self, tenant: &str) -> Tenancy {
        match self.tenant_part() {
            None => Tenancy::Shared,
            Some(part) if self.tenant_is(part, tenant) => Tenancy::Own,
            Some(_) => Tenancy::Other,
        }
    }

    fn tenant_part(&self) -> Option<&'k [u8]> {
        let at = self.pattern.tenant?;
        self.pattern.segments.get(at)?.slot()?.capture(self.segments.get(at)?)
    }

    fn tenant_is(&self, part: &[u8], tenant: &str) -> bool {
        let slot = self.pattern.tenant.and_then(|at| self.pattern.segments.get(at)?.slot());
        slot.and_then(|slot| slot.placeholder.kind.read(part)).as_deref() == Some(tenant)
    }

    /// The tenant that the key names.
    pub fn tenant(&self) -> Option<String> {
        let slot = self.pattern.segments.get(self.pattern.tenant?)?.slot()?;
        slot.placeholder.kind.read(self.tenant_part()?)
    }

    /// The key of another pattern of the same application, whose placeholders are all in this one.
    pub(crate) fn key_as(&self, name: &str) -> Option<String> {
        let mut known = self.keyspace.patterns.iter();
        let other =
            known.find(|it| it.application == self.pattern.application && it.name == *name)?;
        let values: Vec<(&str, String)> = other
            .placeholders()
            .map(|it| Some((it.name.as_str(), self.value(&it.name)?)))
            .collect::<Option<_>>()?;
        let values: Vec<(&str, &str)> =
            values.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let key = other.build(&values).ok()?;
        match &other.store {
            Store::Redis => Some(key),
            Store::Table(_) => Some(String::from_utf8_lossy(self.owner).into_owned() + &key),
        }
    }

    /// The long form of a short key.
    pub fn long_form(&self) -> Option<String> {
        self.key_as(self.pattern.short_form_of.as_deref()?)
    }
}
