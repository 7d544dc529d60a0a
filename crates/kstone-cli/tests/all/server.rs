//! A running `kstone serve`, and a client for it that knows nothing.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};

use crate::Fixture;

/// Killed when it is dropped, if it was not stopped before.
pub struct Server {
    child: Child,
    out: BufReader<ChildStdout>,
    /// What it printed up to the line that says that it is ready.
    pub greeting: Vec<String>,
    /// Where it speaks DynamoDB's protocol.
    pub url: String,
    /// Where it speaks Redis's protocol, if it does.
    pub redis: Option<String>,
}

impl Server {
    /// Starts one on a port that is free, and waits until it is ready.
    pub fn start(fixture: &Fixture, words: &[&str]) -> Server {
        let mut all = vec!["serve", "--dynamodb", "127.0.0.1:0"];
        let doors = ["--redis", "--dapr-http", "--dapr-grpc", "--console"];
        for door in doors.iter().filter(|it| !words.contains(it)) {
            all.extend([door, "off"]);
        }
        let words = [&all, words].concat();
        Self::start_as(fixture.command().args(words))
    }

    /// The same with the whole command.
    pub fn start_as(command: &mut Command) -> Server {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        let mut server =
            Server { child, out, greeting: Vec::new(), url: String::new(), redis: None };
        server.greeting = server.lines_until(|line| line.starts_with("ready in "));
        let door = server.greeting.iter().find(|line| line.starts_with("dynamodb  ")).unwrap();
        server.url = door.split_whitespace().nth(1).unwrap().to_owned();
        let redis = server.greeting.iter().find_map(|line| line.strip_prefix("redis     redis://"));
        server.redis = redis.and_then(|rest| rest.split_whitespace().next()).map(str::to_owned);
        server
    }

    /// Reads what it prints, up to the line that is meant.
    pub fn lines_until(&mut self, is_last: impl Fn(&str) -> bool) -> Vec<String> {
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            assert_ne!(self.out.read_line(&mut line).unwrap(), 0, "it ended: {lines:?}");
            lines.push(line.trim_end().to_owned());
            if is_last(line.trim_end()) {
                return lines;
            }
        }
    }

    pub fn signal(&self, signal: &str) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args([signal, &pid]).status().unwrap().success());
    }

    /// Asks it to stop, and waits until it has; what else it printed comes back.
    pub fn stop(mut self, signal: &str) -> (ExitStatus, String) {
        self.signal(signal);
        let mut rest = String::new();
        self.out.read_to_string(&mut rest).unwrap();
        (self.child.wait().unwrap(), rest)
    }

    /// As a power cut would, as far as a process goes.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Whether it has ended, and how.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().unwrap()
    }

    /// One request of DynamoDB's protocol, signed by nobody in particular.
    pub fn post(&self, operation: &str, body: &str) -> (u16, String) {
        try_post(&self.url, operation, body).unwrap()
    }

    pub fn connect(&self) -> TcpStream {
        TcpStream::connect(self.url.strip_prefix("http://").unwrap()).unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// `None` if the server went away before it had answered.
pub fn try_post(url: &str, operation: &str, body: &str) -> Option<(u16, String)> {
    let head = format!(
        "POST / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\
         Content-Type: application/x-amz-json-1.0\r\n\
         X-Amz-Target: DynamoDB_20120810.{operation}\r\n\
         Authorization: AWS4-HMAC-SHA256 Credential=any/20260101/us-east-1/dynamodb/aws4_request, \
         SignedHeaders=host, Signature=00\r\n\
         Content-Length: {}\r\n\r\n",
        body.len()
    );
    exchange(url, &format!("{head}{body}"))
}

/// The status and the body of the answer to a request.
pub fn exchange(url: &str, request: &str) -> Option<(u16, String)> {
    let mut stream = TcpStream::connect(url.strip_prefix("http://").unwrap()).ok()?;
    stream.write_all(request.as_bytes()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    let status = head.split(' ').nth(1)?.parse().ok()?;
    Some((status, body.to_owned()))
}
