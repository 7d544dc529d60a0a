//! The state that the console's pages and the REST API share, and their options.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use kstone_base::audit::AuditEntry;
use kstone_base::time::Moment;
use kstone_core::env::{Clock, Random};
use kstone_door::Limits;
use kstone_keyspace::{Governor, Subject};
use kstone_mastery::engine::MasteryEngine;
use kstone_platform::Platform;
use kstone_ports::items::Items;
use kstone_ports::keys::Keys;

use crate::admission::Token;
use crate::erasures::Erasures;
use crate::request::{self, Actor};
use crate::rest::{Code, Problem};
use crate::server_status::ServerStatus;

/// The console as handlers of requests take it.
pub(crate) type ConsoleState = axum::extract::State<Arc<Console>>;

/// Everything that a page or a call of the API may ask. One for each process, behind an `Arc`.
#[derive(Debug)]
pub struct Console {
    /// Tables of items.
    pub items: Arc<dyn Items>,
    /// Keys of Redis.
    pub keys: Arc<dyn Keys>,
    /// The learning platform, where its catalogues are in force.
    pub platform: Option<Arc<Platform>>,
    /// The keyspace in force, if there is one.
    pub governor: Option<Arc<Governor>>,
    /// Erasures, where persons can be erased: with a keyspace in force and a folder to keep receipts'
    /// key in.
    pub erasures: Option<Arc<Erasures>>,
    /// What only the process knows.
    pub status: Arc<dyn ServerStatus>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Ids of requests.
    pub random: Arc<dyn Random>,
    /// Who may ask, and how much.
    pub options: ConsoleOptions,
}

impl Console {
    /// The learning platform.
    ///
    /// # Errors
    /// If its catalogues are not in force: says how to turn it on.
    pub fn platform(&self) -> Result<&Arc<Platform>, Problem> {
        self.platform.as_ref().ok_or_else(|| {
            Problem::new(
                Code::PlatformOff,
                "the learning platform is off: start the server with --keyspace shipped, or with \
                 --demo",
            )
        })
    }

    /// Notes in the audit log what was done here, and to whose data. That it cannot be noted is no
    /// reason to tell a client that nothing was done.
    pub async fn note(&self, action: &str, student_id: Option<&str>, detail: Option<&str>) {
        let Some(platform) = &self.platform else { return };
        let entry = AuditEntry {
            action: action.to_owned(),
            actor: Some(self.actor(&platform.mastery).await),
            student_id: student_id.map(str::to_owned),
            detail: detail.map(str::to_owned),
            at: self.now(),
        };
        let _ = platform.audit.add(&entry).await;
    }

    /// Who did it: the door, and the name that came with the request. A learner's is not written
    /// down, since the entry would outlive them.
    async fn actor(&self, engine: &MasteryEngine) -> String {
        let Actor { door, name } = request::actor();
        let Some(name) = name else { return door.to_owned() };
        let subject = Subject::canonical(&name, None);
        let is_erased = self.governor.as_ref().is_some_and(|it| it.is_erased(&subject));
        let is_learner = is_erased
            || engine.profile(&name).await.is_ok()
            || engine.profile(&subject.id).await.is_ok();
        match is_learner {
            true => format!("{door}:a learner"),
            false => format!("{door}:{name}"),
        }
    }

    /// The time.
    pub(crate) fn now(&self) -> Moment {
        Moment::from_epoch_ms(self.clock.now_ms())
    }

    /// An id for a request that came without one.
    pub(crate) fn next_request_id(&self) -> String {
        format!("{:016x}", self.random.next_u64())
    }
}

/// Who may ask, and how much.
#[derive(Clone)]
pub struct ConsoleOptions {
    /// What clients must send: `Bearer` for programs, the password of `Basic` for browsers. Without
    /// one every request passes that is addressed to this machine: then listen on loopback only.
    pub token: Option<Token>,
    /// Whether each client may only ask so often in a minute.
    pub has_rate_limits: bool,
    /// How many connections, and how long each may take.
    pub limits: Limits,
    /// How long a request's body may be.
    pub body_bytes_max: usize,
}

impl Default for ConsoleOptions {
    fn default() -> Self {
        ConsoleOptions {
            token: None,
            has_rate_limits: true,
            // A browser opens six connections; a school's backend has a pool of dozens.
            limits: Limits { read_timeout: Duration::from_secs(30), ..Limits::default() },
            // A batch of a thousand learners is 150 KB.
            body_bytes_max: 1024 * 1024,
        }
    }
}

impl fmt::Debug for ConsoleOptions {
    /// Without the token.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConsoleOptions")
            .field("has_token", &self.token.is_some())
            .field("has_rate_limits", &self.has_rate_limits)
            .finish_non_exhaustive()
    }
}
