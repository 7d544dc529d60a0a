//! The compact form of items: what is stored, compared and sent without being taken apart.
//!
//! ```text
//! item    01, map                              the version, then the attributes
//! map     count varint, entries                the names ascend in byte order
//! entry   length varint, name, value
//! value   01 length varint, UTF-8              S
//!         02 ordered bytes                     N
//!         03 length varint, bytes              B
//!         04 | 05 | 06                         false, true, null
//!         07 length varint, map                M
//!         08 length varint, count varint, values                     L
//!         09 length varint, count varint, (length varint, UTF-8)…    SS
//!         0A length varint, count varint, ordered bytes…             NS
//!         0B length varint, count varint, (length varint, bytes)…    BS
//! ```
//!
//! Any value is skipped without looking inside it, and a lookup ends at the first name beyond the
//! one it wants. The elements of a set ascend too, and numbers have one form only, so two values
//! are equal exactly when their bytes are.
//!
//! Reading never trusts the bytes: on damage a lookup finds nothing, an iteration ends and
//! [`ItemRef::decode`] gives [`Corrupt`]; nothing panics, loops, or allocates more than in
//! proportion to the bytes that are there.

mod build;
mod read;
mod size;
mod varint;
mod view;

pub use build::{EncodedValue, ItemBuilder, ListBuilder};
pub use view::{Attributes, ItemRef, ListRef, SetKind, SetRef, TextForm, ValueRef};

use std::fmt;

use bytes::Bytes;

use crate::value::Item;

/// The first byte of an item.
const VERSION: u8 = 1;

const TAG_S: u8 = 1;
const TAG_N: u8 = 2;
const TAG_B: u8 = 3;
const TAG_FALSE: u8 = 4;
const TAG_TRUE: u8 = 5;
const TAG_NULL: u8 = 6;
const TAG_M: u8 = 7;
const TAG_L: u8 = 8;
const TAG_SS: u8 = 9;
const TAG_NS: u8 = 10;
const TAG_BS: u8 = 11;

/// How deep decoding follows nested values. More than [`Value::DEPTH_MAX`](crate::value::Value::DEPTH_MAX),
/// which is checked on the way in; here it only keeps damaged bytes from exhausting the stack.
const DEPTH_MAX: usize = 64;

/// The bytes are not an item in its compact form. The storage below checks its own checksums, so
/// this means that something else was stored, or that a newer version stored it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a stored item cannot be read: its bytes are damaged, or a newer version wrote them")]
pub struct Corrupt;

/// An item in its compact form. Cloning it copies no bytes.
#[derive(Clone, PartialEq, Eq)]
pub struct ItemBytes {
    bytes: Bytes,
}

impl ItemBytes {
    /// The compact form of an item.
    pub fn encode(item: &Item) -> ItemBytes {
        ItemBytes { bytes: build::item(item).into() }
    }

    /// Takes stored bytes for an item. Only the version is checked here, because most items are
    /// read in part or passed on; [`ItemRef::check`] looks at all of it.
    pub fn from_bytes(bytes: Bytes) -> Result<ItemBytes, Corrupt> {
        match bytes.first() {
            Some(&VERSION) => Ok(ItemBytes { bytes }),
            _ => Err(Corrupt),
        }
    }

    /// The item, borrowed, to look into.
    pub fn as_ref(&self) -> ItemRef<'_> {
        ItemRef::of_item(&self.bytes)
    }

    /// The bytes.
    pub fn as_slice(&self) -> &[u8] {
        &self.bytes
    }

    /// The bytes, shared.
    pub fn into_bytes(self) -> Bytes {
        self.bytes
    }

    /// The same from borrowed bytes, which are copied.
    pub fn copy_from_slice(bytes: &[u8]) -> Result<ItemBytes, Corrupt> {
        Self::from_bytes(Bytes::copy_from_slice(bytes))
    }

    /// The item's size as DynamoDB counts it.
    pub fn size(&self) -> usize {
        self.as_ref().size()
    }

    /// The tree form.
    pub fn decode(&self) -> Result<Item, Corrupt> {
        self.as_ref().decode()
    }
}

impl From<&Item> for ItemBytes {
    fn from(item: &Item) -> Self {
        ItemBytes::encode(item)
    }
}

impl Default for ItemBytes {
    /// An item without attributes.
    fn default() -> Self {
        ItemBytes { bytes: Bytes::from_static(&[VERSION, 0]) }
    }
}

impl fmt::Debug for ItemBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_ref().fmt(f)
    }
}
