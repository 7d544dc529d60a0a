//! The state API over gRPC.

use std::collections::HashMap;

use kstone_dapr::DoorOptions;
use kstone_dapr::messages::common::{Etag, StateItem, StateOptions};
use kstone_dapr::messages::runtime::{
    DeleteBulkStateRequest, DeleteStateRequest, ExecuteStateTransactionRequest,
    GetBulkStateRequest, GetBulkStateResponse, GetMetadataResponse, GetStateRequest,
    GetStateResponse, QueryStateRequest, QueryStateResponse, SaveStateRequest,
    TransactionalStateOperation,
};
use prost::Message;
use tonic::client::Grpc;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request, Status};
use tonic_prost::ProstCodec;

use crate::server::Server;

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
        self.call("SaveState", SaveStateRequest { store_name: STORE.to_owned(), states }).await
    }

    async fn get(&self, key: &str) -> GetStateResponse {
        let get = GetStateRequest { consistency: 2, ..get_request(STORE, key) };
        self.call("GetState", get).await.unwrap()
    }

    async fn delete(&self, key: &str, etag: Option<&str>) -> Result<(), Status> {
        let etag = etag.map(|value| Etag { value: value.to_owned() });
        let (store_name, key) = (STORE.to_owned(), key.to_owned());
        let delete = DeleteStateRequest { store_name, key, etag, ..Default::default() };
        self.call("DeleteState", delete).await
    }
}

fn get_request(store: &str, key: &str) -> GetStateRequest {
    let (store_name, key) = (store.to_owned(), key.to_owned());
    GetStateRequest { store_name, key, ..Default::default() }
}

fn item(key: &str, value: &[u8]) -> StateItem {
    StateItem { key: key.to_owned(), value: value.to_vec().into(), ..StateItem::default() }
}

fn with_etag(key: &str, value: &[u8], etag: &str) -> StateItem {
    StateItem { etag: Some(Etag { value: etag.to_owned() }), ..item(key, value) }
}

#[tokio::test]
async fn what_is_saved_over_grpc_is_read_over_http_and_the_other_way_round() {
    let server = Server::start().await;
    let client = Client::of(&server).await;
    client.save(vec![item("text", b"{\"a\":1}"), item("bytes", b"\xff\x00\x01")]).await.unwrap();
    assert_eq!(server.get("text").await.text(), "{\"a\":1}");
    assert_eq!(server.get("bytes").await.body, b"\xff\x00\x01");
    assert_eq!(client.get("bytes").await.data, &b"\xff\x00\x01"[..]);
    assert_eq!(client.get("text").await.etag, server.etag("text").await);
    server.save(r#"[{"key":"k","value":2,"metadata":{"ttlInSeconds":"60"}}]"#).await.done();
    let got = client.get("k").await;
    assert_eq!((got.data, got.metadata.len()), (b"2"[..].into(), 1));
    assert_eq!(got.metadata["ttlExpireTime"], "2026-01-14T09:01:00Z");
    client.delete("k", None).await.unwrap();
    assert_eq!(client.get("k").await, GetStateResponse::default());
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
    let first = StateItem {
        options: Some(StateOptions { concurrency: 1, consistency: 2 }),
        ..item("k", b"3")
    };
    assert_eq!(code(client.save(vec![first.clone()]).await), Code::Aborted);
    assert_eq!(client.get("k").await.data, "2");
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
    let upsert = |key: &str, value: &[u8]| TransactionalStateOperation {
        operation_type: "upsert".to_owned(),
        request: Some(item(key, value)),
    };
    let delete = |key: &str| TransactionalStateOperation {
        operation_type: "delete".to_owned(),
        request: Some(item(key, b"")),
    };
    let transaction =
        |operations: Vec<TransactionalStateOperation>| ExecuteStateTransactionRequest {
            store_name: STORE.to_owned(),
            operations,
            metadata: HashMap::from([("ttlInSeconds".to_owned(), "30".to_owned())]),
        };
    let all = vec![upsert("a", b"1"), upsert("b", b"{\"x\":1}"), delete("a"), upsert("c", b"3")];
    let done: Result<(), Status> = client.call("ExecuteStateTransaction", transaction(all)).await;
    done.unwrap();
    assert_eq!(client.get("c").await.metadata["ttlExpireTime"], "2026-01-14T09:00:30Z");
    let unknown =
        TransactionalStateOperation { operation_type: "append".to_owned(), request: None };
    let refused: Result<(), Status> =
        client.call("ExecuteStateTransaction", transaction(vec![unknown])).await;
    assert_eq!(refused.unwrap_err().code(), Code::InvalidArgument);

    let keys = ["a", "b", "c"].map(str::to_owned).to_vec();
    let bulk: GetBulkStateResponse = client
        .call(
            "GetBulkState",
            GetBulkStateRequest { store_name: STORE.to_owned(), keys, ..Default::default() },
        )
        .await
        .unwrap();
    let found: Vec<(&str, &[u8])> =
        bulk.items.iter().map(|it| (it.key.as_str(), &it.data[..])).collect();
    assert_eq!(found, [("a", &b""[..]), ("b", b"{\"x\":1}"), ("c", b"3")]);
    assert!(bulk.items[0].etag.is_empty() && !bulk.items[1].etag.is_empty());

    let query = r#"{"filter":{"EQ":{"x":1}}}"#.to_owned();
    let query = QueryStateRequest { store_name: STORE.to_owned(), query, metadata: HashMap::new() };
    let found: QueryStateResponse = client.call("QueryStateAlpha1", query).await.unwrap();
    assert_eq!(found.results.iter().map(|it| it.key.as_str()).collect::<Vec<_>>(), ["b"]);

    let states = vec![item("b", b""), item("c", b""), item("never there", b"")];
    let done: Result<(), Status> = client
        .call("DeleteBulkState", DeleteBulkStateRequest { store_name: STORE.to_owned(), states })
        .await;
    done.unwrap();
    assert_eq!(client.get("b").await, GetStateResponse::default());
}

#[tokio::test]
async fn calls_that_sdks_make_on_start_are_answered_and_others_are_not_implemented() {
    let server = Server::start().await;
    let client = Client::of(&server).await;
    let metadata: GetMetadataResponse = client.call("GetMetadata", ()).await.unwrap();
    assert_eq!((metadata.id.as_str(), metadata.registered_components.len()), ("kstone", 1));
    assert_eq!(metadata.registered_components[0].name, STORE);
    assert!(metadata.registered_components[0].capabilities.contains(&"TRANSACTIONAL".to_owned()));
    assert!(!metadata.runtime_version.is_empty());
    let other: Result<(), Status> = client.call("PublishEvent", ()).await;
    assert_eq!(other.unwrap_err().code(), Code::Unimplemented);
    let get = get_request("other", "k");
    let other: Result<GetStateResponse, Status> = client.call("GetState", get).await;
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
        let answer: Result<GetMetadataResponse, Status> = client.call("GetMetadata", ()).await;
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
    let codec = ProstCodec::<GetStateRequest, GetStateResponse>::default();
    let never = tonic::codegen::tokio_stream::pending::<GetStateRequest>();
    let refused = client.client_streaming(Request::new(never), path, codec).await.unwrap_err();
    assert_eq!(refused.code(), Code::DeadlineExceeded, "{refused:?}");
}
