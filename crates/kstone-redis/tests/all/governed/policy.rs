//! A policy for tests. What a key's name begins with says what its rules are; whatever it is asked
//! and told it remembers.

use std::collections::BTreeMap;
use std::sync::Mutex;

use kstone::policy::{
    Admitted, Counted, Effect, Expiry, IndexEntry, ItemRemoval, ItemWrite, KeyKind, KeyRemoval,
    KeySize, KeyWrite, PatternId, Refused, RequestedTtl, WritePolicy,
};

pub const HOUR_MS: u64 = 3_600_000;
pub const MINUTE_MS: u64 = 60_000;

/// A write as it was asked about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    pub db: u8,
    pub key: String,
    pub kind: KeyKind,
    pub effect: Effect,
    pub asked: RequestedTtl,
    pub pattern: Option<PatternId>,
    pub value: Option<String>,
    pub value_len: Option<u64>,
    pub fields: Vec<(String, String)>,
    pub members: Vec<String>,
    pub removed: Vec<String>,
    pub members_after: Option<u64>,
    pub before: Option<KeySize>,
}

/// What there is, as the policy has counted it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Totals {
    pub keys: i64,
    pub bytes: i64,
    pub members: i64,
}

#[derive(Debug, Default)]
struct Log {
    asked: Vec<Asked>,
    released: Vec<(u8, String)>,
    counted: Vec<Counted>,
    totals: BTreeMap<u8, Totals>,
    closed: Vec<String>,
}

#[derive(Debug, Default)]
pub struct Rules(Mutex<Log>);

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn place(db: u8, key: &str) -> String {
    format!("r{db}|{key}")
}

impl Rules {
    /// What was asked since this was last asked for.
    pub fn asked(&self) -> Vec<Asked> {
        std::mem::take(&mut self.0.lock().unwrap().asked)
    }

    /// The one thing that was asked since then.
    #[track_caller]
    pub fn asked_once(&self) -> Asked {
        let mut asked = self.asked();
        assert_eq!(asked.len(), 1, "{asked:?}");
        asked.remove(0)
    }

    pub fn released(&self) -> Vec<(u8, String)> {
        std::mem::take(&mut self.0.lock().unwrap().released)
    }

    pub fn counted(&self) -> Vec<Counted> {
        std::mem::take(&mut self.0.lock().unwrap().counted)
    }

    /// What was asked and told so far does not matter.
    pub fn forget(&self) {
        drop((self.asked(), self.released(), self.counted()));
    }

    /// From now on nothing is written to this key.
    pub fn close(&self, key: &str) {
        self.0.lock().unwrap().closed.push(key.to_owned());
    }

    /// Keys, bytes and members of each logical database, by what was told.
    pub fn totals(&self) -> Vec<(u8, Totals)> {
        let log = self.0.lock().unwrap();
        let totals = log.totals.iter().map(|(db, totals)| (*db, *totals));
        totals.filter(|(_, totals)| *totals != Totals::default()).collect()
    }
}

/// The person that a key's name names: `of:{person}:…`.
fn person_in(key: &str) -> Option<&str> {
    key.strip_prefix("of:")?.split(':').next()
}

/// Whether a write leaves a number.
fn is_number(write: &KeyWrite<'_>) -> bool {
    write.kind == KeyKind::String
        && write.value.is_some_and(|value| value.iter().all(u8::is_ascii_digit))
}

impl WritePolicy for Rules {
    fn admit_item(&self, _: &ItemWrite<'_>) -> Result<Admitted, Refused> {
        Ok(Admitted::AS_IT_IS)
    }

    fn release_item(&self, _: &ItemRemoval<'_>) -> Admitted {
        Admitted::AS_IT_IS
    }

    fn admit_key(&self, write: &KeyWrite<'_>) -> Result<Admitted, Refused> {
        let key = text(write.key);
        let at = |person: &str| IndexEntry {
            pk: format!("subject#{person}"),
            sk: place(write.db, &key),
        };
        self.0.lock().unwrap().asked.push(Asked {
            db: write.db,
            key: key.clone(),
            kind: write.kind,
            effect: write.effect,
            asked: write.asked,
            pattern: write.pattern,
            value: write.value.map(text),
            value_len: write.value_len,
            fields: write.fields.iter().map(|(name, value)| (text(name), text(value))).collect(),
            members: write.members.iter().map(|member| text(member)).collect(),
            removed: write.removed.iter().map(|name| text(name)).collect(),
            members_after: write.members_after,
            before: write.before,
        });
        let refuse = |rule: &str| Err(Refused(format!("{key} breaks a rule: {rule}")));
        if self.0.lock().unwrap().closed.contains(&key) {
            return refuse("it is closed");
        }
        let mut admitted = Admitted { pattern: Some(PatternId(1)), ..Admitted::AS_IT_IS };
        match key.split(':').next().unwrap() {
            "no" => return refuse("nothing is written here"),
            "number" if !is_number(write) => return refuse("it is a number"),
            "free" => admitted.pattern = None,
            "hour" => {
                admitted.expiry = match (write.asked, write.effect) {
                    (RequestedTtl::Unsaid, Effect::Makes) => Expiry::InMs(HOUR_MS),
                    (RequestedTtl::Never, _) => return refuse("it ends after an hour"),
                    _ => Expiry::Keep,
                }
            }
            "sliding" => admitted.expiry = Expiry::InMs(MINUTE_MS),
            "ever" => admitted.expiry = Expiry::Never,
            "three" => {
                admitted.trim_to = Some(3);
                admitted.index = write.members.iter().map(|member| at(&text(member))).collect();
                admitted.unindex = write.removed.iter().map(|member| at(&text(member))).collect();
            }
            "of" => admitted.index.extend(person_in(&key).map(at)),
            "who" => {
                let person = write.fields.iter().find(|(name, _)| *name == b"person");
                admitted.index.extend(person.map(|(_, person)| at(&text(person))));
                if write.fields.iter().any(|(name, _)| *name == b"secret") {
                    return refuse("no secrets");
                }
            }
            _ => {}
        }
        Ok(admitted)
    }

    fn release_key(&self, removal: &KeyRemoval<'_>) -> Admitted {
        let key = text(removal.key);
        self.0.lock().unwrap().released.push((removal.db, key.clone()));
        let unindex = person_in(&key).map(|person| IndexEntry {
            pk: format!("subject#{person}"),
            sk: place(removal.db, &key),
        });
        let pattern = (!key.starts_with("free:")).then_some(PatternId(1));
        Admitted { pattern, unindex: unindex.into_iter().collect(), ..Admitted::AS_IT_IS }
    }

    fn committed(&self, changes: &[Counted]) {
        assert!(!changes.is_empty());
        let mut log = self.0.lock().unwrap();
        for change in changes {
            let totals = log.totals.entry(change.db).or_default();
            for (key_size, sign) in [(change.before, -1), (change.after, 1)] {
                let Some(key_size) = key_size else { continue };
                totals.keys += sign;
                totals.bytes += sign * key_size.bytes as i64;
                totals.members += sign * key_size.members as i64;
            }
            log.counted.push(*change);
        }
    }

    fn emptied(&self, db: u8) {
        self.0.lock().unwrap().totals.remove(&db);
    }

    fn swapped(&self, one: u8, other: u8) {
        let totals = &mut self.0.lock().unwrap().totals;
        let (of_one, of_other) = (totals.remove(&one), totals.remove(&other));
        totals.extend(of_one.map(|totals| (other, totals)));
        totals.extend(of_other.map(|totals| (one, totals)));
    }

    fn dropped(&self, _: &str) {}
}
