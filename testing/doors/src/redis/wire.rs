//! A client that speaks RESP2 over a socket and waits for each reply.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use kstone_redis::Value;

use crate::redis::Command;

/// No reply takes longer.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A connection.
#[derive(Debug)]
pub struct Wire {
    stream: BufReader<TcpStream>,
}

impl Wire {
    /// Connects.
    ///
    /// # Errors
    /// If nobody listens.
    pub fn connect(address: SocketAddr) -> io::Result<Wire> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        Ok(Wire { stream: BufReader::new(stream) })
    }

    /// Sends bytes as they are.
    ///
    /// # Errors
    /// If the connection is gone.
    pub fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.get_mut().write_all(bytes)
    }

    /// Sends a command and waits for its reply.
    ///
    /// # Errors
    /// If the connection is gone.
    pub fn ask(&mut self, command: &Command) -> io::Result<Value> {
        self.send(&encode(command))?;
        self.reply()
    }

    /// [`ask`](Wire::ask) for words without spaces.
    ///
    /// # Errors
    /// If the connection is gone.
    pub fn say(&mut self, line: &str) -> io::Result<Value> {
        self.ask(&Command::of(line))
    }

    /// Waits for the next reply.
    ///
    /// # Errors
    /// If the connection is gone, or what comes is no reply.
    pub fn reply(&mut self) -> io::Result<Value> {
        let mut line = Vec::new();
        self.stream.read_until(b'\n', &mut line)?;
        let Some(line) = line.strip_suffix(b"\r\n") else {
            return Err(io::ErrorKind::UnexpectedEof.into());
        };
        let Some((&kind, rest)) = line.split_first() else {
            return Err(io::Error::other("an empty line"));
        };
        let text = String::from_utf8_lossy(rest);
        let number = || text.parse::<i64>().map_err(io::Error::other);
        Ok(match kind {
            b'+' => Value::Simple(text.into_owned()),
            b'-' => Value::Error(rest.to_vec()),
            b':' => Value::Integer(number()?),
            b'$' => match usize::try_from(number()?) {
                Ok(len) => {
                    let mut bytes = vec![0; len + 2];
                    self.stream.read_exact(&mut bytes)?;
                    bytes.truncate(len);
                    Value::Bulk(bytes)
                }
                Err(_) => Value::Null,
            },
            b'*' => match usize::try_from(number()?) {
                Ok(len) => Value::Array((0..len).map(|_| self.reply()).collect::<Result<_, _>>()?),
                Err(_) => Value::NullArray,
            },
            _ => return Err(io::Error::other(format!("no reply: {}", line.escape_ascii()))),
        })
    }
}

/// A command as it goes over the wire.
pub fn encode(command: &Command) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", command.0.len()).into_bytes();
    for word in &command.0 {
        bytes.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
        bytes.extend_from_slice(word);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes
}
