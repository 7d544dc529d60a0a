//! `/learn/learners/{id}`: one learner, from now back and ahead.

use axum::Form;
use axum::extract::{Path, State};
use axum::response::Redirect;
use kstone_base::time::{Date, Moment};
use kstone_mastery::domain::{
    AcceptedEvent, ActivityData, EventDetail, LearnerProfile, MasteryResult, PredictionResult,
    Priority, Recommendation, SkillRating, Struggle, step_in_words,
};
use kstone_mastery::engine::{self, MasteryEngine, PageRequest};
use maud::{Markup, html};
use serde::Deserialize;

use super::class::trend;
use super::{components, level_class, tone};
use crate::pages::charts::{Forecast, bar, days, scores};
use crate::pages::error::{PageError, PageResult};
use crate::pages::figures::{ago, count, counted, percent};
use crate::pages::layout::Column::{Number, Text};
use crate::pages::layout::{Layout, Section, empty_state, page, table, tile};
use crate::pages::{Pages, links};

/// How many days of scores are drawn.
const DAYS: i64 = 60;
/// How many days ahead.
const AHEAD: u16 = 7;
/// How many days of activity are drawn.
const ACTIVITY_DAYS: i64 = 30;
/// How many events are listed.
const EVENTS: u32 = 15;

#[derive(Debug, Deserialize)]
pub(crate) struct FeedbackForm {
    recommendation: String,
    helpful: bool,
}

/// What stands where something would have to be computed that may not be.
const NO_CONSENT: &str = "The learner does not consent to analytics: nothing new is computed.";

/// Everything about a learner that is shown.
struct Learner {
    profile: Option<LearnerProfile>,
    mastery: MasteryResult,
    days: Vec<(Date, f64)>,
    prediction: Result<PredictionResult, String>,
    skills: Vec<SkillRating>,
    struggles: Vec<Struggle>,
    activity: Option<ActivityData>,
    /// `None` if it may not be computed.
    path: Option<Vec<String>>,
    advice: Option<Vec<Recommendation>>,
    events: Vec<AcceptedEvent>,
}

/// `/learn/learners/{id}`
pub(crate) async fn show(pages: State<Pages>, Path(id): Path<String>) -> PageResult {
    let engine = pages.engine()?;
    let now = engine.now();
    let profile = found(engine.profile(&id).await)?;
    let Some(mastery) = engine.get_current_mastery(&id).await? else {
        return nothing_known(&id, profile.as_ref());
    };
    let today = engine.today(&id).await?;
    let history = engine.get_mastery_history(&id, today.plus_days(1 - DAYS), today);
    let learner = Learner {
        days: history.await?.into_iter().map(|(day, it)| (day, it.mastery_score)).collect(),
        prediction: match engine.prediction(&id, AHEAD).await {
            Ok(prediction) => Ok(prediction),
            Err(engine::Error::Refused { why } | engine::Error::TooEarly { why }) => Err(why),
            Err(error) => return Err(error.into()),
        },
        skills: engine.skills(&id).await?,
        struggles: engine.struggles(&id).await?,
        activity: found(engine.activity(&id).await)?,
        path: allowed(engine.path(&id).await)?,
        advice: allowed(engine.recommendations(&id).await)?,
        events: engine.events(&id, &PageRequest { limit: EVENTS, cursor: None }).await?.items,
        profile,
        mastery,
    };
    let name = learner.profile.as_ref().and_then(|it| it.display_name.clone());
    let name = name.unwrap_or_else(|| id.clone());
    let trail = trail(learner.profile.as_ref());
    let content = html! {
        h1 { (name) }
        p.faint {
            "Learner " code { (id) }
            @if let Some(zone) = learner.profile.as_ref().map(|it| &it.time_zone) { ", time zone " (zone) }
            ". " a href=(links::person(&id, None)) { "All data about this person" }
        }
        (tiles(&learner, now))
        @if !learner.struggles.is_empty() { (struggles(&learner.struggles, now)) }
        section {
            h2 { "Mastery over time" }
            div.card { (over_time(&learner)) }
        }
        section {
            div.columns {
                div.card { h2 { "What the score is made of" } (components(&learner.mastery.components)) }
                div.card { h2 { "What to do next" } (next_steps(learner.path.as_deref())) }
            }
        }
        section { h2 { "Skills" } (skills(&learner.skills, now)) }
        section { h2 { "Recommendations" } (advice(&id, learner.advice.as_deref(), now)) }
        section { h2 { "Active days" } (active(learner.activity.as_ref(), today)) }
        section { h2 { "Last events" } (events(&learner.events, now)) }
    };
    Ok(page(&Layout::below(&name, Section::Learn, &trail), &content))
}

/// The classes that lead here.
fn trail(profile: Option<&LearnerProfile>) -> Vec<(String, String)> {
    let Some(profile) = profile else { return Vec::new() };
    let Some(school) = &profile.school_id else { return Vec::new() };
    let mut trail = vec![(links::school(school), school.clone())];
    if let Some(class) = profile.class_ids.first() {
        trail.push((links::class(school, class), class.clone()));
    }
    trail
}

/// Nothing is computed for a learner who does not consent to it: what is known is still shown.
fn allowed<T>(result: engine::Result<Vec<T>>) -> PageResult<Option<Vec<T>>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(engine::Error::Refused { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn found<T>(result: engine::Result<T>) -> PageResult<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(engine::Error::NotFound { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn nothing_known(id: &str, profile: Option<&LearnerProfile>) -> PageResult {
    if profile.is_none() {
        return Err(PageError::NotFound(format!("Nothing is known of a learner {id}.")));
    }
    let content = html! {
        h1 { (id) }
        (empty_state("No event of this learner was sent yet.", &html! {
            p { code { "POST /api/v1/events" } " takes them; the first one makes the first score." }
        }))
    };
    Ok(page(&Layout::below(id, Section::Learn, &trail(profile)), &content))
}

fn tiles(learner: &Learner, now: Moment) -> Markup {
    let mastery = &learner.mastery;
    let streak = learner.activity.as_ref().map_or(0, |it| it.current_streak);
    html! {
        div.tiles {
            (tile("Mastery", &percent(mastery.mastery_score), &html! {
                span.more {
                    span class={ "pill " (level_class(mastery.level)) } { (mastery.level) }
                }
            }))
            div.tile {
                span.name { "In " (AHEAD) " days" }
                @match &learner.prediction {
                    Ok(it) => {
                        span.value { (percent(it.predicted_score)) }
                        span.more { (trend(Some(it.trend))) ", confidence " (percent(it.confidence)) }
                        @if it.intervention_needed { span.pill.bad { "needs somebody" } }
                    },
                    Err(why) => { span.value { "–" } span.more { (why) } },
                }
            }
            (tile("Days in a row", &streak.to_string(), &html! {
                span.more {
                    @if let Some(it) = &learner.activity { "longest " (it.max_streak) ", last "
                        (ago(it.last_activity.epoch_ms(), now.epoch_ms())) }
                    @else { "not active yet" }
                }
            }))
            (tile("Skills", &count(learner.skills.len() as u64), &html! {
                span.more {
                    (counted(learner.skills.iter().map(|it| u64::from(it.answers)).sum(), "answer", "answers"))
                }
            }))
        }
    }
}

fn struggles(struggles: &[Struggle], now: Moment) -> Markup {
    html! {
        div.note.warn {
            h2 { "Struggles" }
            ul {
                @for struggle in struggles {
                    li {
                        (struggle.detail) " "
                        span.faint { (ago(struggle.since.epoch_ms(), now.epoch_ms())) }
                    }
                }
            }
        }
    }
}

fn over_time(learner: &Learner) -> Markup {
    let forecast = learner.prediction.as_ref().ok().map(|it| Forecast {
        days: it.days,
        score: it.predicted_score,
        low: it.low,
        high: it.high,
    });
    html! {
        (scores(&learner.days, forecast))
        @if let Ok(it) = &learner.prediction {
            p.faint {
                "The dashed line is where the score goes if it goes on as in the last "
                (counted(u64::from(it.snapshots), "day", "days"))
                "; the band is where it should lie. Below the red line somebody should look after the learner."
            }
        }
    }
}

fn next_steps(path: Option<&[String]>) -> Markup {
    let Some(path) = path else {
        return html! { p.faint { (NO_CONSENT) } };
    };
    if path.is_empty() {
        return html! { p.faint { "Nothing is left to recommend." } };
    }
    html! { ol { @for step in path { li { (step_in_words(step)) } } } }
}

fn skills(skills: &[SkillRating], now: Moment) -> Markup {
    if skills.is_empty() {
        return empty_state(
            "No question was answered yet.",
            &html! {
                p { "Each answer says something about the chance of the next one." }
            },
        );
    }
    let mut skills: Vec<&SkillRating> = skills.iter().collect();
    skills.sort_by(|one, other| one.probability.total_cmp(&other.probability));
    let columns = [
        Text("Skill"),
        Text("Chance of a right answer"),
        Number("Rating"),
        Number("Right"),
        Text("Last answer"),
    ];
    let rows = html! {
        @for skill in skills {
            tr {
                th scope="row" { (skill.skill_id) }
                td { (bar(skill.probability, tone(skill.probability))) " " (percent(skill.probability)) }
                td.number { (format!("{:+.2}", skill.rating).replace('-', "−")) }
                td.number { (skill.correct) " of " (skill.answers) }
                td { (ago(skill.last.epoch_ms(), now.epoch_ms())) }
            }
        }
    };
    table("Skills, the weakest first", &columns, &rows)
}

fn advice(id: &str, advice: Option<&[Recommendation]>, now: Moment) -> Markup {
    let Some(advice) = advice else {
        return empty_state(NO_CONSENT, &html! {});
    };
    if advice.is_empty() {
        return empty_state(
            "Nothing to recommend.",
            &html! {
                p { "Every part of the score is where it should be." }
            },
        );
    }
    html! {
        div.card {
            ul.plain {
                @for it in advice {
                    li {
                        div.head {
                            strong { (it.action) }
                            (priority(it.priority))
                        }
                        p { (it.reason) ". " span.faint { "Said " (ago(it.made_at.epoch_ms(), now.epoch_ms())) "." } }
                        @match &it.feedback {
                            Some(feedback) => p.faint {
                                (if feedback.helpful { "It helped" } else { "It did not help" })
                                @if let Some(comment) = &feedback.comment { ": " (comment) }
                            },
                            None => (feedback(id, it)),
                        }
                    }
                }
            }
        }
    }
}

fn feedback(id: &str, advice: &Recommendation) -> Markup {
    html! {
        form.row.small method="post" action={ (links::learner(id)) "/feedback" } {
            input type="hidden" name="recommendation" value=(advice.id);
            span.faint { "Did it help?" }
            button.quiet name="helpful" value="true" type="submit" { "Yes" }
            button.quiet name="helpful" value="false" type="submit" { "No" }
        }
    }
}

/// `POST /learn/learners/{id}/feedback`
pub(crate) async fn say(
    pages: State<Pages>,
    Path(id): Path<String>,
    Form(feedback): Form<FeedbackForm>,
) -> PageResult<Redirect> {
    let engine: &MasteryEngine = pages.engine()?;
    engine.give_feedback(&id, &feedback.recommendation, feedback.helpful, None).await?;
    Ok(Redirect::to(&links::learner(&id)))
}

fn priority(priority: Priority) -> Markup {
    match priority {
        Priority::High => html! { span.pill.bad { "high priority" } },
        Priority::Medium => html! { span.pill.warn { "medium priority" } },
        Priority::Low => html! { span.pill { "low priority" } },
    }
}

fn active(activity: Option<&ActivityData>, today: Date) -> Markup {
    let Some(activity) = activity else {
        return html! { p.faint { "Not active yet." } };
    };
    let strip: Vec<(String, bool)> = (0..ACTIVITY_DAYS)
        .rev()
        .map(|back| today.plus_days(-back))
        .map(|day| (day.to_string(), activity.activity_log.contains(&day)))
        .collect();
    let active = strip.iter().filter(|(_, is_active)| *is_active).count() as u64;
    let label = format!("Active on {} of the last {ACTIVITY_DAYS}", counted(active, "day", "days"));
    html! {
        div.card {
            (days(&strip, &label))
            p.faint { (label) ", today on the right. Days begin and end in " (activity.time_zone) "." }
        }
    }
}

fn events(events: &[AcceptedEvent], now: Moment) -> Markup {
    if events.is_empty() {
        return html! { p.faint { "None is kept: events are kept for 90 days." } };
    }
    let columns = [Text("What"), Text("About"), Text("Result"), Text("When")];
    let rows = html! {
        @for accepted in events {
            @let (what, about, result) = in_words(&accepted.event.what);
            tr {
                th scope="row" { (what) }
                td { (about) }
                td { (result) }
                td { (ago(accepted.event.occurred_at.epoch_ms(), now.epoch_ms())) }
            }
        }
    };
    table("Last events, the newest first", &columns, &rows)
}

fn in_words(what: &EventDetail) -> (&'static str, String, String) {
    let passed = |is_good: bool, error: &Option<String>| match (is_good, error) {
        (true, _) => "right".to_owned(),
        (false, Some(error)) => format!("wrong: {error}"),
        (false, None) => "wrong".to_owned(),
    };
    match what {
        EventDetail::LessonProgress { lesson_id, fraction } => {
            ("Lesson", lesson_id.clone(), format!("{} done", percent(*fraction)))
        }
        EventDetail::Answer { skill_id, item_id, correct, error_kind, .. } => {
            ("Answer", format!("{skill_id}, {item_id}"), passed(*correct, error_kind))
        }
        EventDetail::QuizFinished { quiz_id, score } => ("Quiz", quiz_id.clone(), percent(*score)),
        EventDetail::WorkReviewed { task_id, quality } => {
            ("Reviewed", task_id.clone(), percent(*quality))
        }
        EventDetail::CodeRun { task_id, passed: is_good, error_kind } => {
            ("Code run", task_id.clone(), passed(*is_good, error_kind))
        }
        EventDetail::Stuck { task_id, minutes } => {
            ("Stuck", task_id.clone(), format!("{minutes:.0} min"))
        }
        EventDetail::Visit {} => ("Visit", String::new(), String::new()),
        EventDetail::Assessed { components } => {
            ("Assessed", String::new(), percent(components.score()))
        }
    }
}
