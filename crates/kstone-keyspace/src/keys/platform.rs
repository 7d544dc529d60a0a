//! The keys of `platform`. The learning platform: jobs, schedules, alerts, audit, and requests that came before.
//!
//! Written by `kstone_keyspace::typed::rust_keys` from the catalogue: change that, then write this anew.

use kstone_keyspace::{Date, Millis, Span, Ttl, key_parts, typed_keys};

key_parts! {
    /// `{queue}`: 1 to 128 of A-Z a-z 0-9 _ . @ -.
    text Queue("queue", Id);
    /// `{part}`: a whole number from 0 to 3.
    int Part("part", 0..=3);
    /// `{job_id}`: 1 to 128 of A-Z a-z 0-9 _ . @ -.
    text JobId("job_id", Id);
    /// `{schedule_name}`: 1 to 128 of A-Z a-z 0-9 _ . @ -.
    text ScheduleName("schedule_name", Id);
    /// `{alert_id}`: 1 to 128 of A-Z a-z 0-9 _ . @ -.
    text AlertId("alert_id", Id);
    /// `{audit_id}`: 1 to 128 of A-Z a-z 0-9 _ . @ -.
    text AuditId("audit_id", Id);
    /// `{request}`: 1 to 128 of A-Z a-z 0-9 _ . @ -.
    text Request("request", Id);
    /// `{limit_kind}`: 1 to 128 of A-Z a-z 0-9 _ . @ -.
    text LimitKind("limit_kind", Id);
    /// `{client}`: 1 to 128 bytes of text.
    text Client("client", Text);
}

typed_keys! {
    /// Work that is to be done; `due` says whether it waits or runs, and until when: `jobs:{queue}:{part}:{job_id}`.
    Job = "platform.job", Item in "platform", Ttl::None,
        partition: "jobs:" { queue: Queue } ":" { part: Part },
        sort: "" { job_id: JobId };

    /// Work that was given up, and why: `dead_jobs:{queue}:{at}:{job_id}`.
    DeadJob = "platform.dead_job", Item in "platform", Ttl::Fixed(Span::seconds(7776000)),
        partition: "dead_jobs:" { queue: Queue },
        sort: "" { at: Millis } ":" { job_id: JobId };

    /// The last time that something regular was set going: `schedules:{schedule_name}`.
    Schedule = "platform.schedule", Item in "platform", Ttl::None,
        partition: "schedules",
        sort: "" { schedule_name: ScheduleName };

    /// Something that a person should look at: `alerts:{at}:{alert_id}`.
    Alert = "platform.alert", Json in "platform", Ttl::Fixed(Span::seconds(7776000)),
        partition: "alerts",
        sort: "" { at: Millis } ":" { alert_id: AlertId };

    /// Who did what, and to whose data: `audit:{date}:{at}:{audit_id}`.
    Audit = "platform.audit", Json in "platform", Ttl::Fixed(Span::seconds(31536000)),
        partition: "audit:" { date: Date },
        sort: "" { at: Millis } ":" { audit_id: AuditId };

    /// A request and what was answered, so that repeating it does nothing twice: `idempotency:{request}`.
    Idempotency = "platform.idempotency", Item in "platform", Ttl::Fixed(Span::seconds(86400)),
        partition: "idempotency:" { request: Request };

    /// How many requests of a kind a client made this minute and the one before: `restlimit:{limit_kind}:{client}`.
    RequestWindow = "platform.request_window", Hash, Ttl::Sliding(Span::seconds(120)),
        partition: "restlimit:" { limit_kind: LimitKind } ":" { client: Client };
}
