//! Walks over the keys.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use kstone_ports::Error;
use kstone_ports::keys::ScanKeys;

use super::{Shelf, int};

/// More pages than any walk over the few keys of a test may take.
const PAGES_MAX: usize = 100_000;

async fn all(shelf: &Shelf, kind: Option<&'static str>, pattern: &str) -> BTreeSet<Bytes> {
    let pattern = Some(Bytes::from(shelf.apart(pattern)));
    let mut request = ScanKeys { pattern, kind, count: 50, ..ScanKeys::default() };
    let mut found = BTreeSet::new();
    for _ in 0..PAGES_MAX {
        let page = shelf.keys.scan(&request).await.unwrap();
        found.extend(page.keys);
        request.after = page.next;
        if request.after.is_none() {
            return found;
        }
    }
    panic!("the walk does not end");
}

pub(super) async fn a_walk_shows_what_is_there(shelf: Shelf) {
    let commands: Vec<_> = (0..300).map(|at| shelf.words(&format!("SET @key{at} 1"))).collect();
    assert!(shelf.keys.pipeline(&commands).await.unwrap().iter().all(Result::is_ok));
    shelf.expect([("SADD @set a", int(1))]).await;
    // Others come and go meanwhile.
    let is_over = Arc::new(AtomicBool::new(false));
    let (restless, over) = (shelf.clone(), Arc::clone(&is_over));
    let others = tokio::spawn(async move {
        let mut at = 0;
        while !over.load(Ordering::Relaxed) {
            at = (at + 1) % 500;
            restless.say(&format!("SET @other{at} 1")).await.unwrap();
            restless.say(&format!("DEL @other{}", (at + 250) % 500)).await.unwrap();
        }
    });
    let wanted: BTreeSet<Bytes> =
        (0..300).map(|at| shelf.apart(&format!("key{at}")).into()).collect();
    for _ in 0..3 {
        let found = all(&shelf, None, "*").await;
        assert!(wanted.is_subset(&found), "{:?}", wanted.difference(&found).next());
        assert!(found.contains(shelf.apart("set").as_bytes()));
    }
    is_over.store(true, Ordering::Relaxed);
    others.await.unwrap();
    assert_eq!(all(&shelf, None, "key1*").await.len(), 111);
    let set: BTreeSet<Bytes> = [Bytes::from(shelf.apart("set"))].into();
    assert_eq!(all(&shelf, Some("set"), "*").await, set);
    let request = ScanKeys { after: Some("nonsense".into()), ..ScanKeys::default() };
    let answer = shelf.keys.scan(&request).await;
    assert!(matches!(answer, Err(Error::Invalid(_) | Error::Reply(_))), "{answer:?}");
}
