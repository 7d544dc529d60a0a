//! A client of DynamoDB's protocol: one signed request, one answer.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, anyhow, bail};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1;
use hyper::{Request, Uri};
use hyper_util::rt::TokioIo;
use serde_json::Value as Json;
use tokio::net::TcpStream;
use tokio::runtime::{Builder, Runtime};

use crate::serve::settings::AccessKey;
use crate::tables::sign::{self, CONTENT_TYPE};

/// An answer is at most a page of 1 MB; what takes longer than this is not coming.
const TIMEOUT: Duration = Duration::from_secs(30);

/// A server by its URL.
pub struct Client {
    pub url: String,
    /// `HOST:PORT`
    authority: String,
    key: AccessKey,
    runtime: Runtime,
}

impl Client {
    /// Nothing is sent yet. Signs with `key`, or with what the environment says.
    pub fn new(url: &str, key: Option<AccessKey>) -> Result<Client> {
        let uri: Uri = url.parse().map_err(|error| anyhow!("`{url}` is no URL: {error}"))?;
        if uri.scheme_str() != Some("http") {
            bail!("{url}: only http:// is spoken here, as in http://127.0.0.1:8000");
        }
        let host = uri.host().with_context(|| format!("{url} names no host"))?;
        let authority = format!("{host}:{}", uri.port_u16().unwrap_or(80));
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let key = key.map_or_else(key_of_environment, Ok)?;
        Ok(Client { url: url.trim_end_matches('/').to_owned(), authority, key, runtime })
    }

    /// Asks for an operation of DynamoDB's and answers the JSON that comes back.
    pub fn call(&self, operation: &str, request: &Json) -> Result<Json> {
        let text = self.call_raw(operation, request.to_string())?;
        serde_json::from_str(&text).with_context(|| format!("{} did not answer in JSON", self.url))
    }

    /// The same with the bodies as they are sent.
    pub fn call_raw(&self, operation: &str, body: String) -> Result<String> {
        let asked = async { tokio::time::timeout(TIMEOUT, self.exchange(operation, body)).await };
        match self.runtime.block_on(asked) {
            Ok(answer) => answer,
            Err(_) => bail!("{} has not answered within {} s", self.url, TIMEOUT.as_secs()),
        }
    }

    async fn exchange(&self, operation: &str, body: String) -> Result<String> {
        let stream = TcpStream::connect(&self.authority).await.with_context(|| {
            format!("cannot reach {}; is the server running? (kstone serve)", self.url)
        })?;
        let _ = stream.set_nodelay(true);
        let talk = async {
            let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
            let connection = tokio::spawn(connection);
            let answer = sender.send_request(self.request(operation, body)?).await?;
            let status = answer.status();
            let body = answer.into_body().collect().await?.to_bytes();
            connection.abort();
            anyhow::Ok((status, body))
        };
        let (status, body) = talk.await.with_context(|| format!("no answer from {}", self.url))?;
        let text = String::from_utf8_lossy(&body).into_owned();
        if status.is_success() { Ok(text) } else { Err(refusal(&self.url, status, &text)) }
    }

    fn request(&self, operation: &str, body: String) -> Result<Request<Full<Bytes>>> {
        let target = format!("DynamoDB_20120810.{operation}");
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let signed = sign::sign(&self.key, &self.authority, &target, &body, now.as_millis() as u64);
        Ok(Request::post("/")
            .header("host", &self.authority)
            .header("content-type", CONTENT_TYPE)
            .header("x-amz-target", target)
            .header("x-amz-date", signed.date)
            .header("authorization", signed.authorization)
            .body(Full::from(body))?)
    }
}

/// The same variable that `kstone serve` reads, or those of the AWS tools. A server without keys
/// takes any.
fn key_of_environment() -> Result<AccessKey> {
    if let Ok(keys) = std::env::var("KSTONE_ACCESS_KEY") {
        let first = keys.split(',').next().unwrap_or_default();
        return first.parse().context("KSTONE_ACCESS_KEY");
    }
    let aws = (std::env::var("AWS_ACCESS_KEY_ID"), std::env::var("AWS_SECRET_ACCESS_KEY"));
    Ok(match aws {
        (Ok(id), Ok(secret)) => AccessKey { id, secret },
        _ => AccessKey { id: "kstone".to_owned(), secret: "kstone".to_owned() },
    })
}

/// The error that the server answered, and its type.
fn refusal(url: &str, status: hyper::StatusCode, body: &str) -> anyhow::Error {
    let json: Json = serde_json::from_str(body).unwrap_or_default();
    let kind = json.get("__type").and_then(Json::as_str).unwrap_or_default();
    let kind = kind.rsplit('#').next().unwrap_or_default();
    let message = json.get("message").or_else(|| json.get("Message")).and_then(Json::as_str);
    match (kind, message) {
        ("", _) => anyhow!("{url} answered {status}; is it a DynamoDB endpoint?"),
        ("UnrecognizedClientException" | "InvalidSignatureException", _) => anyhow!(
            "{url} does not take this access key; set KSTONE_ACCESS_KEY=ID:SECRET to one of its own"
        ),
        (kind, message) => anyhow!("{kind}: {}", message.unwrap_or("no reason given")),
    }
}
