//! Encoding of the entries in the index of persons, the table `kstone.subjects`.
//!
//! An entry's `pk` says whom it is about, and its `sk` where the data is:
//!
//! | `pk` | is about |
//! |---|---|
//! | `subject#{id}` | the person with this canonical id, in whichever tenant |
//! | `via#r{db}#{key}` | the persons this key of Redis belongs to |
//! | `via#t{table}#{pk}` or `via#t{table}#{pk}\|{sk}` | the persons this item belongs to |
//!
//! | `sk` | the data is in |
//! |---|---|
//! | `{tenant}\|r{db}\|{key}` | a key of Redis |
//! | `{tenant}\|r{db}\|{key}\|{member}` | a member of a collection, or a field of a hash |
//! | `{tenant}\|t{table}\|{pk}` | an item without sort key |
//! | `{tenant}\|t{table}\|{pk}\|{sk}` | an item |
//!
//! The tenant is empty where there is none. Each part is as it is where it is printable; `|`, `%`,
//! control characters and bytes that are no UTF-8 are `%` and two capital hex digits. So there is one
//! form of each place, and it reads back as what it was.
//!
//! Pure; used by every reader and writer of the table.

use kstone::policy::IndexEntry;
use percent_encoding::{percent_decode_str, percent_encode_byte};

/// Where data of a person is stored.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Location {
    /// A key of Redis.
    Key {
        /// The logical database.
        db: u8,
        /// The key.
        key: Vec<u8>,
    },
    /// A member of a collection of Redis, or a field of a hash.
    Member {
        /// The logical database.
        db: u8,
        /// The collection.
        key: Vec<u8>,
        /// The member, as it is stored.
        member: Vec<u8>,
    },
    /// An item of a table.
    Item {
        /// The table's name.
        table: String,
        /// The partition key's bytes: of a string its text, of a number its decimal digits.
        pk: Vec<u8>,
        /// The sort key's bytes, if the table has one.
        sk: Option<Vec<u8>>,
    },
}

/// The decoded `sk` of an entry.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct IndexEntryKey {
    /// The tenant whose data it is.
    pub tenant: Option<String>,
    /// Where it is.
    pub location: Location,
}

/// The `pk` of all entries about a person, by the canonical id ([`Subject::id`](crate::Subject)).
pub fn pk_of_subject(id: &str) -> String {
    format!("subject#{id}")
}

/// The `pk` of all entries about the owner of this place. Of a member it is that of its collection.
pub fn pk_via(location: &Location) -> String {
    let mut pk = String::from("via#");
    match location {
        Location::Key { db, key } | Location::Member { db, key, .. } => via_key(*db, key, &mut pk),
        Location::Item { table, pk: item_pk, sk } => {
            pk.push('t');
            escape_into(table.as_bytes(), &mut pk);
            pk.push('#');
            escape_into(item_pk, &mut pk);
            if let Some(sk) = sk {
                pk.push('|');
                escape_into(sk, &mut pk);
            }
        }
    }
    pk
}

/// The `pk` of all entries about the owner of this Redis key.
pub fn pk_via_key(db: u8, key: &[u8]) -> String {
    let mut pk = String::with_capacity(key.len() + 8);
    pk.push_str("via#");
    via_key(db, key, &mut pk);
    pk
}

fn via_key(db: u8, key: &[u8], pk: &mut String) {
    pk.push_str(&format!("r{db}#"));
    escape_into(key, pk);
}

/// The entry that says that a key of Redis holds data of whom `pk` names.
pub fn entry_for_key(pk: String, tenant: Option<&str>, db: u8, key: &[u8]) -> IndexEntry {
    let mut sk = String::with_capacity(key.len() + 16);
    escape_into(tenant.unwrap_or_default().as_bytes(), &mut sk);
    sk.push_str(&format!("|r{db}|"));
    escape_into(key, &mut sk);
    IndexEntry { pk, sk }
}

/// The entry that says that a member of a collection is data of whom `pk` names.
pub fn entry_for_member(
    pk: String,
    tenant: Option<&str>,
    db: u8,
    key: &[u8],
    member: &[u8],
) -> IndexEntry {
    let mut entry = entry_for_key(pk, tenant, db, key);
    entry.sk.push('|');
    escape_into(member, &mut entry.sk);
    entry
}

/// The entry that says that an item holds data of whom `pk` names.
pub fn entry_for_item(
    pk: String,
    tenant: Option<&str>,
    table: &str,
    item_pk: &[u8],
    item_sk: Option<&[u8]>,
) -> IndexEntry {
    let mut sk = String::with_capacity(table.len() + item_pk.len() + 32);
    escape_into(tenant.unwrap_or_default().as_bytes(), &mut sk);
    sk.push_str("|t");
    escape_into(table.as_bytes(), &mut sk);
    sk.push('|');
    escape_into(item_pk, &mut sk);
    if let Some(item_sk) = item_sk {
        sk.push('|');
        escape_into(item_sk, &mut sk);
    }
    IndexEntry { pk, sk }
}

impl IndexEntryKey {
    /// The entry with this `pk`.
    pub fn entry(&self, pk: String) -> IndexEntry {
        let tenant = self.tenant.as_deref();
        match &self.location {
            Location::Key { db, key } => entry_for_key(pk, tenant, *db, key),
            Location::Member { db, key, member } => entry_for_member(pk, tenant, *db, key, member),
            Location::Item { table, pk: item_pk, sk } => {
                entry_for_item(pk, tenant, table, item_pk, sk.as_deref())
            }
        }
    }

    /// Reads an entry's `sk`; `None` when it is no place.
    pub fn parse(sk: &str) -> Option<IndexEntryKey> {
        let mut parts = sk.split('|');
        let tenant = unescape_text(parts.next()?)?;
        let store = parts.next()?;
        let first = unescape(parts.next()?)?;
        let second = parts.next().map(unescape);
        if parts.next().is_some() || second == Some(None) {
            return None;
        }
        let second = second.flatten();
        let location = match (store.split_at_checked(1)?, second) {
            (("r", db), None) => Location::Key { db: db_of(db)?, key: first },
            (("r", db), Some(member)) => Location::Member { db: db_of(db)?, key: first, member },
            (("t", table), sk) => Location::Item { table: unescape_text(table)?, pk: first, sk },
            _ => return None,
        };
        Some(IndexEntryKey { tenant: Some(tenant).filter(|it| !it.is_empty()), location })
    }
}

fn db_of(digits: &str) -> Option<u8> {
    let db: u8 = digits.parse().ok()?;
    // One form of each place.
    (db.to_string() == digits).then_some(db)
}

fn stays(letter: char) -> bool {
    !letter.is_control() && letter != '|' && letter != '%'
}

fn escape_into(bytes: &[u8], out: &mut String) {
    for chunk in bytes.utf8_chunks() {
        let mut rest = chunk.valid();
        while let Some(at) = rest.find(|letter| !stays(letter)) {
            let (plain, escaped) = rest.split_at(at);
            out.push_str(plain);
            let length = escaped.chars().next().map_or(0, char::len_utf8);
            let (letter, after) = escaped.split_at(length);
            out.extend(letter.bytes().map(percent_encode_byte));
            rest = after;
        }
        out.push_str(rest);
        out.extend(chunk.invalid().iter().copied().map(percent_encode_byte));
    }
}

/// Decodes the escaped form; `None` if it is not the one form that [`escape_into`] writes.
fn unescape(text: &str) -> Option<Vec<u8>> {
    let bytes: Vec<u8> = percent_decode_str(text).collect();
    let mut again = String::with_capacity(text.len());
    escape_into(&bytes, &mut again);
    (again == text).then_some(bytes)
}

fn unescape_text(text: &str) -> Option<String> {
    String::from_utf8(unescape(text)?).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(tenant: Option<&str>, location: Location) -> IndexEntryKey {
        IndexEntryKey { tenant: tenant.map(str::to_owned), location }
    }

    #[test]
    fn places_are_readable_and_read_back() {
        let key = Location::Key { db: 0, key: b"session:s-1".to_vec() };
        let member = Location::Member { db: 3, key: b"board:x".to_vec(), member: b"a|b%".to_vec() };
        let (table, sk) = ("state".to_owned(), Some(b"mastery:2026-01-14".to_vec()));
        let item = Location::Item { table, pk: b"student:s1".to_vec(), sk };
        let cases = [
            (at(None, key.clone()), "|r0|session:s-1"),
            (at(Some("abc"), member), "abc|r3|board:x|a%7Cb%25"),
            (at(None, item), "|tstate|student:s1|mastery:2026-01-14"),
            (at(None, Location::Key { db: 0, key: b"\xff\n\xc3\xa4".to_vec() }), "|r0|%FF%0Aä"),
        ];
        for (place, sk) in cases {
            let entry = place.entry(pk_of_subject("1"));
            assert_eq!((entry.pk.as_str(), entry.sk.as_str()), ("subject#1", sk));
            assert_eq!(IndexEntryKey::parse(sk), Some(place));
        }
        assert_eq!(pk_via(&key), "via#r0#session:s-1");
        assert_eq!(pk_via_key(0, b"session:s-1"), "via#r0#session:s-1");
    }

    #[test]
    fn what_is_no_place_is_not_read_as_one() {
        for wrong in [
            "",
            "a",
            "|r0",
            "|r16777|k",
            "|r00|k",
            "|x0|k",
            "||k",
            "|r0|%",
            "|r0|%4",
            "|r0|%41",
            "|r0|%ff",
            "|r0|a|b|c",
            "|r0|a\nb",
        ] {
            assert_eq!(IndexEntryKey::parse(wrong), None, "{wrong:?}");
        }
    }

    fn location() -> impl Strategy<Value = Location> {
        let bytes = || {
            prop_oneof![
                proptest::collection::vec(any::<u8>(), 0..12),
                "[a-z|%:#ä\u{85}]{0,12}".prop_map(String::into_bytes),
            ]
        };
        prop_oneof![
            (0..16_u8, bytes()).prop_map(|(db, key)| Location::Key { db, key }),
            (0..16_u8, bytes(), bytes()).prop_map(|(db, key, member)| Location::Member {
                db,
                key,
                member
            }),
            ("[a-z.|%-]{1,8}", bytes(), proptest::option::of(bytes()))
                .prop_map(|(table, pk, sk)| Location::Item { table, pk, sk }),
        ]
    }

    proptest! {
        #[test]
        fn every_place_reads_back_as_what_it_was(
            tenant in proptest::option::of("[a-z|%_]{1,6}"),
            location in location(),
        ) {
            let place = IndexEntryKey { tenant, location };
            prop_assert_eq!(IndexEntryKey::parse(&place.entry(String::new()).sk), Some(place));
        }

        #[test]
        fn different_places_have_different_forms(one in location(), other in location()) {
            let sk = |it: &Location| at(None, it.clone()).entry(String::new()).sk;
            prop_assert_eq!(sk(&one) == sk(&other), one == other);
        }
    }
}
