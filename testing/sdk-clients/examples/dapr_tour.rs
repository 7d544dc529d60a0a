//! A tour of KeystoneDB's Dapr door with Dapr's SDK for Rust, as it is, and no sidecar.
//!
//!     DAPR_GRPC_PORT=50001 cargo run -p kstone-clients --example dapr_tour
//!
//! Every step checks what came back. What was written is deleted at the end.
#![allow(clippy::disallowed_methods, reason = "a process of its own")]

use std::collections::HashMap;
use std::error::Error;
use std::time::{SystemTime, UNIX_EPOCH};

use dapr::Client;
use dapr::client::{Etag, StateItem, StateOptions, TonicClientWithAuth};
use serde_json::{Value, json};

const STORE: &str = "statestore";
/// First write wins, strong consistency: the numbers of Dapr's protocol.
const FIRST: StateOptions = StateOptions { concurrency: 1, consistency: 2 };

type Sdk = Client<TonicClientWithAuth>;
type Done = Result<(), Box<dyn Error>>;

#[tokio::main]
async fn main() -> Done {
    let mut client = Client::new().await?;
    quickstart(&mut client).await?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?;
    let student = format!("student:tour-{}", now.as_micros());
    bulk_and_query(&mut client, &student).await?;
    one_update_wins(&mut client, &student).await?;
    time_to_live(&mut client, &student).await?;
    let how = if std::env::var_os("TOUR_SIDECAR").is_some() { "through" } else { "without" };
    println!("rust: Dapr's SDK works {how} a sidecar");
    Ok(())
}

/// What the quickstart of the SDK does: save, get, delete, and it is gone.
async fn quickstart(client: &mut Sdk) -> Done {
    client.save_state(STORE, "hello", b"world".to_vec(), None, None, None).await?;
    assert_eq!(client.get_state(STORE, "hello", None).await?.data, b"world");
    client.delete_state(STORE, "hello", None).await?;
    let gone = client.get_state(STORE, "hello", None).await?;
    assert!(gone.data.is_empty() && gone.etag.is_empty());
    Ok(())
}

async fn bulk_and_query(client: &mut Sdk, student: &str) -> Done {
    let key = |day: usize| format!("{student}:history:full:2026-01-{day:02}");
    let item = |day| StateItem {
        key: key(day),
        value: json!({ "student": student, "day": day }).to_string().into_bytes(),
        ..StateItem::default()
    };
    client.save_bulk_states(STORE, (1..=9).map(item).collect::<Vec<_>>()).await?;
    let query = json!({
        "filter": { "EQ": { "student": student } },
        "sort": [{ "key": "day", "order": "DESC" }],
        "page": { "limit": 2 },
    });
    let found = client.query_state_alpha1(STORE, query, None).await?.results;
    let days = found.iter().map(|one| serde_json::from_slice::<Value>(&one.data));
    let days =
        days.map(|value| Ok(value?["day"].clone())).collect::<serde_json::Result<Vec<_>>>()?;
    assert_eq!(days, [json!(9), json!(8)]);
    client.delete_bulk_state(STORE.to_owned(), (1..=9).map(|day| (key(day), Vec::new()))).await?;
    for day in 1..=9 {
        assert!(client.get_state(STORE, &key(day), None).await?.data.is_empty());
    }
    Ok(())
}

/// Of twenty updates of the same version one wins.
async fn one_update_wins(client: &mut Sdk, student: &str) -> Done {
    let key = format!("{student}:history:full");
    client.save_state(STORE, &key, b"{}".to_vec(), None, None, None).await?;
    let read = client.get_state(STORE, &key, None).await?;
    let updates: Vec<_> = (0..20)
        .map(|n| {
            let (mut client, key, etag) = (client.clone(), key.clone(), read.etag.clone());
            tokio::spawn(async move {
                let etag = Some(Etag { value: etag });
                let value = json!({ "days": n }).to_string().into_bytes();
                client.save_state(STORE, &key, value, etag, None, Some(FIRST)).await.is_ok()
            })
        })
        .collect();
    let mut winners = Vec::new();
    for (n, update) in updates.into_iter().enumerate() {
        if update.await? {
            winners.push(n);
        }
    }
    assert_eq!(winners.len(), 1, "these updates of one version won: {winners:?}");
    let now = client.get_state(STORE, &key, None).await?;
    assert_eq!(serde_json::from_slice::<Value>(&now.data)?, json!({ "days": winners[0] }));
    assert_ne!(now.etag, read.etag);
    client.delete_state(STORE, &key, None).await?;
    Ok(())
}

async fn time_to_live(client: &mut Sdk, student: &str) -> Done {
    let key = format!("{student}:note");
    let for_ever = client.get_state(STORE, &key, None).await?;
    assert!(!for_ever.metadata.contains_key("ttlExpireTime"));
    let ttl = HashMap::from([("ttlInSeconds".to_owned(), "100".to_owned())]);
    client.save_state(STORE, &key, b"soon gone".to_vec(), None, Some(ttl), None).await?;
    let read = client.get_state(STORE, &key, None).await?;
    assert_eq!(read.data, b"soon gone");
    assert!(read.metadata.contains_key("ttlExpireTime"), "no expiry in {:?}", read.metadata);
    client.delete_state(STORE, &key, None).await?;
    Ok(())
}
