//! Stores profiles and consent of learners.

use kstone_keyspace::keys::mastery::{
    ClassId, ClassMember, Learner, LearnerEntry, School, SchoolId, SchoolMastery, SchoolRoster,
    Shard, StudentId,
};
use kstone_ports::items::TransactAction;
use serde_json::json;

use super::change::KnownLearner;
use super::keys::get_partition_key;
use super::{Error, MasteryEngine, Result, student};
use crate::domain::{Consent, LearnerProfile};
use kstone_base::store::{self, CommitError, Precondition, put, put_version};

impl MasteryEngine {
    /// A learner's profile.
    ///
    /// # Errors
    /// [`Error::NotFound`] if there is neither a profile nor an event.
    pub async fn profile(&self, student_id: &str) -> Result<LearnerProfile> {
        let known = self.read_known(&student(student_id)?).await?;
        let missing = || Error::not_found(format!("learner {student_id}"));
        known.profile.clone().ok_or_else(missing)
    }

    /// Creates or changes a profile. The date since which the learner is known, and the consent,
    /// stay as they were; see [`set_consent`](Self::set_consent).
    pub async fn put_profile(&self, profile: &LearnerProfile) -> Result<LearnerProfile> {
        profile.check()?;
        let student = student(&profile.student_id)?;
        self.change_profile(&student, |before| {
            let mut profile = profile.clone();
            if let Some(before) = before {
                profile.created_at = before.created_at;
                profile.consent = before.consent.clone();
            }
            Ok(profile)
        })
        .await
    }

    /// Sets a learner's consent.
    pub async fn set_consent(
        &self,
        student_id: &str,
        analytics: bool,
        prediction: bool,
    ) -> Result<LearnerProfile> {
        let student = student(student_id)?;
        let now = self.now();
        self.change_profile(&student, |before| {
            let mut profile = match before {
                Some(before) => before.clone(),
                None => LearnerProfile::new(student.as_str(), now),
            };
            profile.consent = Consent { analytics, prediction, updated_at: Some(now) };
            Ok(profile)
        })
        .await
    }

    /// Changes a profile, with everything that repeats what it says.
    pub(super) async fn change_profile(
        &self,
        student: &StudentId,
        change: impl Fn(Option<&LearnerProfile>) -> Result<LearnerProfile>,
    ) -> Result<LearnerProfile> {
        let _only_one = self.inner.learners.lock(student).await;
        for _ in 0..20 {
            let known = self.read_known(student).await?;
            let profile = change(known.profile.as_ref())?;
            let actions = profile_actions(student, &known, &profile)?;
            let done = self.store().commit(actions).await;
            // What is at hand has the old one.
            self.inner.learners.forget(student);
            match done {
                Ok(()) => return Ok(profile),
                Err(CommitError::PreconditionsFailed(_) | CommitError::Busy) => {}
                Err(CommitError::Error(error)) => return Err(error),
            }
        }
        Err(Error::Conflict { what: format!("the profile of learner {student}"), current: None })
    }
}

fn profile_actions(
    student: &StudentId,
    known: &KnownLearner,
    profile: &LearnerProfile,
) -> Result<Vec<TransactAction>> {
    let key = Learner { student_id: student.clone() };
    let version = known.profile_version;
    let mut actions =
        vec![put_version(&key, profile, version + 1, Precondition::Version(version))?];
    let before = known.profile.as_ref();
    add_to_lists(&mut actions, student, before, profile)?;
    let school = profile.school_id.as_deref();
    if let Some(school) = school.filter(|_| known.state.version() > 0)
        && before.and_then(|it| it.school_id.as_deref()) != Some(school)
    {
        let school_id = SchoolId::new(school)?;
        let key = SchoolMastery { school_id, student_id: student.clone() };
        let mut mastery = known.mastery();
        mastery.school_id = Some(school.to_owned());
        actions.push(put_version(&key, &mastery, mastery.version, Precondition::Any)?);
    }
    Ok(actions)
}

/// Adds a learner to the lists of their profile, and removes them from those of the previous
/// profile: of all learners, of a school's, of classes'.
pub(super) fn add_to_lists(
    actions: &mut Vec<TransactAction>,
    student: &StudentId,
    before: Option<&LearnerProfile>,
    profile: &LearnerProfile,
) -> Result<()> {
    if before.is_none() {
        actions.push(entry_of(student)?);
    }
    let school_before = before.and_then(|it| it.school_id.as_deref());
    let school = profile.school_id.as_deref();
    if school != school_before {
        move_school(actions, student, school_before, school)?;
    }
    let member = |school: &str, class: &str| -> Result<ClassMember> {
        Ok(ClassMember {
            school_id: SchoolId::new(school)?,
            class_id: ClassId::new(class)?,
            student_id: student.clone(),
        })
    };
    let classes_before = before.map(|it| it.class_ids.as_slice()).unwrap_or_default();
    for class in classes_before {
        if let Some(from) = school_before
            && (school != school_before || !profile.class_ids.contains(class))
        {
            actions.push(store::delete(&member(from, class)?));
        }
    }
    for class in &profile.class_ids {
        if let Some(to) = school
            && (school != school_before || !classes_before.contains(class))
        {
            actions.push(put(&member(to, class)?, &json!({}))?);
        }
    }
    Ok(())
}

/// The entry by which all learners are found.
fn entry_of(student: &StudentId) -> Result<TransactAction> {
    let shard = get_partition_key(student.as_str());
    let shard = shard.strip_prefix('p').and_then(|it| it.split(':').next()?.parse().ok());
    let shard = Shard::new(shard.unwrap_or_default())?;
    put(&LearnerEntry { shard, student_id: student.clone() }, &json!({}))
}

/// Takes a learner out of one school's lists and into another's.
fn move_school(
    actions: &mut Vec<TransactAction>,
    student: &StudentId,
    from: Option<&str>,
    to: Option<&str>,
) -> Result<()> {
    if let Some(school) = from {
        let school_id = SchoolId::new(school)?;
        let student_id = student.clone();
        actions.push(store::delete(&SchoolRoster { school_id: school_id.clone(), student_id }));
        let student_id = student.clone();
        actions.push(store::delete(&SchoolMastery { school_id, student_id }));
    }
    if let Some(school) = to {
        let school_id = SchoolId::new(school)?;
        let student_id = student.clone();
        let roster = SchoolRoster { school_id: school_id.clone(), student_id };
        actions.push(put(&roster, &json!({}))?);
        actions.push(put(&School { school_id }, &json!({}))?);
    }
    Ok(())
}
