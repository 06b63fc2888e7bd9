//! The machine: inputs from the driver, outputs to it, and the next deadline.

use lowmesh_machine::{Machine, Rejected, earliest};
use lowmesh_units::Instant;
use lowmesh_wire::tcp::Header;

use super::{Connection, Ending, Input, Output, State, reset_for};

impl Machine for Connection {
    type Input<'a> = Input<'a>;
    type Output = Output;

    fn handle(&mut self, now: Instant, input: Input<'_>) -> Result<(), Rejected> {
        let answer = match input {
            Input::Open => self.open(now),
            Input::Listen => self.listen(),
            Input::Segment { header, payload } => {
                self.take_segment(header, payload, now);
                Ok(())
            }
            Input::Write(data) => self.write(data, now),
            Input::Read(most) => self.read(most, now),
            Input::Close => self.close(now),
            Input::Abort => self.abort(now),
            Input::Deadline => {
                self.on_deadline(now);
                Ok(())
            }
        };
        self.emit_departures(now);
        answer
    }
    fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop()
    }
    fn next_deadline(&self) -> Option<Instant> {
        let syn = self.syn.map(|syn| syn.deadline);
        let flow = self
            .flow
            .as_ref()
            .and_then(|flow| earliest(flow.sender.next_deadline(), flow.acks.deadline()));
        let timers = earliest(earliest(syn, flow), self.time_wait);
        earliest(timers, self.keep_alive_deadline())
    }
}

impl Connection {
    fn take_segment(&mut self, header: &Header, payload: &[u8], now: Instant) {
        match self.state {
            State::Closed => {
                if let Some(reset) = reset_for(header, payload) {
                    self.outputs.push(Output::Segment(reset));
                }
            }
            State::Listen => self.on_segment_in_listen(header, payload, now),
            State::SynSent => {
                self.on_segment_in_syn_sent(header, now);
            }
            _ => self.on_segment(header, payload, now),
        }
        if self.closes_when_established && self.state == State::Established {
            self.closes_when_established = false;
            let closed = self.close(now);
            lowmesh_machine::debug_assert_accepted(closed);
        }
    }
    fn write(&mut self, data: &[u8], now: Instant) -> Result<(), Rejected> {
        if data.len() > self.room() {
            let why = "there is no room for all of it; write what `room()` says, after the handshake and before Close";
            return Err(Rejected::Full { what: "write", why });
        }
        if let Some(flow) = &mut self.flow {
            flow.sender.write(data, now);
        }
        Ok(())
    }
    fn read(&mut self, most: usize, now: Instant) -> Result<(), Rejected> {
        let Some(flow) = &mut self.flow else {
            let why = "there is no data; wait for Readable";
            return Err(Rejected::WrongState { what: "read", why });
        };
        let data = flow.receiver.read(most);
        let opens = flow.receiver.opens(flow.window_sent);
        self.outputs.push(Output::Data(data));
        // RFC 9293 s3.8.6.2.2: the peer hears of a window that has opened by two segments or half the buffer.
        if opens {
            self.emit_ack(now);
        }
        Ok(())
    }
    /// RFC 9293 s3.10.4.
    fn close(&mut self, now: Instant) -> Result<(), Rejected> {
        match self.state {
            State::Listen | State::SynSent => self.end(Ending::Aborted),
            State::SynReceived => self.closes_when_established = true,
            State::Established => self.state = State::FinWait1,
            State::CloseWait => self.state = State::LastAck,
            _ => {
                let why = "the connection is closed, or closes already";
                return Err(Rejected::WrongState { what: "close", why });
            }
        }
        if let Some(flow) = &mut self.flow {
            flow.sender.close(now);
        }
        Ok(())
    }
    /// RFC 9293 s3.10.5: a peer that has closed, and gets all that it waits for, gets no reset.
    fn abort(&mut self, now: Instant) -> Result<(), Rejected> {
        let is_idle = self.flow.as_ref().is_none_or(|flow| flow.sender.has_sent_all());
        match self.state {
            State::Closed => {
                return Err(Rejected::WrongState { what: "abort", why: "there is no connection" });
            }
            State::Listen | State::SynSent | State::TimeWait => {}
            State::Closing | State::LastAck if is_idle => {}
            _ => self.emit_abort(now),
        }
        self.end(Ending::Aborted);
        Ok(())
    }
    fn on_deadline(&mut self, now: Instant) {
        self.on_syn_deadline(now);
        if self.time_wait.is_some_and(|at| at <= now) {
            self.end(Ending::Finished);
        }
        let Some(flow) = &mut self.flow else { return };
        flow.sender.on_deadline(now);
        let acknowledges = flow.acks.on_deadline(flow.sender.estimator().rto(), now);
        if flow.sender.is_given_up() {
            self.end(Ending::TimedOut);
            return;
        }
        if acknowledges {
            self.emit_ack(now);
        }
        self.on_keep_alive(now);
    }
}
