//! Parses and formats mastery keys as text, including short forms.
//!
//! The engine itself writes typed keys ([`kstone_keyspace::keys::mastery`]); these are for callers who have
//! to say a key as text. The short forms are read where the catalogue declares them and written by
//! nobody.

use kstone_base::error::Result;
use kstone_keyspace::Date;
use kstone_keyspace::keys::mastery::{
    ActivityRecent, AdaptivePath, BatchId, BatchStatus, Component, ComponentScore, ComponentShort,
    CurrentMastery, CurrentShort, DailyMastery, DailyShort, Days, EventId, Prediction,
    ProcessedEvent, ProcessedShort, SchoolId, SchoolMastery, StudentId,
};
use kstone_keyspace::typed::TypedKey;
use md5::{Digest as _, Md5};

/// The four short patterns, by the names of what they are short for. `{sid}`, `{date}`, `{c}` and
/// `{eid}` stand for what a key has there.
pub const OPTIMIZED_PATTERNS: [(&str, &str); 4] = [
    ("current", "st:{sid}:cur"),
    ("daily", "st:{sid}:m:{date}"),
    ("component", "st:{sid}:m:{date}:{c}"),
    ("processed", "proc:{eid}"),
];

/// `student:{student_id}:profile:current_mastery`.
pub fn current_mastery(student_id: &str) -> Result<String> {
    Ok(CurrentMastery { student_id: student(student_id)? }.key())
}

/// `student:{student_id}:mastery:{date}`.
pub fn daily_mastery(student_id: &str, date: Date) -> Result<String> {
    Ok(DailyMastery { student_id: student(student_id)?, date }.key())
}

/// `student:{student_id}:mastery:{date}:{component}`.
pub fn component_score(student_id: &str, component: Component, date: Date) -> Result<String> {
    Ok(ComponentScore { student_id: student(student_id)?, date, component }.key())
}

/// `processed:{event_id}`.
pub fn processed_event(event_id: &str) -> Result<String> {
    Ok(ProcessedEvent { event_id: EventId::new(event_id)? }.key())
}

/// `student:{student_id}:activity:recent`.
pub fn activity_recent(student_id: &str) -> Result<String> {
    Ok(ActivityRecent { student_id: student(student_id)? }.key())
}

/// `student:{student_id}:prediction:{days}days`.
pub fn prediction(student_id: &str, days: u16) -> Result<String> {
    let days = Days::new(u64::from(days))?;
    Ok(Prediction { student_id: student(student_id)?, days }.key())
}

/// `student:{student_id}:path:adaptive`.
pub fn adaptive_path(student_id: &str) -> Result<String> {
    Ok(AdaptivePath { student_id: student(student_id)? }.key())
}

/// `batch:{batch_id}:status`.
pub fn batch_status(batch_id: &str) -> Result<String> {
    Ok(BatchStatus { batch_id: BatchId::new(batch_id)? }.key())
}

/// `school:{school_id}:student:{student_id}:profile:current_mastery`.
pub fn school_mastery(school_id: &str, student_id: &str) -> Result<String> {
    let school_id = SchoolId::new(school_id)?;
    Ok(SchoolMastery { school_id, student_id: student(student_id)? }.key())
}

/// `st:{sid}:cur`, short for [`current_mastery`].
pub fn current_short(student_id: &str) -> Result<String> {
    Ok(CurrentShort { student_id: student(student_id)? }.key())
}

/// `st:{sid}:m:{date}`, short for [`daily_mastery`].
pub fn daily_short(student_id: &str, date: Date) -> Result<String> {
    Ok(DailyShort { student_id: student(student_id)?, date }.key())
}

/// `st:{sid}:m:{date}:{c}`, short for [`component_score`].
pub fn component_short(student_id: &str, component: Component, date: Date) -> Result<String> {
    Ok(ComponentShort { student_id: student(student_id)?, date, component }.key())
}

/// `proc:{eid}`, short for [`processed_event`].
pub fn processed_short(event_id: &str) -> Result<String> {
    Ok(ProcessedShort { event_id: EventId::new(event_id)? }.key())
}

/// A learner's id behind one of 16 shards, by its MD5: `p1:student_12345`. Nothing is routed by it
/// (that is done by stripes); keys that an older system wrote stay readable.
pub fn get_partition_key(student_id: &str) -> String {
    // The remainder by 16 is the last four bits of the number that the digest is.
    let [.., last] = <[u8; 16]>::from(Md5::digest(student_id));
    format!("p{}:{student_id}", last % 16)
}

/// A pattern with `{sid}` filled in by [`get_partition_key`].
pub fn get_optimized_key(student_id: &str, pattern: &str) -> String {
    pattern.replace("{sid}", &get_partition_key(student_id))
}

fn student(student_id: &str) -> Result<StudentId> {
    Ok(StudentId::new(student_id)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partition_key_is_the_one_that_the_older_system_gave() {
        assert_eq!(get_partition_key("student_12345"), "p1:student_12345");
        let key = get_optimized_key("student_12345", "st:{sid}:cur");
        assert_eq!(key, "st:p1:student_12345:cur");
    }

    #[test]
    fn a_bad_id_is_refused_by_the_name_of_its_field() {
        let message = |it: Result<String>| it.unwrap_err().to_string();
        assert!(message(current_mastery("a:b")).starts_with("student_id must be"));
        assert!(message(processed_event("")).starts_with("event_id must be"));
        assert!(message(school_mastery("*", "1")).starts_with("school_id must be"));
        assert!(message(prediction("1", 0)).starts_with("days must be"));
    }
}
