//! Data subjects: one canonical name for a person, however a key writes it.
//!
//! `student_12345`, `university_abc_12345` and the bare `12345` inside `school:university_abc:…` name
//! one learner. What is indexed and erased is the [`Subject`]: the id without prefix, and the school
//! where it is known.

use std::fmt;

use crate::keyspace::Match;
use crate::pattern::SubjectSource;
use crate::rules::Write;
use crate::value::{FieldValue, Json};

/// A person by canonical id and tenant.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Subject {
    /// The id without prefix or school.
    pub id: String,
    /// The tenant, where the key or the id names one.
    pub tenant: Option<String>,
}

/// Whose data a key holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subjects {
    /// These persons'; nobody's when there are none.
    These(Vec<Subject>),
    /// The owner of this other key.
    SameAs(String),
}

const PREFIX: &str = "student_";

impl Subject {
    /// The person whom an id means, inside a key of this tenant if it is of one.
    ///
    /// An id that begins with `student_` is the rest of it. In any other, what comes before the last
    /// `_` is the school; schools may have `_` in their names, learners' numbers have none. Where
    /// the key itself names the school, an id is split only when it repeats that school.
    pub fn canonical(id: &str, tenant: Option<&str>) -> Subject {
        let (id, tenant) = Subject::canonical_parts(id, tenant);
        Subject { id: id.to_owned(), tenant: tenant.map(str::to_owned) }
    }

    /// The same as parts of what was given.
    pub(crate) fn canonical_parts<'i>(
        id: &'i str,
        tenant: Option<&'i str>,
    ) -> (&'i str, Option<&'i str>) {
        if let Some(rest) = id.strip_prefix(PREFIX).filter(|rest| !rest.is_empty()) {
            return (rest, tenant);
        }
        if let Some(tenant) = tenant {
            let rest = id.strip_prefix(tenant).and_then(|rest| rest.strip_prefix('_'));
            let rest = rest.map(|rest| rest.strip_prefix(PREFIX).unwrap_or(rest));
            return (rest.filter(|rest| !rest.is_empty()).unwrap_or(id), Some(tenant));
        }
        match id.rsplit_once('_') {
            Some((school, rest)) if !school.is_empty() && !rest.is_empty() => {
                let bare = school.strip_suffix("_student").filter(|bare| !bare.is_empty());
                (rest, Some(bare.unwrap_or(school)))
            }
            _ => (id, None),
        }
    }

    /// Whether what is asked for this person concerns the other one: the same id, in the same
    /// tenant when one was named, in all of them when none was.
    pub fn covers(&self, other: &Subject) -> bool {
        self.id == other.id && (self.tenant.is_none() || self.tenant == other.tenant)
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.tenant {
            Some(tenant) => write!(f, "{} of {tenant}", self.id),
            None => f.write_str(&self.id),
        }
    }
}

impl Match<'_, '_> {
    /// Whose data the key holds, as far as the key itself says; `None` when only the value does.
    pub fn subjects_by_key(&self) -> Option<Subjects> {
        match &self.pattern.subject {
            SubjectSource::Nobody => Some(Subjects::These(Vec::new())),
            SubjectSource::Placeholder(name) => {
                let id = self.value(name)?;
                let subject = Subject::canonical(&id, self.tenant().as_deref());
                Some(Subjects::These(vec![subject]))
            }
            SubjectSource::Through(name) => Some(Subjects::SameAs(self.key_as(name)?)),
            SubjectSource::Field(_) | SubjectSource::Members => None,
        }
    }

    /// Whose data the key holds once it holds what is written.
    pub fn subjects(&self, write: &Write<'_>) -> Subjects {
        if let Some(subjects) = self.subjects_by_key() {
            return subjects;
        }
        let mut found = Vec::new();
        let mut add = |value: &FieldValue<'_>| {
            let single = std::slice::from_ref(value);
            let values = match value {
                FieldValue::List(members) => members,
                _ => single,
            };
            for id in values.iter().filter_map(FieldValue::as_id).filter(|id| !id.is_empty()) {
                found.push(Subject::canonical(&id, self.tenant().as_deref()));
            }
        };
        match &self.pattern.subject {
            SubjectSource::Field(field) => {
                write.fields.iter().filter(|(name, _)| name == field).for_each(|(_, it)| add(it));
                if let Some(Ok(Json::Object(fields))) = write.value.map(Json::parse) {
                    fields.iter().filter(|(name, _)| name == field).for_each(|(_, it)| add(it));
                }
            }
            SubjectSource::Members => {
                write.members.iter().for_each(|member| add(&FieldValue::Raw(member)));
            }
            _ => {}
        }
        found.sort();
        found.dedup();
        Subjects::These(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(id: &str, tenant: Option<&str>, expected: (&str, Option<&str>)) {
        let subject = Subject::canonical(id, tenant);
        assert_eq!((subject.id.as_str(), subject.tenant.as_deref()), expected, "{id} {tenant:?}");
    }

    #[test]
    fn the_three_ways_to_name_a_learner_are_one_subject() {
        check("student_12345", None, ("12345", None));
        check("university_abc_12345", None, ("12345", Some("university_abc")));
        check("12345", Some("university_abc"), ("12345", Some("university_abc")));
        check("student_12345", Some("university_abc"), ("12345", Some("university_abc")));
        check("university_abc_12345", Some("university_abc"), ("12345", Some("university_abc")));
        check("university_abc_student_12345", None, ("12345", Some("university_abc")));
        check("12345", None, ("12345", None));
    }

    #[test]
    fn ids_of_other_forms_stay_whole() {
        check(
            "550e8400-e29b-41d4-a716-446655440000",
            None,
            ("550e8400-e29b-41d4-a716-446655440000", None),
        );
        check("student_550e8400-e29b", None, ("550e8400-e29b", None));
        check("student_john_doe", None, ("john_doe", None));
        check("xyz_1", Some("abc"), ("xyz_1", Some("abc")));
        check("_1", None, ("_1", None));
        check("a_", None, ("a_", None));
        check("student_", None, ("student_", None));
        check("_student_5", None, ("5", Some("_student")));
    }

    #[test]
    fn who_names_no_school_means_the_learner_in_all_of_them() {
        let everywhere = Subject::canonical("student_12345", None);
        let here = Subject::canonical("12345", Some("abc"));
        let there = Subject::canonical("xyz_12345", None);
        assert!(everywhere.covers(&here) && everywhere.covers(&there));
        assert!(here.covers(&here) && !here.covers(&there) && !here.covers(&everywhere));
        assert!(!everywhere.covers(&Subject::canonical("12346", None)));
    }
}
