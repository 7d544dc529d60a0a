//! The keys of `practice`. Practice sessions: hints, scores, feature flags, limits.
//!
//! Written by `kstone_keyspace::typed::rust_keys` from the catalogue: change that, then write this anew.

use kstone_keyspace::{Millis, Span, Ttl, key_parts, typed_keys};

key_parts! {
    /// `{session_id}`: 1 to 128 of A-Z a-z 0-9 _ . @ -.
    text SessionId("session_id", Id);
    /// `{user_id}`: 1 to 128 of A-Z a-z 0-9 _ . @ -.
    text UserId("user_id", Id);
    /// `{task_id}`: 1 to 128 of A-Z a-z 0-9 _ . @ -.
    text TaskId("task_id", Id);
    /// `{request_id}`: 1 to 128 of A-Z a-z 0-9 _ . @ -.
    text RequestId("request_id", Id);
    /// `{flag_name}`: 1 to 128 of A-Z a-z 0-9 _ . @ -.
    text FlagName("flag_name", Id);
    /// `{language}`: 1 to 128 of A-Z a-z 0-9 _ . @ -.
    text Language("language", Id);
    /// `{error_kind}`: 1 to 128 of A-Z a-z 0-9 _ . @ -.
    text ErrorKind("error_kind", Id);
    /// `{group_id}`: 1 to 128 of A-Z a-z 0-9 _ . @ -.
    text GroupId("group_id", Id);
    /// `{level_id}`: 1 to 128 of A-Z a-z 0-9 _ . @ -.
    text LevelId("level_id", Id);
    /// `{endpoint}`: 1 to 128 bytes of text, but not global.
    text Endpoint("endpoint", Text, except ["global"]);
    /// `{ip}`: 1 to 128 bytes of text.
    text Ip("ip", Text);
    /// `{scope}`: 1 to 128 of A-Z a-z 0-9 _ . @ -.
    text Scope("scope", Id);
    /// `{scope_id}`: 1 to 128 of A-Z a-z 0-9 _ . @ -.
    text ScopeId("scope_id", Id);
    /// `{attempt_id}`: 1 to 128 of A-Z a-z 0-9 _ . @ -.
    text AttemptId("attempt_id", Id);
    /// `{award_id}`: 1 to 128 of A-Z a-z 0-9 _ . @ -.
    text AwardId("award_id", Id);
}

typed_keys! {
    /// A practice session: `session:{session_id}`.
    Session = "practice.session", Hash, Ttl::Sliding(Span::seconds(3600)),
        partition: "session:" { session_id: SessionId };

    /// When a session began, in milliseconds: `session:timer:{session_id}`.
    SessionTimer = "practice.session_timer", String, Ttl::Sliding(Span::seconds(3600)),
        partition: "session:timer:" { session_id: SessionId };

    /// How many hints were bought in a session: `hints_used:{session_id}`.
    HintsUsed = "practice.hints_used", Counter, Ttl::Sliding(Span::seconds(3600)),
        partition: "hints_used:" { session_id: SessionId };

    /// A hint was just bought; keeps a second click from buying another: `hint:cooldown:{user_id}:{task_id}`.
    HintCooldown = "practice.hint_cooldown", String, Ttl::Fixed(Span::seconds(5)),
        partition: "hint:cooldown:" { user_id: UserId } ":" { task_id: TaskId };

    /// A purchase that was made, so that repeating it is free: `hint:purchase:{session_id}:{request_id}`.
    HintPurchase = "practice.hint_purchase", String, Ttl::Sliding(Span::seconds(3600)),
        partition: "hint:purchase:" { session_id: SessionId } ":" { request_id: RequestId };

    /// What looks like cheating: `anticheat:{user_id}`.
    Anticheat = "practice.anticheat", Hash, Ttl::Fixed(Span::seconds(86400)),
        partition: "anticheat:" { user_id: UserId };

    /// A learner who may not submit for a while: `anticheat:block:{user_id}`.
    AnticheatBlock = "practice.anticheat_block", String, Ttl::Fixed(Span { seconds: 900, seconds_min: 900, seconds_max: Some(86400) }),
        partition: "anticheat:block:" { user_id: UserId };

    /// The results of the last attempts: `score:series:{user_id}`.
    ScoreSeries = "practice.score_series", List, Ttl::Sliding(Span::seconds(86400)),
        partition: "score:series:" { user_id: UserId };

    /// How many answers in a row were right: `score:streak:{user_id}`.
    ScoreStreak = "practice.score_streak", Counter, Ttl::Sliding(Span::seconds(86400)),
        partition: "score:streak:" { user_id: UserId };

    /// All feature flags, cached: `feature_flag_cache`.
    FeatureFlags = "practice.feature_flags", Hash, Ttl::Fixed(Span::seconds(300)),
        partition: "feature_flag_cache";

    /// One feature flag, cached: `feature_flag:{flag_name}`.
    FeatureFlag = "practice.feature_flag", String, Ttl::Fixed(Span::seconds(300)),
        partition: "feature_flag:" { flag_name: FlagName };

    /// A feature flag's rules for users, groups and all: the one source of what is cached: `flag:{flag_name}:rules`.
    FlagRules = "practice.flag_rules", Json in "state", Ttl::None,
        partition: "flag:" { flag_name: FlagName },
        sort: "rules";

    /// Stream of content changes; a reader that falls too far behind gets an error: `content:changes`.
    ContentChanges = "practice.content_changes", Stream, Ttl::None,
        partition: "content:changes";

    /// An explanation that was generated: `explanation:cache:{task_id}`.
    ExplanationCache = "practice.explanation_cache", Json, Ttl::Fixed(Span::seconds(3600)),
        partition: "explanation:cache:" { task_id: TaskId };

    /// An explanation for one language and one kind of error: `explanation:cache:{task_id}:{language}:{error_kind}`.
    ExplanationCacheFor = "practice.explanation_cache_for", Json, Ttl::Fixed(Span::seconds(3600)),
        partition: "explanation:cache:" { task_id: TaskId } ":" { language: Language } ":" { error_kind: ErrorKind };

    /// An explanation is being generated; the owner's token lets only the owner release it: `explanation:pending:{task_id}`.
    ExplanationPending = "practice.explanation_pending", String, Ttl::Fixed(Span::seconds(30)),
        partition: "explanation:pending:" { task_id: TaskId };

    /// The same for one language and one kind of error: `explanation:pending:{task_id}:{language}:{error_kind}`.
    ExplanationPendingFor = "practice.explanation_pending_for", String, Ttl::Fixed(Span::seconds(30)),
        partition: "explanation:pending:" { task_id: TaskId } ":" { language: Language } ":" { error_kind: ErrorKind };

    /// Figures of a group: `analytics:group:{group_id}`.
    AnalyticsGroup = "practice.analytics_group", Hash, Ttl::Fixed(Span::seconds(900)),
        partition: "analytics:group:" { group_id: GroupId };

    /// Figures of a level: `analytics:level:{level_id}`.
    AnalyticsLevel = "practice.analytics_level", Hash, Ttl::Fixed(Span::seconds(900)),
        partition: "analytics:level:" { level_id: LevelId };

    /// How often a user called an endpoint this minute: `ratelimit:{endpoint}:{user_id}`.
    RatelimitUser = "practice.ratelimit_user", Counter, Ttl::Fixed(Span::seconds(60)),
        partition: "ratelimit:" { endpoint: Endpoint } ":" { user_id: UserId };

    /// How often an address called this minute: `ratelimit:global:{ip}`.
    RatelimitIp = "practice.ratelimit_ip", Counter, Ttl::Fixed(Span::seconds(60)),
        partition: "ratelimit:global:" { ip: Ip };

    /// The same for one numbered minute, kept through the next one, which weighs it in: `ratelimit:{endpoint}:{user_id}:{minute}`.
    RatelimitUserMinute = "practice.ratelimit_user_minute", Counter, Ttl::Fixed(Span::seconds(120)),
        partition: "ratelimit:" { endpoint: Endpoint } ":" { user_id: UserId } ":" { minute: u64 };

    /// The same for an address: `ratelimit:global:{ip}:{minute}`.
    RatelimitIpMinute = "practice.ratelimit_ip_minute", Counter, Ttl::Fixed(Span::seconds(120)),
        partition: "ratelimit:global:" { ip: Ip } ":" { minute: u64 };

    /// Who has most points; made again from the ledger when it is gone: `leaderboard:{scope}:{scope_id}`.
    Leaderboard = "practice.leaderboard", Zset, Ttl::Fixed(Span::seconds(600)),
        partition: "leaderboard:" { scope: Scope } ":" { scope_id: ScopeId };

    /// A task that waits for its first attempt; lives as long as the task's timer and a little more: `task:pending:{session_id}`.
    TaskPending = "practice.task_pending", Json, Ttl::Fixed(Span { seconds: 300, seconds_min: 300, seconds_max: None }),
        partition: "task:pending:" { session_id: SessionId };

    /// How a session ended, written before its key expires: `student:{user_id}:practice:session:{session_id}`.
    PracticeSession = "practice.practice_session", Json in "state", Ttl::None,
        partition: "student:" { user_id: UserId },
        sort: "practice:session:" { session_id: SessionId };

    /// One answer and its result: `student:{user_id}:practice:attempt:{at}:{attempt_id}`.
    PracticeAttempt = "practice.practice_attempt", Json in "state", Ttl::None,
        partition: "student:" { user_id: UserId },
        sort: "practice:attempt:" { at: Millis } ":" { attempt_id: AttemptId };

    /// All points of a learner: `student:{user_id}:points:total`.
    PointsTotal = "practice.points_total", Json in "state", Ttl::None,
        partition: "student:" { user_id: UserId },
        sort: "points:total";

    /// The ledger of points: one award, for practice or for reviews: `student:{user_id}:points:{at}:{award_id}`.
    PointsAward = "practice.points_award", Json in "state", Ttl::None,
        partition: "student:" { user_id: UserId },
        sort: "points:" { at: Millis } ":" { award_id: AwardId };
}
