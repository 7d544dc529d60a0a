//! Authentication by AWS Signature Version 4, in the `Authorization` header or in the query string.
//!
//! Without configured keys every request is accepted, signed or not: the server then listens on
//! loopback only. With keys, a request has to be signed with one of them, over its headers and its
//! body, within a quarter of an hour. The checks and their messages come in AWS's order.
//!
//! Everything except the signature itself is checked from the head of a request, before its body is
//! read, so that a client without a key cannot make the server buffer bodies.

mod canonical;
mod date;

use std::collections::HashMap;
use std::sync::Arc;

use hmac::{Hmac, Mac};
use kstone_core::env::Clock;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq as _;

use crate::error::Fault;
use crate::http::{self, Headers};

type HmacSha256 = Hmac<Sha256>;

const ALGORITHM: &str = "AWS4-HMAC-SHA256";
const SERVICE: &str = "dynamodb";
const TERMINATOR: &str = "aws4_request";
const AMZ_DATE: &str = "x-amz-date";
const SKEW_MAX_S: i64 = 15 * 60;
/// The longest validity that a signature in a query string can give itself.
const EXPIRES_MAX_S: i64 = 7 * 24 * 3600;
/// How many derived keys are cached: one for each key, day and region in use.
const DERIVED_KEYS_MAX: usize = 256;

/// A key that clients may sign with.
#[derive(Clone)]
pub struct Credential {
    /// The access key id, which the client sends.
    pub access_key: String,
    /// The secret key, which it never sends.
    pub secret_key: String,
}

impl std::fmt::Debug for Credential {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Credential").field("access_key", &self.access_key).finish_non_exhaustive()
    }
}

/// The parts of a request's head that a signature covers.
#[derive(Debug)]
pub(crate) struct Head<'a> {
    method: &'a str,
    path: &'a str,
    /// The parameters of the query string, decoded.
    query: Vec<(String, String)>,
    headers: Headers<'a>,
}

impl<'a> Head<'a> {
    pub(crate) fn new(
        method: &'a str,
        path: &'a str,
        query: Option<&str>,
        headers: Headers<'a>,
    ) -> Self {
        Head { method, path, query: canonical::pairs(query.unwrap_or("")), headers }
    }

    pub(crate) fn of(request: &http::Head<'a>) -> Self {
        Head::new(request.method, request.path, request.query, request.headers)
    }
}

/// Checks signatures against the configured keys.
pub(crate) struct Authority {
    secrets: HashMap<String, String>,
    clock: Arc<dyn Clock>,
    /// Signing keys derived from a secret for one day, region and service, by the credential scope
    /// as it is sent. A cached one saves a check four hashes. Only requests whose signatures were
    /// right add to it.
    derived: quick_cache::sync::Cache<String, HmacSha256>,
}

impl std::fmt::Debug for Authority {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Authority").field("keys", &self.secrets.len()).finish_non_exhaustive()
    }
}

impl Authority {
    pub(crate) fn new(keys: Vec<Credential>, clock: Arc<dyn Clock>) -> Self {
        let secrets = keys.into_iter().map(|key| (key.access_key, key.secret_key)).collect();
        Authority { secrets, clock, derived: quick_cache::sync::Cache::new(DERIVED_KEYS_MAX) }
    }

    /// Whether there are keys to check against.
    pub(crate) fn is_required(&self) -> bool {
        !self.secrets.is_empty()
    }

    /// Checks everything that can be checked before the body is read: that the request names one of
    /// the keys, a valid date, and the headers that have to be signed. `None` if there are no keys.
    pub(crate) fn read_claim<'a>(&'a self, head: &'a Head<'a>) -> Result<Option<Claim<'a>>, Fault> {
        if !self.is_required() {
            return Ok(None);
        }
        let parameters = SignatureParameters::read(head.headers, &head.query)?;
        self.check_date(&parameters)?;
        parameters.check_signed_headers()?;
        if parameters.algorithm != ALGORITHM {
            return Err(incomplete(format!(
                "Unsupported AWS 'algorithm': '{}' (only {ALGORITHM} for now). ",
                parameters.algorithm
            )));
        }
        let scope = Scope::read(parameters.credential, &parameters.date)?;
        let Some(secret) = self.secrets.get(scope.access_key) else {
            return Err(Fault::service(
                "UnrecognizedClientException",
                "The security token included in the request is invalid.",
            ));
        };
        Ok(Some(Claim { parameters, scope, secret }))
    }

    fn check_date(&self, parameters: &SignatureParameters<'_>) -> Result<(), Fault> {
        let Some(signed_at) = date::parse(&parameters.date) else {
            return Err(incomplete(format!(
                "Date must be in ISO-8601 'basic format'. Got '{}'. See \
                 http://en.wikipedia.org/wiki/ISO_8601",
                parameters.date
            )));
        };
        let now = (self.clock.now_ms() / 1000) as i64;
        let holds_for = parameters.expires.unwrap_or(SKEW_MAX_S);
        let (earliest, latest) = (now - holds_for, now + SKEW_MAX_S);
        if (earliest..=latest).contains(&signed_at) {
            return Ok(());
        }
        let [at, early, late, now] = [signed_at, earliest, latest, now].map(date::print);
        if signed_at < earliest {
            let minutes = holds_for / 60;
            return Err(invalid(format!(
                "Signature expired: {at} is now earlier than {early} ({now} - {minutes} min.)"
            )));
        }
        Err(invalid(format!(
            "Signature not yet current: {at} is still later than {late} ({now} + 15 min.)"
        )))
    }

    /// Verifies the signature over this head and this body, the latter as it was sent: still
    /// compressed if it was.
    pub(crate) fn check(
        &self,
        claim: &Claim<'_>,
        head: &Head<'_>,
        body: &[u8],
    ) -> Result<(), Fault> {
        let Claim { parameters, scope, secret } = claim;
        let hash = canonical::hash(head, body, parameters.signed_headers, parameters.in_query);
        let (mut mac, is_new) = match self.derived.get(parameters.credential) {
            Some(mac) => (mac, false),
            None => (scope.derive(secret), true),
        };
        let fresh = mac.clone();
        for part in [ALGORITHM, "\n", &parameters.date, "\n", scope.text, "\n"] {
            mac.update(part.as_bytes());
        }
        mac.update(&hex(&hash));
        // The comparison takes the same time wherever the first difference is.
        let signature = hex(&mac.finalize().into_bytes().into());
        if !bool::from(signature.ct_eq(parameters.signature.as_bytes())) {
            return Err(invalid(
                "The request signature we calculated does not match the signature you provided. \
                 Check your AWS Secret Access Key and signing method. Consult the service \
                 documentation for details.",
            ));
        }
        if is_new {
            self.derived.insert(parameters.credential.to_owned(), fresh);
        }
        Ok(())
    }
}

/// A request's claim to be signed with a configured key, before its signature is verified.
pub(crate) struct Claim<'a> {
    parameters: SignatureParameters<'a>,
    scope: Scope<'a>,
    secret: &'a str,
}

/// The parameters of a signature, from the `Authorization` header or the query string.
struct SignatureParameters<'a> {
    algorithm: &'a str,
    credential: &'a str,
    signed_headers: &'a str,
    signature: &'a str,
    date: std::borrow::Cow<'a, str>,
    /// The header that the date came from; `None` if it came from the query string.
    date_header: Option<&'static str>,
    expires: Option<i64>,
    in_query: bool,
}

impl<'a> SignatureParameters<'a> {
    fn read(headers: Headers<'a>, query: &'a [(String, String)]) -> Result<Self, Fault> {
        let header = headers.text("authorization");
        let in_query = query.iter().any(|(name, _)| name == "X-Amz-Algorithm");
        match header {
            Some(_) if in_query => Err(invalid(
                "Found both 'X-Amz-Algorithm' as a query-string param and 'Authorization' as HTTP \
                 header.",
            )),
            Some(header) if header.trim_start().starts_with("AWS4-") => {
                SignatureParameters::from_header(header, headers)
            }
            None if in_query => SignatureParameters::from_query(query),
            _ => Err(Fault::service(
                "MissingAuthenticationTokenException",
                "Request is missing Authentication Token",
            )),
        }
    }

    fn from_header(header: &'a str, headers: Headers<'a>) -> Result<Self, Fault> {
        let mut parts = header.split([',', ' ']).filter(|part| !part.is_empty());
        let algorithm = parts.next().unwrap_or("");
        let [mut credential, mut signature, mut signed_headers] = [None; 3];
        for part in parts {
            let Some((name, value)) = part.split_once('=') else {
                return Err(incomplete(format!(
                    "'{part}' not a valid key=value pair (missing equal-sign) in Authorization \
                     header: '{header}'."
                )));
            };
            match name {
                "Credential" => credential = Some(value),
                "Signature" => signature = Some(value),
                "SignedHeaders" => signed_headers = Some(value),
                _ => {}
            }
        }
        let date_header = if headers.get(AMZ_DATE).is_some() { AMZ_DATE } else { "date" };
        let date = headers.text(date_header);
        let present = |value: Option<&'a str>| value.filter(|value| !value.is_empty());
        match (present(credential), present(signature), present(signed_headers), date) {
            (Some(credential), Some(signature), Some(signed_headers), Some(date)) => {
                Ok(SignatureParameters {
                    algorithm,
                    credential,
                    signed_headers,
                    signature,
                    date: date::to_basic(date),
                    date_header: Some(date_header),
                    expires: None,
                    in_query: false,
                })
            }
            (credential, signature, signed_headers, date) => {
                let mut message = String::new();
                let parameters = [
                    ("Credential", credential),
                    ("Signature", signature),
                    ("SignedHeaders", signed_headers),
                ];
                for (name, value) in parameters {
                    if value.is_none() {
                        message += &format!("Authorization header requires '{name}' parameter. ");
                    }
                }
                if date.is_none() {
                    message += "Authorization header requires existence of either a \
                                'X-Amz-Date' or a 'Date' header. ";
                }
                Err(incomplete(format!("{message}Authorization={header}")))
            }
        }
    }

    fn from_query(query: &'a [(String, String)]) -> Result<Self, Fault> {
        let mut message = String::new();
        let mut parameter = |name: &str| {
            let found = query.iter().find(|(have, _)| have == name).map(|(_, value)| &**value);
            let found = found.unwrap_or("");
            if found.is_empty() {
                message += &format!("AWS query-string parameters must include '{name}'. ");
            }
            found
        };
        let parameters = SignatureParameters {
            algorithm: parameter("X-Amz-Algorithm"),
            credential: parameter("X-Amz-Credential"),
            signature: parameter("X-Amz-Signature"),
            signed_headers: parameter("X-Amz-SignedHeaders"),
            date: parameter("X-Amz-Date").into(),
            date_header: None,
            expires: query
                .iter()
                .find(|(name, _)| name == "X-Amz-Expires")
                .and_then(|(_, value)| value.parse().ok())
                .map(|seconds: i64| seconds.clamp(0, EXPIRES_MAX_S)),
            in_query: true,
        };
        if message.is_empty() {
            Ok(parameters)
        } else {
            Err(incomplete(format!("{message}Re-examine the query-string parameters.")))
        }
    }
}

impl SignatureParameters<'_> {
    /// Checks that the headers which decide what a request does, and until when, are signed: an
    /// intercepted request could otherwise be sent again as another operation.
    fn check_signed_headers(&self) -> Result<(), Fault> {
        let is_signed = |header: &str| {
            self.signed_headers.split(';').any(|name| name.eq_ignore_ascii_case(header))
        };
        let shown = match self.date_header {
            _ if !is_signed("host") => "'Host' or ':authority'",
            Some(header) if !is_signed(header) && header == AMZ_DATE => "'X-Amz-Date'",
            Some(header) if !is_signed(header) => "'Date'",
            _ if !is_signed("x-amz-target") => "'X-Amz-Target'",
            _ => return Ok(()),
        };
        Err(invalid(format!("{shown} must be a 'SignedHeader' in the AWS Authorization.")))
    }
}

/// A credential: `keyid/date/region/service/term`.
struct Scope<'a> {
    access_key: &'a str,
    day: &'a str,
    region: &'a str,
    /// Everything after the access key.
    text: &'a str,
}

impl<'a> Scope<'a> {
    fn read(credential: &'a str, date: &str) -> Result<Self, Fault> {
        let credential = credential.trim_end_matches('/');
        let parts: Vec<&str> = credential.split('/').collect();
        let &[access_key, day, region, service, terminator] = parts.as_slice() else {
            return Err(incomplete(format!(
                "Credential must have exactly 5 slash-delimited elements, e.g. \
                 keyid/date/region/service/term, got '{credential}'"
            )));
        };
        let mut wrong = Vec::new();
        if region.is_empty() {
            wrong.push("Credential should be scoped to a valid region, not ''.".to_owned());
        }
        if service != SERVICE {
            wrong.push(format!("Credential should be scoped to correct service: '{SERVICE}'."));
        }
        if terminator != TERMINATOR {
            wrong.push(format!(
                "Credential should be scoped with a valid terminator: '{TERMINATOR}', not \
                 '{terminator}'."
            ));
        }
        let date_day = date.get(..8).unwrap_or(date);
        if day != date_day {
            wrong.push(format!(
                "Date in Credential scope does not match YYYYMMDD from ISO-8601 version of date \
                 from HTTP: '{day}' != '{date_day}', from '{date}'."
            ));
        }
        if wrong.is_empty() {
            let text = credential.get(access_key.len() + 1..).unwrap_or("");
            Ok(Scope { access_key, day, region, text })
        } else {
            Err(invalid(wrong.join(" ")))
        }
    }

    /// Derives the signing key for this day and region.
    fn derive(&self, secret: &str) -> HmacSha256 {
        let mut key = keyed(format!("AWS4{secret}").as_bytes());
        for part in [self.day, self.region, SERVICE, TERMINATOR] {
            key.update(part.as_bytes());
            key = keyed(&key.finalize().into_bytes());
        }
        key
    }
}

/// An HMAC with this key. HMAC takes keys of any length, so `new_from_slice` cannot fail.
fn keyed(key: &[u8]) -> HmacSha256 {
    HmacSha256::new_from_slice(key)
        .unwrap_or_else(|_| <HmacSha256 as hmac::digest::KeyInit>::new(&Default::default()))
}

fn invalid(message: impl Into<String>) -> Fault {
    Fault::service("InvalidSignatureException", message)
}

fn incomplete(message: impl Into<String>) -> Fault {
    Fault::service("IncompleteSignatureException", message)
}

fn hex(hash: &[u8; 32]) -> [u8; 64] {
    let mut out = [0; 64];
    // Fails only where the digits do not fill the space.
    let _ = hex::encode_to_slice(hash, &mut out);
    out
}

fn sha256(data: &[u8]) -> [u8; 32] {
    Sha256::digest(data).into()
}

#[cfg(test)]
mod tests;
