//! The list of erased persons: nothing may be written about them until they are admitted again.
//!
//! The ids themselves are gone with the data. What is kept is a keyed hash of each, with a secret of
//! this database: it tells whether an id that comes along is one of them, and tells nobody who they
//! were. A write costs one look at a counter while nobody was ever erased, then a short hash; the
//! long one is computed only for ids that the short one does not rule out.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};

use hmac::{Hmac, Mac};
use kstone_core::sync::RwLock;
use sha2::Sha256;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::subject::Subject;

/// The keyed hash by which an erased person, or an erased key, is known.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Token {
    /// Of the person's id alone, whichever the tenant.
    short: u64,
    exact: [u8; 32],
}

/// The set of erased persons, and keys whose owner was erased.
pub(crate) struct Erased {
    secret: [u8; 32],
    seed: u64,
    /// How many there are, so that a database that never erased anybody pays nothing.
    count: AtomicUsize,
    known: RwLock<ErasedTokens>,
}

#[derive(Default)]
struct ErasedTokens {
    /// How many of the exact ones have this short hash.
    short: HashMap<u64, u32>,
    exact: HashSet<[u8; 32]>,
}

impl Erased {
    pub(crate) fn new(secret: [u8; 32]) -> Erased {
        let [a, b, c, d, e, f, g, h, ..] = secret;
        let seed = u64::from_le_bytes([a, b, c, d, e, f, g, h]);
        Erased { secret, seed, count: AtomicUsize::new(0), known: RwLock::default() }
    }

    /// An empty set.
    pub(crate) fn nobody() -> Erased {
        Erased::new([0; 32])
    }

    /// The token of a person, in one tenant or (without one) in all of them.
    pub(crate) fn token(&self, subject: &Subject) -> Token {
        self.token_of(&subject.id, subject.tenant.as_deref())
    }

    fn token_of(&self, id: &str, tenant: Option<&str>) -> Token {
        let tenant_kind: &[u8] = if tenant.is_some() { b"t" } else { b"-" };
        let parts = [b"person".as_slice(), id.as_bytes(), tenant_kind];
        let exact = self.hash(parts, tenant.unwrap_or_default().as_bytes());
        Token { short: self.short(id.as_bytes()), exact }
    }

    /// The token of the owner of a place, by its `pk` in the index.
    pub(crate) fn token_via(&self, pk: &str) -> Token {
        let exact = self.hash([b"place", b"", b""], pk.as_bytes());
        Token { short: self.short(pk.as_bytes()), exact }
    }

    fn short(&self, bytes: &[u8]) -> u64 {
        xxh3_64_with_seed(bytes, self.seed)
    }

    fn hash(&self, parts: [&[u8]; 3], last: &[u8]) -> [u8; 32] {
        // Keys of any length are right for it, so that there is no error to speak of.
        let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(&self.secret) else { return [0; 32] };
        for part in parts {
            mac.update(&(part.len() as u64).to_le_bytes());
            mac.update(part);
        }
        mac.update(last);
        mac.finalize().into_bytes().into()
    }

    /// Adds a token; returns whether it was new.
    pub(crate) fn insert(&self, token: Token) -> bool {
        let mut known = self.known.write();
        let is_new = known.exact.insert(token.exact);
        if is_new {
            *known.short.entry(token.short).or_default() += 1;
            self.count.fetch_add(1, Ordering::Release);
        }
        is_new
    }

    /// Removes a token; returns whether it was there.
    pub(crate) fn remove(&self, token: Token) -> bool {
        let mut known = self.known.write();
        let was_there = known.exact.remove(&token.exact);
        if was_there {
            if let Some(count) = known.short.get_mut(&token.short) {
                *count -= 1;
                if *count == 0 {
                    known.short.remove(&token.short);
                }
            }
            self.count.fetch_sub(1, Ordering::Release);
        }
        was_there
    }

    /// Whether there are any.
    #[inline]
    pub(crate) fn any(&self) -> bool {
        self.count.load(Ordering::Acquire) > 0
    }

    /// Whether a person was erased, in this tenant or in all of them. The id is the canonical one.
    pub(crate) fn has(&self, id: &str, tenant: Option<&str>) -> bool {
        if !self.any() || !self.known.read().short.contains_key(&self.short(id.as_bytes())) {
            return false;
        }
        let everywhere = self.token_of(id, None).exact;
        let here = tenant.map(|tenant| self.token_of(id, Some(tenant)).exact);
        let known = self.known.read();
        known.exact.contains(&everywhere) || here.is_some_and(|here| known.exact.contains(&here))
    }

    /// Whether the owner of a place was erased.
    pub(crate) fn has_via(&self, pk: &str) -> bool {
        self.any()
            && self.known.read().short.contains_key(&self.short(pk.as_bytes()))
            && self.known.read().exact.contains(&self.token_via(pk).exact)
    }
}

impl Token {
    /// The stored form.
    pub(crate) fn to_text(self) -> String {
        format!("{:016x}{}", self.short, hex::encode(self.exact))
    }

    pub(crate) fn parse(text: &str) -> Option<Token> {
        let (short, exact) = text.split_at_checked(16)?;
        let short = u64::from_str_radix(short, 16).ok()?;
        let mut bytes = [0; 32];
        hex::decode_to_slice(exact, &mut bytes).ok()?;
        Some(Token { short, exact: bytes })
    }
}

impl fmt::Debug for Erased {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Erased({})", self.count.load(Ordering::Relaxed))
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn person(id: &str, tenant: Option<&str>) -> Subject {
        Subject { id: id.to_owned(), tenant: tenant.map(str::to_owned) }
    }

    #[test]
    fn who_was_erased_everywhere_is_erased_in_every_tenant_and_the_others_in_theirs() {
        let erased = Erased::new([7; 32]);
        assert!(!erased.any() && !erased.has("1", None));
        assert!(erased.insert(erased.token(&person("1", None))));
        assert!(!erased.insert(erased.token(&person("1", None))));
        assert!(erased.insert(erased.token(&person("2", Some("abc")))));
        assert!(erased.has("1", None) && erased.has("1", Some("abc")));
        assert!(erased.has("2", Some("abc")) && !erased.has("2", None));
        assert!(!erased.has("2", Some("xyz")) && !erased.has("3", None));
        assert!(erased.remove(erased.token(&person("1", None))));
        assert!(!erased.remove(erased.token(&person("1", None))));
        assert!(!erased.has("1", None) && erased.has("2", Some("abc")));
    }

    #[test]
    fn a_token_reads_back_and_says_nothing_without_the_secret() {
        let (one, other) = (Erased::new([1; 32]), Erased::new([2; 32]));
        let token = one.token(&person("12345", None));
        assert_eq!(Token::parse(&token.to_text()), Some(token));
        assert_ne!(token.to_text(), other.token(&person("12345", None)).to_text());
        for wrong in ["", "12", &"g".repeat(80), &"0".repeat(81), &"ä".repeat(40)] {
            assert_eq!(Token::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn an_erased_place_is_another_thing_than_a_person_of_that_name() {
        let erased = Erased::new([7; 32]);
        erased.insert(erased.token_via("via#r0#session:s-1"));
        assert!(erased.has_via("via#r0#session:s-1") && !erased.has_via("via#r0#session:s-2"));
        assert!(!erased.has("via#r0#session:s-1", None));
    }
}
