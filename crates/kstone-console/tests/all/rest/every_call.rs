//! What holds of every call: admission, ids, limits, errors.

use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::rest::support::{Fixture, token};

#[tokio::test(flavor = "multi_thread")]
async fn the_server_says_that_it_is_there() {
    let fixture = Fixture::new().await;
    let health = fixture.get("/api/v1/health").await;
    assert_eq!(health.with_status(200)["status"], "ok");
    assert_eq!(health.header("content-type"), Some("application/json"));
    assert_eq!(health.header("x-content-type-options"), Some("nosniff"));
    assert!(health.header("content-security-policy").unwrap().contains("default-src 'none'"));
    assert_eq!(health.header("cache-control"), Some("no-store"));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_id_of_a_request_is_echoed_and_made_if_there_is_none() {
    let fixture = Fixture::new().await;
    let path = "/api/v1/health";
    let echoed = fixture.ask("GET", path, &[("X-Request-Id", "abc-1")], None).await;
    assert_eq!(echoed.header("x-request-id"), Some("abc-1"));
    let made = fixture.get(path).await.header("x-request-id").unwrap().to_owned();
    assert_eq!(made.len(), 16);
    assert_ne!(fixture.get(path).await.header("x-request-id"), Some(&*made));
    let odd = fixture.ask("GET", path, &[("X-Request-Id", "a\"b")], None).await;
    assert_eq!(odd.header("x-request-id").unwrap().len(), 16);
    let error = fixture.ask("GET", "/api/v1/nowhere", &[("X-Request-Id", "abc-2")], None).await;
    error.refused(404, "not_found", None);
    assert_eq!(error.header("x-request-id"), Some("abc-2"));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_there_and_what_is_not_possible_are_told_as_json() {
    let fixture = Fixture::new().await;
    fixture.get("/api/v1/nowhere").await.refused(404, "not_found", None);
    fixture.get("/api/v1/").await.refused(404, "not_found", None);
    let not_so = fixture.ask("PATCH", "/api/v1/health", &[], None).await;
    not_so.refused(405, "method_not_allowed", None);
    assert!(not_so.header("allow").unwrap().contains("GET"), "{not_so:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_token_only_requests_that_are_addressed_to_this_machine_pass() {
    let fixture = Fixture::new().await;
    for host in ["localhost:8080", "127.0.0.1", "[::1]:1"] {
        assert_eq!(fixture.ask("GET", "/api/v1/health", &[("Host", host)], None).await.status, 200);
    }
    for host in ["evil.example", "127.0.0.1.evil.example:8080", "192.168.0.9"] {
        let answer = fixture.ask("GET", "/api/v1/health", &[("Host", host)], None).await;
        answer.refused(421, "wrong_host", None);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_is_asked_for_at_every_call_but_health() {
    let fixture = Fixture::with(|console| console.options.token = token("secret")).await;
    let path = "/api/v1/keyspaces";
    let refused = fixture.get(path).await;
    refused.refused(401, "unauthorized", None);
    assert!(refused.header("www-authenticate").unwrap().starts_with("Bearer"));
    assert!(fixture.get("/").await.header("www-authenticate").unwrap().starts_with("Basic"));
    for wrong in ["Bearer wrong", "Bearer secre", "Basic OnNlY3JldA", "secret"] {
        let answer = fixture.ask("GET", path, &[("Authorization", wrong)], None).await;
        assert_eq!(answer.status, 401, "{wrong}");
    }
    // `:secret` and `anybody:secret`.
    for right in ["Bearer secret", "Basic OnNlY3JldA==", "Basic YW55Ym9keTpzZWNyZXQ="] {
        let answer = fixture.ask("GET", path, &[("Authorization", right)], None).await;
        assert_eq!(answer.status, 200, "{right}");
    }
    let elsewhere = [("Host", "school.example"), ("Authorization", "Bearer secret")];
    assert_eq!(fixture.ask("GET", path, &elsewhere, None).await.status, 200);
    assert_eq!(fixture.get("/api/v1/health").await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_of_another_site_changes_nothing() {
    let fixture = Fixture::new().await;
    let path = "/api/v1/students/s1";
    for from in [("Sec-Fetch-Site", "cross-site"), ("Origin", "http://evil.example")] {
        let refused = fixture.ask("DELETE", path, &[from], None).await;
        refused.refused(403, "cross_site", None);
    }
    let here = format!("http://{}", fixture.at);
    let own = [("Sec-Fetch-Site", "same-origin"), ("Origin", &here)];
    assert_eq!(fixture.ask("DELETE", path, &own, None).await.status, 202);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_is_too_long_is_refused_before_it_is_read() {
    let fixture = Fixture::with(|console| console.options.body_bytes_max = 1000).await;
    let body = format!("\"{}\"", "x".repeat(2000));
    let path = "/api/v1/students/s1";
    fixture.ask("DELETE", path, &[], Some(&body)).await.refused(413, "body_too_large", None);
    // Without a length, too.
    let chunk = format!("7d0\r\n{}\r\n0\r\n\r\n", "x".repeat(2000));
    let head = format!(
        "DELETE {path} HTTP/1.1\r\nHost: {}\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n",
        fixture.at
    );
    fixture.raw(&format!("{head}{chunk}")).await.refused(413, "body_too_large", None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_is_too_slow_is_cut_off() {
    let quick = Duration::from_millis(100);
    let fixture = Fixture::with(|console| console.options.limits.read_timeout = quick).await;
    let head = format!(
        "DELETE /api/v1/students/s1 HTTP/1.1\r\nHost: {}\r\nContent-Length: 10\r\n\r\nabc",
        fixture.at
    );
    fixture.raw(&head).await.refused(408, "too_slow", None);
    // One that never finishes its head gets no answer.
    let mut stream = TcpStream::connect(fixture.at).await.unwrap();
    stream.write_all(b"GET /api/v1/health HTTP/1.1\r\nHost: loc").await.unwrap();
    let mut rest = Vec::new();
    let closed = tokio::time::timeout(Duration::from_secs(20), stream.read_to_end(&mut rest)).await;
    assert!(closed.is_ok(), "it is closed");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_api_describes_itself() {
    let fixture = Fixture::new().await;
    let document = fixture.get("/api/v1/openapi.json").await.with_status(200);
    assert!(document["openapi"].as_str().unwrap().starts_with("3.1"));
    let paths = document["paths"].as_object().unwrap();
    assert!(paths.contains_key("/keyspaces"), "{paths:?}");
    for (path, item) in paths {
        for (method, operation) in item.as_object().unwrap() {
            let at = format!("{method} {path}");
            assert!(operation["summary"].is_string(), "{at} says what it does");
            for parameter in operation["parameters"].as_array().into_iter().flatten() {
                let is_id = parameter["in"] == "path" && parameter["name"] != "component";
                assert!(!is_id || parameter["schema"]["pattern"].is_string(), "{at}: {parameter}");
            }
            let takes = |name: &str| {
                let mut parameters = operation["parameters"].as_array().into_iter().flatten();
                parameters.any(|it| it["in"] == "header" && it["name"] == name)
            };
            assert!(takes("X-Actor"), "{at}");
            assert_eq!(takes("Idempotency-Key"), matches!(method.as_str(), "post" | "put"), "{at}");
            let default = &operation["responses"]["default"]["content"]["application/json"];
            assert_eq!(default["schema"]["$ref"], "#/components/schemas/Error", "{at}");
        }
    }
    let page = fixture.get("/api/v1/docs").await;
    assert_eq!(page.status, 200);
    assert!(page.body.contains("/keyspaces"), "{}", page.body);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_keyspace_calls_say_how_to_turn_it_on() {
    let fixture =
        Fixture::with(|console| (console.governor, console.erasures) = (None, None)).await;
    for path in ["/api/v1/keyspaces", "/api/v1/erasures"] {
        let refused = fixture.get(path).await;
        refused.refused(503, "platform_off", None);
        assert!(refused.body.contains("--keyspace shipped"), "{refused:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn declared_keys_are_listed_with_what_there_is_of_them() {
    let fixture = Fixture::new().await;
    let listed = fixture.get("/api/v1/keyspaces").await.with_status(200);
    let patterns = listed["patterns"].as_array().unwrap();
    let daily = patterns.iter().find(|it| it["name"] == "mastery.daily_mastery").unwrap();
    assert_eq!(daily["pattern"], "student:{student_id}:mastery:{date}");
    assert_eq!((&daily["store"], &daily["keys"]), (&"state".into(), &0.into()));
}
