//! The keys of `platform`. The learning platform: jobs, schedules, alerts, audit, and requests that came before.
//!
//! Written by `kstone_keyspace::typed::rust_keys` from the catalogue: change that, then write this anew.

use kstone_keyspace::typed::PatternInfo;
use kstone_keyspace::{Date, Kind, Millis, Span, Ttl, ValueType, key_part, typed_key};

key_part! {
    /// `{queue}`: 1 to 128 of A-Z a-z 0-9 _ . @ -.
    text Queue = "queue", Kind::Id, []
}

key_part! {
    /// `{part}`: a whole number from 0 to 3.
    int Part = "part", 0..=3
}

key_part! {
    /// `{job_id}`: 1 to 128 of A-Z a-z 0-9 _ . @ -.
    text JobId = "job_id", Kind::Id, []
}

key_part! {
    /// `{schedule_name}`: 1 to 128 of A-Z a-z 0-9 _ . @ -.
    text ScheduleName = "schedule_name", Kind::Id, []
}

key_part! {
    /// `{alert_id}`: 1 to 128 of A-Z a-z 0-9 _ . @ -.
    text AlertId = "alert_id", Kind::Id, []
}

key_part! {
    /// `{audit_id}`: 1 to 128 of A-Z a-z 0-9 _ . @ -.
    text AuditId = "audit_id", Kind::Id, []
}

key_part! {
    /// `{request}`: 1 to 128 of A-Z a-z 0-9 _ . @ -.
    text Request = "request", Kind::Id, []
}

key_part! {
    /// `{limit_kind}`: 1 to 128 of A-Z a-z 0-9 _ . @ -.
    text LimitKind = "limit_kind", Kind::Id, []
}

key_part! {
    /// `{client}`: 1 to 128 bytes of text.
    text Client = "client", Kind::Text, []
}

typed_key! {
    /// Work that is to be done; `due` says whether it waits or runs, and until when: `jobs:{queue}:{part}:{job_id}`.
    Job {
        facts: PatternInfo {
            name: "platform.job",
            pattern: "jobs:{queue}:{part}:{job_id}",
            table: Some("platform"),
            value_type: ValueType::Item,
            ttl: Ttl::None,
            sort_prefix: "",
        },
        partition: ["jobs", "" { queue: Queue } "", "" { part: Part } ""],
        sort: ["" { job_id: JobId } ""],
    }
}

typed_key! {
    /// Work that was given up, and why: `dead_jobs:{queue}:{at}:{job_id}`.
    DeadJob {
        facts: PatternInfo {
            name: "platform.dead_job",
            pattern: "dead_jobs:{queue}:{at}:{job_id}",
            table: Some("platform"),
            value_type: ValueType::Item,
            ttl: Ttl::Fixed(Span::seconds(7776000)),
            sort_prefix: "",
        },
        partition: ["dead_jobs", "" { queue: Queue } ""],
        sort: ["" { at: Millis } "", "" { job_id: JobId } ""],
    }
}

typed_key! {
    /// The last time that something regular was set going: `schedules:{schedule_name}`.
    Schedule {
        facts: PatternInfo {
            name: "platform.schedule",
            pattern: "schedules:{schedule_name}",
            table: Some("platform"),
            value_type: ValueType::Item,
            ttl: Ttl::None,
            sort_prefix: "",
        },
        partition: ["schedules"],
        sort: ["" { schedule_name: ScheduleName } ""],
    }
}

typed_key! {
    /// Something that a person should look at: `alerts:{at}:{alert_id}`.
    Alert {
        facts: PatternInfo {
            name: "platform.alert",
            pattern: "alerts:{at}:{alert_id}",
            table: Some("platform"),
            value_type: ValueType::Json,
            ttl: Ttl::Fixed(Span::seconds(7776000)),
            sort_prefix: "",
        },
        partition: ["alerts"],
        sort: ["" { at: Millis } "", "" { alert_id: AlertId } ""],
    }
}

typed_key! {
    /// Who did what, and to whose data: `audit:{date}:{at}:{audit_id}`.
    Audit {
        facts: PatternInfo {
            name: "platform.audit",
            pattern: "audit:{date}:{at}:{audit_id}",
            table: Some("platform"),
            value_type: ValueType::Json,
            ttl: Ttl::Fixed(Span::seconds(31536000)),
            sort_prefix: "",
        },
        partition: ["audit", "" { date: Date } ""],
        sort: ["" { at: Millis } "", "" { audit_id: AuditId } ""],
    }
}

typed_key! {
    /// A request and what was answered, so that repeating it does nothing twice: `idempotency:{request}`.
    Idempotency {
        facts: PatternInfo {
            name: "platform.idempotency",
            pattern: "idempotency:{request}",
            table: Some("platform"),
            value_type: ValueType::Item,
            ttl: Ttl::Fixed(Span::seconds(86400)),
            sort_prefix: "",
        },
        partition: ["idempotency", "" { request: Request } ""],
        sort: [],
    }
}

typed_key! {
    /// How many requests of a kind a client made this minute and the one before: `restlimit:{limit_kind}:{client}`.
    RequestWindow {
        facts: PatternInfo {
            name: "platform.request_window",
            pattern: "restlimit:{limit_kind}:{client}",
            table: None,
            value_type: ValueType::Hash,
            ttl: Ttl::Sliding(Span::seconds(120)),
            sort_prefix: "",
        },
        partition: ["restlimit", "" { limit_kind: LimitKind } "", "" { client: Client } ""],
        sort: [],
    }
}
