//! The messages of `dapr.proto.runtime.v1` and `dapr.proto.common.v1` that are about state.

use std::collections::HashMap;

use bytes::Bytes;
use prost::Message;

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Etag {
    #[prost(string, tag = "1")]
    pub value: String,
}

#[derive(Clone, Copy, PartialEq, Message)]
pub(crate) struct StateOptions {
    /// 1 is first write, 2 is last write.
    #[prost(int32, tag = "1")]
    pub concurrency: i32,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct StateItem {
    #[prost(string, tag = "1")]
    pub key: String,
    #[prost(bytes = "bytes", tag = "2")]
    pub value: Bytes,
    #[prost(message, optional, tag = "3")]
    pub etag: Option<Etag>,
    #[prost(map = "string, string", tag = "4")]
    pub metadata: HashMap<String, String>,
    #[prost(message, optional, tag = "5")]
    pub options: Option<StateOptions>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct GetStateRequest {
    #[prost(string, tag = "1")]
    pub store_name: String,
    #[prost(string, tag = "2")]
    pub key: String,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct GetStateResponse {
    #[prost(bytes = "bytes", tag = "1")]
    pub data: Bytes,
    #[prost(string, tag = "2")]
    pub etag: String,
    #[prost(map = "string, string", tag = "3")]
    pub metadata: HashMap<String, String>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct GetBulkStateRequest {
    #[prost(string, tag = "1")]
    pub store_name: String,
    #[prost(string, repeated, tag = "2")]
    pub keys: Vec<String>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct BulkStateItem {
    #[prost(string, tag = "1")]
    pub key: String,
    #[prost(bytes = "bytes", tag = "2")]
    pub data: Bytes,
    #[prost(string, tag = "3")]
    pub etag: String,
    #[prost(map = "string, string", tag = "5")]
    pub metadata: HashMap<String, String>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct GetBulkStateResponse {
    #[prost(message, repeated, tag = "1")]
    pub items: Vec<BulkStateItem>,
}

/// Of SaveState and DeleteBulkState.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct StatesRequest {
    #[prost(string, tag = "1")]
    pub store_name: String,
    #[prost(message, repeated, tag = "2")]
    pub states: Vec<StateItem>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct DeleteStateRequest {
    #[prost(string, tag = "1")]
    pub store_name: String,
    #[prost(string, tag = "2")]
    pub key: String,
    #[prost(message, optional, tag = "3")]
    pub etag: Option<Etag>,
    #[prost(message, optional, tag = "4")]
    pub options: Option<StateOptions>,
    #[prost(map = "string, string", tag = "5")]
    pub metadata: HashMap<String, String>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct TransactionalStateOperation {
    #[prost(string, tag = "1")]
    pub operation_type: String,
    #[prost(message, optional, tag = "2")]
    pub request: Option<StateItem>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ExecuteStateTransactionRequest {
    #[prost(string, tag = "1")]
    pub store_name: String,
    #[prost(message, repeated, tag = "2")]
    pub operations: Vec<TransactionalStateOperation>,
    #[prost(map = "string, string", tag = "3")]
    pub metadata: HashMap<String, String>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct QueryStateRequest {
    #[prost(string, tag = "1")]
    pub store_name: String,
    #[prost(string, tag = "2")]
    pub query: String,
    #[prost(map = "string, string", tag = "3")]
    pub metadata: HashMap<String, String>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct QueryStateItem {
    #[prost(string, tag = "1")]
    pub key: String,
    #[prost(bytes = "bytes", tag = "2")]
    pub data: Bytes,
    #[prost(string, tag = "3")]
    pub etag: String,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct QueryStateResponse {
    #[prost(message, repeated, tag = "1")]
    pub results: Vec<QueryStateItem>,
    #[prost(string, tag = "2")]
    pub token: String,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct RegisteredComponent {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(string, tag = "2")]
    pub kind: String,
    #[prost(string, tag = "3")]
    pub version: String,
    #[prost(string, repeated, tag = "4")]
    pub capabilities: Vec<String>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct GetMetadataResponse {
    #[prost(string, tag = "1")]
    pub id: String,
    #[prost(message, repeated, tag = "3")]
    pub components: Vec<RegisteredComponent>,
    #[prost(map = "string, string", tag = "4")]
    pub extended: HashMap<String, String>,
    #[prost(string, tag = "8")]
    pub runtime_version: String,
}
