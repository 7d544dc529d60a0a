//! The door with access keys: unsigned and wrongly signed requests are refused.

use std::sync::Arc;

use kstone_core::env::ManualClock;
use kstone_dynamo::{Credential, DoorOptions};

use crate::server::{Server, request};

/// 2015-08-30 12:36:00 UTC, when botocore made the signature below.
const SIGNED_AT_MS: u64 = 1_440_938_160_000;
const SIGNED: &str = "POST / HTTP/1.1\r\nHost: 127.0.0.1:8000\r\n\
    Content-Type: application/x-amz-json-1.0\r\n\
    X-Amz-Target: DynamoDB_20120810.DescribeTable\r\nX-Amz-Date: 20150830T123600Z\r\n\
    Authorization: AWS4-HMAC-SHA256 \
    Credential=AKIDEXAMPLE/20150830/us-east-1/dynamodb/aws4_request, \
    SignedHeaders=content-type;host;x-amz-date;x-amz-target, \
    Signature=9806f2165e423893fa9ecf62eb88723890dada4e0c66b72daed5a1d1f9654b04\r\n\
    Content-Length: 17\r\n\r\n{\"TableName\":\"t\"}";

async fn server_with_a_key() -> Server {
    let key = Credential {
        access_key: "AKIDEXAMPLE".to_owned(),
        secret_key: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY".to_owned(),
    };
    let clock = Arc::new(ManualClock::at(SIGNED_AT_MS));
    Server::start(DoorOptions { keys: vec![key], clock, ..DoorOptions::default() }).await
}

#[tokio::test]
async fn a_signed_request_is_answered() {
    let server = server_with_a_key().await;
    let mut client = server.connect().await;
    for _ in 0..2 {
        client.send(SIGNED.as_bytes()).await;
        // It came as far as the database, which has no such table.
        assert_eq!(client.answer().await.error(), "ResourceNotFoundException");
    }
}

#[tokio::test]
async fn other_requests_are_not() {
    let server = server_with_a_key().await;
    let unsigned = request("DescribeTable", r#"{"TableName":"t"}"#);
    for (request, error) in [
        (unsigned, "MissingAuthenticationTokenException"),
        (SIGNED.replace("\"t\"", "\"u\""), "InvalidSignatureException"),
        (SIGNED.replace("DescribeTable", "DeleteTable"), "InvalidSignatureException"),
        (SIGNED.replace("AKIDEXAMPLE", "AKIDOTHER"), "UnrecognizedClientException"),
        (SIGNED.replace("Signature=98", "Signature=99"), "InvalidSignatureException"),
        (SIGNED.replace("Credential=", "Certainly="), "IncompleteSignatureException"),
    ] {
        let mut client = server.connect().await;
        client.send(request.as_bytes()).await;
        let answer = client.answer().await;
        assert_eq!((answer.status, &*answer.error()), (400, error), "{request}");
    }
}

#[tokio::test]
async fn health_is_told_without_a_signature() {
    let server = server_with_a_key().await;
    let mut client = server.connect().await;
    client.send(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
    client.answer().await.assert_ok();
}

#[tokio::test]
async fn who_has_no_key_is_refused_before_the_body_is_sent() {
    let server = server_with_a_key().await;
    let announced = format!("Content-Length: {}", 16 * 1024 * 1024);
    let unknown = SIGNED.replace("AKIDEXAMPLE", "AKIDOTHER");
    let (unknown, _) = unknown.split_once("Content-Length").unwrap();
    let unsigned = request("DescribeTable", "").replace("Content-Length: 0\r\n\r\n", "");
    for (head, error) in [
        (unsigned.as_str(), "MissingAuthenticationTokenException"),
        (unknown, "UnrecognizedClientException"),
    ] {
        let mut client = server.connect().await;
        let head = format!("{head}{announced}\r\nExpect: 100-continue\r\n\r\n");
        client.send(head.as_bytes()).await;
        // Nor is there permission to send it.
        let answer = client.answer().await;
        assert_eq!((answer.status, &*answer.error()), (400, error));
        client.closed().await;
    }
}

#[tokio::test]
async fn a_refused_body_does_not_end_the_connection() {
    let server = server_with_a_key().await;
    let mut client = server.connect().await;
    let long = format!(r#"{{"TableName":"{}"}}"#, "t".repeat(1_000_000));
    client.send(request("DescribeTable", &long).as_bytes()).await;
    assert_eq!(client.answer().await.error(), "MissingAuthenticationTokenException");
    client.send(SIGNED.as_bytes()).await;
    assert_eq!(client.answer().await.error(), "ResourceNotFoundException");
}
