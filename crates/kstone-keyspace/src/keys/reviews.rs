//! The keys of `reviews`. Spaced repetition: what a learner is to repeat, and when.
//!
//! Written by `kstone_keyspace::typed::rust_keys` from the catalogue: change that, then write this anew.

use kstone_keyspace::typed::PatternInfo;
use kstone_keyspace::{Kind, Span, Ttl, ValueType, key_part, typed_key};

key_part! {
    /// `{learner_id}`: 1 to 128 of A-Z a-z 0-9 _ . @ -.
    text LearnerId = "learner_id", Kind::Id, []
}

key_part! {
    /// `{season}`: 1 to 128 of A-Z a-z 0-9 _ . @ -.
    text Season = "season", Kind::Id, []
}

key_part! {
    /// `{question_id}`: 1 to 128 of A-Z a-z 0-9 _ . @ -.
    text QuestionId = "question_id", Kind::Id, []
}

key_part! {
    /// `{review_id}`: 1 to 128 of A-Z a-z 0-9 _ . @ -.
    text ReviewId = "review_id", Kind::Id, []
}

typed_key! {
    /// A learner's questions by the second at which each is due; loaded again when the learner returns: `srs:{learner_id}:{season}`.
    Schedule {
        facts: PatternInfo {
            name: "reviews.schedule",
            pattern: "srs:{learner_id}:{season}",
            table: None,
            value_type: ValueType::Zset,
            ttl: Ttl::Sliding(Span::seconds(2592000)),
            sort_prefix: "",
        },
        partition: ["srs", "" { learner_id: LearnerId } "", "" { season: Season } ""],
        sort: [],
    }
}

typed_key! {
    /// The schedule is loaded: tells nothing due from not loaded: `srs:{learner_id}:{season}:hydrated`.
    Hydrated {
        facts: PatternInfo {
            name: "reviews.hydrated",
            pattern: "srs:{learner_id}:{season}:hydrated",
            table: None,
            value_type: ValueType::String,
            ttl: Ttl::Sliding(Span::seconds(2592000)),
            sort_prefix: "",
        },
        partition: ["srs", "" { learner_id: LearnerId } "", "" { season: Season } "", "hydrated"],
        sort: [],
    }
}

typed_key! {
    /// A learner's last request in safe mode; today that is counted in the process, since the cache is what failed: `safe_mode_rate:{learner_id}`.
    SafeModeRate {
        facts: PatternInfo {
            name: "reviews.safe_mode_rate",
            pattern: "safe_mode_rate:{learner_id}",
            table: None,
            value_type: ValueType::String,
            ttl: Ttl::Fixed(Span::seconds(30)),
            sort_prefix: "",
        },
        partition: ["safe_mode_rate", "" { learner_id: LearnerId } ""],
        sort: [],
    }
}

typed_key! {
    /// What is known of a learner's memory of one question: the truth behind the schedule: `{learner_id}:{question_id}`.
    Memory {
        facts: PatternInfo {
            name: "reviews.memory",
            pattern: "{learner_id}:{question_id}",
            table: Some("reviews-{season}"),
            value_type: ValueType::Item,
            ttl: Ttl::None,
            sort_prefix: "",
        },
        partition: ["" { learner_id: LearnerId } ""],
        sort: ["" { question_id: QuestionId } ""],
    }
}

typed_key! {
    /// A review that was written, so that a retry writes it once: `{learner_id}:review:{review_id}`.
    Review {
        facts: PatternInfo {
            name: "reviews.review",
            pattern: "{learner_id}:review:{review_id}",
            table: Some("reviews-{season}"),
            value_type: ValueType::Item,
            ttl: Ttl::None,
            sort_prefix: "review:",
        },
        partition: ["" { learner_id: LearnerId } ""],
        sort: ["review", "" { review_id: ReviewId } ""],
    }
}

typed_key! {
    /// The same of a season that is over, kept for three years: `{learner_id}:{question_id}`.
    ArchivedMemory {
        facts: PatternInfo {
            name: "reviews.archived_memory",
            pattern: "{learner_id}:{question_id}",
            table: Some("archived-reviews-{season}"),
            value_type: ValueType::Item,
            ttl: Ttl::Fixed(Span::seconds(94608000)),
            sort_prefix: "",
        },
        partition: ["" { learner_id: LearnerId } ""],
        sort: ["" { question_id: QuestionId } ""],
    }
}

typed_key! {
    /// A season: whether it is active, its scheduler, how far its archive is: `season:{season}:settings`.
    SeasonSettings {
        facts: PatternInfo {
            name: "reviews.season_settings",
            pattern: "season:{season}:settings",
            table: Some("state"),
            value_type: ValueType::Json,
            ttl: Ttl::None,
            sort_prefix: "settings",
        },
        partition: ["season", "" { season: Season } ""],
        sort: ["settings"],
    }
}
