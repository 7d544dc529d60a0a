//! Schools: classes and their members, aggregates by day, comparisons.

use std::collections::BTreeMap;

use kstone_keyspace::keys::mastery::{
    Class, ClassId, ClassMember, Learner, LearnerState as StateKey, School, SchoolAggregation,
    SchoolClass, SchoolId, SchoolRoster, StudentId,
};
use kstone_keyspace::typed::TypedKey;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::batch::together;
use super::reading::{DAYS_KEPT, check_days};
use super::{Error, MasteryEngine, Page, PageRequest, Result, student};
use crate::domain::{
    AggregateStats, CLASSES_MAX, CohortComparison, Components, Counted, LearnerProfile,
    LearnerState, Level, MasteryResult, Struggle, StudentComparison, Trend, aggregate,
    compare_cohorts, compare_students, levels, mean, mean_components, trend,
};
use kstone_base::field::{Invalid, check_length};
use kstone_base::store::{Range, Versioned, key_of, parse, put};
use kstone_base::time::{Date, Moment, Zone};

/// How many classes are compared at once.
const COHORTS_MAX: usize = 50;
/// Of so many learners the days are read at the same time.
const TOGETHER: usize = 16;
/// How many days a trend is computed from.
const TREND_DAYS: usize = 14;

/// A class in a list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ClassSummary {
    /// Its id within the school.
    pub class_id: String,
    /// What it is called.
    pub name: String,
}

/// A class with its results.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ClassView {
    /// The school.
    pub school_id: String,
    /// The class within it.
    pub class_id: String,
    /// What it is called.
    pub name: String,
    /// Its learners in the order of their ids: all of them, or a page.
    pub learners: Vec<ClassRow>,
    /// What to ask for the next page with; `None` if there are no more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// How many learners there are in all. What follows is about all of them.
    #[serde(default)]
    pub members: u32,
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
    pub async fn learners(&self, school_id: &str, page: &PageRequest) -> Result<Page<String>> {
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
        self.class_with(school_id, class_id, None).await
    }

    /// The same with some of its learners; the totals are over all of them.
    pub async fn class_page(
        &self,
        school_id: &str,
        class_id: &str,
        page: &PageRequest,
    ) -> Result<ClassView> {
        self.class_with(school_id, class_id, Some(page)).await
    }

    async fn class_with(
        &self,
        school_id: &str,
        class_id: &str,
        page: Option<&PageRequest>,
    ) -> Result<ClassView> {
        let (school, class) = (SchoolId::new(school_id)?, ClassId::new(class_id)?);
        let name = self.class_name(&school, &class).await?;
        let members = self.members(&school, &class).await?;
        let states = self.states(&members).await?;
        let shown = match page {
            Some(page) => some_of(&members, page)?,
            None => members.as_slice(),
        };
        let last = shown.last().filter(|last| members.last() != Some(last));
        let masteries: Vec<MasteryResult> = states.values().map(LearnerState::mastery).collect();
        let scores: Vec<f64> = masteries.iter().map(|it| it.mastery_score).collect();
        Ok(ClassView {
            school_id: school.to_string(),
            class_id: class.to_string(),
            name,
            next: last.map(StudentId::to_string),
            members: members.len() as u32,
            levels: levels(&scores),
            average_score: (!scores.is_empty()).then(|| mean(&scores)),
            averages: mean_components(masteries.iter().map(|it| &it.components)),
            learners: self.rows(shown, &states).await?,
        })
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

    /// Adds a learner to a class, and to its school.
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
                    None => LearnerProfile::new(student.as_str(), now),
                };
                if profile.school_id.as_deref() != Some(school.as_str()) {
                    // Classes are those of the school.
                    profile.class_ids.clear();
                    profile.school_id = Some(school.to_string());
                }
                if !profile.class_ids.iter().any(|it| it == class.as_str()) {
                    profile.class_ids.push(class.to_string());
                    if profile.class_ids.len() > CLASSES_MAX {
                        let expected = format!("one of at most {CLASSES_MAX} of a learner");
                        return Err(Invalid::value("class_id", expected, "one more").into());
                    }
                }
                Ok(profile)
            })
            .await?;
        Ok(())
    }

    /// Removes a learner from a class; they stay in the school.
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
                Ok(profile)
            })
            .await?;
        Ok(())
    }

    /// The aggregate of a school on a day, computed and stored. Today is computed from the current
    /// state of its learners; a day in the past from the last that was known of them then, unless
    /// it is stored.
    pub async fn aggregate(&self, school_id: &str, date: Date) -> Result<AggregateStats> {
        let school = SchoolId::new(school_id)?;
        let now = self.now();
        let key = SchoolAggregation { school_id: school.clone(), date };
        let is_past = date < now.date();
        if is_past && let Some(kept) = self.store().get::<_, AggregateStats>(&key).await? {
            return Ok(kept.value);
        }
        let mut counted = Vec::new();
        let mut page = PageRequest { limit: 1000, cursor: None };
        loop {
            let learners = self.learners(school_id, &page).await?;
            let ids = learners.items.iter().map(|id| student(id)).collect::<Result<Vec<_>>>()?;
            match is_past {
                true => self.count_then(&ids, date, &mut counted).await?,
                false => self.count_now(&ids, &mut counted).await?,
            }
            match learners.next {
                Some(next) => page.cursor = Some(next),
                None => break,
            }
        }
        let stats = aggregate(school_id, date, &counted, now);
        self.store().put(put(&key, &stats)?).await?;
        Ok(stats)
    }

    /// The aggregates of a school on each day from one to another, both included.
    pub async fn aggregates(
        &self,
        school_id: &str,
        from: Date,
        to: Date,
    ) -> Result<Vec<AggregateStats>> {
        check_days("from", from, to)?;
        let school_id = SchoolId::new(school_id)?;
        let key = |date| SchoolAggregation { school_id: school_id.clone(), date }.sort_key();
        let partition = SchoolAggregation::partition(&school_id);
        let range = Range::between::<SchoolAggregation>(partition, key(from), key(to));
        let (rows, _) = self.store().list(&range).await?;
        rows.iter().map(parse).collect()
    }

    /// Learners side by side; those of whom nothing is known are left out.
    pub async fn compare_students(&self, student_ids: &[String]) -> Result<StudentComparison> {
        if student_ids.is_empty() || student_ids.len() > 100 {
            let found = student_ids.len();
            return Err(Invalid::value("students", "a list of 1 to 100 learners", found).into());
        }
        let found = self.get_batch_mastery(student_ids).await?;
        Ok(compare_students(&found.into_values().collect::<Vec<_>>()))
    }

    /// Classes of a school side by side.
    pub async fn compare_cohorts(
        &self,
        school_id: &str,
        classes: &[String],
    ) -> Result<CohortComparison> {
        if classes.is_empty() || classes.len() > COHORTS_MAX {
            let expected = format!("a list of 1 to {COHORTS_MAX} classes");
            return Err(Invalid::value("classes", expected, classes.len()).into());
        }
        let school = SchoolId::new(school_id)?;
        let mut cohorts = Vec::with_capacity(classes.len());
        for class in classes {
            let class_id = ClassId::new(class.as_str())?;
            self.class_name(&school, &class_id).await?;
            let members = self.members(&school, &class_id).await?;
            let members: Vec<String> = members.iter().map(StudentId::to_string).collect();
            let found = self.get_batch_mastery(&members).await?;
            cohorts.push((class.clone(), found.into_values().collect()));
        }
        Ok(compare_cohorts(&cohorts))
    }

    /// What a teacher sees of learners, in the order of their ids.
    async fn rows(
        &self,
        students: &[StudentId],
        states: &BTreeMap<String, LearnerState>,
    ) -> Result<Vec<ClassRow>> {
        let profiles = self.profiles(students).await?;
        let now = self.now();
        let today = now.date();
        let scores = |student: &StudentId| {
            let (engine, student) = (self.clone(), student.clone());
            async move { (engine.scores(&student, today, TREND_DAYS).await, student) }
        };
        // Each is a question of its own to the store, which may be far away.
        let mut trends = BTreeMap::new();
        for (scores, student) in together(TOGETHER, students.iter().map(scores)).await {
            trends.insert(student, trend(&scores?));
        }
        let mut rows = Vec::with_capacity(students.len());
        for student in students {
            let state: Option<&LearnerState> = states.get(student.as_str());
            let profile: Option<&LearnerProfile> = profiles.get(student.as_str());
            rows.push(ClassRow {
                student_id: student.to_string(),
                display_name: profile.and_then(|it| it.display_name.clone()),
                mastery: state.map(LearnerState::mastery),
                struggles: state.map(|it| it.struggles(now)).unwrap_or_default(),
                last_activity: state.map(|it| it.activity(now, &Zone::UTC).last_activity),
                trend: trends.remove(student).flatten(),
            });
        }
        Ok(rows)
    }

    async fn states(&self, students: &[StudentId]) -> Result<BTreeMap<String, LearnerState>> {
        let keys: Vec<StateKey> =
            students.iter().map(|it| StateKey { student_id: it.clone() }).collect();
        let states: Vec<LearnerState> = self.store().values(&keys).await?;
        Ok(states.into_iter().map(|it| (it.student_id().to_owned(), it)).collect())
    }

    async fn profiles(&self, students: &[StudentId]) -> Result<BTreeMap<String, LearnerProfile>> {
        let keys: Vec<Learner> =
            students.iter().map(|it| Learner { student_id: it.clone() }).collect();
        let profiles: Vec<LearnerProfile> = self.store().values(&keys).await?;
        Ok(profiles.into_iter().map(|it| (it.student_id.clone(), it)).collect())
    }

    /// Counts learners as they are; not those who do not consent to it.
    async fn count_now(&self, students: &[StudentId], counted: &mut Vec<Counted>) -> Result<()> {
        let now = self.now();
        let profiles = self.profiles(students).await?;
        for (student, state) in self.states(students).await? {
            let profile = profiles.get(&student);
            if profile.is_some_and(|it| !it.consent.analytics) {
                continue;
            }
            // Days are the learner's: today is another one in Tokyo.
            let zone = profile.map_or(Ok(Zone::UTC), LearnerProfile::zone)?;
            let mastery = state.mastery();
            counted.push(Counted {
                mastery_score: mastery.mastery_score,
                components: mastery.components,
                struggling: !state.struggles(now).is_empty(),
                active: state.activity(now, &zone).activity_log.contains(&zone.date(now)),
            });
        }
        Ok(())
    }

    /// Counts learners as they were on a day: of struggles nothing is known any more.
    async fn count_then(
        &self,
        students: &[StudentId],
        date: Date,
        counted: &mut Vec<Counted>,
    ) -> Result<()> {
        let profiles = self.profiles(students).await?;
        for student in students {
            if profiles.get(student.as_str()).is_some_and(|it| !it.consent.analytics) {
                continue;
            }
            let from = date.plus_days(-DAYS_KEPT);
            if let Some((day, mastery)) = self.history_of(student, from, date).await?.pop() {
                counted.push(Counted {
                    mastery_score: mastery.mastery_score,
                    components: mastery.components,
                    struggling: false,
                    active: day == date,
                });
            }
        }
        Ok(())
    }

    async fn class_name(&self, school: &SchoolId, class: &ClassId) -> Result<String> {
        let key = Class { school_id: school.clone(), class_id: class.clone() };
        let found: Option<Versioned<ClassProfile>> = self.store().get(&key).await?;
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

/// The members on a page.
fn some_of<'m>(members: &'m [StudentId], page: &PageRequest) -> Result<&'m [StudentId]> {
    let after = match &page.cursor {
        Some(cursor) => {
            let last = StudentId::new(cursor.as_str()).map_err(|_| Invalid::cursor(cursor))?;
            members.partition_point(|member| member.as_str() <= last.as_str())
        }
        None => 0,
    };
    let rest = members.get(after..).unwrap_or_default();
    Ok(rest.get(..page.limit() as usize).unwrap_or(rest))
}
