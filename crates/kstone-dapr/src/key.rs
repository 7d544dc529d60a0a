//! Keys of state, and the primary keys of the items that store them.

use kstone_keyspace::{ItemKeyParts, Keyspace, WHOLE_KEY};
use kstone_ports::value::Item;

use crate::entry::{PK, SK};
use crate::error::{Error, Result};

/// The table that holds state.
pub const TABLE: &str = "state";
/// Dapr's separator between an application's name and a key. Clients may not use it in a key.
pub(crate) const SEPARATOR: &str = "||";
/// DynamoDB's limits for the two key attributes.
const PK_BYTES_MAX: usize = 2048;
const SK_BYTES_MAX: usize = 1024;

/// The primary key of the item that stores a key's state.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct ItemKey {
    pub(crate) pk: String,
    pub(crate) sk: String,
}

impl ItemKey {
    /// Splits a key where the catalogue says that its partition ends. A key that no pattern declares
    /// is a partition by itself.
    pub(crate) fn of(keyspace: &Keyspace, key: &str) -> Result<ItemKey> {
        if key.is_empty() {
            return Err(Error::malformed("a key must not be empty"));
        }
        let parts = keyspace.split(TABLE, key.as_bytes());
        // A key is split at a colon, so both parts are text again.
        let text = |part: &[u8]| String::from_utf8_lossy(part).into_owned();
        let item_key = ItemKey { pk: text(parts.pk), sk: text(parts.sk) };
        for (part, bytes, bytes_max) in [
            ("partition", item_key.pk.len(), PK_BYTES_MAX),
            ("rest", item_key.sk.len(), SK_BYTES_MAX),
        ] {
            if bytes > bytes_max {
                return Err(Error::malformed(format!(
                    "a key is too long: its {part} has {bytes} bytes, and at most {bytes_max} are \
                     allowed"
                )));
            }
        }
        Ok(item_key)
    }

    /// The same for the long form of a key, if the catalogue declares this key as a short form. A
    /// short form that holds nothing is read at its long form.
    pub(crate) fn of_long_form(keyspace: &Keyspace, key: &str) -> Result<Option<ItemKey>> {
        let found = keyspace.find(kstone_keyspace::KeyStore::Table(TABLE), key.as_bytes());
        let long = found.and_then(|found| found.long_form());
        long.map(|long| ItemKey::of(keyspace, &long)).transpose()
    }

    /// The primary key of an item of the table.
    pub(crate) fn from_item(item: &Item) -> Option<ItemKey> {
        let text = |name| Some(item.get(name)?.as_str()?.to_owned());
        Some(ItemKey { pk: text(PK)?, sk: text(SK)? })
    }

    /// The two key attributes, as the port to items takes them.
    pub(crate) fn to_item(&self) -> Item {
        Item::new().with(PK, self.pk.as_str()).with(SK, self.sk.as_str())
    }

    /// The key whose state is stored here. `None` for an item of another door that no key is split
    /// into.
    pub(crate) fn state_key(&self, keyspace: &Keyspace) -> Option<String> {
        let parts = ItemKeyParts { pk: self.pk.as_bytes(), sk: self.sk.as_bytes() };
        let key = match parts.sk == WHOLE_KEY {
            true => self.pk.clone(),
            false => format!("{}:{}", self.pk, self.sk),
        };
        (ItemKey::of(keyspace, &key).ok().as_ref() == Some(self)).then_some(key)
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
            let item_key = ItemKey::of(&keyspace, key).unwrap();
            assert_eq!((item_key.pk.as_str(), item_key.sk.as_str()), (pk, sk));
            assert_eq!(item_key.state_key(&keyspace).as_deref(), Some(key));
            assert_eq!(ItemKey::from_item(&item_key.to_item()), Some(item_key));
        }
    }

    #[test]
    fn a_short_form_is_read_where_its_long_form_is() {
        let keyspace = kstone_keyspace::shipped().unwrap();
        let long_form = |key: &str| ItemKey::of_long_form(&keyspace, key).unwrap();
        for owner in ["", "shop||"] {
            let long = format!("{owner}student:12345:mastery:2026-01-14");
            let item_key = ItemKey::of(&keyspace, &long).unwrap();
            assert_eq!(item_key.pk, format!("{owner}student:12345"));
            assert_eq!(long_form(&format!("{owner}st:12345:m:2026-01-14")), Some(item_key));
            assert_eq!(long_form(&long), None);
        }
    }

    #[test]
    fn keys_that_cannot_be_stored_are_refused_with_the_reason() {
        let keyspace = kstone_keyspace::shipped().unwrap();
        let refusal = |key: &str| ItemKey::of(&keyspace, key).unwrap_err().to_string();
        assert!(refusal("").contains("empty"));
        assert!(refusal(&"k".repeat(2049)).contains("at most 2048"));
        assert!(ItemKey::of(&keyspace, &"k".repeat(2048)).is_ok());
    }
}
