//! Keys: a partition key, an optional sort key, and the stripe they live in.
//!
//! [`Key`] is what callers use. [`internal`] is the form the engine stores and compares.
//! [`design`] helps to build keys that sort as they should.

pub mod design;
pub(crate) mod internal;

use bytes::{BufMut, Bytes, BytesMut};

/// How many stripes a database has. One byte names a stripe.
pub const STRIPES: usize = 256;

/// The longest key: partition key and sort key together, in bytes.
pub const KEY_LEN_MAX: usize = 64 * 1024;

/// The name of a record: a partition key, which decides the stripe, and an optional sort key,
/// which orders the records of a partition.
///
/// ```
/// use kstone_core::Key;
///
/// let user = Key::new(b"user#123".to_vec());
/// let post = Key::with_sk(b"user#123".to_vec(), b"post#001".to_vec());
/// assert_eq!(user.stripe(), post.stripe());
/// assert!(user < post);
/// ```
///
/// Keys compare by partition key bytes, then no sort key first, then sort key bytes: the order in
/// which a partition is stored and iterated.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    /// Partition key (required).
    pub pk: Bytes,
    /// Sort key (optional). An absent sort key and an empty one are different keys.
    pub sk: Option<Bytes>,
}

impl Key {
    /// A key of a partition key alone.
    pub fn new(pk: impl Into<Bytes>) -> Self {
        Key { pk: pk.into(), sk: None }
    }

    /// A key of a partition key and a sort key.
    pub fn with_sk(pk: impl Into<Bytes>, sk: impl Into<Bytes>) -> Self {
        Key { pk: pk.into(), sk: Some(sk.into()) }
    }

    /// The public, self-delimiting form: `pk_len(4, big-endian) pk sk_len(4) sk`.
    ///
    /// It is for exchange, not for order: it sorts by length first. And it does not tell an
    /// absent sort key from an empty one.
    pub fn encode(&self) -> Bytes {
        let sk = self.sk.as_deref().unwrap_or_default();
        let mut buf = BytesMut::with_capacity(8 + self.pk.len() + sk.len());
        buf.put_u32(self.pk.len() as u32);
        buf.put_slice(&self.pk);
        buf.put_u32(sk.len() as u32);
        buf.put_slice(sk);
        buf.freeze()
    }

    /// The stripe that holds the key: IEEE CRC32 of the partition key, modulo 256.
    pub fn stripe(&self) -> u8 {
        stripe_of(&self.pk)
    }

    /// Bytes that count against [`KEY_LEN_MAX`].
    #[expect(clippy::len_without_is_empty, reason = "an empty key is an ordinary key")]
    pub fn len(&self) -> usize {
        self.pk.len() + self.sk.as_ref().map_or(0, Bytes::len)
    }
}

/// A key that borrows its bytes: what reads and writes take, so that a caller who has the
/// bytes need not copy them into a [`Key`]. A `&Key` converts by itself.
///
/// ```
/// use kstone_core::{Engine, Key, KeyRef, Options, TableId};
///
/// let engine = Engine::memory(Options::default())?;
/// assert_eq!(engine.get(TableId::DEFAULT, KeyRef::with_sk(b"user#1", b"post#1"))?, None);
/// assert_eq!(engine.get(TableId::DEFAULT, &Key::new("user#1"))?, None);
/// # Ok::<(), kstone_core::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct KeyRef<'a> {
    /// Partition key (required).
    pub pk: &'a [u8],
    /// Sort key (optional).
    pub sk: Option<&'a [u8]>,
}

impl<'a> KeyRef<'a> {
    /// A key of a partition key alone.
    pub fn new(pk: &'a [u8]) -> Self {
        KeyRef { pk, sk: None }
    }

    /// A key of a partition key and a sort key.
    pub fn with_sk(pk: &'a [u8], sk: &'a [u8]) -> Self {
        KeyRef { pk, sk: Some(sk) }
    }

    /// The stripe that holds the key, as [`Key::stripe`].
    pub fn stripe(&self) -> u8 {
        stripe_of(self.pk)
    }
}

impl<'a> From<&'a Key> for KeyRef<'a> {
    fn from(key: &'a Key) -> Self {
        KeyRef { pk: &key.pk, sk: key.sk.as_deref() }
    }
}

/// For callers that iterate over a list of `&Key`.
impl<'a> From<&&'a Key> for KeyRef<'a> {
    fn from(key: &&'a Key) -> Self {
        KeyRef::from(*key)
    }
}

/// The stripe that holds a partition.
pub fn stripe_of(pk: &[u8]) -> u8 {
    (crc32fast::hash(pk) % STRIPES as u32) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encode_gives_both_hex_examples_of_the_chapter() {
        let hex = |bytes: Bytes| bytes.iter().map(|b| format!("{b:02x}")).collect::<String>();
        assert_eq!(
            hex(Key::new(b"user#123".to_vec()).encode()),
            "00000008757365722331323300000000"
        );
        assert_eq!(
            hex(Key::with_sk(b"user#123".to_vec(), b"post#001".to_vec()).encode()),
            "00000008757365722331323300000008706f737423303031"
        );
    }

    #[test]
    fn stripes_are_ieee_crc32_modulo_256() {
        assert_eq!(Key::new(&b"user#1"[..]).stripe(), 154);
        assert_eq!(Key::new(&b"user#2"[..]).stripe(), 32);
        assert_eq!(Key::new(&b"user#3"[..]).stripe(), 182);
    }

    #[test]
    fn equal_partition_keys_share_a_stripe_whatever_the_sort_key() {
        let stripe = Key::new(&b"user#123"[..]).stripe();
        assert_eq!(Key::with_sk(&b"user#123"[..], &b"post#001"[..]).stripe(), stripe);
        assert_eq!(Key::with_sk(&b"user#123"[..], &b"post#002"[..]).stripe(), stripe);
    }

    #[test]
    fn partition_keys_spread_over_the_stripes_within_a_chi_squared_bound() {
        // 255 degrees of freedom: a fair hash stays under 330 in all but one run in a thousand;
        // the keys are fixed, so this either always passes or never.
        let uuid = |n: u64| {
            let mut z = n.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            z = (z ^ (z >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            format!("{z:016x}-{:016x}", z.rotate_left(23) ^ n)
        };
        for make in [&(|n: u64| format!("user#{n}")) as &dyn Fn(u64) -> String, &uuid] {
            let mut counts = [0u32; STRIPES];
            let keys = 10_000u64;
            for n in 0..keys {
                counts[usize::from(stripe_of(make(n).as_bytes()))] += 1;
            }
            let mean = keys as f64 / STRIPES as f64;
            let chi: f64 = counts.iter().map(|&c| (f64::from(c) - mean).powi(2) / mean).sum();
            assert!(chi < 330.0, "chi-squared {chi}");
        }
    }
}
