//! Rate limits per client and kind of request, in a sliding window of one minute: the requests of
//! this minute, and those of the minute before by the part of it that the window still covers.
//!
//! One key of Redis for each client and kind, changed by one script, so that racing requests are
//! counted one after the other. A request that is refused is not counted: who asks too often gets
//! what is allowed, not nothing. If the keys cannot be asked, requests pass: the limits protect the
//! service, they do not stand in its way.

use std::sync::Arc;

use bytes::Bytes;
use kstone_core::env::Clock;
use kstone_keyspace::keys::platform::{Client, LimitKind as KindPart, RequestWindow};
use kstone_keyspace::typed::TypedKey;
use kstone_ports::Error;
use kstone_ports::keys::Keys;
use kstone_ports::keys::Value;

const MINUTE_MS: u64 = 60_000;

/// `KEYS[1]` a hash; `ARGV` the minute's number, how far it has gone in milliseconds, the limit.
/// Answers whether it passes, and the two counts after it.
const SCRIPT: &str = "\
local held = redis.call('HMGET', KEYS[1], 'minute', 'now', 'before')
local minute, limit = tonumber(ARGV[1]), tonumber(ARGV[3])
local held_minute = tonumber(held[1]) or 0
local now, before = tonumber(held[2]) or 0, tonumber(held[3]) or 0
if held_minute == minute - 1 then
  now, before = 0, now
elseif held_minute < minute then
  now, before = 0, 0
else
  minute = held_minute
end
local passes = 0
if now * 60000 + before * (60000 - tonumber(ARGV[2])) + 60000 <= limit * 60000 then
  passes, now = 1, now + 1
  redis.call('HSET', KEYS[1], 'minute', minute, 'now', now, 'before', before)
  redis.call('EXPIRE', KEYS[1], 120)
end
return {passes, now, before}";

/// The kinds of requests, each with its own limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LimitKind {
    /// Reading.
    Query,
    /// Computing or changing something.
    Calculate,
    /// Sending events.
    Ingest,
    /// Asking for a prediction.
    Predict,
    /// Starting a batch.
    Batch,
    /// Looking at a page of the console, or at a part of one that is asked for again.
    Page,
}

impl LimitKind {
    /// All of them.
    pub const ALL: [LimitKind; 6] = [
        LimitKind::Query,
        LimitKind::Calculate,
        LimitKind::Ingest,
        LimitKind::Predict,
        LimitKind::Batch,
        LimitKind::Page,
    ];

    /// How many a client may send in a minute.
    pub fn per_minute(self) -> u32 {
        match self {
            LimitKind::Query => 50,
            LimitKind::Calculate => 30,
            LimitKind::Ingest => 100,
            LimitKind::Predict => 20,
            LimitKind::Batch => 5,
            // A page asks for a part of itself up to 86 times a minute, and several may be open at
            // a school behind one address; nobody reads ten in a second.
            LimitKind::Page => 600,
        }
    }

    /// Its name in keys.
    pub fn as_str(self) -> &'static str {
        match self {
            LimitKind::Query => "query",
            LimitKind::Calculate => "calculate",
            LimitKind::Ingest => "ingest",
            LimitKind::Predict => "predict",
            LimitKind::Batch => "batch",
            LimitKind::Page => "page",
        }
    }
}

/// The decision about a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Decision {
    /// Whether it may be carried out.
    pub allowed: bool,
    /// How many may be sent in a minute.
    pub limit: u32,
    /// How many more could be sent now.
    pub remaining: u32,
    /// Seconds until more can be sent than now; of one that is refused, until it would pass.
    pub reset_s: u64,
}

/// Rate limits of all clients.
#[derive(Debug, Clone)]
pub struct RateLimits {
    keys: Arc<dyn Keys>,
    clock: Arc<dyn Clock>,
}

impl RateLimits {
    /// Limits that are counted in these keys.
    pub fn new(keys: Arc<dyn Keys>, clock: Arc<dyn Clock>) -> RateLimits {
        RateLimits { keys, clock }
    }

    /// Counts a request of a client, if it may be carried out.
    pub async fn admit(&self, kind: LimitKind, client: &str) -> Decision {
        let limit = kind.per_minute();
        let now = self.clock.now_ms();
        let (minute, into) = (now / MINUTE_MS, now % MINUTE_MS);
        match self.count(kind, client, minute, into).await {
            Ok(counted) => counted.decide(limit, into),
            Err(_) => Decision { allowed: true, limit, remaining: limit, reset_s: 0 },
        }
    }

    async fn count(
        &self,
        kind: LimitKind,
        client: &str,
        minute: u64,
        into: u64,
    ) -> Result<WindowCounts, Error> {
        let refused = |error: kstone_keyspace::PartError| Error::Refused(error.to_string());
        let key = RequestWindow {
            limit_kind: KindPart::new(kind.as_str()).map_err(refused)?,
            client: Client::new(client).map_err(refused)?,
        };
        let args = [
            Bytes::from_static(b"EVAL"),
            Bytes::from_static(SCRIPT.as_bytes()),
            Bytes::from_static(b"1"),
            Bytes::from(key.key()),
            Bytes::from(minute.to_string()),
            Bytes::from(into.to_string()),
            Bytes::from(kind.per_minute().to_string()),
        ];
        let Value::Array(counted) = self.keys.command(&args).await? else {
            return Err(Error::Unavailable("the script gave no counts".to_owned()));
        };
        let number = |at: usize| match counted.get(at) {
            Some(Value::Integer(number)) => u64::try_from(*number).unwrap_or_default(),
            _ => 0,
        };
        Ok(WindowCounts { passes: number(0) == 1, now: number(1), before: number(2) })
    }
}

/// The counts of this minute and the one before, after the request.
#[derive(Debug, Clone, Copy)]
struct WindowCounts {
    passes: bool,
    now: u64,
    before: u64,
}

impl WindowCounts {
    fn decide(self, limit: u32, into: u64) -> Decision {
        let limit_ms = u64::from(limit) * MINUTE_MS;
        let used_at = |into: u64| self.now * MINUTE_MS + self.before * (MINUTE_MS - into);
        let left = limit_ms.saturating_sub(used_at(into)) / MINUTE_MS;
        let remaining = u32::try_from(left).unwrap_or(limit);
        let needed = if self.passes { left + 1 } else { 1 };
        let wait_ms = self.wait(limit_ms, into, needed);
        Decision { allowed: self.passes, limit, remaining, reset_s: wait_ms.div_ceil(1000) }
    }

    /// How long until this many requests fit into the window: the previous minute fades out of it
    /// within this one, this one in the next.
    fn wait(self, limit_ms: u64, into: u64, needed: u64) -> u64 {
        let goal = limit_ms.saturating_sub(needed * MINUTE_MS);
        let fades = |count: u64, fixed: u64| match count {
            0 => (fixed <= goal).then_some(0),
            _ => {
                let room = goal.checked_sub(fixed)?;
                let into = MINUTE_MS.saturating_sub(room / count);
                (into <= MINUTE_MS).then_some(into)
            }
        };
        match fades(self.before, self.now * MINUTE_MS) {
            Some(at) if at <= into => 0,
            Some(at) => at - into,
            None => MINUTE_MS - into + fades(self.now, 0).unwrap_or(MINUTE_MS),
        }
    }
}
