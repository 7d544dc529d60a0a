//! The keys of `mastery`. The mastery engine: how well learners know what they learn.
//!
//! Written by `kstone_keyspace::typed::rust_keys` from the catalogue: change that, then write this anew.

use kstone_keyspace::typed::PatternInfo;
use kstone_keyspace::{Date, Kind, Millis, Span, Ttl, ValueType, key_part, typed_key};

key_part! {
    /// `{student_id}`: 1 to 128 of A-Z a-z 0-9 _ . @ -.
    text StudentId = "student_id", Kind::Id, []
}

key_part! {
    /// `{component}`: one of completion, quiz, quality, consistency.
    choice Component {
        Completion = "completion",
        Quiz = "quiz",
        Quality = "quality",
        Consistency = "consistency",
    }
}

key_part! {
    /// `{event_id}`: 1 to 128 of A-Z a-z 0-9 _ . @ -.
    text EventId = "event_id", Kind::Id, []
}

key_part! {
    /// `{history_type}`: one of full, components, recommendations.
    choice HistoryType {
        Full = "full",
        Components = "components",
        Recommendations = "recommendations",
    }
}

key_part! {
    /// `{skill_id}`: 1 to 128 of A-Z a-z 0-9 _ . @ -.
    text SkillId = "skill_id", Kind::Id, []
}

key_part! {
    /// `{days}`: a whole number from 1 to 365.
    int Days = "days", 1..=365
}

key_part! {
    /// `{recommendation_id}`: 1 to 128 of A-Z a-z 0-9 _ . @ -.
    text RecommendationId = "recommendation_id", Kind::Id, []
}

key_part! {
    /// `{batch_id}`: 1 to 128 of A-Z a-z 0-9 _ . @ -.
    text BatchId = "batch_id", Kind::Id, []
}

key_part! {
    /// `{school_id}`: 1 to 128 of A-Z a-z 0-9 _ . @ -.
    text SchoolId = "school_id", Kind::Id, []
}

key_part! {
    /// `{class_id}`: 1 to 128 of A-Z a-z 0-9 _ . @ -.
    text ClassId = "class_id", Kind::Id, []
}

key_part! {
    /// `{shard}`: a whole number from 0 to 15.
    int Shard = "shard", 0..=15
}

key_part! {
    /// `{item_id}`: 1 to 128 of A-Z a-z 0-9 _ . @ -.
    text ItemId = "item_id", Kind::Id, []
}

typed_key! {
    /// A learner's mastery now, for quick reading: `student:{student_id}:profile:current_mastery`.
    CurrentMastery {
        facts: PatternInfo {
            name: "mastery.current_mastery",
            pattern: "student:{student_id}:profile:current_mastery",
            table: Some("state"),
            value_type: ValueType::Json,
            ttl: Ttl::None,
            sort_prefix: "profile:current_mastery",
        },
        partition: ["student", "" { student_id: StudentId } ""],
        sort: ["profile", "current_mastery"],
    }
}

typed_key! {
    /// The longest streak of days, which outlives the recent activity it was seen in: `student:{student_id}:profile:streaks`.
    Streaks {
        facts: PatternInfo {
            name: "mastery.streaks",
            pattern: "student:{student_id}:profile:streaks",
            table: Some("state"),
            value_type: ValueType::Json,
            ttl: Ttl::None,
            sort_prefix: "profile:streaks",
        },
        partition: ["student", "" { student_id: StudentId } ""],
        sort: ["profile", "streaks"],
    }
}

typed_key! {
    /// What the events that have expired came to; with those that are left it gives the whole state: `student:{student_id}:profile:event_snapshot`.
    EventSnapshot {
        facts: PatternInfo {
            name: "mastery.event_snapshot",
            pattern: "student:{student_id}:profile:event_snapshot",
            table: Some("state"),
            value_type: ValueType::Json,
            ttl: Ttl::None,
            sort_prefix: "profile:event_snapshot",
        },
        partition: ["student", "" { student_id: StudentId } ""],
        sort: ["profile", "event_snapshot"],
    }
}

typed_key! {
    /// What all events of a learner come to; the next event goes on from here: `student:{student_id}:profile:state`.
    LearnerState {
        facts: PatternInfo {
            name: "mastery.learner_state",
            pattern: "student:{student_id}:profile:state",
            table: Some("state"),
            value_type: ValueType::Json,
            ttl: Ttl::None,
            sort_prefix: "profile:state",
        },
        partition: ["student", "" { student_id: StudentId } ""],
        sort: ["profile", "state"],
    }
}

typed_key! {
    /// A learner's name, time zone, school, classes and consent: `student:{student_id}:profile:learner`.
    Learner {
        facts: PatternInfo {
            name: "mastery.learner",
            pattern: "student:{student_id}:profile:learner",
            table: Some("state"),
            value_type: ValueType::Json,
            ttl: Ttl::None,
            sort_prefix: "profile:learner",
        },
        partition: ["student", "" { student_id: StudentId } ""],
        sort: ["profile", "learner"],
    }
}

typed_key! {
    /// A learner's mastery on a day: `student:{student_id}:mastery:{date}`.
    DailyMastery {
        facts: PatternInfo {
            name: "mastery.daily_mastery",
            pattern: "student:{student_id}:mastery:{date}",
            table: Some("state"),
            value_type: ValueType::Json,
            ttl: Ttl::Fixed(Span::seconds(7776000)),
            sort_prefix: "mastery:",
        },
        partition: ["student", "" { student_id: StudentId } ""],
        sort: ["mastery", "" { date: Date } ""],
    }
}

typed_key! {
    /// One component of a learner's mastery on a day: `student:{student_id}:mastery:{date}:{component}`.
    ComponentScore {
        facts: PatternInfo {
            name: "mastery.component_score",
            pattern: "student:{student_id}:mastery:{date}:{component}",
            table: Some("state"),
            value_type: ValueType::String,
            ttl: Ttl::Fixed(Span::seconds(7776000)),
            sort_prefix: "mastery:",
        },
        partition: ["student", "" { student_id: StudentId } ""],
        sort: ["mastery", "" { date: Date } "", "" { component: Component } ""],
    }
}

typed_key! {
    /// An event that was processed, so that it is processed once; kept as long as the events: `processed:{event_id}`.
    ProcessedEvent {
        facts: PatternInfo {
            name: "mastery.processed_event",
            pattern: "processed:{event_id}",
            table: Some("state"),
            value_type: ValueType::Json,
            ttl: Ttl::Fixed(Span::seconds(7776000)),
            sort_prefix: "",
        },
        partition: ["processed", "" { event_id: EventId } ""],
        sort: [],
    }
}

typed_key! {
    /// When a learner was active of late: `student:{student_id}:activity:recent`.
    ActivityRecent {
        facts: PatternInfo {
            name: "mastery.activity_recent",
            pattern: "student:{student_id}:activity:recent",
            table: Some("state"),
            value_type: ValueType::Json,
            ttl: Ttl::Fixed(Span::seconds(2592000)),
            sort_prefix: "activity:recent",
        },
        partition: ["student", "" { student_id: StudentId } ""],
        sort: ["activity", "recent"],
    }
}

typed_key! {
    /// A view of a learner's history; the days it is made of are kept one by one: `student:{student_id}:history:{history_type}`.
    History {
        facts: PatternInfo {
            name: "mastery.history",
            pattern: "student:{student_id}:history:{history_type}",
            table: Some("state"),
            value_type: ValueType::Json,
            ttl: Ttl::None,
            sort_prefix: "history:",
        },
        partition: ["student", "" { student_id: StudentId } ""],
        sort: ["history", "" { history_type: HistoryType } ""],
    }
}

typed_key! {
    /// One day of a learner's history: `student:{student_id}:history:{history_type}:{date}`.
    HistoryDay {
        facts: PatternInfo {
            name: "mastery.history_day",
            pattern: "student:{student_id}:history:{history_type}:{date}",
            table: Some("state"),
            value_type: ValueType::Json,
            ttl: Ttl::None,
            sort_prefix: "history:",
        },
        partition: ["student", "" { student_id: StudentId } ""],
        sort: ["history", "" { history_type: HistoryType } "", "" { date: Date } ""],
    }
}

typed_key! {
    /// A learner's rating in one skill, from which the chance of success follows: `student:{student_id}:skill:{skill_id}`.
    Skill {
        facts: PatternInfo {
            name: "mastery.skill",
            pattern: "student:{student_id}:skill:{skill_id}",
            table: Some("state"),
            value_type: ValueType::Json,
            ttl: Ttl::None,
            sort_prefix: "skill:",
        },
        partition: ["student", "" { student_id: StudentId } ""],
        sort: ["skill", "" { skill_id: SkillId } ""],
    }
}

typed_key! {
    /// Where a learner's mastery is going; costly to compute: `student:{student_id}:prediction:{days}days`.
    Prediction {
        facts: PatternInfo {
            name: "mastery.prediction",
            pattern: "student:{student_id}:prediction:{days}days",
            table: Some("state"),
            value_type: ValueType::Json,
            ttl: Ttl::Fixed(Span::seconds(3600)),
            sort_prefix: "prediction:",
        },
        partition: ["student", "" { student_id: StudentId } ""],
        sort: ["prediction", "" { days: Days } "days"],
    }
}

typed_key! {
    /// What a learner should do next: `student:{student_id}:path:adaptive`.
    AdaptivePath {
        facts: PatternInfo {
            name: "mastery.adaptive_path",
            pattern: "student:{student_id}:path:adaptive",
            table: Some("state"),
            value_type: ValueType::Json,
            ttl: Ttl::Fixed(Span::seconds(86400)),
            sort_prefix: "path:adaptive",
        },
        partition: ["student", "" { student_id: StudentId } ""],
        sort: ["path", "adaptive"],
    }
}

typed_key! {
    /// Something that was recommended to a learner, and whether it helped: `student:{student_id}:recommendation:{at}:{recommendation_id}`.
    Recommendation {
        facts: PatternInfo {
            name: "mastery.recommendation",
            pattern: "student:{student_id}:recommendation:{at}:{recommendation_id}",
            table: Some("state"),
            value_type: ValueType::Json,
            ttl: Ttl::Fixed(Span::seconds(31536000)),
            sort_prefix: "recommendation:",
        },
        partition: ["student", "" { student_id: StudentId } ""],
        sort: ["recommendation", "" { at: Millis } "", "" { recommendation_id: RecommendationId } ""],
    }
}

typed_key! {
    /// Something that happened; never changed: `student:{student_id}:events:{at}:{event_id}`.
    Event {
        facts: PatternInfo {
            name: "mastery.event",
            pattern: "student:{student_id}:events:{at}:{event_id}",
            table: Some("state"),
            value_type: ValueType::Json,
            ttl: Ttl::Fixed(Span::seconds(7776000)),
            sort_prefix: "events:",
        },
        partition: ["student", "" { student_id: StudentId } ""],
        sort: ["events", "" { at: Millis } "", "" { event_id: EventId } ""],
    }
}

typed_key! {
    /// How far a batch is: `batch:{batch_id}:status`.
    BatchStatus {
        facts: PatternInfo {
            name: "mastery.batch_status",
            pattern: "batch:{batch_id}:status",
            table: Some("state"),
            value_type: ValueType::Json,
            ttl: Ttl::Fixed(Span::seconds(604800)),
            sort_prefix: "status",
        },
        partition: ["batch", "" { batch_id: BatchId } ""],
        sort: ["status"],
    }
}

typed_key! {
    /// What a batch is to write of one learner, and what went wrong: `batch:{batch_id}:request:{student_id}`.
    BatchRequest {
        facts: PatternInfo {
            name: "mastery.batch_request",
            pattern: "batch:{batch_id}:request:{student_id}",
            table: Some("state"),
            value_type: ValueType::Json,
            ttl: Ttl::Fixed(Span::seconds(604800)),
            sort_prefix: "request:",
        },
        partition: ["batch", "" { batch_id: BatchId } ""],
        sort: ["request", "" { student_id: StudentId } ""],
    }
}

typed_key! {
    /// Second-level cache of the current mastery: `mastery:{student_id}`.
    MasteryCache {
        facts: PatternInfo {
            name: "mastery.mastery_cache",
            pattern: "mastery:{student_id}",
            table: None,
            value_type: ValueType::Json,
            ttl: Ttl::Fixed(Span::seconds(300)),
            sort_prefix: "",
        },
        partition: ["mastery", "" { student_id: StudentId } ""],
        sort: [],
    }
}

typed_key! {
    /// A learner's mastery now, within a school: `school:{school_id}:student:{student_id}:profile:current_mastery`.
    SchoolMastery {
        facts: PatternInfo {
            name: "mastery.school_mastery",
            pattern: "school:{school_id}:student:{student_id}:profile:current_mastery",
            table: Some("state"),
            value_type: ValueType::Json,
            ttl: Ttl::None,
            sort_prefix: "profile:current_mastery",
        },
        partition: ["school", "" { school_id: SchoolId } "", "student", "" { student_id: StudentId } ""],
        sort: ["profile", "current_mastery"],
    }
}

typed_key! {
    /// The mastery of a whole school on a day; no learner is named in it: `school:{school_id}:aggregation:mastery:{date}`.
    SchoolAggregation {
        facts: PatternInfo {
            name: "mastery.school_aggregation",
            pattern: "school:{school_id}:aggregation:mastery:{date}",
            table: Some("state"),
            value_type: ValueType::Json,
            ttl: Ttl::None,
            sort_prefix: "mastery:",
        },
        partition: ["school", "" { school_id: SchoolId } "", "aggregation"],
        sort: ["mastery", "" { date: Date } ""],
    }
}

typed_key! {
    /// A school that has learners or classes: `schools:{school_id}`.
    School {
        facts: PatternInfo {
            name: "mastery.school",
            pattern: "schools:{school_id}",
            table: Some("state"),
            value_type: ValueType::Json,
            ttl: Ttl::None,
            sort_prefix: "",
        },
        partition: ["schools"],
        sort: ["" { school_id: SchoolId } ""],
    }
}

typed_key! {
    /// A learner of a school: `school:{school_id}:roster:{student_id}`.
    SchoolRoster {
        facts: PatternInfo {
            name: "mastery.school_roster",
            pattern: "school:{school_id}:roster:{student_id}",
            table: Some("state"),
            value_type: ValueType::Json,
            ttl: Ttl::None,
            sort_prefix: "",
        },
        partition: ["school", "" { school_id: SchoolId } "", "roster"],
        sort: ["" { student_id: StudentId } ""],
    }
}

typed_key! {
    /// A class of a school, to list them by: `school:{school_id}:classes:{class_id}`.
    SchoolClass {
        facts: PatternInfo {
            name: "mastery.school_class",
            pattern: "school:{school_id}:classes:{class_id}",
            table: Some("state"),
            value_type: ValueType::Json,
            ttl: Ttl::None,
            sort_prefix: "",
        },
        partition: ["school", "" { school_id: SchoolId } "", "classes"],
        sort: ["" { class_id: ClassId } ""],
    }
}

typed_key! {
    /// What a class is called: `school:{school_id}:class:{class_id}:profile`.
    Class {
        facts: PatternInfo {
            name: "mastery.class",
            pattern: "school:{school_id}:class:{class_id}:profile",
            table: Some("state"),
            value_type: ValueType::Json,
            ttl: Ttl::None,
            sort_prefix: "profile",
        },
        partition: ["school", "" { school_id: SchoolId } "", "class", "" { class_id: ClassId } ""],
        sort: ["profile"],
    }
}

typed_key! {
    /// A learner of a class: `school:{school_id}:class:{class_id}:member:{student_id}`.
    ClassMember {
        facts: PatternInfo {
            name: "mastery.class_member",
            pattern: "school:{school_id}:class:{class_id}:member:{student_id}",
            table: Some("state"),
            value_type: ValueType::Json,
            ttl: Ttl::None,
            sort_prefix: "member:",
        },
        partition: ["school", "" { school_id: SchoolId } "", "class", "" { class_id: ClassId } ""],
        sort: ["member", "" { student_id: StudentId } ""],
    }
}

typed_key! {
    /// That there is such a learner, for the jobs that look at all of them; in 16 parts, so that many can be added at once: `learners:{shard}:{student_id}`.
    LearnerEntry {
        facts: PatternInfo {
            name: "mastery.learner_entry",
            pattern: "learners:{shard}:{student_id}",
            table: Some("state"),
            value_type: ValueType::Json,
            ttl: Ttl::None,
            sort_prefix: "",
        },
        partition: ["learners", "" { shard: Shard } ""],
        sort: ["" { student_id: StudentId } ""],
    }
}

typed_key! {
    /// How hard an exercise is, from the answers of all learners; no learner is named in it: `skill:{skill_id}:item:{item_id}`.
    ItemRating {
        facts: PatternInfo {
            name: "mastery.item_rating",
            pattern: "skill:{skill_id}:item:{item_id}",
            table: Some("state"),
            value_type: ValueType::Json,
            ttl: Ttl::None,
            sort_prefix: "item:",
        },
        partition: ["skill", "" { skill_id: SkillId } ""],
        sort: ["item", "" { item_id: ItemId } ""],
    }
}

typed_key! {
    /// Which cached masteries are out of date, for other processes; by a salted hash, so that no learner is named: `cache:mastery:invalidations`.
    MasteryInvalidations {
        facts: PatternInfo {
            name: "mastery.mastery_invalidations",
            pattern: "cache:mastery:invalidations",
            table: None,
            value_type: ValueType::Stream,
            ttl: Ttl::None,
            sort_prefix: "",
        },
        partition: ["cache", "mastery", "invalidations"],
        sort: [],
    }
}

typed_key! {
    /// What is hashed with learners' ids where they must not be named: `cache:mastery:salt`.
    MasterySalt {
        facts: PatternInfo {
            name: "mastery.mastery_salt",
            pattern: "cache:mastery:salt",
            table: None,
            value_type: ValueType::String,
            ttl: Ttl::None,
            sort_prefix: "",
        },
        partition: ["cache", "mastery", "salt"],
        sort: [],
    }
}

typed_key! {
    /// Short for `student:{student_id}:profile:current_mastery`: `st:{student_id}:cur`.
    CurrentShort {
        facts: PatternInfo {
            name: "mastery.current_short",
            pattern: "st:{student_id}:cur",
            table: Some("state"),
            value_type: ValueType::Json,
            ttl: Ttl::None,
            sort_prefix: "cur",
        },
        partition: ["st", "" { student_id: StudentId } ""],
        sort: ["cur"],
    }
}

typed_key! {
    /// Short for `student:{student_id}:mastery:{date}`: `st:{student_id}:m:{date}`.
    DailyShort {
        facts: PatternInfo {
            name: "mastery.daily_short",
            pattern: "st:{student_id}:m:{date}",
            table: Some("state"),
            value_type: ValueType::Json,
            ttl: Ttl::Fixed(Span::seconds(7776000)),
            sort_prefix: "m:",
        },
        partition: ["st", "" { student_id: StudentId } ""],
        sort: ["m", "" { date: Date } ""],
    }
}

typed_key! {
    /// Short for `student:{student_id}:mastery:{date}:{component}`: `st:{student_id}:m:{date}:{component}`.
    ComponentShort {
        facts: PatternInfo {
            name: "mastery.component_short",
            pattern: "st:{student_id}:m:{date}:{component}",
            table: Some("state"),
            value_type: ValueType::String,
            ttl: Ttl::Fixed(Span::seconds(7776000)),
            sort_prefix: "m:",
        },
        partition: ["st", "" { student_id: StudentId } ""],
        sort: ["m", "" { date: Date } "", "" { component: Component } ""],
    }
}

typed_key! {
    /// Short for `processed:{event_id}`: `proc:{event_id}`.
    ProcessedShort {
        facts: PatternInfo {
            name: "mastery.processed_short",
            pattern: "proc:{event_id}",
            table: Some("state"),
            value_type: ValueType::Json,
            ttl: Ttl::Fixed(Span::seconds(7776000)),
            sort_prefix: "",
        },
        partition: ["proc", "" { event_id: EventId } ""],
        sort: [],
    }
}

typed_key! {
    /// Short for `student:{student_id}:profile:current_mastery`: `st:p{shard}:{student_id}:cur`.
    CurrentSharded {
        facts: PatternInfo {
            name: "mastery.current_sharded",
            pattern: "st:p{shard}:{student_id}:cur",
            table: Some("state"),
            value_type: ValueType::Json,
            ttl: Ttl::None,
            sort_prefix: "cur",
        },
        partition: ["st", "p" { shard: Shard } "", "" { student_id: StudentId } ""],
        sort: ["cur"],
    }
}

typed_key! {
    /// Short for `student:{student_id}:mastery:{date}`: `st:p{shard}:{student_id}:m:{date}`.
    DailySharded {
        facts: PatternInfo {
            name: "mastery.daily_sharded",
            pattern: "st:p{shard}:{student_id}:m:{date}",
            table: Some("state"),
            value_type: ValueType::Json,
            ttl: Ttl::Fixed(Span::seconds(7776000)),
            sort_prefix: "m:",
        },
        partition: ["st", "p" { shard: Shard } "", "" { student_id: StudentId } ""],
        sort: ["m", "" { date: Date } ""],
    }
}

typed_key! {
    /// Short for `student:{student_id}:mastery:{date}:{component}`: `st:p{shard}:{student_id}:m:{date}:{component}`.
    ComponentSharded {
        facts: PatternInfo {
            name: "mastery.component_sharded",
            pattern: "st:p{shard}:{student_id}:m:{date}:{component}",
            table: Some("state"),
            value_type: ValueType::String,
            ttl: Ttl::Fixed(Span::seconds(7776000)),
            sort_prefix: "m:",
        },
        partition: ["st", "p" { shard: Shard } "", "" { student_id: StudentId } ""],
        sort: ["m", "" { date: Date } "", "" { component: Component } ""],
    }
}
