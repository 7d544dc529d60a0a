//! The keys of `mastery`. The mastery engine: how well learners know what they learn.
//!
//! Written by `kstone_keyspace::typed::rust_keys` from the catalogue: change that, then write this anew.

use kstone_keyspace::{Date, Millis, Span, Ttl, key_parts, typed_keys};

key_parts! {
    /// `{student_id}`: 1 to 128 of A-Z a-z 0-9 _ . @ -.
    text StudentId("student_id", Id);
    /// `{component}`: one of completion, quiz, quality, consistency.
    choice Component(Completion = "completion", Quiz = "quiz", Quality = "quality", Consistency = "consistency");
    /// `{event_id}`: 1 to 128 of A-Z a-z 0-9 _ . @ -.
    text EventId("event_id", Id);
    /// `{history_type}`: one of full, components, recommendations.
    choice HistoryType(Full = "full", Components = "components", Recommendations = "recommendations");
    /// `{skill_id}`: 1 to 128 of A-Z a-z 0-9 _ . @ -.
    text SkillId("skill_id", Id);
    /// `{days}`: a whole number from 1 to 365.
    int Days("days", 1..=365);
    /// `{recommendation_id}`: 1 to 128 of A-Z a-z 0-9 _ . @ -.
    text RecommendationId("recommendation_id", Id);
    /// `{batch_id}`: 1 to 128 of A-Z a-z 0-9 _ . @ -.
    text BatchId("batch_id", Id);
    /// `{school_id}`: 1 to 128 of A-Z a-z 0-9 _ . @ -.
    text SchoolId("school_id", Id);
    /// `{class_id}`: 1 to 128 of A-Z a-z 0-9 _ . @ -.
    text ClassId("class_id", Id);
    /// `{shard}`: a whole number from 0 to 15.
    int Shard("shard", 0..=15);
    /// `{item_id}`: 1 to 128 of A-Z a-z 0-9 _ . @ -.
    text ItemId("item_id", Id);
}

typed_keys! {
    /// A learner's mastery now, for quick reading: `student:{student_id}:profile:current_mastery`.
    CurrentMastery = "mastery.current_mastery", Json in "state", Ttl::None,
        partition: "student:" { student_id: StudentId },
        sort: "profile:current_mastery";

    /// The longest streak of days, which outlives the recent activity it was seen in: `student:{student_id}:profile:streaks`.
    Streaks = "mastery.streaks", Json in "state", Ttl::None,
        partition: "student:" { student_id: StudentId },
        sort: "profile:streaks";

    /// What the events that have expired came to; with those that are left it gives the whole state: `student:{student_id}:profile:event_snapshot`.
    EventSnapshot = "mastery.event_snapshot", Json in "state", Ttl::None,
        partition: "student:" { student_id: StudentId },
        sort: "profile:event_snapshot";

    /// What all events of a learner come to; the next event goes on from here: `student:{student_id}:profile:state`.
    LearnerState = "mastery.learner_state", Json in "state", Ttl::None,
        partition: "student:" { student_id: StudentId },
        sort: "profile:state";

    /// A learner's name, time zone, school, classes and consent: `student:{student_id}:profile:learner`.
    Learner = "mastery.learner", Json in "state", Ttl::None,
        partition: "student:" { student_id: StudentId },
        sort: "profile:learner";

    /// A learner's mastery on a day: `student:{student_id}:mastery:{date}`.
    DailyMastery = "mastery.daily_mastery", Json in "state", Ttl::Fixed(Span::seconds(7776000)),
        partition: "student:" { student_id: StudentId },
        sort: "mastery:" { date: Date };

    /// One component of a learner's mastery on a day: `student:{student_id}:mastery:{date}:{component}`.
    ComponentScore = "mastery.component_score", String in "state", Ttl::Fixed(Span::seconds(7776000)),
        partition: "student:" { student_id: StudentId },
        sort: "mastery:" { date: Date } ":" { component: Component };

    /// An event that was processed, so that it is processed once; kept as long as the events: `processed:{event_id}`.
    ProcessedEvent = "mastery.processed_event", Json in "state", Ttl::Fixed(Span::seconds(7776000)),
        partition: "processed:" { event_id: EventId };

    /// When a learner was active of late: `student:{student_id}:activity:recent`.
    ActivityRecent = "mastery.activity_recent", Json in "state", Ttl::Fixed(Span::seconds(2592000)),
        partition: "student:" { student_id: StudentId },
        sort: "activity:recent";

    /// A view of a learner's history; the days it is made of are kept one by one: `student:{student_id}:history:{history_type}`.
    History = "mastery.history", Json in "state", Ttl::None,
        partition: "student:" { student_id: StudentId },
        sort: "history:" { history_type: HistoryType };

    /// One day of a learner's history: `student:{student_id}:history:{history_type}:{date}`.
    HistoryDay = "mastery.history_day", Json in "state", Ttl::None,
        partition: "student:" { student_id: StudentId },
        sort: "history:" { history_type: HistoryType } ":" { date: Date };

    /// A learner's rating in one skill, from which the chance of success follows: `student:{student_id}:skill:{skill_id}`.
    Skill = "mastery.skill", Json in "state", Ttl::None,
        partition: "student:" { student_id: StudentId },
        sort: "skill:" { skill_id: SkillId };

    /// Where a learner's mastery is going; costly to compute: `student:{student_id}:prediction:{days}days`.
    Prediction = "mastery.prediction", Json in "state", Ttl::Fixed(Span::seconds(3600)),
        partition: "student:" { student_id: StudentId },
        sort: "prediction:" { days: Days } "days";

    /// What a learner should do next: `student:{student_id}:path:adaptive`.
    AdaptivePath = "mastery.adaptive_path", Json in "state", Ttl::Fixed(Span::seconds(86400)),
        partition: "student:" { student_id: StudentId },
        sort: "path:adaptive";

    /// Something that was recommended to a learner, and whether it helped: `student:{student_id}:recommendation:{at}:{recommendation_id}`.
    Recommendation = "mastery.recommendation", Json in "state", Ttl::Fixed(Span::seconds(31536000)),
        partition: "student:" { student_id: StudentId },
        sort: "recommendation:" { at: Millis } ":" { recommendation_id: RecommendationId };

    /// Something that happened; never changed: `student:{student_id}:events:{at}:{event_id}`.
    Event = "mastery.event", Json in "state", Ttl::Fixed(Span::seconds(7776000)),
        partition: "student:" { student_id: StudentId },
        sort: "events:" { at: Millis } ":" { event_id: EventId };

    /// How far a batch is: `batch:{batch_id}:status`.
    BatchStatus = "mastery.batch_status", Json in "state", Ttl::Fixed(Span::seconds(604800)),
        partition: "batch:" { batch_id: BatchId },
        sort: "status";

    /// What a batch is to write of one learner, and what went wrong: `batch:{batch_id}:request:{student_id}`.
    BatchRequest = "mastery.batch_request", Json in "state", Ttl::Fixed(Span::seconds(604800)),
        partition: "batch:" { batch_id: BatchId },
        sort: "request:" { student_id: StudentId };

    /// Second-level cache of the current mastery: `mastery:{student_id}`.
    MasteryCache = "mastery.mastery_cache", Json, Ttl::Fixed(Span::seconds(300)),
        partition: "mastery:" { student_id: StudentId };

    /// A learner's mastery now, within a school: `school:{school_id}:student:{student_id}:profile:current_mastery`.
    SchoolMastery = "mastery.school_mastery", Json in "state", Ttl::None,
        partition: "school:" { school_id: SchoolId } ":student:" { student_id: StudentId },
        sort: "profile:current_mastery";

    /// The mastery of a whole school on a day; no learner is named in it: `school:{school_id}:aggregation:mastery:{date}`.
    SchoolAggregation = "mastery.school_aggregation", Json in "state", Ttl::None,
        partition: "school:" { school_id: SchoolId } ":aggregation",
        sort: "mastery:" { date: Date };

    /// A school that has learners or classes: `schools:{school_id}`.
    School = "mastery.school", Json in "state", Ttl::None,
        partition: "schools",
        sort: "" { school_id: SchoolId };

    /// A learner of a school: `school:{school_id}:roster:{student_id}`.
    SchoolRoster = "mastery.school_roster", Json in "state", Ttl::None,
        partition: "school:" { school_id: SchoolId } ":roster",
        sort: "" { student_id: StudentId };

    /// A class of a school, to list them by: `school:{school_id}:classes:{class_id}`.
    SchoolClass = "mastery.school_class", Json in "state", Ttl::None,
        partition: "school:" { school_id: SchoolId } ":classes",
        sort: "" { class_id: ClassId };

    /// What a class is called: `school:{school_id}:class:{class_id}:profile`.
    Class = "mastery.class", Json in "state", Ttl::None,
        partition: "school:" { school_id: SchoolId } ":class:" { class_id: ClassId },
        sort: "profile";

    /// A learner of a class: `school:{school_id}:class:{class_id}:member:{student_id}`.
    ClassMember = "mastery.class_member", Json in "state", Ttl::None,
        partition: "school:" { school_id: SchoolId } ":class:" { class_id: ClassId },
        sort: "member:" { student_id: StudentId };

    /// That there is such a learner, for the jobs that look at all of them; in 16 parts, so that many can be added at once: `learners:{shard}:{student_id}`.
    LearnerEntry = "mastery.learner_entry", Json in "state", Ttl::None,
        partition: "learners:" { shard: Shard },
        sort: "" { student_id: StudentId };

    /// How hard an exercise is, from the answers of all learners; no learner is named in it: `skill:{skill_id}:item:{item_id}`.
    ItemRating = "mastery.item_rating", Json in "state", Ttl::None,
        partition: "skill:" { skill_id: SkillId },
        sort: "item:" { item_id: ItemId };

    /// Which cached masteries are out of date, for other processes; by a salted hash, so that no learner is named: `cache:mastery:invalidations`.
    MasteryInvalidations = "mastery.mastery_invalidations", Stream, Ttl::None,
        partition: "cache:mastery:invalidations";

    /// What is hashed with learners' ids where they must not be named: `cache:mastery:salt`.
    MasterySalt = "mastery.mastery_salt", String, Ttl::None,
        partition: "cache:mastery:salt";

    /// Short for `student:{student_id}:profile:current_mastery`: `st:{student_id}:cur`.
    CurrentShort = "mastery.current_short", Json in "state", Ttl::None,
        partition: "st:" { student_id: StudentId },
        sort: "cur";

    /// Short for `student:{student_id}:mastery:{date}`: `st:{student_id}:m:{date}`.
    DailyShort = "mastery.daily_short", Json in "state", Ttl::Fixed(Span::seconds(7776000)),
        partition: "st:" { student_id: StudentId },
        sort: "m:" { date: Date };

    /// Short for `student:{student_id}:mastery:{date}:{component}`: `st:{student_id}:m:{date}:{component}`.
    ComponentShort = "mastery.component_short", String in "state", Ttl::Fixed(Span::seconds(7776000)),
        partition: "st:" { student_id: StudentId },
        sort: "m:" { date: Date } ":" { component: Component };

    /// Short for `processed:{event_id}`: `proc:{event_id}`.
    ProcessedShort = "mastery.processed_short", Json in "state", Ttl::Fixed(Span::seconds(7776000)),
        partition: "proc:" { event_id: EventId };

    /// Short for `student:{student_id}:profile:current_mastery`: `st:p{shard}:{student_id}:cur`.
    CurrentSharded = "mastery.current_sharded", Json in "state", Ttl::None,
        partition: "st:p" { shard: Shard } ":" { student_id: StudentId },
        sort: "cur";

    /// Short for `student:{student_id}:mastery:{date}`: `st:p{shard}:{student_id}:m:{date}`.
    DailySharded = "mastery.daily_sharded", Json in "state", Ttl::Fixed(Span::seconds(7776000)),
        partition: "st:p" { shard: Shard } ":" { student_id: StudentId },
        sort: "m:" { date: Date };

    /// Short for `student:{student_id}:mastery:{date}:{component}`: `st:p{shard}:{student_id}:m:{date}:{component}`.
    ComponentSharded = "mastery.component_sharded", String in "state", Ttl::Fixed(Span::seconds(7776000)),
        partition: "st:p" { shard: Shard } ":" { student_id: StudentId },
        sort: "m:" { date: Date } ":" { component: Component };
}
