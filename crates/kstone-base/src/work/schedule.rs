//! Recurring jobs: at an interval, every night, every week.
//!
//! A period is known by the moment at which it begins. The process that notices first that a new one has
//! begun says so in an item and asks for the job in the same transaction, so with any number of
//! processes it is asked for once. After a downtime only the newest period counts: what was missed
//! is caught up once, not once for each period.

use std::fmt::{self, Debug};
use std::sync::Arc;
use std::time::Duration;

use kstone_core::env::Clock;
use kstone_core::sync::Mutex;
use kstone_keyspace::keys::platform::{Schedule as ScheduleKey, ScheduleName};
use kstone_ports::items::Items;
use kstone_ports::items::{TransactAction, TransactKind, Update};
use kstone_ports::value::Item;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::sleep;

use super::job::NewJob;
use super::outbox::Outbox;
use super::request::{Bindings, action, get, key_of, number, number_option, transact_if};
use crate::error::Result;
use crate::time::{Moment, millis};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// A clock that is set, or a machine that slept, is noticed within this time.
const LOOK_EVERY_MAX: Duration = Duration::from_secs(15);
const LOOK_EVERY_MIN: Duration = Duration::from_millis(20);

/// How often a schedule is due, in UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cadence {
    every: Duration,
    /// How long after the start of 1970 the first period began.
    shift: Duration,
}

/// A day of the week.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Weekday {
    Monday,
    Tuesday,
    Wednesday,
    Thursday,
    Friday,
    Saturday,
    Sunday,
}

impl Cadence {
    /// Every so often; every second at most.
    pub fn every(time: Duration) -> Cadence {
        Cadence { every: time.max(Duration::from_secs(1)), shift: Duration::ZERO }
    }

    /// Every day at this time.
    pub fn daily(hour: u8, minute: u8) -> Cadence {
        let minutes = u64::from(hour) * 60 + u64::from(minute);
        let shift = Duration::from_secs(minutes * 60 % DAY.as_secs());
        Cadence { every: DAY, shift }
    }

    /// Every night at half past two, when few learn and nothing else runs.
    pub fn nightly() -> Cadence {
        Cadence::daily(2, 30)
    }

    /// Every week on this day at this time.
    pub fn weekly(day: Weekday, hour: u8, minute: u8) -> Cadence {
        // 1970 began on a Thursday.
        let days = (day as u32 + 7 - Weekday::Thursday as u32) % 7;
        Cadence { every: DAY * 7, shift: DAY * days + Cadence::daily(hour, minute).shift }
    }

    /// When the period began that this moment is in.
    pub fn period_of(self, moment: Moment) -> Moment {
        let (every, shift) = (millis(self.every), millis(self.shift));
        let since = moment.epoch_ms().checked_sub(shift);
        Moment::from_epoch_ms(since.map_or(0, |since| since / every * every + shift))
    }

    /// When the next one begins.
    pub fn next_after(self, moment: Moment) -> Moment {
        match moment.epoch_ms() < millis(self.shift) {
            true => Moment::from_epoch_ms(millis(self.shift)),
            false => self.period_of(moment).plus(self.every),
        }
    }
}

/// A schedule and when it last ran.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ScheduleState {
    /// Its name.
    pub name: String,
    /// The queue that its job goes to.
    pub queue: String,
    /// How often, in seconds.
    pub every_s: u64,
    /// When its job was last asked for.
    pub last: Option<Moment>,
    /// When it is next.
    pub next: Moment,
}

/// The schedules of this process.
#[derive(Clone)]
pub struct Schedules {
    inner: Arc<Inner>,
}

struct Inner {
    items: Arc<dyn Items>,
    clock: Arc<dyn Clock>,
    outbox: Outbox,
    entries: Mutex<Vec<Entry>>,
    stopping: watch::Sender<bool>,
    ticking: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Debug, Clone)]
struct Entry {
    name: ScheduleName,
    cadence: Cadence,
    job: NewJob,
    /// The period that is known to be taken care of.
    settled: Option<Moment>,
}

impl Schedules {
    /// No schedules yet.
    pub fn new(items: Arc<dyn Items>, clock: Arc<dyn Clock>, outbox: Outbox) -> Schedules {
        let (stopping, _) = watch::channel(false);
        let (entries, ticking) = (Mutex::new(Vec::new()), Mutex::new(None));
        let inner = Inner { items, clock, outbox, entries, stopping, ticking };
        Schedules { inner: Arc::new(inner) }
    }

    /// Adds a schedule for this job; its payload gets `period`, the moment at which the period
    /// began. If the previous job is not done when the next is due, it runs once more after it.
    ///
    /// # Errors
    /// If the name is no id.
    pub fn add(&self, name: &str, cadence: Cadence, job: NewJob) -> Result<()> {
        let name = ScheduleName::new(name)?;
        let job = job.once_per(name.as_str());
        let mut entries = self.inner.entries.lock();
        entries.retain(|entry| entry.name != name);
        entries.push(Entry { name, cadence, job, settled: None });
        Ok(())
    }

    /// Enqueues the jobs of all due schedules that no process has enqueued; returns their names. A
    /// schedule that is new to this store begins with its next period.
    ///
    /// # Errors
    /// If the store cannot be asked. One schedule that fails does not keep the others waiting.
    pub async fn tick(&self) -> Result<Vec<String>> {
        let now = self.now();
        let entries = self.inner.entries.lock().clone();
        let (mut asked, mut failed) = (Vec::new(), None);
        for entry in entries {
            let period = entry.cadence.period_of(now);
            if entry.settled == Some(period) {
                continue;
            }
            match self.ask(&entry, period, now).await {
                Ok(true) => asked.push(entry.name.as_str().to_owned()),
                Ok(false) => {}
                Err(error) => {
                    failed.get_or_insert(error);
                    continue;
                }
            }
            let mut entries = self.inner.entries.lock();
            if let Some(known) = entries.iter_mut().find(|known| known.name == entry.name) {
                known.settled = Some(period);
            }
        }
        if !asked.is_empty() {
            self.inner.outbox.wake();
        }
        failed.map_or(Ok(asked), Err)
    }

    /// Enqueues the job of a period; answers whether this call was the one that did.
    async fn ask(&self, entry: &Entry, period: Moment, now: Moment) -> Result<bool> {
        let key = key_of(&ScheduleKey { schedule_name: entry.name.clone() });
        let mut job = entry.job.clone();
        match &mut job.payload {
            serde_json::Value::Object(fields) => {
                fields.insert("period".to_owned(), json!(period));
            }
            other => *other = json!({ "period": period }),
        }
        let asking = self.inner.outbox.action(&job)?;
        if self.take(&key, "#period < :period", period, now, asking).await? {
            return Ok(true);
        }
        // Somebody else was first, or this is the first time of all.
        let bindings = Bindings::names(&["period"]);
        let first = key.clone().with("period", period.epoch_ms());
        let first =
            action(TransactKind::Put(first), Some("attribute_not_exists(#period)"), bindings);
        if transact_if(&*self.inner.items, vec![first]).await? {
            return Ok(false);
        }
        // A clock that was wrong once must not silence it until that day comes. One that is a
        // little ahead of this one has only been first.
        let ahead = period.plus(entry.cadence.every.max(DAY));
        let kept = get(&*self.inner.items, key.clone()).await?;
        if kept.is_none_or(|kept| number(&kept, "period") <= ahead.epoch_ms()) {
            return Ok(false);
        }
        let asking = self.inner.outbox.action_now(&job)?;
        self.take(&key, "#period > :period", period, now, asking).await
    }

    /// Begins a period together with its job, if the condition holds.
    async fn take(
        &self,
        key: &Item,
        condition: &str,
        period: Moment,
        now: Moment,
        asking: TransactAction,
    ) -> Result<bool> {
        let bindings = Bindings::names(&["period", "asked_at"])
            .value("period", period.epoch_ms())
            .value("now", now.epoch_ms());
        let update = Update::Text("SET #period = :period, #asked_at = :now".to_owned());
        let turn = action(TransactKind::Update(key.clone(), update), Some(condition), bindings);
        transact_if(&*self.inner.items, vec![turn, asking]).await
    }

    /// All schedules, by name.
    ///
    /// # Errors
    /// If the store cannot be asked.
    pub async fn state(&self) -> Result<Vec<ScheduleState>> {
        let entries = self.inner.entries.lock().clone();
        let now = self.now();
        let mut states = Vec::new();
        for entry in entries {
            let key = key_of(&ScheduleKey { schedule_name: entry.name.clone() });
            let kept = get(&*self.inner.items, key).await?;
            let last = kept.as_ref().and_then(|item| number_option(item, "asked_at"));
            let settled = kept.as_ref().map(|item| number(item, "period"));
            let overdue = settled.is_some_and(|at| at < entry.cadence.period_of(now).epoch_ms());
            states.push(ScheduleState {
                name: entry.name.as_str().to_owned(),
                queue: entry.job.queue.clone(),
                every_s: entry.cadence.every.as_secs(),
                last: last.map(Moment::from_epoch_ms),
                next: if overdue { now } else { entry.cadence.next_after(now) },
            });
        }
        states.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(states)
    }

    /// Starts checking for due schedules. To be called within a runtime.
    pub fn start(&self) {
        let schedules = self.clone();
        let mut stopping = self.inner.stopping.subscribe();
        let ticking = tokio::spawn(async move {
            while !*stopping.borrow() {
                // A store that cannot be asked now is asked again at the next look.
                let _ = schedules.tick().await;
                tokio::select! {
                    () = sleep(schedules.until_next()) => {}
                    _ = stopping.changed() => {}
                }
            }
        });
        *self.inner.ticking.lock() = Some(ticking);
    }

    /// Stops checking.
    pub async fn stop(&self) {
        self.inner.stopping.send_replace(true);
        let ticking = self.inner.ticking.lock().take();
        if let Some(ticking) = ticking {
            let _ = ticking.await;
        }
    }

    fn until_next(&self) -> Duration {
        let now = self.now();
        let entries = self.inner.entries.lock();
        let next = entries.iter().map(|entry| entry.cadence.next_after(now).since(now)).min();
        next.unwrap_or(LOOK_EVERY_MAX).clamp(LOOK_EVERY_MIN, LOOK_EVERY_MAX)
    }

    fn now(&self) -> Moment {
        Moment::from_epoch_ms(self.inner.clock.now_ms())
    }
}

impl Debug for Schedules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Schedules")
            .field("entries", &*self.inner.entries.lock())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Moment {
        text.parse().unwrap()
    }

    #[test]
    fn a_day_begins_at_its_hour_and_a_week_at_its_day() {
        let daily = Cadence::daily(2, 30);
        assert_eq!(daily.period_of(at("2026-01-14T02:29:59.999Z")), at("2026-01-13T02:30:00Z"));
        assert_eq!(daily.period_of(at("2026-01-14T02:30:00Z")), at("2026-01-14T02:30:00Z"));
        assert_eq!(daily.next_after(at("2026-01-14T02:30:00Z")), at("2026-01-15T02:30:00Z"));
        // 2026-01-14 is a Wednesday.
        let weekly = Cadence::weekly(Weekday::Monday, 6, 0);
        assert_eq!(weekly.period_of(at("2026-01-14T10:00:00Z")), at("2026-01-12T06:00:00Z"));
        assert_eq!(weekly.period_of(at("2026-01-12T05:59:00Z")), at("2026-01-05T06:00:00Z"));
        assert_eq!(weekly.next_after(at("2026-01-14T10:00:00Z")), at("2026-01-19T06:00:00Z"));
    }

    #[test]
    fn before_the_first_period_the_next_is_the_first() {
        let daily = Cadence::daily(2, 30);
        assert_eq!(daily.next_after(Moment::default()), at("1970-01-01T02:30:00Z"));
        assert_eq!(daily.period_of(Moment::default()), Moment::default());
    }
}
