//! The keys of `reviews`. Spaced repetition: what a learner is to repeat, and when.
//!
//! Written by `kstone_keyspace::typed::rust_keys` from the catalogue: change that, then write this anew.

use kstone_keyspace::{Span, Ttl, key_parts, typed_keys};

key_parts! {
    /// `{learner_id}`: 1 to 128 of A-Z a-z 0-9 _ . @ -.
    text LearnerId("learner_id", Id);
    /// `{season}`: 1 to 128 of A-Z a-z 0-9 _ . @ -.
    text Season("season", Id);
    /// `{question_id}`: 1 to 128 of A-Z a-z 0-9 _ . @ -.
    text QuestionId("question_id", Id);
    /// `{review_id}`: 1 to 128 of A-Z a-z 0-9 _ . @ -.
    text ReviewId("review_id", Id);
}

typed_keys! {
    /// A learner's questions by the second at which each is due; loaded again when the learner returns: `srs:{learner_id}:{season}`.
    Schedule = "reviews.schedule", Zset, Ttl::Sliding(Span::seconds(2592000)),
        partition: "srs:" { learner_id: LearnerId } ":" { season: Season };

    /// The schedule is loaded: tells nothing due from not loaded: `srs:{learner_id}:{season}:hydrated`.
    Hydrated = "reviews.hydrated", String, Ttl::Sliding(Span::seconds(2592000)),
        partition: "srs:" { learner_id: LearnerId } ":" { season: Season } ":hydrated";

    /// A learner's last request in safe mode; today that is counted in the process, since the cache is what failed: `safe_mode_rate:{learner_id}`.
    SafeModeRate = "reviews.safe_mode_rate", String, Ttl::Fixed(Span::seconds(30)),
        partition: "safe_mode_rate:" { learner_id: LearnerId };

    /// What is known of a learner's memory of one question: the truth behind the schedule: `{learner_id}:{question_id}`.
    Memory = "reviews.memory", Item in "reviews-{season}", Ttl::None,
        partition: "" { learner_id: LearnerId },
        sort: "" { question_id: QuestionId };

    /// A review that was written, so that a retry writes it once: `{learner_id}:review:{review_id}`.
    Review = "reviews.review", Item in "reviews-{season}", Ttl::None,
        partition: "" { learner_id: LearnerId },
        sort: "review:" { review_id: ReviewId };

    /// The same of a season that is over, kept for three years: `{learner_id}:{question_id}`.
    ArchivedMemory = "reviews.archived_memory", Item in "archived-reviews-{season}", Ttl::Fixed(Span::seconds(94608000)),
        partition: "" { learner_id: LearnerId },
        sort: "" { question_id: QuestionId };

    /// A season: whether it is active, its scheduler, how far its archive is: `season:{season}:settings`.
    SeasonSettings = "reviews.season_settings", Json in "state", Ttl::None,
        partition: "season:" { season: Season },
        sort: "settings";
}
