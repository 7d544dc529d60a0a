//! Alerts for operators and teachers: stored for the console, logged, and sent to a webhook.

use std::fmt::Debug;
use std::sync::Arc;

use kstone_core::env::Clock;
use kstone_keyspace::Millis;
use kstone_keyspace::keys::platform::{Alert as AlertKey, AlertId};
use kstone_ports::items::Items;
use kstone_ports::items::{Query, TransactKind};
use serde::{Deserialize, Serialize};

use super::job::NewJob;
use super::outbox::Outbox;
use super::queue::wrong_cursor;
use super::request::{Bindings, action, between, decoded, key_of, text, transact_if};
use super::table::{PK, SK};
use crate::error::{Error, Result};
use crate::page::Page;
use crate::time::Moment;

/// The queue of alerts that are to be sent.
pub const QUEUE: &str = "alerts";
/// The kind of job that sends one to the webhook.
pub const WEBHOOK: &str = "webhook";

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum Severity {
    /// Good to know.
    Info,
    /// Somebody should look at it soon.
    Warning,
    /// Somebody should look at it now.
    Critical,
}

/// An alert: something that a person should look at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Alert {
    /// What makes it this alert and no other: with the same id and moment it is raised once, however
    /// often its cause is looked at. Made up if it is empty.
    #[serde(default)]
    pub id: String,
    /// What it is about: `struggle`, `intervention`, `dead_job`.
    pub kind: String,
    /// How bad it is.
    pub severity: Severity,
    /// In a few words.
    pub title: String,
    /// In more.
    pub detail: String,
    /// Whom it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub student_id: Option<String>,
    /// When it happened; default now.
    #[serde(default)]
    pub at: Moment,
}

/// Receives alerts at once, such as a log. Must not block.
pub trait AlertSink: Debug + Send + Sync {
    /// Called for each new alert.
    fn raised(&self, alert: &Alert);
}

/// Raises alerts, and shows those that were raised.
#[derive(Debug, Clone)]
pub struct Alerts {
    items: Arc<dyn Items>,
    clock: Arc<dyn Clock>,
    outbox: Outbox,
    sinks: Arc<[Arc<dyn AlertSink>]>,
    to_webhook: bool,
}

impl Alerts {
    /// Alerts on these items. With `to_webhook`, each is sent by a job of kind [`WEBHOOK`], for
    /// which somebody has to register.
    pub fn new(
        items: Arc<dyn Items>,
        clock: Arc<dyn Clock>,
        outbox: Outbox,
        sinks: Vec<Arc<dyn AlertSink>>,
        to_webhook: bool,
    ) -> Alerts {
        Alerts { items, clock, outbox, sinks: sinks.into(), to_webhook }
    }

    /// Stores an alert and enqueues its webhook call, both or neither; then calls the sinks. An
    /// alert with a known id is ignored.
    ///
    /// # Errors
    /// If a field is wrong, or the store refuses.
    pub async fn raise(&self, alert: Alert) -> Result<Alert> {
        self.keep(alert, self.to_webhook).await
    }

    /// The same without webhook: for alerts about the webhook itself.
    ///
    /// # Errors
    /// If a field is wrong, or the store refuses.
    pub async fn raise_without_webhook(&self, alert: Alert) -> Result<Alert> {
        self.keep(alert, false).await
    }

    async fn keep(&self, mut alert: Alert, is_sent: bool) -> Result<Alert> {
        if alert.id.is_empty() {
            alert.id = self.outbox.new_id();
        }
        if alert.at == Moment::default() {
            alert.at = Moment::from_epoch_ms(self.clock.now_ms());
        }
        let key = AlertKey { at: alert.at.millis(), alert_id: AlertId::new(alert.id.as_str())? };
        let written = serde_json::to_string(&alert).map_err(|error| Error::Unreadable {
            key: alert.id.clone(),
            problem: error.to_string(),
        })?;
        let item = key_of(&key).with("value", written);
        let absent = Some("attribute_not_exists(#pk)");
        let mut actions = vec![action(TransactKind::Put(item), absent, Bindings::names(&[PK]))];
        if is_sent {
            let payload = serde_json::json!({ "alert": alert });
            let mut job = NewJob::new(QUEUE, WEBHOOK, payload).once_per(format!(
                "{}-{}",
                alert.at.epoch_ms(),
                alert.id
            ));
            job.student_id.clone_from(&alert.student_id);
            actions.push(self.outbox.action(&job)?);
        }
        if !transact_if(&*self.items, actions).await? {
            return Ok(alert);
        }
        self.outbox.wake();
        for sink in self.sinks.iter() {
            sink.raised(&alert);
        }
        Ok(alert)
    }

    /// Alerts of the last 90 days, the newest first.
    ///
    /// # Errors
    /// If the store cannot be asked.
    pub async fn recent(&self, limit: u32, after: Option<&str>) -> Result<Page<Alert>> {
        let start = after.map(key_after).transpose()?;
        let query = Query {
            backward: true,
            limit: Some(limit.max(1)),
            start: start.as_ref().map(key_of),
            ..between(&AlertKey::partition(), SK, "0", "~")
        };
        let page = self.items.query(&query).await?;
        let (mut items, mut last) = (Vec::new(), None);
        for item in page.items.iter().flatten() {
            let item = decoded(item)?;
            let unreadable = |error: serde_json::Error| Error::Unreadable {
                key: format!("alerts:{}", text(&item, SK)),
                problem: error.to_string(),
            };
            items.push(serde_json::from_str(text(&item, "value")).map_err(unreadable)?);
            last = Some(text(&item, SK).replacen(':', "-", 1));
        }
        Ok(Page { items, next: page.next.and(last) })
    }
}

fn key_after(cursor: &str) -> Result<AlertKey> {
    let key = || {
        let (at, id) = cursor.split_once('-')?;
        let at = Millis::new(at.parse().ok()?).ok()?;
        Some(AlertKey { at, alert_id: AlertId::new(id).ok()? })
    };
    key().ok_or_else(|| wrong_cursor(cursor))
}
