//! The webhook, against a real socket.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::mpsc;

use kstone_base::Error;
use kstone_base::work::Webhook;

use crate::alerts::{alert, alerts};
use crate::support::store_and_process;

/// A server that answers with these statuses in turn, and tells what it was sent.
fn server(statuses: &'static [u16]) -> (String, mpsc::Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/hook", listener.local_addr().unwrap());
    let (told, heard) = mpsc::channel();
    std::thread::spawn(move || {
        for status in statuses {
            let (mut stream, _) = listener.accept().unwrap();
            let (mut request, mut buffer) = (Vec::new(), [0; 4096]);
            loop {
                let text = String::from_utf8_lossy(&request).into_owned();
                let end = text.find("\r\n\r\n").map(|end| end + 4);
                let length = text.lines().find_map(|line| {
                    let (name, value) = line.split_once(": ")?;
                    name.eq_ignore_ascii_case("content-length")
                        .then(|| value.parse::<usize>().ok())?
                });
                if let (Some(end), Some(length)) = (end, length)
                    && request.len() >= end + length
                {
                    told.send(text).unwrap();
                    break;
                }
                let read = stream.read(&mut buffer).unwrap();
                assert!(read > 0, "the client hung up");
                request.extend_from_slice(&buffer[..read]);
            }
            let answer =
                format!("HTTP/1.1 {status} x\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
            stream.write_all(answer.as_bytes()).unwrap();
        }
    });
    (url, heard)
}

#[tokio::test]
async fn an_alert_is_sent_until_the_address_takes_it() {
    let (store, process) = store_and_process().await;
    let (url, heard) = server(&[500, 503, 204]);
    Webhook::new(&url).unwrap().register(&process.workers);
    alerts(&store, Vec::new(), true).raise(alert("look at this")).await.unwrap();
    for _ in 0..3 {
        assert_eq!(process.workers.run_due().await.unwrap(), 1);
        store.clock.advance(60_000);
    }
    let sent: Vec<String> = heard.try_iter().collect();
    assert_eq!(sent.len(), 3);
    for request in &sent {
        assert!(request.starts_with("POST /hook HTTP/1.1\r\n"), "{request}");
        let body = request.split("\r\n\r\n").nth(1).unwrap();
        let body: serde_json::Value = serde_json::from_str(body).unwrap();
        assert_eq!(body["alert"]["title"], "look at this");
    }
    let depth = process.queues.depth("alerts").await.unwrap();
    assert_eq!((depth.ready, depth.delayed, depth.dead), (0, 0, 0));
}

#[tokio::test]
async fn an_address_that_does_not_want_it_is_not_asked_again() {
    let (store, process) = store_and_process().await;
    let (url, heard) = server(&[404]);
    Webhook::new(&url).unwrap().register(&process.workers);
    alerts(&store, Vec::new(), true).raise(alert("look at this")).await.unwrap();
    process.workers.run_due().await.unwrap();
    assert_eq!(heard.try_iter().count(), 1);
    let dead = process.queues.dead_letters("alerts", 10, None).await.unwrap().items;
    assert_eq!(dead[0].problem, "it answered 404");
}

#[test]
fn what_is_no_address_is_refused_when_it_is_set() {
    for url in ["", "nonsense", "ftp://example.org", "/hook", "http://"] {
        let error = Webhook::new(url).unwrap_err();
        let Error::Invalid(invalid) = error else { panic!("{error}") };
        assert_eq!(invalid.field, "alert_webhook");
    }
}
