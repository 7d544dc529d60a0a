//! Idempotency keys: a request with an `Idempotency-Key` is carried out once, however often it is
//! sent. Its response is stored for a day and repeated.
//!
//! Between the effect of a request and its kept answer a process may end. The repetition is carried
//! out then, under the same [name](Ticket::name): records that are named after it are found again
//! instead of being made a second time.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use kstone_core::env::{Clock, Random};
use kstone_keyspace::keys::platform::{Idempotency as Key, Request};
use kstone_ports::items::Items;
use kstone_ports::items::{Condition, PutItem};
use kstone_ports::value::{Item, Value};
use sha2::{Digest, Sha256};

use crate::error::Result;
use crate::field::Invalid;
use crate::time::millis;
use crate::work::request::{
    Bindings, delete_if, get, key_of, number, text, text_option, update_if,
};
use crate::work::table::{PK, TABLE};

/// How long the first request may take before a repetition may take its place: it was killed then,
/// or will be refused when it ends.
const ATTEMPT_LEASE: Duration = Duration::from_secs(60);
/// As long as the catalogue says.
const RETENTION: Duration = Duration::from_secs(24 * 60 * 60);
/// An item may have 400 KiB, with everything else in it.
const BODY_BYTES_MAX: usize = 256 * 1024;
const KEY_BYTES_MAX: usize = 255;

/// The stored requests with an idempotency key.
#[derive(Debug, Clone)]
pub struct Idempotency {
    items: Arc<dyn Items>,
    clock: Arc<dyn Clock>,
    random: Arc<dyn Random>,
}

/// A request with an idempotency key.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RepeatableRequest {
    /// Who asks: keys of two clients are two.
    pub client: String,
    /// What the client calls it.
    pub key: String,
    /// Method, path and body: the same key with another request is a mistake.
    pub request: Vec<u8>,
    /// Learners whose data the answer may hold, so that it is erased with them.
    pub students: Vec<String>,
}

/// The response to a request that was carried out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredResponse {
    /// Its status.
    pub status: u16,
    /// Those of its headers that say something about what was done, by their names.
    pub headers: BTreeMap<String, String>,
    /// Its body.
    pub body: String,
}

/// What the caller has to do with a request that it began.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BeginOutcome {
    /// Carry it out, then [`finish`](Idempotency::finish), [`abandon`](Idempotency::abandon) or
    /// [`release`](Idempotency::release).
    New(Ticket),
    /// Answer this: it was carried out before.
    Replay(StoredResponse),
    /// The first one is still being carried out.
    InFlight,
    /// The key was used for another request.
    Mismatch,
}

/// The right to carry out one request, for one caller at a time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ticket {
    key: Item,
    owner: String,
    name: String,
}

impl Ticket {
    /// A name for what the request creates: derived from the client, its key, the request and when
    /// it first came. Every attempt has the same name, until the key expires.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl Idempotency {
    /// Idempotency keys that are stored through this port.
    pub fn new(
        items: Arc<dyn Items>,
        clock: Arc<dyn Clock>,
        random: Arc<dyn Random>,
    ) -> Idempotency {
        Idempotency { items, clock, random }
    }

    /// Begins a request, unless it was begun before.
    ///
    /// # Errors
    /// If the key is empty or too long, or the store cannot be asked.
    pub async fn begin(&self, request: &RepeatableRequest) -> Result<BeginOutcome> {
        let length = request.key.len();
        if !(1..=KEY_BYTES_MAX).contains(&length) {
            let expected = format!("1 to {KEY_BYTES_MAX} bytes");
            return Err(Invalid::value("Idempotency-Key", expected, length).into());
        }
        let place = hash(&[request.client.as_bytes(), request.key.as_bytes()]);
        let key = key_of(&Key { request: Request::new(place)? });
        let request_hash = hash(&[&request.request]);
        let now = self.clock.now_ms();
        let owner = format!("{:016x}", self.random.next_u64());
        let ticket = |began: u64| Ticket {
            key: key.clone(),
            owner: owner.clone(),
            name: hash(&[
                request.client.as_bytes(),
                request.key.as_bytes(),
                &request.request,
                &began.to_le_bytes(),
            ]),
        };
        if self.begin_first(request, &key, &request_hash, &owner, now).await? {
            return Ok(BeginOutcome::New(ticket(now)));
        }
        // Gone meanwhile: abandoned just now. The client tries again.
        let Some(before) = get(&*self.items, key.clone()).await? else {
            return Ok(BeginOutcome::InFlight);
        };
        if text(&before, "request_hash") != request_hash {
            return Ok(BeginOutcome::Mismatch);
        }
        if let ("done", Some(body)) = (text(&before, "state"), text_option(&before, "answer")) {
            let status = u16::try_from(number(&before, "status")).unwrap_or(200);
            // Answers that were kept by an older version have none.
            let headers = serde_json::from_str(text(&before, "headers")).unwrap_or_default();
            return Ok(BeginOutcome::Replay(StoredResponse { status, headers, body }));
        }
        let is_mine = number(&before, "busy_until") <= now
            && self.take_over(&before, &key, &owner, now).await?;
        Ok(match is_mine {
            true => BeginOutcome::New(ticket(number(&before, "began"))),
            false => BeginOutcome::InFlight,
        })
    }

    /// Records a request, unless there is one with its key.
    async fn begin_first(
        &self,
        request: &RepeatableRequest,
        key: &Item,
        request_hash: &str,
        owner: &str,
        now: u64,
    ) -> Result<bool> {
        let students: Vec<Value> = request.students.iter().map(|id| id.as_str().into()).collect();
        let mut item = key
            .clone()
            .with("request_hash", request_hash)
            .with("state", "in_flight")
            .with("owner", owner)
            .with("began", now)
            .with("busy_until", now.saturating_add(millis(ATTEMPT_LEASE)))
            // The catalogue says the same; a store without it needs to be told.
            .with("ttl", (now + millis(RETENTION)) / 1000);
        if !students.is_empty() {
            item.insert("students", students);
        }
        let put = PutItem {
            table: TABLE.to_owned(),
            item,
            // A remote store may show items for days after their end.
            condition: Some(Condition::Text(
                "attribute_not_exists(#pk) OR #ttl <= :seconds".to_owned(),
            )),
            placeholders: Bindings::names(&[PK, "ttl"]).value("seconds", now / 1000).placeholders(),
            ..PutItem::default()
        };
        match self.items.put(&put).await {
            Ok(_) => Ok(true),
            Err(kstone_ports::Error::ConditionFailed { .. }) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Takes over a request whose caller no longer renews its lease; of several who try, one
    /// succeeds.
    async fn take_over(&self, before: &Item, key: &Item, owner: &str, now: u64) -> Result<bool> {
        let bindings = Bindings::names(&["owner", "busy_until", "state"])
            .value("me", owner)
            .value("them", text(before, "owner"))
            .value("until", now.saturating_add(millis(ATTEMPT_LEASE)))
            .value("now", now)
            .value("in_flight", "in_flight");
        let update = "SET #owner = :me, #busy_until = :until";
        let condition = "#owner = :them AND #state = :in_flight AND #busy_until <= :now";
        let taken = update_if(&*self.items, key.clone(), update, condition, bindings).await?;
        Ok(taken.is_some())
    }

    /// Renews the lease: nobody else carries the request out for another minute. To be called more
    /// often than that.
    ///
    /// # Errors
    /// If the store refuses.
    pub async fn renew(&self, ticket: &Ticket) -> Result<()> {
        let until = self.clock.now_ms().saturating_add(millis(ATTEMPT_LEASE));
        let bindings = Bindings::names(&["busy_until"]).value("until", until);
        self.update(ticket, "SET #busy_until = :until", bindings).await
    }

    /// Stores the response. If another caller took the request over meanwhile, its response counts.
    /// A response that is too long is not stored: a repetition is carried out then, under the same
    /// name.
    ///
    /// # Errors
    /// If the store refuses; then a repetition is carried out again after a minute.
    pub async fn finish(&self, ticket: &Ticket, answer: &StoredResponse) -> Result<()> {
        if answer.body.len() > BODY_BYTES_MAX {
            return self.release(ticket).await;
        }
        let headers = serde_json::json!(answer.headers).to_string();
        let bindings = Bindings::names(&["state", "status", "headers", "answer"])
            .value("headers", headers)
            .value("done", "done")
            .value("status", u64::from(answer.status))
            .value("answer", answer.body.as_str());
        let update =
            "SET #state = :done, #status = :status, #headers = :headers, #answer = :answer";
        self.update(ticket, update, bindings).await
    }

    /// Gives up the lease of a request whose outcome is unknown: a repetition tries again at once,
    /// under the same name.
    ///
    /// # Errors
    /// If the store refuses; then it does after a minute.
    pub async fn release(&self, ticket: &Ticket) -> Result<()> {
        let bindings = Bindings::names(&["busy_until"]).value("now", self.clock.now_ms());
        self.update(ticket, "SET #busy_until = :now", bindings).await
    }

    /// Changes the stored request, unless another caller has taken it over.
    async fn update(&self, ticket: &Ticket, update: &str, bindings: Bindings) -> Result<()> {
        let bindings = bindings.name("owner").value("me", ticket.owner.as_str());
        let key = ticket.key.clone();
        update_if(&*self.items, key, update, "#owner = :me", bindings).await.map(drop)
    }

    /// Removes a request that was not carried out: a repetition is a new request.
    ///
    /// # Errors
    /// If the store refuses; then it is one after a minute.
    pub async fn abandon(&self, ticket: &Ticket) -> Result<()> {
        let bindings = Bindings::names(&["owner"]).value("me", ticket.owner.as_str());
        delete_if(&*self.items, ticket.key.clone(), "#owner = :me", bindings).await.map(drop)
    }
}

/// The SHA-256 of several parts, each preceded by its length, so that no two lists have the same
/// hash.
fn hash(parts: &[&[u8]]) -> String {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update((part.len() as u64).to_le_bytes());
        hasher.update(part);
    }
    hex::encode(hasher.finalize())
}
