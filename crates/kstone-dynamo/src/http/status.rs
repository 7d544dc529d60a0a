//! HTTP status lines.

/// The statuses that this door gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Status {
    Ok,
    BadRequest,
    NotFound,
    RequestTimeout,
    PayloadTooLarge,
    HeadTooLarge,
    InternalError,
    ServiceUnavailable,
}

impl Status {
    /// The number and its words.
    pub(super) fn line(self) -> &'static str {
        match self {
            Status::Ok => "200 OK",
            Status::BadRequest => "400 Bad Request",
            Status::NotFound => "404 Not Found",
            Status::RequestTimeout => "408 Request Timeout",
            Status::PayloadTooLarge => "413 Payload Too Large",
            Status::HeadTooLarge => "431 Request Header Fields Too Large",
            Status::InternalError => "500 Internal Server Error",
            Status::ServiceUnavailable => "503 Service Unavailable",
        }
    }
}
