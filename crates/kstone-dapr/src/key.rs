//! Keys: which there may be, and where the item of each is.

use kstone::Item;
use kstone_keyspace::{Keyspace, Parts, WHOLE_KEY};

use crate::entry::{PK, SK};
use crate::error::{Error, Result};

/// The table that holds state.
pub const TABLE: &str = "state";
/// What Dapr puts between an application's name and a key; clients may not have it in theirs.
pub(crate) const SEPARATOR: &str = "||";
/// DynamoDB's limits on the two key attributes.
const PK_BYTES_MAX: usize = 2048;
const SK_BYTES_MAX: usize = 1024;

/// Where the item of a key is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Place {
    pub(crate) pk: String,
    pub(crate) sk: String,
}

impl Place {
    /// The place of a key, if it can be one. The catalogue says where its partition ends; a key
    /// that no pattern declares is a partition by itself.
    pub(crate) fn of(keyspace: &Keyspace, key: &str) -> Result<Place> {
        if key.is_empty() {
            return Err(Error::malformed("a key must not be empty"));
        }
        let parts = keyspace.split(TABLE, key.as_bytes());
        // A key is split at a colon, so both parts are text again.
        let text = |part: &[u8]| String::from_utf8_lossy(part).into_owned();
        let place = Place { pk: text(parts.pk), sk: text(parts.sk) };
        for (part, bytes, bytes_max) in
            [("partition", place.pk.len(), PK_BYTES_MAX), ("rest", place.sk.len(), SK_BYTES_MAX)]
        {
            if bytes > bytes_max {
                return Err(Error::malformed(format!(
                    "a key is too long: its {part} has {bytes} bytes, and at most {bytes_max} are \
                     allowed"
                )));
            }
        }
        Ok(place)
    }

    /// The place of the key that this one is short for, as the catalogue says: there it is read
    /// when it is not there itself.
    pub(crate) fn of_long_form(keyspace: &Keyspace, key: &str) -> Result<Option<Place>> {
        let found = keyspace.find(kstone_keyspace::KeyStore::Table(TABLE), key.as_bytes());
        let long = found.and_then(|found| found.long_form());
        long.map(|long| Place::of(keyspace, &long)).transpose()
    }

    /// The place that an item says it has.
    pub(crate) fn of_item(item: &Item) -> Option<Place> {
        let text = |name| Some(item.get(name)?.as_str()?.to_owned());
        Some(Place { pk: text(PK)?, sk: text(SK)? })
    }

    /// The key attributes.
    pub(crate) fn key_item(&self) -> Item {
        Item::new().with(PK, self.pk.as_str()).with(SK, self.sk.as_str())
    }

    /// The key again. `None` for an item that another door put where no key leads.
    pub(crate) fn key(&self, keyspace: &Keyspace) -> Option<String> {
        let parts = Parts { pk: self.pk.as_bytes(), sk: self.sk.as_bytes() };
        let key = match parts.sk == WHOLE_KEY {
            true => self.pk.clone(),
            false => format!("{}:{}", self.pk, self.sk),
        };
        (Place::of(keyspace, &key).ok().as_ref() == Some(self)).then_some(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_declared_key_is_split_where_its_partition_ends_and_others_are_whole() {
        let keyspace = kstone_keyspace::shipped().unwrap();
        let cases = [
            ("student:s1:mastery:2026-01-14", "student:s1", "mastery:2026-01-14"),
            ("student:s1:profile:current_mastery", "student:s1", "profile:current_mastery"),
            ("processed:e1", "processed:e1", "#"),
            ("anything at all", "anything at all", "#"),
            ("order:7:line:1", "order:7:line:1", "#"),
            ("shop||student:s1:mastery:2026-01-14", "shop||student:s1", "mastery:2026-01-14"),
            ("shop||actor||7||processed:e1", "shop||actor||7||processed:e1", "#"),
        ];
        for (key, pk, sk) in cases {
            let place = Place::of(&keyspace, key).unwrap();
            assert_eq!((place.pk.as_str(), place.sk.as_str()), (pk, sk));
            assert_eq!(place.key(&keyspace).as_deref(), Some(key));
            assert_eq!(Place::of_item(&place.key_item()), Some(place));
        }
    }

    #[test]
    fn a_short_form_is_read_where_its_long_form_is() {
        let keyspace = kstone_keyspace::shipped().unwrap();
        let long_form = |key: &str| Place::of_long_form(&keyspace, key).unwrap();
        for owner in ["", "shop||"] {
            let long = format!("{owner}student:12345:mastery:2026-01-14");
            let place = Place::of(&keyspace, &long).unwrap();
            assert_eq!(place.pk, format!("{owner}student:12345"));
            assert_eq!(long_form(&format!("{owner}st:12345:m:2026-01-14")), Some(place));
            assert_eq!(long_form(&long), None);
        }
    }

    #[test]
    fn keys_that_cannot_be_stored_are_refused_with_the_reason() {
        let keyspace = kstone_keyspace::shipped().unwrap();
        let refusal = |key: &str| Place::of(&keyspace, key).unwrap_err().to_string();
        assert!(refusal("").contains("empty"));
        assert!(refusal(&"k".repeat(2049)).contains("at most 2048"));
        assert!(Place::of(&keyspace, &"k".repeat(2048)).is_ok());
    }
}
