//! Dapr over gRPC: the state API that SDKs call, and the pluggable component that a sidecar calls.

mod call;
mod component;
mod details;
pub mod messages;
mod reflection;
mod runtime;

pub(crate) use component::answer as answer_sidecar;
pub(crate) use runtime::answer;
