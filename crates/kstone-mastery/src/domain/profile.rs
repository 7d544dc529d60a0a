//! Learner profiles: name, school, classes, time zone and consent.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use kstone_base::field::{Invalid, check_id, check_length};
use kstone_base::time::{Moment, Zone};

/// A learner's profile. Only the id is required; it should reveal nothing about the person.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LearnerProfile {
    /// The learner's id.
    #[cfg_attr(feature = "openapi", schema(pattern = "^[A-Za-z0-9_.@-]{1,128}$"))]
    pub student_id: String,
    /// What teachers see.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 200))]
    pub display_name: Option<String>,
    /// The learner's time zone by its IANA name: it says when a day begins.
    #[serde(default = "utc")]
    #[cfg_attr(feature = "openapi", schema(example = "Europe/Berlin"))]
    pub time_zone: String,
    /// The learner's school.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(pattern = "^[A-Za-z0-9_.@-]{1,128}$"))]
    pub school_id: Option<String>,
    /// The classes in it.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(max_items = 40))]
    pub class_ids: Vec<String>,
    /// What may be done with the learner's data.
    #[serde(default)]
    pub consent: Consent,
    /// Since when the learner is known.
    pub created_at: Moment,
}

/// What a learner's data may be used for. By default all of it: the school that sends events is
/// responsible for consent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Consent {
    /// Events may be taken and scores computed.
    #[serde(default = "yes")]
    pub analytics: bool,
    /// Scores may be predicted.
    #[serde(default = "yes")]
    pub prediction: bool,
    /// When it was last changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<Moment>,
}

/// How many classes a learner can be in: when all of them become others, the lists of both are
/// written in one transaction of at most 100 actions, with what else changes.
pub const CLASSES_MAX: usize = 40;

impl LearnerProfile {
    /// A learner of whom only the id is known.
    pub fn new(student_id: impl Into<String>, created_at: Moment) -> LearnerProfile {
        LearnerProfile {
            student_id: student_id.into(),
            display_name: None,
            time_zone: utc(),
            school_id: None,
            class_ids: Vec::new(),
            consent: Consent::default(),
            created_at,
        }
    }

    /// Refuses what is not as it must be, by the name of the field.
    pub fn check(&self) -> Result<(), Invalid> {
        check_id("student_id", &self.student_id)?;
        if let Some(name) = &self.display_name {
            check_length("display_name", name, 1..=200)?;
        }
        self.zone()?;
        if let Some(school) = &self.school_id {
            check_id("school_id", school)?;
        }
        if self.class_ids.len() > CLASSES_MAX {
            let found = format!("{} classes", self.class_ids.len());
            return Err(Invalid::value("class_ids", format!("at most {CLASSES_MAX}"), found));
        }
        let mut seen = BTreeSet::new();
        for (at, class) in self.class_ids.iter().enumerate() {
            let field = format!("class_ids[{at}]");
            check_id(&field, class)?;
            if !seen.insert(class) {
                return Err(Invalid::value(&field, "there once", "there twice"));
            }
        }
        Ok(())
    }

    /// The learner's time zone.
    pub fn zone(&self) -> Result<Zone, Invalid> {
        let expected = "the name of a time zone such as Europe/Berlin";
        Zone::named(&self.time_zone)
            .map_err(|unknown| Invalid::value("time_zone", expected, format!("`{}`", unknown.name)))
    }
}

impl Default for Consent {
    fn default() -> Consent {
        Consent { analytics: true, prediction: true, updated_at: None }
    }
}

fn utc() -> String {
    Zone::UTC.name().to_owned()
}

fn yes() -> bool {
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_needs_little_and_says_which_field_is_wrong() {
        let json = r#"{"student_id":"s1","created_at":"2026-01-14T10:30:00Z"}"#;
        let profile: LearnerProfile = serde_json::from_str(json).unwrap();
        assert_eq!(profile, LearnerProfile::new("s1", profile.created_at));
        assert!(profile.consent.analytics && profile.consent.prediction);
        assert_eq!(profile.check(), Ok(()));

        let wrong = |change: fn(&mut LearnerProfile)| {
            let mut profile = profile.clone();
            change(&mut profile);
            profile.check().unwrap_err().field
        };
        assert_eq!(wrong(|profile| profile.student_id = "a:b".into()), "student_id");
        assert_eq!(wrong(|profile| profile.time_zone = "Europe/Atlantis".into()), "time_zone");
        assert_eq!(wrong(|profile| profile.school_id = Some(String::new())), "school_id");
        assert_eq!(wrong(|profile| profile.display_name = Some(String::new())), "display_name");
        assert_eq!(
            wrong(|profile| profile.class_ids = vec!["a".into(), "*".into()]),
            "class_ids[1]"
        );
        assert_eq!(
            wrong(|profile| profile.class_ids = vec!["a".into(), "b".into(), "a".into()]),
            "class_ids[2]"
        );
        let many = |profile: &mut LearnerProfile| {
            profile.class_ids = (0..=CLASSES_MAX).map(|at| at.to_string()).collect();
        };
        assert_eq!(wrong(many), "class_ids");
    }
}
