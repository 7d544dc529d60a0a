//! What happens to keys that no pattern declares.

use std::fmt;
use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering};

use kstone::policy::{Admitted, Refused};
use kstone_core::sync::Mutex;

use crate::keyspace::{KeyStore, Keyspace};

/// How many keys are remembered as examples.
const EXAMPLES_MAX: usize = 20;
/// How much of a key is shown to who wrote it.
const SHOWN_BYTES_MAX: usize = 200;
/// How much of a key's first word is remembered.
const WORD_BYTES_MAX: usize = 32;

/// What to do with writes to keys that no pattern declares.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum UnknownKeys {
    /// They happen.
    #[default]
    Allow,
    /// They happen, and are counted and remembered: [`UnknownSeen`].
    Warn,
    /// They are refused.
    Refuse,
}

/// Writes to keys that no pattern declares, as far as they were counted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UnknownSeen {
    /// How many writes.
    pub writes: u64,
    /// What the first different ones look like, up to 20: their stores and first words. The rest of
    /// a key may name somebody, and stays out of logs and tables.
    pub examples: Vec<String>,
}

#[derive(Debug)]
pub(super) struct Unknown {
    rule: UnknownKeys,
    writes: AtomicU64,
    examples: Mutex<Vec<String>>,
}

impl Unknown {
    pub(super) fn new(rule: UnknownKeys) -> Unknown {
        Unknown { rule, writes: AtomicU64::new(0), examples: Mutex::default() }
    }

    pub(super) fn rule(&self) -> UnknownKeys {
        self.rule
    }

    pub(super) fn admit(
        &self,
        keyspace: &Keyspace,
        place: KeyStore<'_>,
        key: &[u8],
    ) -> Result<Admitted, Refused> {
        let (_, declared) = place.owner_and_key(key);
        if let Some(catalogue) = keyspace.reserved_by(declared)
            && keyspace.has_patterns_in(place)
        {
            let word = declared.split(|byte| *byte == b':').next().unwrap_or_default();
            return Err(Refused(format!(
                "keys that begin with `{}:` are kept for `{}`, and no pattern of it declares this \
                 one",
                String::from_utf8_lossy(word),
                catalogue.application
            )));
        }
        match self.rule {
            UnknownKeys::Allow => Ok(Admitted::AS_IT_IS),
            UnknownKeys::Warn => {
                self.note(place, key);
                Ok(Admitted::AS_IT_IS)
            }
            UnknownKeys::Refuse => Err(Refused(format!(
                "no pattern declares {}; see `kstone keyspace explain`",
                described(place, key)
            ))),
        }
    }

    fn note(&self, place: KeyStore<'_>, key: &[u8]) {
        // Once there are enough examples, a write costs no more than this.
        if self.writes.fetch_add(1, Ordering::Relaxed) > 1_000_000 {
            return;
        }
        let mut examples = self.examples.lock();
        if examples.len() < EXAMPLES_MAX {
            let example = outline(place, key);
            if !examples.contains(&example) {
                examples.push(example);
            }
        }
    }

    pub(super) fn seen(&self) -> UnknownSeen {
        let examples = self.examples.lock().clone();
        UnknownSeen { writes: self.writes.load(Ordering::Relaxed), examples }
    }
}

/// An outline of a key without ids: its first word.
fn outline(place: KeyStore<'_>, key: &[u8]) -> String {
    let is_word = |byte: &u8| byte.is_ascii_alphabetic() || *byte == b'_' || *byte == b'-';
    let length = key.iter().take(WORD_BYTES_MAX).take_while(|byte| is_word(byte)).count();
    let word = String::from_utf8_lossy(key.get(..length).unwrap_or_default());
    let rest = match key.get(length) {
        None => "",
        Some(b':') => ":…",
        Some(_) => "…",
    };
    match place {
        KeyStore::Redis => format!("`{word}{rest}` in Redis"),
        KeyStore::Table("") => format!("`{word}{rest}` in the default table"),
        KeyStore::Table(table) => format!("`{word}{rest}` in table `{table}`"),
    }
}

fn described(place: KeyStore<'_>, key: &[u8]) -> String {
    let shown = key.get(..SHOWN_BYTES_MAX).unwrap_or(key);
    let key = String::from_utf8_lossy(shown);
    match place {
        KeyStore::Redis => format!("the key `{key}` of Redis"),
        KeyStore::Table("") => format!("the key `{key}` of the default table"),
        KeyStore::Table(table) => format!("the key `{key}` of table `{table}`"),
    }
}

impl fmt::Display for UnknownKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            UnknownKeys::Allow => "allow",
            UnknownKeys::Warn => "warn",
            UnknownKeys::Refuse => "refuse",
        })
    }
}

impl FromStr for UnknownKeys {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "allow" => Ok(UnknownKeys::Allow),
            "warn" => Ok(UnknownKeys::Warn),
            "refuse" => Ok(UnknownKeys::Refuse),
            _ => Err("write allow, warn or refuse".to_owned()),
        }
    }
}
