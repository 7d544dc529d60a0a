//! SIGTERM and SIGINT: the first asks the server to stop, the second ends it at once.

use std::io;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};
use tokio::runtime::Builder;
use tokio::sync::watch;

/// A signal so soon after the first one is the same wish, not impatience.
const ECHO: Duration = Duration::from_millis(200);

/// Becomes true when the server is to stop.
pub type Stop = watch::Receiver<bool>;

/// Watches on a thread of its own, so that the second signal counts whatever the server is busy
/// with. A holder of the sender can request the same without a signal.
pub fn watch() -> Result<(watch::Sender<bool>, Stop)> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let entered = runtime.enter();
    let mut signals = Signals::new().context("cannot watch for signals")?;
    drop(entered);
    let (ask, stop) = watch::channel(false);
    let asked = ask.clone();
    thread::Builder::new().name("signals".to_owned()).spawn(move || {
        runtime.block_on(async {
            signals.next().await;
            let _ = asked.send(true);
            // Some parents (`timeout`, a shell's job control) send one stop twice.
            let echoes = async { while signals.next().await != 0 {} };
            let _ = tokio::time::timeout(ECHO, echoes).await;
            let number = signals.next().await;
            std::process::exit(128 + number);
        })
    })?;
    Ok((ask, stop))
}

/// Completes when the server is to stop; never if nobody can ask it to.
pub async fn asked(mut stop: Stop) {
    if stop.wait_for(|asked| *asked).await.is_err() {
        std::future::pending::<()>().await;
    }
}

#[cfg(unix)]
struct Signals {
    term: tokio::signal::unix::Signal,
    int: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    fn new() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        let (term, int) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
        Ok(Signals { term, int })
    }

    /// Waits for the next one and answers its number.
    async fn next(&mut self) -> i32 {
        tokio::select! {
            _ = self.term.recv() => 15,
            _ = self.int.recv() => 2,
        }
    }
}

#[cfg(not(unix))]
struct Signals;

#[cfg(not(unix))]
impl Signals {
    fn new() -> io::Result<Self> {
        Ok(Signals)
    }

    async fn next(&mut self) -> i32 {
        let _ = tokio::signal::ctrl_c().await;
        2
    }
}
