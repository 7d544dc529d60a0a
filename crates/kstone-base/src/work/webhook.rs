//! Sends alerts to a URL, one POST of JSON each.

use std::sync::Arc;
use std::time::Duration;

use ureq::Agent;

use super::alert;
use super::job::{Job, JobError};
use super::workers::Workers;
use crate::error::Result;
use crate::field::Invalid;

/// An address that answers slower than this is tried again later.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);

/// Where alerts are sent to.
#[derive(Debug, Clone)]
pub struct Webhook {
    url: Arc<str>,
    agent: Agent,
}

impl Webhook {
    /// Sends to this address.
    ///
    /// # Errors
    /// If it is no address of HTTP.
    pub fn new(url: &str) -> Result<Webhook> {
        let known = ureq::http::Uri::try_from(url).ok().filter(|uri| {
            uri.host().is_some() && matches!(uri.scheme_str(), Some("http" | "https"))
        });
        if known.is_none() {
            let expected = "an address such as https://example.org/alerts";
            return Err(Invalid::value("alert_webhook", expected, format!("`{url}`")).into());
        }
        let config = Agent::config_builder()
            .timeout_global(Some(ANSWER_WITHIN))
            .max_redirects(0)
            .http_status_as_error(false)
            .build();
        Ok(Webhook { url: Arc::from(url), agent: config.into() })
    }

    /// From now on these workers send alerts.
    pub fn register(&self, workers: &Workers) {
        let webhook = self.clone();
        workers.register(alert::QUEUE, alert::WEBHOOK, move |job| {
            let webhook = webhook.clone();
            async move { webhook.send(job).await }
        });
    }

    /// Sends what the job holds. An address that says that the request is wrong is not asked again.
    ///
    /// # Errors
    /// If the address does not take it.
    pub async fn send(&self, job: Job) -> Result<(), JobError> {
        let webhook = self.clone();
        let sent = tokio::task::spawn_blocking(move || webhook.post(&job)).await;
        sent.map_err(JobError::retry)?
    }

    fn post(&self, job: &Job) -> Result<(), JobError> {
        let request = self
            .agent
            .post(&*self.url)
            .content_type("application/json")
            .header("Idempotency-Key", &job.id);
        let answer = request.send(job.payload.to_string()).map_err(JobError::retry)?;
        match answer.status().as_u16() {
            200..=299 => Ok(()),
            // Too slow, too early, too often: all of these pass.
            status @ (408 | 425 | 429) => Err(JobError::Retry(format!("it answered {status}"))),
            status @ 300..=499 => Err(JobError::Fatal(format!("it answered {status}"))),
            status => Err(JobError::Retry(format!("it answered {status}"))),
        }
    }
}
