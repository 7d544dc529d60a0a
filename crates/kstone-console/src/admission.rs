//! Admission: which requests are served, by token, host and origin.
//!
//! Without a token the console is for this machine alone, and the browser is the one program on it
//! that does what strangers say. So a request must be addressed to this machine by name (a page that
//! rebinds its own name to 127.0.0.1 is addressed to that name), and one that changes something must
//! come from no other site.

use std::collections::HashMap;
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kstone_core::sync::Mutex;
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use crate::console::Console;
use crate::request;
use crate::rest::{Code, Problem};

/// So many different wrong tokens a client may try in a minute.
const GUESSES_MAX: usize = 10;
const MINUTE_MS: u64 = 60_000;
/// So many clients that guess are told apart; the others share what one may.
const GUESSERS_MAX: usize = 4096;

/// What clients must send. It is never shown, and only its hash is kept.
#[derive(Clone)]
pub struct Token([u8; 32]);

impl Token {
    /// A token; `None` if it is empty.
    pub fn new(token: &str) -> Option<Token> {
        (!token.is_empty()).then(|| Token(Sha256::digest(token).into()))
    }

    /// Hashes are compared, so that how long it takes says nothing of the token.
    fn is(&self, presented: &str) -> bool {
        Sha256::digest(presented).ct_eq(&self.0).into()
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token")
    }
}

/// Decides whether a request is served.
#[derive(Debug)]
pub(crate) struct Gate {
    console: Arc<Console>,
    guesses: Guesses,
}

impl Gate {
    pub(crate) fn new(console: Arc<Console>) -> Arc<Gate> {
        Arc::new(Gate { console, guesses: Guesses::default() })
    }
}

/// Wrong tokens of the present minute, by client. The same one again is somebody who is mistaken, and
/// does not count: others behind the same address are not to be locked out by it.
#[derive(Debug, Default)]
struct Guesses(Mutex<Minute>);

#[derive(Debug, Default)]
struct Minute {
    /// Which one, since 1970.
    number: u64,
    /// Hashes of the wrong tokens, by client; `""` for all clients that are too many to tell apart.
    wrong: HashMap<String, Vec<[u8; 32]>>,
}

impl Guesses {
    /// Whether a client has guessed too often to be listened to, even if it is right now.
    fn are_too_many(&self, client: &str, now_ms: u64) -> bool {
        let known = self.0.lock();
        let guesses = known.wrong.get(client).or_else(|| known.wrong.get(""));
        known.number == now_ms / MINUTE_MS && guesses.is_some_and(|it| it.len() >= GUESSES_MAX)
    }

    fn note(&self, client: &str, token: &str, now_ms: u64) {
        let mut known = self.0.lock();
        if known.number != now_ms / MINUTE_MS {
            *known = Minute { number: now_ms / MINUTE_MS, wrong: HashMap::new() };
        }
        let is_told_apart = known.wrong.len() < GUESSERS_MAX || known.wrong.contains_key(client);
        let client = if is_told_apart { client } else { "" };
        let guesses = known.wrong.entry(client.to_owned()).or_default();
        let hash: [u8; 32] = Sha256::digest(token).into();
        if guesses.len() < GUESSES_MAX && !guesses.contains(&hash) {
            guesses.push(hash);
        }
    }
}

/// Lets pass who may ask.
pub(crate) async fn admit(State(gate): State<Arc<Gate>>, request: Request, next: Next) -> Response {
    let console = &gate.console;
    let headers = request.headers();
    let is_api = request.uri().path().starts_with("/api/");
    // Health checks need no token.
    let is_health = request.uri().path() == "/api/v1/health";
    let refused = match &console.options.token {
        Some(_) if is_health => None,
        Some(token) => {
            let (client, now_ms) = (request::client(&request), console.clock.now_ms());
            match presented_token(headers) {
                Some(_) if gate.guesses.are_too_many(&client, now_ms) => {
                    Some(guesses_too_often(now_ms))
                }
                Some(presented) if token.is(&presented) => None,
                Some(presented) => {
                    gate.guesses.note(&client, &presented, now_ms);
                    Some(unauthorized(is_api))
                }
                None => Some(unauthorized(is_api)),
            }
        }
        None if is_addressed_here(headers, request.uri().host()) => None,
        None => Some(
            Problem::new(
                Code::WrongHost,
                "without --console-token only this machine is served: address it as localhost or \
                 127.0.0.1",
            )
            .into_response(),
        ),
    };
    if let Some(refused) = refused {
        return refused;
    }
    if !is_safe(request.method()) && is_from_elsewhere(headers) {
        let what = "a page of another site may not change anything here";
        return Problem::new(Code::CrossSite, what).into_response();
    }
    next.run(request).await
}

fn guesses_too_often(now_ms: u64) -> Response {
    let what = format!("{GUESSES_MAX} wrong tokens came from there: wait a minute");
    let retry_after_s = Some((MINUTE_MS - now_ms % MINUTE_MS).div_ceil(1000));
    Problem { retry_after_s, ..Problem::new(Code::RateLimited, what) }.into_response()
}

fn unauthorized(is_api: bool) -> Response {
    let what = "send the token of --console-token: Authorization: Bearer TOKEN (or as the password \
                of any user)";
    let mut response = Problem::new(Code::Unauthorized, what).into_response();
    let ask = match is_api {
        true => "Bearer realm=\"KeystoneDB\"",
        false => "Basic realm=\"KeystoneDB\", charset=\"UTF-8\"",
    };
    let ask = axum::http::HeaderValue::from_static(ask);
    response.headers_mut().insert(header::WWW_AUTHENTICATE, ask);
    debug_assert_eq!(response.status(), StatusCode::UNAUTHORIZED);
    response
}

/// The token that a request comes with, right or wrong.
fn presented_token(headers: &HeaderMap) -> Option<String> {
    match credentials(headers, "bearer") {
        Some(token) => Some(token.to_owned()),
        None => user_and_token(headers).map(|(_, token)| token),
    }
}

/// The name that somebody typed with the token, right or wrong.
pub(crate) fn user(headers: &HeaderMap) -> Option<String> {
    user_and_token(headers).map(|(user, _)| user)
}

fn user_and_token(headers: &HeaderMap) -> Option<(String, String)> {
    let decoded = STANDARD.decode(credentials(headers, "basic")?).ok()?;
    let decoded = String::from_utf8(decoded).ok()?;
    decoded.split_once(':').map(|(user, token)| (user.to_owned(), token.to_owned()))
}

/// What follows this scheme in the `Authorization` header, if the request uses it.
fn credentials<'h>(headers: &'h HeaderMap, scheme: &str) -> Option<&'h str> {
    let (used, rest) = headers.get(header::AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    used.eq_ignore_ascii_case(scheme).then(|| rest.trim())
}

fn is_safe(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS)
}

/// Whether the name by which the server was asked is one of this machine's own.
fn is_addressed_here(headers: &HeaderMap, in_uri: Option<&str>) -> bool {
    let host = headers.get(header::HOST).and_then(|it| it.to_str().ok()).or(in_uri);
    // HTTP/1.0 has no host, and no browser speaks it.
    host.is_none_or(|host| is_loopback(name_of(host)))
}

/// A host without its port.
fn name_of(host: &str) -> &str {
    match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    }
}

fn is_loopback(name: &str) -> bool {
    let name = name.strip_suffix('.').unwrap_or(name);
    name.eq_ignore_ascii_case("localhost")
        || name.to_ascii_lowercase().ends_with(".localhost")
        || name.parse::<IpAddr>().is_ok_and(|at| at.is_loopback())
}

/// Whether a browser says that another site is behind the request. Programs say nothing.
fn is_from_elsewhere(headers: &HeaderMap) -> bool {
    let text = |name| headers.get(name).and_then(|it: &axum::http::HeaderValue| it.to_str().ok());
    if let Some(site) = text(header::HeaderName::from_static("sec-fetch-site")) {
        return !matches!(site, "same-origin" | "none");
    }
    let Some(origin) = headers.get(header::ORIGIN) else { return false };
    // `null` is the origin of a page that hides where it is from.
    let from = origin.to_str().ok().and_then(|it| it.split_once("://")).map(|(_, host)| host);
    from.is_none() || from != text(header::HOST)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(of: &[(&'static str, &str)]) -> HeaderMap {
        of.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect()
    }

    #[test]
    fn only_names_of_this_machine_are_this_machine() {
        for here in ["localhost", "LOCALHOST:8080", "127.0.0.1:1", "127.9.9.9", "[::1]:8080"] {
            assert!(is_addressed_here(&headers(&[("host", here)]), None), "{here}");
        }
        for elsewhere in
            ["evil.example", "127.0.0.1.evil.example", "localhost.evil", "", "10.0.0.1"]
        {
            assert!(!is_addressed_here(&headers(&[("host", elsewhere)]), None), "{elsewhere}");
        }
        assert!(is_addressed_here(&headers(&[]), None));
    }

    #[test]
    fn a_token_is_said_as_bearer_or_as_a_password() {
        let token = Token::new("se:cret").unwrap();
        let says = |headers: &HeaderMap, token: &Token| {
            presented_token(headers).is_some_and(|it| token.is(&it))
        };
        let basic = format!("Basic {}", STANDARD.encode("anybody:se:cret"));
        for good in ["Bearer se:cret", "bearer se:cret", &basic] {
            assert!(says(&headers(&[("authorization", good)]), &token), "{good}");
        }
        for bad in ["Bearer wrong", "Bearer", "se:cret", "Basic se:cret", "Basic !!", "Digest a"] {
            assert!(!says(&headers(&[("authorization", bad)]), &token), "{bad}");
        }
        assert!(!says(&headers(&[]), &token));
        assert!(Token::new("").is_none());
        assert!(!format!("{token:?}").contains("se:cret"));
    }

    #[test]
    fn who_guesses_is_not_listened_to_for_the_rest_of_the_minute() {
        let guesses = Guesses::default();
        for _ in 0..100 {
            guesses.note("mistaken", "the same", 60_000);
        }
        assert!(!guesses.are_too_many("mistaken", 60_001));
        for n in 0..GUESSES_MAX {
            assert!(!guesses.are_too_many("guesser", 60_001), "{n}");
            guesses.note("guesser", &format!("guess {n}"), 60_001);
        }
        assert!(guesses.are_too_many("guesser", 119_999));
        assert!(!guesses.are_too_many("another", 119_999));
        assert!(!guesses.are_too_many("guesser", 120_000));
        for n in 0..=GUESSERS_MAX + GUESSES_MAX {
            guesses.note(&format!("client {n}"), &format!("guess {n}"), 120_000);
        }
        assert!(guesses.are_too_many("one of too many", 120_000), "they share what one may");
        assert!(guesses.0.lock().wrong.len() <= GUESSERS_MAX + 1);
    }

    #[test]
    fn another_site_is_known_by_what_the_browser_says() {
        let host = ("host", "localhost:8080");
        let elsewhere = |more: &[(&'static str, &str)]| {
            let mut all = vec![host];
            all.extend_from_slice(more);
            is_from_elsewhere(&headers(&all))
        };
        assert!(!elsewhere(&[]));
        assert!(!elsewhere(&[("sec-fetch-site", "same-origin")]));
        assert!(!elsewhere(&[("origin", "http://localhost:8080")]));
        assert!(elsewhere(&[("sec-fetch-site", "cross-site")]));
        assert!(elsewhere(&[("sec-fetch-site", "same-site")]));
        assert!(elsewhere(&[("origin", "http://evil.example")]));
        assert!(elsewhere(&[("origin", "http://localhost:9999")]));
        assert!(elsewhere(&[("origin", "null")]));
    }
}
