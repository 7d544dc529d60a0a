//! One connection: reads, executes the commands that are complete, and answers them with one write.
//!
//! Everything that can happen to a connection is awaited in one place, [`Connection::event`]: bytes
//! come, bytes can go, somebody sends a message or closes the connection, a command that waited is
//! served, time is over. A client that sends without reading is read on until its replies pile up.

use std::future::{Future, poll_fn};
use std::io::ErrorKind;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use kstone_redis::{CommandOutcome, Pipeline, Session, Sink as _, Waiting};
use tokio::io::{AsyncReadExt as _, AsyncWrite as _};
use tokio::net::TcpStream;
use tokio::task::coop::{consume_budget, has_budget_remaining};
use tokio::task::yield_now;
use tokio::time::{Sleep, sleep};

use crate::durability::DurabilityNotifier;
use crate::encode::Encoder;
use crate::parse::{Found, Limits, Parser};
use crate::turn_queue::Turn;

/// Room for a read: at first, and when a client fills it.
const READ_BYTES_MIN: usize = 2 * 1024;
const READ_BYTES_MAX: usize = 64 * 1024;
/// Replies are written when there are so many, even if more commands have come.
const WRITE_BYTES: usize = 256 * 1024;
/// A client whose unread replies are more than this is not read from until it reads.
const UNREAD_BYTES_MAX: usize = 64 * 1024 * 1024;
/// How much is taken from a client that sends commands while one of its own waits.
const AHEAD_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Buffers that grew larger than this are given back when they are empty.
const KEPT_BYTES_MAX: usize = 256 * 1024;
/// After so long a client that sent many commands lets others go first.
const TIME_MAX: Duration = Duration::from_millis(1);
/// Most commands have no more arguments, and need no allocation for them.
const FEW_ARGS: usize = 12;

/// A client's connection and its session.
pub(crate) struct Connection {
    stream: TcpStream,
    /// Where it waits for durability, if its replies promise that.
    durability: Option<Arc<DurabilityNotifier>>,
    session: Session,
    /// What came; what is before `start` is done with.
    buffer: Vec<u8>,
    start: usize,
    parser: Parser,
    /// Looks for the commands behind one that is whole.
    ahead: Parser,
    /// Replies; what is before `written` has gone.
    out: Encoder,
    written: usize,
    /// Room for the next read.
    read_bytes: usize,
    /// Its place in the order of connections.
    turn: Turn,
}

/// What the commands that are there, or are to come, wait for.
enum Next {
    /// The client.
    Input,
    /// The replies before them are to be written first.
    Write,
    /// One of them waits for a key, and perhaps not for ever.
    Key(Box<Waiting>, Option<Pin<Box<Sleep>>>),
    /// The end of a pause of the server.
    Pause(Pin<Box<Sleep>>),
    /// Nothing: the connection is to be closed.
    Close,
}

/// What happened.
enum Event {
    /// Bytes came, or went.
    Moved,
    /// A message came, or somebody closes the connection.
    Attention,
    /// A command that waited has its reply.
    Served,
    TimeOver,
    Closed,
}

impl Connection {
    pub(crate) fn new(
        stream: TcpStream,
        durability: Option<Arc<DurabilityNotifier>>,
        session: Session,
        turn: Turn,
    ) -> Connection {
        Connection {
            stream,
            durability,
            session,
            buffer: Vec::new(),
            start: 0,
            parser: Parser::default(),
            ahead: Parser::default(),
            out: Encoder::default(),
            written: 0,
            read_bytes: READ_BYTES_MIN,
            turn,
        }
    }

    /// Serves the client until one of both has enough.
    pub(crate) async fn run(mut self) {
        let mut next = Next::Input;
        loop {
            if matches!(next, Next::Input | Next::Write) && self.unread() < UNREAD_BYTES_MAX {
                next = self.take_commands().await;
            }
            self.session.take_messages(&mut self.out);
            if self.unread() > 0 {
                self.turn.yield_to_others().await;
            }
            // What was executed is answered, also to who is not to be served any more.
            if !self.write().await || self.session.is_killed() {
                return;
            }
            if self.session.is_dismissed() {
                next = Next::Close;
            }
            match next {
                Next::Write if self.unread() < UNREAD_BYTES_MAX => continue,
                Next::Close if self.unread() == 0 => return,
                _ => {}
            }
            match self.event(&mut next).await {
                Event::Moved => {}
                Event::Attention => {
                    if matches!(next, Next::Pause(_)) {
                        next = Next::Input;
                    }
                }
                Event::Served => next = Next::Input,
                Event::TimeOver => {
                    if let Next::Key(waiting, _) = next {
                        waiting.time_out(&mut self.session, &mut self.out).await;
                    }
                    next = Next::Input;
                }
                Event::Closed => return,
            }
        }
    }

    /// How many bytes of replies have not gone yet.
    fn unread(&self) -> usize {
        self.out.bytes.len() - self.written
    }

    /// Runs every command that is there, up to one that waits.
    async fn take_commands(&mut self) -> Next {
        let Connection { session, buffer, start, parser, ahead, out, .. } = self;
        let enough = out.bytes.len() + WRITE_BYTES;
        if *start < buffer.len() {
            session.start_commands();
        }
        let mut since = session.command_started();
        let next = loop {
            if session.is_killed() || session.is_dismissed() {
                break Next::Close;
            }
            // A client that sends much at once has no more of the thread than others.
            if session.command_started().saturating_sub(since) > TIME_MAX || !has_budget_remaining()
            {
                yield_now().await;
                session.start_commands();
                since = session.command_started();
            }
            consume_budget().await;
            let data = buffer.get(*start..).unwrap_or_default();
            let limits =
                Limits { arg_len_max: session.arg_len_max(), is_known: session.is_authenticated() };
            let len = match parser.parse(data, limits) {
                Ok(Found::Command(len)) => len,
                Ok(Found::Part(missing)) => {
                    // Never more than as much again as there is: a promise costs nothing.
                    let room = missing.min(data.len()).max(READ_BYTES_MIN);
                    self.read_bytes = self.read_bytes.max(room);
                    break Next::Input;
                }
                Err(error) => {
                    out.error(error.0.as_bytes());
                    break Next::Close;
                }
            };
            if parser.args().is_empty() {
                *start += len;
                continue;
            }
            session.note_query(data.len(), buffer.capacity() - buffer.len());
            if len < data.len() && session.may_run_together() {
                let (pipeline, ends) = look_ahead(parser, ahead, data, len, limits);
                let done = session.execute_together(&pipeline, out).await;
                if let Some(end) = done.checked_sub(1).and_then(|last| ends.get(last)) {
                    *start += end;
                    session.take_messages(out);
                    if out.bytes.len() > enough {
                        break Next::Write;
                    }
                    continue;
                }
            }
            let source = parser.source(data);
            let mut places = parser.args().iter();
            let at = |&(from, to): &(usize, usize)| source.get(from..to).unwrap_or_default();
            let mut few: [&[u8]; FEW_ARGS] = [&[]; FEW_ARGS];
            let many: Vec<&[u8]>;
            let args: &[&[u8]] = match few.get_mut(..places.len()) {
                Some(few) => {
                    few.iter_mut().zip(&mut places).for_each(|(arg, place)| *arg = at(place));
                    few
                }
                None => {
                    many = places.map(at).collect();
                    &many
                }
            };
            if args.first().is_some_and(|name| is_http(name)) {
                break Next::Close;
            }
            let step = session.execute(args, out).await;
            match step {
                CommandOutcome::Paused(left) => break Next::Pause(Box::pin(sleep(left))),
                CommandOutcome::Replied => *start += len,
                CommandOutcome::Close => {
                    *start += len;
                    break Next::Close;
                }
                CommandOutcome::Waiting(waiting) => {
                    *start += len;
                    let timer = waiting.left().map(|left| Box::pin(sleep(left)));
                    break Next::Key(waiting, timer);
                }
            }
            session.take_messages(out);
            if out.bytes.len() > enough {
                break Next::Write;
            }
        };
        if *start == buffer.len() {
            *start = 0;
            buffer.clear();
            if buffer.capacity() > KEPT_BYTES_MAX {
                *buffer = Vec::new();
                (*parser, *ahead) = Default::default();
            }
        }
        session.note_query(buffer.len() - *start, buffer.capacity() - buffer.len());
        next
    }

    /// Writes as much as goes now; false if the connection is to be closed.
    async fn write(&mut self) -> bool {
        if self.unread() == 0 {
            return true;
        }
        if let Some(durability) = &self.durability
            && !durability.wait_durable(self.session.seq()).await
        {
            return false;
        }
        while self.unread() > 0 {
            match self.stream.try_write(self.out.bytes.get(self.written..).unwrap_or_default()) {
                Ok(0) => return false,
                Ok(bytes) => self.note_written(bytes),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    return !self.session.is_over_limit(self.unread());
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return false,
            }
        }
        true
    }

    fn note_written(&mut self, bytes: usize) {
        self.session.note_sent(bytes);
        self.written += bytes;
        if self.unread() > 0 {
            // Who reads slowly all the time must not make the buffer grow for ever.
            if self.written > self.unread().max(KEPT_BYTES_MAX) {
                self.out.bytes.drain(..self.written);
                self.written = 0;
            }
            return;
        }
        if self.written > 0 && self.session.has_unsent() {
            self.session.is_over_limit(0);
        }
        self.written = 0;
        self.out.bytes.clear();
        if self.out.bytes.capacity() > KEPT_BYTES_MAX {
            self.out.bytes = Vec::new();
        }
    }

    /// Waits for whatever comes first.
    async fn event(&mut self, next: &mut Next) -> Event {
        poll_fn(|context| self.poll_event(next, context)).await
    }

    fn poll_event(&mut self, next: &mut Next, context: &mut Context<'_>) -> Poll<Event> {
        if !self.turn.may_begin(context) {
            return Poll::Pending;
        }
        if self.session.is_killed() {
            // Whatever it waited for has no reply any more.
            return Poll::Ready(Event::Attention);
        }
        let is_over = match next {
            Next::Key(waiting, timer) => {
                let served = pin!(waiting.served(&mut self.session, &mut self.out)).poll(context);
                if served.is_ready() {
                    return Poll::Ready(Event::Served);
                }
                timer.as_mut().is_some_and(|timer| timer.as_mut().poll(context).is_ready())
            }
            Next::Pause(timer) => timer.as_mut().poll(context).is_ready(),
            _ => false,
        };
        if is_over {
            return Poll::Ready(Event::TimeOver);
        }
        if self.session.poll_attention(context).is_ready() {
            return Poll::Ready(Event::Attention);
        }
        if self.unread() > 0 {
            let rest = self.out.bytes.get(self.written..).unwrap_or_default();
            match Pin::new(&mut self.stream).poll_write(context, rest) {
                Poll::Ready(Ok(bytes @ 1..)) => {
                    self.note_written(bytes);
                    return Poll::Ready(Event::Moved);
                }
                Poll::Ready(_) => return Poll::Ready(Event::Closed),
                Poll::Pending => {}
            }
        }
        let may_read = match next {
            Next::Input => self.unread() < UNREAD_BYTES_MAX,
            Next::Key(..) | Next::Pause(_) => self.buffer.len() - self.start < AHEAD_BYTES_MAX,
            Next::Write | Next::Close => false,
        };
        if may_read { self.poll_read(context) } else { Poll::Pending }
    }

    fn poll_read(&mut self, context: &mut Context<'_>) -> Poll<Event> {
        if self.start > 0 {
            self.buffer.drain(..self.start);
            self.start = 0;
        }
        if self.buffer.capacity() - self.buffer.len() < self.read_bytes {
            self.buffer.reserve(self.read_bytes);
        }
        let room = self.buffer.capacity() - self.buffer.len();
        let context = &mut Context::from_waker(self.turn.waker(context));
        match pin!(self.stream.read_buf(&mut self.buffer)).poll(context) {
            Poll::Ready(Ok(0) | Err(_)) => Poll::Ready(Event::Closed),
            Poll::Ready(Ok(bytes)) => {
                // Who fills the room sends more than a command at a time.
                self.read_bytes = match bytes == room {
                    true => (2 * self.read_bytes).min(READ_BYTES_MAX),
                    false => READ_BYTES_MIN,
                };
                self.session.note_received(bytes);
                if self.buffer.len() > self.session.query_bytes_max() {
                    return Poll::Ready(Event::Closed);
                }
                Poll::Ready(Event::Moved)
            }
            Poll::Pending => Poll::Pending,
        }
    }
}

/// Whether this is no command but the beginning of a line of HTTP: a web page that somebody looks
/// at here sends a request whose body holds commands. None of them must be executed.
fn is_http(name: &[u8]) -> bool {
    name.eq_ignore_ascii_case(b"post") || name.eq_ignore_ascii_case(b"host:")
}

/// The command that was found, and those behind it that may be executed together with it; and
/// where each of them ends.
fn look_ahead<'d>(
    found: &Parser,
    ahead: &mut Parser,
    data: &'d [u8],
    mut end: usize,
    limits: Limits,
) -> (Pipeline<'d>, Vec<usize>) {
    let mut pipeline = Pipeline::new();
    let mut ends = Vec::new();
    let mut push = |parser: &Parser, data: &'d [u8]| {
        let args = parser.args().iter();
        let args = args.map(|&(from, to)| data.get(from..to).unwrap_or_default());
        !parser.is_unquoted() && pipeline.push(args)
    };
    if !push(found, data) {
        return (pipeline, ends);
    }
    ends.push(end);
    loop {
        let rest = data.get(end..).unwrap_or_default();
        ahead.reset();
        // Whatever is wrong with what follows is said when its turn comes.
        let Ok(Found::Command(len)) = ahead.parse(rest, limits) else { break };
        if !push(ahead, rest) {
            break;
        }
        end += len;
        ends.push(end);
    }
    (pipeline, ends)
}
