//! Sends commands to another server, for MIGRATE: connects, sends, and reads the replies.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::time::Duration;

use kstone_redis::{RemoteCommands, Sink, Value};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::encode::Encoder;

/// How much is sent before the clock starts again.
const PIECE_LEN: usize = 64 << 10;
/// The longest reply that is read: what answers a command that stores something is short.
const REPLY_LEN_MAX: u64 = 64 << 10;

/// Sends the commands and returns their replies. An error of the kind `NotConnected` means that the
/// server could not be reached.
pub(crate) fn run(
    remote: RemoteCommands,
) -> Pin<Box<dyn Future<Output = io::Result<Vec<Value>>> + Send>> {
    Box::pin(async move {
        let RemoteCommands { host, port, timeout: most, commands } = remote;
        let connect = TcpStream::connect((host.as_str(), port));
        let stream = within(most, connect).await;
        let mut stream = stream.map_err(|error| io::Error::new(NotConnected, error))?;
        for command in &commands {
            let mut encoder = Encoder::default();
            let words: Vec<&[u8]> = command.iter().map(Vec::as_slice).collect();
            encoder.bulks(&words);
            for piece in encoder.bytes.chunks(PIECE_LEN) {
                within(most, stream.write_all(piece)).await?;
            }
        }
        let mut reader = BufReader::new(stream);
        let mut replies = Vec::with_capacity(commands.len());
        for _ in &commands {
            replies.push(within(most, reply(&mut reader)).await?);
        }
        Ok(replies)
    })
}

use io::ErrorKind::{InvalidData, NotConnected, TimedOut};

async fn within<T>(most: Duration, step: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    timeout(most, step).await.unwrap_or_else(|_| Err(TimedOut.into()))
}

/// One reply of the kinds that commands return which store something.
async fn reply(reader: &mut BufReader<TcpStream>) -> io::Result<Value> {
    let mut line = Vec::new();
    let mut limited = (&mut *reader).take(REPLY_LEN_MAX);
    limited.read_until(b'\n', &mut line).await?;
    let Some(line) = line.strip_suffix(b"\r\n") else { return Err(InvalidData.into()) };
    let Some((kind, rest)) = line.split_first() else { return Err(InvalidData.into()) };
    let text = || String::from_utf8_lossy(rest).into_owned();
    Ok(match kind {
        b'+' => Value::Simple(text()),
        b'-' => Value::Error(rest.to_vec()),
        b':' => Value::Integer(text().parse().map_err(|_| InvalidData)?),
        _ => return Err(InvalidData.into()),
    })
}
