//! The socket at which a Dapr sidecar finds the store: a file in its folder of components, whose
//! name is the component's.
//!
//! Who may connect is for the operator to say: the file has the mode that the umask leaves from the
//! moment it is bound, and its folder keeps others out or lets them in. A sidecar that is another
//! user than the server needs a umask that leaves it the right to write.

use std::future::Future;
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use kstone_dapr::Door;
use tokio::net::{UnixListener, UnixStream};

/// The file's name where only a folder is named.
const FILE: &str = "kstone.sock";

/// An open socket. Its file is taken away when it is dropped: a sidecar takes every file in the
/// folder for a component that runs.
pub struct ComponentSocket {
    listener: UnixListener,
    file: SocketFile,
}

struct SocketFile(PathBuf);

impl ComponentSocket {
    /// Opens the socket, in place of one that a killed server left. Makes its folder if it is
    /// missing.
    pub async fn open(path: &Path) -> Result<ComponentSocket> {
        let path = if path.is_dir() { path.join(FILE) } else { path.to_owned() };
        let shown = path.display();
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)
                .with_context(|| format!("cannot make the folder of {shown}"))?;
        }
        remove_abandoned(&path).await?;
        let listener =
            UnixListener::bind(&path).with_context(|| format!("cannot listen at {shown}"))?;
        Ok(ComponentSocket { listener, file: SocketFile(path) })
    }

    pub fn path(&self) -> &Path {
        &self.file.0
    }

    /// What a component's definition has to say as its type.
    pub fn component_type(&self) -> String {
        let name = self.file.0.file_stem().unwrap_or_default();
        format!("state.{}", name.to_string_lossy())
    }

    /// Serves it until `stop` completes.
    pub async fn serve(self, door: Door, stop: impl Future<Output = ()>) {
        let ComponentSocket { listener, file } = self;
        door.serve_component(listener, stop).await;
        drop(file);
    }
}

/// Removes the socket of a server that is gone. Leaves everything else, and says what it is.
async fn remove_abandoned(path: &Path) -> Result<()> {
    let shown = path.display();
    let found = match std::fs::symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        found => found.with_context(|| format!("cannot look at {shown}"))?,
    };
    if !found.file_type().is_socket() {
        bail!("{shown} is there and is no socket: name another file with --dapr-component-socket");
    }
    match UnixStream::connect(path).await {
        Ok(_) => bail!("another process listens at {shown}: stop it, or name another file"),
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => std::fs::remove_file(path)
            .or_else(is_gone)
            .with_context(|| format!("cannot remove {shown}")),
        Err(error) => Err(error).with_context(|| format!("cannot look at {shown}")),
    }
}

fn is_gone(error: io::Error) -> io::Result<()> {
    match error.kind() {
        ErrorKind::NotFound => Ok(()),
        _ => Err(error),
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}
