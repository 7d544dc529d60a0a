//! Jobs: how they are described, stored and handed to their handler.

use kstone_keyspace::keys::platform::{Job as JobKey, JobId, Part, Queue};
use kstone_ports::value::Item;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use sha2::{Digest, Sha256};

use super::request::{number, number_option, text, text_option};
use super::table::{PK, SK};
use crate::error::{Error, Result};
use crate::time::Moment;

/// A queue is kept in so many partitions, so that many can ask at once.
pub(crate) const PARTS: u64 = 4;
/// Jobs whose key is no id get one made from it.
const ID_BYTES_MAX: usize = 128;

/// A job to enqueue.
#[derive(Debug, Clone, PartialEq)]
pub struct NewJob {
    /// Which queue: its jobs share workers, and are counted together.
    pub queue: String,
    /// Which handler does it.
    pub kind: String,
    /// What the handler gets to know.
    pub payload: Json,
    /// Not before; at once, if that is over.
    pub run_at: Moment,
    /// Jobs of one kind and key are one: to ask again while it waits changes only its payload, to
    /// ask again while it runs has it run once more.
    pub key: Option<String>,
    /// Whose data the payload holds, so that it is erased with them.
    pub student_id: Option<String>,
}

impl NewJob {
    /// A job to be done at once.
    pub fn new(queue: impl Into<String>, kind: impl Into<String>, payload: Json) -> NewJob {
        NewJob {
            queue: queue.into(),
            kind: kind.into(),
            payload,
            run_at: Moment::default(),
            key: None,
            student_id: None,
        }
    }

    /// The same, but not before.
    #[must_use]
    pub fn not_before(mut self, moment: Moment) -> NewJob {
        self.run_at = moment;
        self
    }

    /// Deduplicates: all jobs of this kind and key are one.
    #[must_use]
    pub fn once_per(mut self, key: impl Into<String>) -> NewJob {
        self.key = Some(key.into());
        self
    }

    /// Marks the payload as data of a learner, to be erased with them.
    #[must_use]
    pub fn about(mut self, student_id: impl Into<String>) -> NewJob {
        self.student_id = Some(student_id.into());
        self
    }

    /// The id that is derived from the deduplication key.
    pub(crate) fn id_by_key(&self) -> Option<String> {
        let key = self.key.as_ref()?;
        let readable = format!("{}.{key}", self.kind);
        let fits = readable.len() <= ID_BYTES_MAX && JobId::new(readable.as_str()).is_ok();
        Some(match fits {
            true => readable,
            false => format!("{}.{}", self.kind, short_hash(key.as_bytes())),
        })
    }
}

/// A job as its handler receives it.
#[derive(Debug, Clone, PartialEq)]
pub struct Job {
    /// Its id. The same in every attempt: effects that are marked with it happen once.
    pub id: String,
    /// Its queue.
    pub queue: String,
    /// Its kind.
    pub kind: String,
    /// What it is about.
    pub payload: Json,
    /// Which attempt this is, from 1.
    pub attempt: u32,
    /// How often it was asked for by its key; differs between two runs of one id.
    pub asks: u64,
    /// When it was first asked for.
    pub created_at: Moment,
    /// Whose data the payload holds.
    pub student_id: Option<String>,
    /// Why the last attempt failed.
    pub problem: Option<String>,
}

/// The error of a handler.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JobError {
    /// It may go better later.
    #[error("{0}")]
    Retry(String),
    /// It will never work: no further attempt.
    #[error("{0}")]
    Fatal(String),
}

impl JobError {
    /// Something that may go better later.
    pub fn retry(problem: impl ToString) -> JobError {
        JobError::Retry(problem.to_string())
    }

    /// Something that will never work.
    pub fn fatal(problem: impl ToString) -> JobError {
        JobError::Fatal(problem.to_string())
    }
}

/// The state of a job: waiting or running, and until when. Its text sorts by state, then by time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Due {
    /// Not before this moment.
    Waiting(Moment),
    /// Its worker has until this moment, unless it says that it is still there.
    Running(Moment),
}

impl Due {
    pub(crate) fn write(self) -> String {
        let (state, moment) = match self {
            Due::Waiting(moment) => ("waiting", moment),
            Due::Running(moment) => ("running", moment),
        };
        format!("{state}:{:013}", moment.epoch_ms())
    }

    pub(crate) fn read(text: &str) -> Option<Due> {
        let (state, ms) = text.split_once(':')?;
        let moment = Moment::from_epoch_ms(ms.parse().ok()?);
        match state {
            "waiting" => Some(Due::Waiting(moment)),
            "running" => Some(Due::Running(moment)),
            _ => None,
        }
    }
}

/// A job as it is stored.
#[derive(Debug, Clone)]
pub(crate) struct Record {
    pub(crate) job: Job,
    /// When it is to run next, if it was asked for again.
    pub(crate) again_at: Moment,
}

impl Record {
    pub(crate) fn read(item: &Item) -> Result<Record> {
        let unreadable = |problem: String| Error::Unreadable {
            key: format!("{}:{}", text(item, PK), text(item, SK)),
            problem,
        };
        let payload = serde_json::from_str(text(item, "payload"))
            .map_err(|error| unreadable(error.to_string()))?;
        let job = Job {
            id: text(item, SK).rsplit(':').next().unwrap_or_default().to_owned(),
            queue: text(item, "queue").to_owned(),
            kind: text(item, "kind").to_owned(),
            payload,
            attempt: u32::try_from(number(item, "attempt")).unwrap_or(u32::MAX),
            asks: number(item, "asks"),
            created_at: Moment::from_epoch_ms(number(item, "created_at")),
            student_id: text_option(item, "student_id"),
            problem: text_option(item, "problem"),
        };
        let again_at = Moment::from_epoch_ms(number_option(item, "again_at").unwrap_or_default());
        Ok(Record { job, again_at })
    }
}

/// The key of a job.
pub(crate) fn job_key(queue: &str, id: &str) -> Result<JobKey> {
    let part = Part::new(u64::from(fnv_hash(id)) % PARTS)?;
    Ok(JobKey { queue: Queue::new(queue)?, part, job_id: JobId::new(id)? })
}

/// The partition keys of a queue.
pub(crate) fn partitions(queue: &str) -> Result<Vec<String>> {
    let queue = Queue::new(queue)?;
    (0..PARTS).map(|part| Ok(JobKey::partition(&queue, &Part::new(part)?))).collect()
}

/// FNV-1a, to spread jobs evenly over the partitions of a queue.
fn fnv_hash(id: &str) -> u32 {
    id.bytes()
        .fold(2_166_136_261_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(16_777_619))
        >> 7
}

/// The first 32 hexadecimal digits of the SHA-256.
pub fn short_hash(bytes: &[u8]) -> String {
    hex::encode(&Sha256::digest(bytes)[..16])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_waits_and_what_runs_sort_by_time_each() {
        let due = |ms: u64| Moment::from_epoch_ms(ms);
        let mut texts = [
            Due::Waiting(due(9)).write(),
            Due::Waiting(due(10)).write(),
            Due::Running(due(9_999_999_999_999)).write(),
            Due::Running(due(5)).write(),
        ];
        texts.sort();
        let read: Vec<Due> = texts.iter().filter_map(|text| Due::read(text)).collect();
        assert_eq!(
            read,
            [
                Due::Running(due(5)),
                Due::Running(due(9_999_999_999_999)),
                Due::Waiting(due(9)),
                Due::Waiting(due(10))
            ]
        );
    }

    #[test]
    fn a_key_gives_a_readable_id_where_it_can() {
        let job = |key: &str| NewJob::new("q", "aggregate", Json::Null).once_per(key);
        assert_eq!(job("school_1").id_by_key().unwrap(), "aggregate.school_1");
        let hashed = job("school:1").id_by_key().unwrap();
        assert!(hashed.starts_with("aggregate.") && JobId::new(hashed).is_ok());
        assert_ne!(job("school:1").id_by_key(), job("school:2").id_by_key());
        assert_eq!(NewJob::new("q", "aggregate", Json::Null).id_by_key(), None);
    }

    #[test]
    fn ids_spread_over_all_parts_of_a_queue() {
        let mut parts = [0; PARTS as usize];
        for at in 0..400_u64 {
            let key =
                job_key("q", &format!("{:013}-{at:016x}", 1_768_386_600_000_u64 + at)).unwrap();
            parts[key.part.get() as usize] += 1;
        }
        assert!(parts.iter().all(|count| *count > 50), "{parts:?}");
    }
}
