//! A server that does nothing: hyper, as bare as it comes, reading each request to its end and
//! answering with bytes that are always the same. What it reaches is the most that a server on
//! hyper can reach with these requests and answers on this machine.

use super::request::{PUT_ANSWER, get_answer, query_answer};
use crate::Outcome;
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use std::sync::Arc;
use tokio::net::TcpListener;

/// Its answers, for post 0.
struct Answers {
    get: Bytes,
    put: Bytes,
    query: Bytes,
    other: Bytes,
}

/// Serves for ever.
pub async fn serve(listener: TcpListener) -> Outcome<()> {
    let answers = Arc::new(Answers {
        get: get_answer(0).into(),
        put: PUT_ANSWER.into(),
        query: query_answer(0).into(),
        other: "{}".into(),
    });
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let answers = Arc::clone(&answers);
        tokio::spawn(async move {
            let service = service_fn(|request| answer(request, &answers));
            // A client that goes away is no failure of the server.
            let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

async fn answer(
    request: Request<hyper::body::Incoming>,
    answers: &Answers,
) -> Result<Response<Full<Bytes>>, hyper::Error> {
    let (head, body) = request.into_parts();
    std::hint::black_box(body.collect().await?.to_bytes());
    let target = head.headers.get("x-amz-target").map_or(&b""[..], HeaderValue::as_bytes);
    let bytes = match target {
        b"DynamoDB_20120810.GetItem" => &answers.get,
        b"DynamoDB_20120810.PutItem" => &answers.put,
        b"DynamoDB_20120810.Query" => &answers.query,
        _ => &answers.other,
    };
    let mut response = Response::new(Full::new(bytes.clone()));
    let headers = response.headers_mut();
    let fixed = HeaderValue::from_static;
    headers.insert(CONTENT_TYPE, fixed("application/x-amz-json-1.0"));
    headers.insert("x-amz-crc32", fixed("2745614147"));
    headers
        .insert("x-amzn-requestid", fixed("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789ABCDEF"));
    Ok(response)
}
