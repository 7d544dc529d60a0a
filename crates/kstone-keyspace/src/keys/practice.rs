//! The keys of `practice`. Practice sessions: hints, scores, feature flags, limits.
//!
//! Written by `kstone_keyspace::typed::rust_keys` from the catalogue: change that, then write this anew.

use kstone_keyspace::typed::PatternInfo;
use kstone_keyspace::{Kind, Millis, Span, Ttl, ValueType, key_part, typed_key};

key_part! {
    /// `{session_id}`: 1 to 128 of A-Z a-z 0-9 _ . @ -.
    text SessionId = "session_id", Kind::Id, []
}

key_part! {
    /// `{user_id}`: 1 to 128 of A-Z a-z 0-9 _ . @ -.
    text UserId = "user_id", Kind::Id, []
}

key_part! {
    /// `{task_id}`: 1 to 128 of A-Z a-z 0-9 _ . @ -.
    text TaskId = "task_id", Kind::Id, []
}

key_part! {
    /// `{request_id}`: 1 to 128 of A-Z a-z 0-9 _ . @ -.
    text RequestId = "request_id", Kind::Id, []
}

key_part! {
    /// `{flag_name}`: 1 to 128 of A-Z a-z 0-9 _ . @ -.
    text FlagName = "flag_name", Kind::Id, []
}

key_part! {
    /// `{language}`: 1 to 128 of A-Z a-z 0-9 _ . @ -.
    text Language = "language", Kind::Id, []
}

key_part! {
    /// `{error_kind}`: 1 to 128 of A-Z a-z 0-9 _ . @ -.
    text ErrorKind = "error_kind", Kind::Id, []
}

key_part! {
    /// `{group_id}`: 1 to 128 of A-Z a-z 0-9 _ . @ -.
    text GroupId = "group_id", Kind::Id, []
}

key_part! {
    /// `{level_id}`: 1 to 128 of A-Z a-z 0-9 _ . @ -.
    text LevelId = "level_id", Kind::Id, []
}

key_part! {
    /// `{endpoint}`: 1 to 128 bytes of text, but not global.
    text Endpoint = "endpoint", Kind::Text, ["global"]
}

key_part! {
    /// `{ip}`: 1 to 128 bytes of text.
    text Ip = "ip", Kind::Text, []
}

key_part! {
    /// `{scope}`: 1 to 128 of A-Z a-z 0-9 _ . @ -.
    text Scope = "scope", Kind::Id, []
}

key_part! {
    /// `{scope_id}`: 1 to 128 of A-Z a-z 0-9 _ . @ -.
    text ScopeId = "scope_id", Kind::Id, []
}

key_part! {
    /// `{attempt_id}`: 1 to 128 of A-Z a-z 0-9 _ . @ -.
    text AttemptId = "attempt_id", Kind::Id, []
}

key_part! {
    /// `{award_id}`: 1 to 128 of A-Z a-z 0-9 _ . @ -.
    text AwardId = "award_id", Kind::Id, []
}

typed_key! {
    /// A practice session: `session:{session_id}`.
    Session {
        facts: PatternInfo {
            name: "practice.session",
            pattern: "session:{session_id}",
            table: None,
            value_type: ValueType::Hash,
            ttl: Ttl::Sliding(Span::seconds(3600)),
            sort_prefix: "",
        },
        partition: ["session", "" { session_id: SessionId } ""],
        sort: [],
    }
}

typed_key! {
    /// When a session began, in milliseconds: `session:timer:{session_id}`.
    SessionTimer {
        facts: PatternInfo {
            name: "practice.session_timer",
            pattern: "session:timer:{session_id}",
            table: None,
            value_type: ValueType::String,
            ttl: Ttl::Sliding(Span::seconds(3600)),
            sort_prefix: "",
        },
        partition: ["session", "timer", "" { session_id: SessionId } ""],
        sort: [],
    }
}

typed_key! {
    /// How many hints were bought in a session: `hints_used:{session_id}`.
    HintsUsed {
        facts: PatternInfo {
            name: "practice.hints_used",
            pattern: "hints_used:{session_id}",
            table: None,
            value_type: ValueType::Counter,
            ttl: Ttl::Sliding(Span::seconds(3600)),
            sort_prefix: "",
        },
        partition: ["hints_used", "" { session_id: SessionId } ""],
        sort: [],
    }
}

typed_key! {
    /// A hint was just bought; keeps a second click from buying another: `hint:cooldown:{user_id}:{task_id}`.
    HintCooldown {
        facts: PatternInfo {
            name: "practice.hint_cooldown",
            pattern: "hint:cooldown:{user_id}:{task_id}",
            table: None,
            value_type: ValueType::String,
            ttl: Ttl::Fixed(Span::seconds(5)),
            sort_prefix: "",
        },
        partition: ["hint", "cooldown", "" { user_id: UserId } "", "" { task_id: TaskId } ""],
        sort: [],
    }
}

typed_key! {
    /// A purchase that was made, so that repeating it is free: `hint:purchase:{session_id}:{request_id}`.
    HintPurchase {
        facts: PatternInfo {
            name: "practice.hint_purchase",
            pattern: "hint:purchase:{session_id}:{request_id}",
            table: None,
            value_type: ValueType::String,
            ttl: Ttl::Sliding(Span::seconds(3600)),
            sort_prefix: "",
        },
        partition: ["hint", "purchase", "" { session_id: SessionId } "", "" { request_id: RequestId } ""],
        sort: [],
    }
}

typed_key! {
    /// What looks like cheating: `anticheat:{user_id}`.
    Anticheat {
        facts: PatternInfo {
            name: "practice.anticheat",
            pattern: "anticheat:{user_id}",
            table: None,
            value_type: ValueType::Hash,
            ttl: Ttl::Fixed(Span::seconds(86400)),
            sort_prefix: "",
        },
        partition: ["anticheat", "" { user_id: UserId } ""],
        sort: [],
    }
}

typed_key! {
    /// A learner who may not submit for a while: `anticheat:block:{user_id}`.
    AnticheatBlock {
        facts: PatternInfo {
            name: "practice.anticheat_block",
            pattern: "anticheat:block:{user_id}",
            table: None,
            value_type: ValueType::String,
            ttl: Ttl::Fixed(Span { seconds: 900, seconds_min: 900, seconds_max: Some(86400) }),
            sort_prefix: "",
        },
        partition: ["anticheat", "block", "" { user_id: UserId } ""],
        sort: [],
    }
}

typed_key! {
    /// The results of the last attempts: `score:series:{user_id}`.
    ScoreSeries {
        facts: PatternInfo {
            name: "practice.score_series",
            pattern: "score:series:{user_id}",
            table: None,
            value_type: ValueType::List,
            ttl: Ttl::Sliding(Span::seconds(86400)),
            sort_prefix: "",
        },
        partition: ["score", "series", "" { user_id: UserId } ""],
        sort: [],
    }
}

typed_key! {
    /// How many answers in a row were right: `score:streak:{user_id}`.
    ScoreStreak {
        facts: PatternInfo {
            name: "practice.score_streak",
            pattern: "score:streak:{user_id}",
            table: None,
            value_type: ValueType::Counter,
            ttl: Ttl::Sliding(Span::seconds(86400)),
            sort_prefix: "",
        },
        partition: ["score", "streak", "" { user_id: UserId } ""],
        sort: [],
    }
}

typed_key! {
    /// All feature flags, cached: `feature_flag_cache`.
    FeatureFlags {
        facts: PatternInfo {
            name: "practice.feature_flags",
            pattern: "feature_flag_cache",
            table: None,
            value_type: ValueType::Hash,
            ttl: Ttl::Fixed(Span::seconds(300)),
            sort_prefix: "",
        },
        partition: ["feature_flag_cache"],
        sort: [],
    }
}

typed_key! {
    /// One feature flag, cached: `feature_flag:{flag_name}`.
    FeatureFlag {
        facts: PatternInfo {
            name: "practice.feature_flag",
            pattern: "feature_flag:{flag_name}",
            table: None,
            value_type: ValueType::String,
            ttl: Ttl::Fixed(Span::seconds(300)),
            sort_prefix: "",
        },
        partition: ["feature_flag", "" { flag_name: FlagName } ""],
        sort: [],
    }
}

typed_key! {
    /// A feature flag's rules for users, groups and all: the one source of what is cached: `flag:{flag_name}:rules`.
    FlagRules {
        facts: PatternInfo {
            name: "practice.flag_rules",
            pattern: "flag:{flag_name}:rules",
            table: Some("state"),
            value_type: ValueType::Json,
            ttl: Ttl::None,
            sort_prefix: "rules",
        },
        partition: ["flag", "" { flag_name: FlagName } ""],
        sort: ["rules"],
    }
}

typed_key! {
    /// Stream of content changes; a reader that falls too far behind gets an error: `content:changes`.
    ContentChanges {
        facts: PatternInfo {
            name: "practice.content_changes",
            pattern: "content:changes",
            table: None,
            value_type: ValueType::Stream,
            ttl: Ttl::None,
            sort_prefix: "",
        },
        partition: ["content", "changes"],
        sort: [],
    }
}

typed_key! {
    /// An explanation that was generated: `explanation:cache:{task_id}`.
    ExplanationCache {
        facts: PatternInfo {
            name: "practice.explanation_cache",
            pattern: "explanation:cache:{task_id}",
            table: None,
            value_type: ValueType::Json,
            ttl: Ttl::Fixed(Span::seconds(3600)),
            sort_prefix: "",
        },
        partition: ["explanation", "cache", "" { task_id: TaskId } ""],
        sort: [],
    }
}

typed_key! {
    /// An explanation for one language and one kind of error: `explanation:cache:{task_id}:{language}:{error_kind}`.
    ExplanationCacheFor {
        facts: PatternInfo {
            name: "practice.explanation_cache_for",
            pattern: "explanation:cache:{task_id}:{language}:{error_kind}",
            table: None,
            value_type: ValueType::Json,
            ttl: Ttl::Fixed(Span::seconds(3600)),
            sort_prefix: "",
        },
        partition: ["explanation", "cache", "" { task_id: TaskId } "", "" { language: Language } "", "" { error_kind: ErrorKind } ""],
        sort: [],
    }
}

typed_key! {
    /// An explanation is being generated; the owner's token lets only the owner release it: `explanation:pending:{task_id}`.
    ExplanationPending {
        facts: PatternInfo {
            name: "practice.explanation_pending",
            pattern: "explanation:pending:{task_id}",
            table: None,
            value_type: ValueType::String,
            ttl: Ttl::Fixed(Span::seconds(30)),
            sort_prefix: "",
        },
        partition: ["explanation", "pending", "" { task_id: TaskId } ""],
        sort: [],
    }
}

typed_key! {
    /// The same for one language and one kind of error: `explanation:pending:{task_id}:{language}:{error_kind}`.
    ExplanationPendingFor {
        facts: PatternInfo {
            name: "practice.explanation_pending_for",
            pattern: "explanation:pending:{task_id}:{language}:{error_kind}",
            table: None,
            value_type: ValueType::String,
            ttl: Ttl::Fixed(Span::seconds(30)),
            sort_prefix: "",
        },
        partition: ["explanation", "pending", "" { task_id: TaskId } "", "" { language: Language } "", "" { error_kind: ErrorKind } ""],
        sort: [],
    }
}

typed_key! {
    /// Figures of a group: `analytics:group:{group_id}`.
    AnalyticsGroup {
        facts: PatternInfo {
            name: "practice.analytics_group",
            pattern: "analytics:group:{group_id}",
            table: None,
            value_type: ValueType::Hash,
            ttl: Ttl::Fixed(Span::seconds(900)),
            sort_prefix: "",
        },
        partition: ["analytics", "group", "" { group_id: GroupId } ""],
        sort: [],
    }
}

typed_key! {
    /// Figures of a level: `analytics:level:{level_id}`.
    AnalyticsLevel {
        facts: PatternInfo {
            name: "practice.analytics_level",
            pattern: "analytics:level:{level_id}",
            table: None,
            value_type: ValueType::Hash,
            ttl: Ttl::Fixed(Span::seconds(900)),
            sort_prefix: "",
        },
        partition: ["analytics", "level", "" { level_id: LevelId } ""],
        sort: [],
    }
}

typed_key! {
    /// How often a user called an endpoint this minute: `ratelimit:{endpoint}:{user_id}`.
    RatelimitUser {
        facts: PatternInfo {
            name: "practice.ratelimit_user",
            pattern: "ratelimit:{endpoint}:{user_id}",
            table: None,
            value_type: ValueType::Counter,
            ttl: Ttl::Fixed(Span::seconds(60)),
            sort_prefix: "",
        },
        partition: ["ratelimit", "" { endpoint: Endpoint } "", "" { user_id: UserId } ""],
        sort: [],
    }
}

typed_key! {
    /// How often an address called this minute: `ratelimit:global:{ip}`.
    RatelimitIp {
        facts: PatternInfo {
            name: "practice.ratelimit_ip",
            pattern: "ratelimit:global:{ip}",
            table: None,
            value_type: ValueType::Counter,
            ttl: Ttl::Fixed(Span::seconds(60)),
            sort_prefix: "",
        },
        partition: ["ratelimit", "global", "" { ip: Ip } ""],
        sort: [],
    }
}

typed_key! {
    /// The same for one numbered minute, kept through the next one, which weighs it in: `ratelimit:{endpoint}:{user_id}:{minute}`.
    RatelimitUserMinute {
        facts: PatternInfo {
            name: "practice.ratelimit_user_minute",
            pattern: "ratelimit:{endpoint}:{user_id}:{minute}",
            table: None,
            value_type: ValueType::Counter,
            ttl: Ttl::Fixed(Span::seconds(120)),
            sort_prefix: "",
        },
        partition: ["ratelimit", "" { endpoint: Endpoint } "", "" { user_id: UserId } "", "" { minute: u64 } ""],
        sort: [],
    }
}

typed_key! {
    /// The same for an address: `ratelimit:global:{ip}:{minute}`.
    RatelimitIpMinute {
        facts: PatternInfo {
            name: "practice.ratelimit_ip_minute",
            pattern: "ratelimit:global:{ip}:{minute}",
            table: None,
            value_type: ValueType::Counter,
            ttl: Ttl::Fixed(Span::seconds(120)),
            sort_prefix: "",
        },
        partition: ["ratelimit", "global", "" { ip: Ip } "", "" { minute: u64 } ""],
        sort: [],
    }
}

typed_key! {
    /// Who has most points; made again from the ledger when it is gone: `leaderboard:{scope}:{scope_id}`.
    Leaderboard {
        facts: PatternInfo {
            name: "practice.leaderboard",
            pattern: "leaderboard:{scope}:{scope_id}",
            table: None,
            value_type: ValueType::Zset,
            ttl: Ttl::Fixed(Span::seconds(600)),
            sort_prefix: "",
        },
        partition: ["leaderboard", "" { scope: Scope } "", "" { scope_id: ScopeId } ""],
        sort: [],
    }
}

typed_key! {
    /// A task that waits for its first attempt; lives as long as the task's timer and a little more: `task:pending:{session_id}`.
    TaskPending {
        facts: PatternInfo {
            name: "practice.task_pending",
            pattern: "task:pending:{session_id}",
            table: None,
            value_type: ValueType::Json,
            ttl: Ttl::Fixed(Span { seconds: 300, seconds_min: 300, seconds_max: None }),
            sort_prefix: "",
        },
        partition: ["task", "pending", "" { session_id: SessionId } ""],
        sort: [],
    }
}

typed_key! {
    /// How a session ended, written before its key expires: `student:{user_id}:practice:session:{session_id}`.
    PracticeSession {
        facts: PatternInfo {
            name: "practice.practice_session",
            pattern: "student:{user_id}:practice:session:{session_id}",
            table: Some("state"),
            value_type: ValueType::Json,
            ttl: Ttl::None,
            sort_prefix: "practice:session:",
        },
        partition: ["student", "" { user_id: UserId } ""],
        sort: ["practice", "session", "" { session_id: SessionId } ""],
    }
}

typed_key! {
    /// One answer and its result: `student:{user_id}:practice:attempt:{at}:{attempt_id}`.
    PracticeAttempt {
        facts: PatternInfo {
            name: "practice.practice_attempt",
            pattern: "student:{user_id}:practice:attempt:{at}:{attempt_id}",
            table: Some("state"),
            value_type: ValueType::Json,
            ttl: Ttl::None,
            sort_prefix: "practice:attempt:",
        },
        partition: ["student", "" { user_id: UserId } ""],
        sort: ["practice", "attempt", "" { at: Millis } "", "" { attempt_id: AttemptId } ""],
    }
}

typed_key! {
    /// All points of a learner: `student:{user_id}:points:total`.
    PointsTotal {
        facts: PatternInfo {
            name: "practice.points_total",
            pattern: "student:{user_id}:points:total",
            table: Some("state"),
            value_type: ValueType::Json,
            ttl: Ttl::None,
            sort_prefix: "points:total",
        },
        partition: ["student", "" { user_id: UserId } ""],
        sort: ["points", "total"],
    }
}

typed_key! {
    /// The ledger of points: one award, for practice or for reviews: `student:{user_id}:points:{at}:{award_id}`.
    PointsAward {
        facts: PatternInfo {
            name: "practice.points_award",
            pattern: "student:{user_id}:points:{at}:{award_id}",
            table: Some("state"),
            value_type: ValueType::Json,
            ttl: Ttl::None,
            sort_prefix: "points:",
        },
        partition: ["student", "" { user_id: UserId } ""],
        sort: ["points", "" { at: Millis } "", "" { award_id: AwardId } ""],
    }
}
