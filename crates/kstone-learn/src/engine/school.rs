//! Schools: classes and their members, aggregates by day, comparisons.

use std::collections::BTreeMap;

use kstone_keyspace::keys::mastery::{
    Class, ClassId, ClassMember, School, SchoolAggregation, SchoolClass, SchoolId, SchoolRoster,
    StudentId,
};
use kstone_keyspace::typed::TypedKey;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::store::{Kept, Range, key_of, parse, put};
use super::{Error, MasteryEngine, Page, PageAsk, Result, student};
use crate::field::{Invalid, check_length};
use crate::mastery::{AggregateStats, Components, Level, MasteryResult, Struggle, Trend};
use crate::time::{Date, Moment};

/// A class, to list them by.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ClassSummary {
    /// Its id within the school.
    pub class_id: String,
    /// What it is called.
    pub name: String,
}

/// A class and how it does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ClassView {
    /// The school.
    pub school_id: String,
    /// The class within it.
    pub class_id: String,
    /// What it is called.
    pub name: String,
    /// Its learners.
    pub learners: Vec<ClassRow>,
    /// How many of them are on each level; every level is there.
    #[cfg_attr(feature = "openapi", schema(value_type = BTreeMap<String, u32>))]
    pub levels: BTreeMap<Level, u32>,
    /// The average of their scores; `None` if nobody has one.
    pub average_score: Option<f64>,
    /// The averages of their components.
    pub averages: Components,
}

/// A learner of a class.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ClassRow {
    /// Who it is.
    pub student_id: String,
    /// What teachers see.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub display_name: Option<String>,
    /// How far they are; `None` if nothing is known yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mastery: Option<MasteryResult>,
    /// What they struggle with now.
    pub struggles: Vec<Struggle>,
    /// When they were last active.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_activity: Option<Moment>,
    /// Where their score is going.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trend: Option<Trend>,
}

/// How a class compares.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Cohort {
    /// The class.
    pub class_id: String,
    /// What it is called.
    pub name: String,
    /// What its learners come to.
    pub stats: AggregateStats,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct ClassProfile {
    name: String,
}

impl MasteryEngine {
    /// The schools that have learners or classes.
    pub async fn schools(&self) -> Result<Vec<String>> {
        let (rows, _) =
            self.store().list(&Range::with_prefix::<School>(School::partition(), "")).await?;
        Ok(rows.iter().filter_map(key_of::<School>).map(|it| it.school_id.to_string()).collect())
    }

    /// The classes of a school.
    pub async fn classes(&self, school_id: &str) -> Result<Vec<ClassSummary>> {
        let school_id = SchoolId::new(school_id)?;
        let range = Range::with_prefix::<SchoolClass>(SchoolClass::partition(&school_id), "");
        let (rows, _) = self.store().list(&range).await?;
        let summary = |row| {
            let class_id = key_of::<SchoolClass>(row).map(|it| it.class_id.to_string());
            let ClassProfile { name } = parse(row)?;
            Ok(class_id.map(|class_id| ClassSummary { class_id, name }))
        };
        rows.iter().filter_map(|row| summary(row).transpose()).collect()
    }

    /// The learners of a school, a page at a time.
    pub async fn learners(&self, school_id: &str, page: &PageAsk) -> Result<Page<String>> {
        let school_id = SchoolId::new(school_id)?;
        let range = Range::with_prefix::<SchoolRoster>(SchoolRoster::partition(&school_id), "")
            .limit(page.limit())
            .after(page.cursor.clone());
        let (rows, more) = self.store().list(&range).await?;
        let next = rows.last().filter(|_| more).map(|row| row.sk.clone());
        let items = rows.iter().filter_map(key_of::<SchoolRoster>);
        Ok(Page { items: items.map(|it| it.student_id.to_string()).collect(), next })
    }

    /// A class, its learners and how they do.
    pub async fn class(&self, school_id: &str, class_id: &str) -> Result<ClassView> {
        let _ = (school_id, class_id);
        Err(Error::Unavailable("classes are not there yet".to_owned()))
    }

    /// Makes a class, or gives it another name.
    pub async fn put_class(
        &self,
        school_id: &str,
        class_id: &str,
        name: &str,
    ) -> Result<ClassSummary> {
        check_length("name", name, 1..=200)?;
        let (school_id, class_id) = (SchoolId::new(school_id)?, ClassId::new(class_id)?);
        let profile = ClassProfile { name: name.to_owned() };
        let class = Class { school_id: school_id.clone(), class_id: class_id.clone() };
        let listed = SchoolClass { school_id: school_id.clone(), class_id: class_id.clone() };
        let school = School { school_id };
        let writes =
            vec![put(&class, &profile)?, put(&listed, &profile)?, put(&school, &json!({}))?];
        let done = self.store().commit(writes).await;
        done.map_err(|stopped| stopped.into_error("the class"))?;
        Ok(ClassSummary { class_id: class_id.to_string(), name: profile.name })
    }

    /// Makes somebody a learner of a class, and of its school.
    pub async fn add_member(
        &self,
        school_id: &str,
        class_id: &str,
        student_id: &str,
    ) -> Result<()> {
        let student = student(student_id)?;
        let (school, class) = (SchoolId::new(school_id)?, ClassId::new(class_id)?);
        self.class_name(&school, &class).await?;
        let now = self.now();
        let _ = self
            .change_profile(&student, |before| {
                let mut profile = match before {
                    Some(before) => before.clone(),
                    None => crate::mastery::LearnerProfile::new(student.as_str(), now),
                };
                if profile.school_id.as_deref() != Some(school.as_str()) {
                    // Classes are those of the school.
                    profile.class_ids.clear();
                    profile.school_id = Some(school.to_string());
                }
                if !profile.class_ids.iter().any(|it| it == class.as_str()) {
                    profile.class_ids.push(class.to_string());
                }
                profile
            })
            .await?;
        Ok(())
    }

    /// Takes somebody out of a class; they stay in the school.
    pub async fn remove_member(
        &self,
        school_id: &str,
        class_id: &str,
        student_id: &str,
    ) -> Result<()> {
        let student = student(student_id)?;
        let (school, class) = (SchoolId::new(school_id)?, ClassId::new(class_id)?);
        let before = self.profile(student_id).await?;
        let is_member = before.school_id.as_deref() == Some(school.as_str())
            && before.class_ids.iter().any(|it| it == class.as_str());
        if !is_member {
            return Err(Error::not_found(format!("learner {student} in class {class}")));
        }
        let _ = self
            .change_profile(&student, |now| {
                let mut profile = now.unwrap_or(&before).clone();
                profile.class_ids.retain(|it| it != class.as_str());
                profile
            })
            .await?;
        Ok(())
    }

    /// What a school comes to on a day: computed from its learners as they are, and kept.
    pub async fn aggregate(&self, school_id: &str, date: Date) -> Result<AggregateStats> {
        let _ = (school_id, date);
        Err(Error::Unavailable("aggregates are not there yet".to_owned()))
    }

    /// What a school came to on each day from one to another, both included.
    pub async fn aggregates(
        &self,
        school_id: &str,
        from: Date,
        to: Date,
    ) -> Result<Vec<AggregateStats>> {
        super::reading::check_days("from", from, to)?;
        let school_id = SchoolId::new(school_id)?;
        let key = |date| SchoolAggregation { school_id: school_id.clone(), date }.sort_key();
        let partition = SchoolAggregation::partition(&school_id);
        let range = Range::between::<SchoolAggregation>(partition, key(from), key(to));
        let (rows, _) = self.store().list(&range).await?;
        rows.iter().map(parse).collect()
    }

    /// Learners side by side.
    pub async fn compare_students(&self, student_ids: &[String]) -> Result<Vec<ClassRow>> {
        if student_ids.is_empty() || student_ids.len() > 100 {
            let found = student_ids.len();
            return Err(Invalid::value("students", "a list of 1 to 100 learners", found).into());
        }
        let ids = student_ids.iter().map(|id| student(id)).collect::<Result<Vec<StudentId>>>()?;
        self.rows(&ids).await
    }

    /// Classes of a school side by side.
    pub async fn compare_cohorts(
        &self,
        school_id: &str,
        classes: &[String],
    ) -> Result<Vec<Cohort>> {
        let _ = (school_id, classes);
        Err(Error::Unavailable("comparisons are not there yet".to_owned()))
    }

    async fn rows(&self, _students: &[StudentId]) -> Result<Vec<ClassRow>> {
        Err(Error::Unavailable("comparisons are not there yet".to_owned()))
    }

    async fn class_name(&self, school: &SchoolId, class: &ClassId) -> Result<String> {
        let key = Class { school_id: school.clone(), class_id: class.clone() };
        let found: Option<Kept<ClassProfile>> = self.store().get(&key).await?;
        let missing = || Error::not_found(format!("class {class} in school {school}"));
        found.map(|kept| kept.value.name).ok_or_else(missing)
    }

    /// The learners of a class.
    async fn members(&self, school: &SchoolId, class: &ClassId) -> Result<Vec<StudentId>> {
        let range = Range::of::<ClassMember>(ClassMember::partition(school, class));
        let (rows, _) = self.store().list(&range).await?;
        Ok(rows.iter().filter_map(key_of::<ClassMember>).map(|it| it.student_id).collect())
    }
}
