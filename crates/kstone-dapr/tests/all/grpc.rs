//! The state API over gRPC. The messages are written down here once more, from Dapr's own
//! definition, so that a wrong field number on either side shows.

use std::collections::HashMap;

use kstone_dapr::DoorOptions;
use prost::Message;
use tonic::client::Grpc;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request, Status};
use tonic_prost::ProstCodec;

use crate::server::Server;

#[derive(Clone, PartialEq, Message)]
struct Text {
    #[prost(string, tag = "1")]
    value: String,
}

#[derive(Clone, PartialEq, Message)]
struct Options {
    #[prost(int32, tag = "1")]
    concurrency: i32,
    #[prost(int32, tag = "2")]
    consistency: i32,
}

#[derive(Clone, PartialEq, Message)]
struct StateItem {
    #[prost(string, tag = "1")]
    key: String,
    #[prost(bytes = "vec", tag = "2")]
    value: Vec<u8>,
    #[prost(message, optional, tag = "3")]
    etag: Option<Text>,
    #[prost(map = "string, string", tag = "4")]
    metadata: HashMap<String, String>,
    #[prost(message, optional, tag = "5")]
    options: Option<Options>,
}

/// SaveStateRequest, DeleteBulkStateRequest.
#[derive(Clone, PartialEq, Message)]
struct States {
    #[prost(string, tag = "1")]
    store: String,
    #[prost(message, repeated, tag = "2")]
    states: Vec<StateItem>,
}

/// GetStateRequest, and QueryStateRequest with the query for the key.
#[derive(Clone, PartialEq, Message)]
struct Get {
    #[prost(string, tag = "1")]
    store: String,
    #[prost(string, tag = "2")]
    key: String,
    #[prost(int32, tag = "3")]
    consistency: i32,
}

#[derive(Clone, PartialEq, Message)]
struct Got {
    #[prost(bytes = "vec", tag = "1")]
    data: Vec<u8>,
    #[prost(string, tag = "2")]
    etag: String,
    #[prost(map = "string, string", tag = "3")]
    metadata: HashMap<String, String>,
}

#[derive(Clone, PartialEq, Message)]
struct GetBulk {
    #[prost(string, tag = "1")]
    store: String,
    #[prost(string, repeated, tag = "2")]
    keys: Vec<String>,
}

/// BulkStateItem, QueryStateItem.
#[derive(Clone, PartialEq, Message)]
struct BulkItem {
    #[prost(string, tag = "1")]
    key: String,
    #[prost(bytes = "vec", tag = "2")]
    data: Vec<u8>,
    #[prost(string, tag = "3")]
    etag: String,
}

/// GetBulkStateResponse, QueryStateResponse.
#[derive(Clone, PartialEq, Message)]
struct Bulk {
    #[prost(message, repeated, tag = "1")]
    items: Vec<BulkItem>,
    #[prost(string, tag = "2")]
    token: String,
}

#[derive(Clone, PartialEq, Message)]
struct Delete {
    #[prost(string, tag = "1")]
    store: String,
    #[prost(string, tag = "2")]
    key: String,
    #[prost(message, optional, tag = "3")]
    etag: Option<Text>,
}

#[derive(Clone, PartialEq, Message)]
struct Operation {
    #[prost(string, tag = "1")]
    kind: String,
    #[prost(message, optional, tag = "2")]
    request: Option<StateItem>,
}

#[derive(Clone, PartialEq, Message)]
struct Transaction {
    #[prost(string, tag = "1")]
    store: String,
    #[prost(message, repeated, tag = "2")]
    operations: Vec<Operation>,
    #[prost(map = "string, string", tag = "3")]
    metadata: HashMap<String, String>,
}

#[derive(Clone, PartialEq, Message)]
struct Component {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, repeated, tag = "4")]
    capabilities: Vec<String>,
}

#[derive(Clone, PartialEq, Message)]
struct Metadata {
    #[prost(string, tag = "1")]
    id: String,
    #[prost(message, repeated, tag = "3")]
    components: Vec<Component>,
    #[prost(string, tag = "8")]
    runtime_version: String,
}

const STORE: &str = "statestore";

#[derive(Clone)]
struct Client(Grpc<Channel>, Option<&'static str>);

impl Client {
    async fn of(server: &Server) -> Client {
        let endpoint = Endpoint::from_shared(format!("http://{}", server.grpc)).unwrap();
        Client(Grpc::new(endpoint.connect().await.unwrap()), None)
    }

    async fn call<M, R>(&self, method: &str, message: M) -> Result<R, Status>
    where
        M: Message + 'static,
        R: Message + Default + 'static,
    {
        let mut client = self.0.clone();
        client.ready().await.unwrap();
        let path = format!("/dapr.proto.runtime.v1.Dapr/{method}").parse().unwrap();
        let mut request = Request::new(message);
        if let Some(token) = self.1 {
            request.metadata_mut().insert("dapr-api-token", token.parse().unwrap());
        }
        let codec = ProstCodec::<M, R>::default();
        client.unary(request, path, codec).await.map(tonic::Response::into_inner)
    }

    async fn save(&self, states: Vec<StateItem>) -> Result<(), Status> {
        self.call("SaveState", States { store: STORE.to_owned(), states }).await
    }

    async fn get(&self, key: &str) -> Got {
        let get = Get { store: STORE.to_owned(), key: key.to_owned(), consistency: 2 };
        self.call("GetState", get).await.unwrap()
    }

    async fn delete(&self, key: &str, etag: Option<&str>) -> Result<(), Status> {
        let etag = etag.map(|value| Text { value: value.to_owned() });
        self.call("DeleteState", Delete { store: STORE.to_owned(), key: key.to_owned(), etag })
            .await
    }
}

fn item(key: &str, value: &[u8]) -> StateItem {
    StateItem { key: key.to_owned(), value: value.to_vec(), ..StateItem::default() }
}

fn with_etag(key: &str, value: &[u8], etag: &str) -> StateItem {
    StateItem { etag: Some(Text { value: etag.to_owned() }), ..item(key, value) }
}

#[tokio::test]
async fn what_is_saved_over_grpc_is_read_over_http_and_the_other_way_round() {
    let server = Server::start().await;
    let client = Client::of(&server).await;
    client.save(vec![item("text", b"{\"a\":1}"), item("bytes", b"\xff\x00\x01")]).await.unwrap();
    assert_eq!(server.get("text").await.text(), "{\"a\":1}");
    assert_eq!(server.get("bytes").await.body, b"\xff\x00\x01");
    assert_eq!(client.get("bytes").await.data, b"\xff\x00\x01");
    assert_eq!(client.get("text").await.etag, server.etag("text").await);
    server.save(r#"[{"key":"k","value":2,"metadata":{"ttlInSeconds":"60"}}]"#).await.done();
    let got = client.get("k").await;
    assert_eq!((got.data, got.metadata.len()), (b"2".to_vec(), 1));
    assert_eq!(got.metadata["ttlExpireTime"], "2026-01-14T09:01:00Z");
    client.delete("k", None).await.unwrap();
    assert_eq!(client.get("k").await, Got::default());
    server.get("k").await.done();
}

#[tokio::test]
async fn an_etag_that_does_not_match_aborts_and_a_bad_one_is_invalid() {
    let server = Server::start().await;
    let client = Client::of(&server).await;
    client.save(vec![item("k", b"1")]).await.unwrap();
    let etag = client.get("k").await.etag;
    client.save(vec![with_etag("k", b"2", &etag)]).await.unwrap();
    let code = |refused: Result<(), Status>| refused.unwrap_err().code();
    assert_eq!(code(client.save(vec![with_etag("k", b"3", &etag)]).await), Code::Aborted);
    assert_eq!(code(client.delete("k", Some(&etag)).await), Code::Aborted);
    assert_eq!(code(client.delete("k", Some("bad")).await), Code::InvalidArgument);
    let first =
        StateItem { options: Some(Options { concurrency: 1, consistency: 2 }), ..item("k", b"3") };
    assert_eq!(code(client.save(vec![first.clone()]).await), Code::Aborted);
    assert_eq!(client.get("k").await.data, b"2");
    client.delete("k", Some(&client.get("k").await.etag)).await.unwrap();
    client.save(vec![first]).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_100_racing_updates_with_the_same_etag_exactly_one_wins() {
    let server = Server::start().await;
    let client = Client::of(&server).await;
    client.save(vec![item("k", b"-")]).await.unwrap();
    let etag = client.get("k").await.etag;
    let mut racing = tokio::task::JoinSet::new();
    for n in 0..100 {
        let (client, save) = (client.clone(), with_etag("k", n.to_string().as_bytes(), &etag));
        racing.spawn(async move { client.save(vec![save]).await });
    }
    let done = racing.join_all().await;
    assert_eq!(done.iter().filter(|it| it.is_ok()).count(), 1);
    let lost = done.iter().filter_map(|it| it.as_ref().err());
    assert!(lost.into_iter().all(|status| status.code() == Code::Aborted));
}

#[tokio::test]
async fn bulk_calls_transactions_and_queries_do_what_they_do_over_http() {
    let server = Server::start().await;
    let client = Client::of(&server).await;
    let upsert = |key: &str, value: &[u8]| Operation {
        kind: "upsert".to_owned(),
        request: Some(item(key, value)),
    };
    let delete = |key: &str| Operation { kind: "delete".to_owned(), request: Some(item(key, b"")) };
    let transaction = |operations: Vec<Operation>| Transaction {
        store: STORE.to_owned(),
        operations,
        metadata: HashMap::from([("ttlInSeconds".to_owned(), "30".to_owned())]),
    };
    let all = vec![upsert("a", b"1"), upsert("b", b"{\"x\":1}"), delete("a"), upsert("c", b"3")];
    let done: Result<(), Status> = client.call("ExecuteStateTransaction", transaction(all)).await;
    done.unwrap();
    assert_eq!(client.get("c").await.metadata["ttlExpireTime"], "2026-01-14T09:00:30Z");
    let unknown = Operation { kind: "append".to_owned(), request: None };
    let refused: Result<(), Status> =
        client.call("ExecuteStateTransaction", transaction(vec![unknown])).await;
    assert_eq!(refused.unwrap_err().code(), Code::InvalidArgument);

    let keys = ["a", "b", "c"].map(str::to_owned).to_vec();
    let bulk: Bulk =
        client.call("GetBulkState", GetBulk { store: STORE.to_owned(), keys }).await.unwrap();
    let found: Vec<(&str, &[u8])> =
        bulk.items.iter().map(|it| (it.key.as_str(), it.data.as_slice())).collect();
    assert_eq!(found, [("a", &b""[..]), ("b", b"{\"x\":1}"), ("c", b"3")]);
    assert!(bulk.items[0].etag.is_empty() && !bulk.items[1].etag.is_empty());

    let query = r#"{"filter":{"EQ":{"x":1}}}"#.to_owned();
    let query = Get { store: STORE.to_owned(), key: query, consistency: 0 };
    let found: Bulk = client.call("QueryStateAlpha1", query).await.unwrap();
    assert_eq!(found.items.iter().map(|it| it.key.as_str()).collect::<Vec<_>>(), ["b"]);

    let states = vec![item("b", b""), item("c", b""), item("never there", b"")];
    let done: Result<(), Status> =
        client.call("DeleteBulkState", States { store: STORE.to_owned(), states }).await;
    done.unwrap();
    assert_eq!(client.get("b").await, Got::default());
}

#[tokio::test]
async fn calls_that_sdks_make_on_start_are_answered_and_others_are_not_implemented() {
    let server = Server::start().await;
    let client = Client::of(&server).await;
    let metadata: Metadata = client.call("GetMetadata", ()).await.unwrap();
    assert_eq!((metadata.id.as_str(), metadata.components.len()), ("kstone", 1));
    assert_eq!(metadata.components[0].name, STORE);
    assert!(metadata.components[0].capabilities.contains(&"TRANSACTIONAL".to_owned()));
    assert!(!metadata.runtime_version.is_empty());
    let other: Result<(), Status> = client.call("PublishEvent", ()).await;
    assert_eq!(other.unwrap_err().code(), Code::Unimplemented);
    let get = Get { store: "other".to_owned(), key: "k".to_owned(), consistency: 0 };
    let other: Result<Got, Status> = client.call("GetState", get).await;
    let other = other.unwrap_err();
    assert_eq!(other.code(), Code::InvalidArgument);
    assert_eq!(other.message(), "state store other is not found");
}

#[tokio::test]
async fn a_token_is_asked_for_when_there_is_one() {
    let options = DoorOptions { api_token: Some("s3cret".to_owned()), ..DoorOptions::default() };
    let server = Server::start_with(options).await;
    let client = Client::of(&server).await;
    for (token, passes) in [(None, false), (Some("wrong!"), false), (Some("s3cret"), true)] {
        let client = Client(client.0.clone(), token);
        let answer: Result<Metadata, Status> = client.call("GetMetadata", ()).await;
        assert_eq!(
            answer.as_ref().err().map(Status::code),
            (!passes).then_some(Code::Unauthenticated)
        );
    }
}

#[tokio::test]
async fn a_message_that_never_ends_is_given_up() {
    let mut options = DoorOptions::default();
    options.limits.read_timeout = std::time::Duration::from_millis(50);
    let server = Server::start_with(options).await;
    let mut client = Client::of(&server).await.0;
    client.ready().await.unwrap();
    let path = "/dapr.proto.runtime.v1.Dapr/GetState".parse().unwrap();
    let codec = ProstCodec::<Get, Got>::default();
    let never = tonic::codegen::tokio_stream::pending::<Get>();
    let refused = client.client_streaming(Request::new(never), path, codec).await.unwrap_err();
    assert_eq!(refused.code(), Code::DeadlineExceeded, "{refused:?}");
}
