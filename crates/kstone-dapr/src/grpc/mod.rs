//! What is asked over gRPC: Dapr's state API, as SDKs call it, and the component that a sidecar
//! plugs in.

mod call;
mod component;
mod details;
mod messages;
mod reflection;
mod runtime;

pub(crate) use component::answer as answer_sidecar;
pub(crate) use runtime::answer;
