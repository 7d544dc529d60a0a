//! The socket by which the owner of the folder asks a server about persons and the keyspace:
//! `kstone subject`, `kstone erase` and `kstone keyspace` while it runs. See `crate::persons`.
//!
//! It is a file in the folder that only its owner can open, so it needs no password.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use kstone::Database;
use kstone_core::env::SystemRandom;
use kstone_door::{DoorFrame, Limits};
use kstone_keyspace::Governor;
use kstone_keyspace::erasure::Eraser;
use kstone_platform::Platform;
use kstone_redis::Redis;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use crate::persons::{self, Call, ProgressBar, ReplyLine, SOCKET};
use crate::private_file;

/// A call is a person's name and little else.
const CALL_BYTES_MAX: u64 = 64 * 1024;
/// The folder in which the socket is made, and its name there. Together they are as long as
/// [`SOCKET`], so that the system, which limits the length of a socket's path, takes both or neither.
const UNFINISHED: (&str, &str) = ("socket.new", "s");
/// How long a caller may take to say what it wants.
const CALL_TIMEOUT: Duration = Duration::from_secs(10);
/// Calls that are answered at a time.
const CALLS_MAX: usize = 64;

/// What answers calls.
#[derive(Debug)]
struct Control {
    eraser: Arc<Eraser>,
    governor: Arc<Governor>,
    platform: Option<Arc<Platform>>,
    db: Database,
}

/// The socket, which is removed when the server ends.
#[derive(Debug)]
pub struct Socket(PathBuf);

impl Drop for Socket {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// Makes the eraser that the control socket and the console share. Receipts are signed with the
/// folder's key; data that is in memory only has a key that ends with it.
pub fn eraser(
    dir: Option<&Path>,
    db: &Database,
    redis: &Redis,
    governor: &Arc<Governor>,
) -> Result<Arc<Eraser>> {
    let key = match dir {
        Some(dir) => persons::receipt_key(dir)?,
        None => persons::ephemeral_key()?,
    };
    let random = Arc::new(SystemRandom);
    Ok(Arc::new(Eraser::embedded(db, redis, Arc::clone(governor), key, random)?))
}

/// Goes on with erasures that were interrupted, and answers calls from now on.
pub fn serve(
    dir: &Path,
    db: &Database,
    (eraser, governor, platform): (Arc<Eraser>, Arc<Governor>, Option<Arc<Platform>>),
    runtime: &Handle,
) -> Result<Socket> {
    // The handle must not keep the database open when the server ends.
    let control = Arc::new(Control { eraser, governor, platform, db: db.internal() });
    let path = dir.join(SOCKET);
    let _entered = runtime.enter();
    let listener =
        bind(dir, &path).with_context(|| format!("cannot listen at {}", path.display()))?;
    let resuming = Arc::clone(&control);
    runtime.spawn(async move {
        let resumed = spawn_blocking(move || resuming.answer(&Call::Resume, &mut |_| {})).await;
        if let Ok(Err(error)) = resumed {
            eprintln!("kstone: an erasure that was interrupted cannot go on: {error:#}");
        }
        let limits = Limits { connections_max: CALLS_MAX, ..Limits::default() };
        let connection = move |stream, (), _| {
            let call = talk(stream, Arc::clone(&control));
            async { drop(call.await) }
        };
        let frame = DoorFrame::new(limits, Arc::default());
        frame.serve(listener, connection, std::future::pending()).await;
    });
    Ok(Socket(path))
}

/// Opens the socket, in place of one that a killed server left. The caller has the folder locked.
///
/// A socket gets its mode only after it is bound, and the folder of the database may be one that
/// others can enter. So it is bound in a folder that they cannot, and moved when it has its mode.
fn bind(dir: &Path, path: &Path) -> io::Result<UnixListener> {
    let folder = dir.join(UNFINISHED.0);
    let unfinished = folder.join(UNFINISHED.1);
    private_file::remove_if_there(&unfinished)?;
    match fs::remove_dir(&folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => DirBuilder::new().mode(0o700).create(&folder)?,
    }
    let bound = UnixListener::bind(&unfinished).and_then(|listener| {
        fs::set_permissions(&unfinished, fs::Permissions::from_mode(0o600))?;
        fs::rename(&unfinished, path)?;
        Ok(listener)
    });
    let removed = fs::remove_dir(&folder);
    bound.and_then(|listener| removed.map(|()| listener))
}

impl Control {
    fn answer(
        &self,
        call: &Call,
        show: &mut (dyn FnMut(&ProgressBar) + Send),
    ) -> Result<serde_json::Value> {
        let answer = persons::answer(call, &self.eraser, &self.governor, &self.db, show);
        // An erased person must not stay known in memory.
        if let (Call::Erase(_) | Call::Resume, Some(platform)) = (call, &self.platform) {
            platform.mastery.forget_all();
        }
        answer
    }
}

/// One call, and its answer.
async fn talk(stream: UnixStream, control: Arc<Control>) -> std::io::Result<()> {
    let (reader, mut writer) = stream.into_split();
    let mut line = String::new();
    let mut reader = BufReader::new(tokio::io::AsyncReadExt::take(reader, CALL_BYTES_MAX));
    timeout(CALL_TIMEOUT, reader.read_line(&mut line)).await??;
    let (sender, mut lines) = mpsc::channel::<ReplyLine>(16);
    let asked = spawn_blocking(move || {
        let answer = serde_json::from_str::<Call>(&line).map_err(Into::into).and_then(|call| {
            control.answer(&call, &mut |bar| {
                // Who does not listen misses something, and holds nobody up.
                let _ = sender.try_send(ReplyLine::Progress(bar.clone()));
            })
        });
        let last = match answer {
            Ok(answer) => ReplyLine::Done(answer),
            Err(error) => ReplyLine::Failed(format!("{error:#}")),
        };
        let _ = sender.blocking_send(last);
    });
    while let Some(line) = lines.recv().await {
        let line = serde_json::to_string(&line).map_err(std::io::Error::from)?;
        writer.write_all(format!("{line}\n").as_bytes()).await?;
    }
    let _ = asked.await;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    fn mode(path: &Path) -> Option<u32> {
        Some(fs::symlink_metadata(path).ok()?.permissions().mode() & 0o777)
    }

    #[tokio::test]
    async fn the_socket_replaces_what_a_killed_server_left() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(SOCKET);
        let folder = dir.path().join(UNFINISHED.0);
        fs::create_dir(&folder).unwrap();
        drop(UnixListener::bind(folder.join(UNFINISHED.1)).unwrap());
        drop(UnixListener::bind(&path).unwrap());
        assert!(UnixStream::connect(&path).await.is_err());
        let _listener = bind(dir.path(), &path).unwrap();
        UnixStream::connect(&path).await.unwrap();
        assert_eq!((mode(&path), folder.exists()), (Some(0o600), false));
        assert_eq!(UNFINISHED.0.len() + 1 + UNFINISHED.1.len(), SOCKET.len());
    }

    #[tokio::test]
    async fn nobody_but_its_owner_can_ever_reach_the_socket() {
        let dir = tempfile::tempdir().unwrap();
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let (path, folder) = (dir.path().join(SOCKET), dir.path().join(UNFINISHED.0));
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let watcher = scope.spawn(|| {
                let (mut sockets, mut folders) = (0, 0);
                while !done.load(Ordering::Relaxed) {
                    let (socket, folder) = (mode(&path), mode(&folder));
                    assert_eq!(socket.unwrap_or_default() & 0o077, 0);
                    assert_eq!(folder.unwrap_or_default() & 0o077, 0);
                    sockets += usize::from(socket.is_some());
                    folders += usize::from(folder.is_some());
                }
                (sockets, folders)
            });
            for _ in 0..2_000 {
                drop(bind(dir.path(), &path).unwrap());
                fs::remove_file(&path).unwrap();
            }
            done.store(true, Ordering::Relaxed);
            let (sockets, folders) = watcher.join().unwrap();
            assert!(sockets > 0 && folders > 0, "the watcher saw {sockets} and {folders}");
        });
    }
}
