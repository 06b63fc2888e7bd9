//! A node calls its applications, and does what they ask.

use alloc::boxed::Box;

use lowmesh_coap::Input as CoapInput;
use lowmesh_machine::{DropReason, Handle, Machine as _, Rejected, debug_assert_accepted};
use lowmesh_units::Instant;

use crate::application::{
    Action, Application, ApplicationId, Exchange, HostHandle, Input, RequestId, Snapshot,
};
use crate::config::ConfigError;
use crate::event::{ApplicationEvent, Class, Output, Transaction};
use crate::installed::Owner;
use crate::node::Node;

impl Node {
    /// Puts one more application on the node, which is switched off.
    pub fn install(
        &mut self,
        application: Box<dyn Application>,
    ) -> Result<ApplicationId, ConfigError> {
        let ports = application.claims().ports;
        let id = self.applications.install(application)?;
        for port in ports {
            self.ipv6.open(port);
        }
        Ok(id)
    }
    /// What the applications show of themselves, in the order in which they were installed.
    pub fn snapshots(&self) -> impl Iterator<Item = Snapshot> {
        self.applications.snapshots()
    }

    /// Lets the next application hear what it has not heard; false if all have.
    pub(crate) fn call_application(&mut self, now: Instant) -> bool {
        if self.applications.awaits_network() && self.is_joined() {
            self.applications.join();
        }
        let applications = &mut self.applications;
        let Some((id, input)) = applications.inbox.pop_front() else { return false };
        let Some(installed) = applications.all.get_mut(usize::from(id.0)) else { return true };
        let address = self.ipv6.addresses().global();
        let (requests, actions) = (&mut applications.requests, &mut applications.actions);
        installed.machine.handle(
            now,
            input,
            &mut HostHandle::new(id.0, address, requests, actions),
        );
        self.applications.ask_deadlines();
        while let Some(action) = self.applications.actions.pop() {
            self.act(now, id, action);
        }
        true
    }

    fn act(&mut self, now: Instant, application: ApplicationId, action: Action) {
        match action {
            Action::Request { request, peer, message } => {
                self.applications.insert(request.number, Owner::Application(application));
                self.outbox.push(Output::Application(ApplicationEvent::Issued(request)));
                let handle = Handle(request.number);
                let input = CoapInput::Request { peer, message, handle };
                if let Err(refusal) = self.coap.handle(now, input) {
                    self.on_refusal(request, refusal);
                }
            }
            Action::Cancel(request) => {
                let handle = Handle(request.number);
                self.applications.close(handle);
                // A host takes every cancellation.
                debug_assert_accepted(self.coap.handle(now, CoapInput::Cancel { handle }));
            }
            Action::Deregister(request) => {
                let handle = Handle(request.number);
                if self.coap.handle(now, CoapInput::Deregister { handle }).is_err() {
                    self.applications.on_over(handle);
                }
            }
            // The client of a request that has expired meanwhile waits no longer.
            Action::Respond { exchange: Exchange(exchange), response } => {
                let handle = Handle::NONE;
                let _expired =
                    self.coap.handle(now, CoapInput::Respond { exchange, response, handle });
            }
            Action::Decline(Exchange(exchange)) => {
                let _expired = self.coap.handle(now, CoapInput::Decline { exchange });
            }
            Action::Changed(path) => self.coap.changed(&path, now),
            Action::Datagram { source_port, peer, payload } => {
                self.send_datagram(now, source_port, peer, &payload, Class::Request);
            }
            Action::Report(report) => {
                self.outbox.push(Output::Application(ApplicationEvent::Report(report)));
            }
        }
    }

    /// The host has not taken a request: to the record it is one that found no room.
    fn on_refusal(&mut self, request: RequestId, refusal: Rejected) {
        let handle = Handle(request.number);
        self.applications.close(handle);
        self.applications.tell(request.application, Input::Refused { request, refusal });
        let failed = Transaction::Failed(handle, DropReason::QueueFull);
        let event = ApplicationEvent::Transaction(request, failed);
        self.outbox.push(Output::Application(event));
    }
}
