//! What a node answers to the ICMPv6 messages that come: echoes (RFC 4443 s4), solicitations (RFC 4861, RFC 6775).

use alloc::vec::Vec;

use lowmesh_machine::DropReason;
use lowmesh_shares::{Rate, SharedRate};
use lowmesh_units::{Eui64, Instant, Rng, ShortAddr};
use lowmesh_wire::icmpv6::Icmpv6;
use lowmesh_wire::ipv6::{Address, Header};
use lowmesh_wire::lowpan::Contexts;
use lowmesh_wire::neighbour::{Registration, Solicitation};
use lowmesh_wire::router::RouterSolicitation;

use crate::advertisement::Advertisements;
use crate::error::{self, Message, Trouble};
use crate::event::{Output, Problem};
use crate::forward::Forwarder;
use crate::neighbour::{self, Answer};
use crate::params::{
    ADVERTISEMENTS_PER_SECOND, ERROR_SOURCES, MAX_RA_DELAY_TIME, MIN_DELAY_BETWEEN_RAS,
};
use crate::registration::register;
use crate::{Addresses, NeighbourCache};

/// What follows from a message that came.
#[derive(Debug)]
pub(crate) enum Reply {
    /// Nothing.
    None,
    /// Somebody is to hear of it.
    Tell(Output),
    /// An error to the source of an inner packet, because of an error about its outer packet.
    Relayed(Problem, Vec<u8>),
    /// A message goes back, over routers where there are some.
    Routed(Message),
    /// A message goes back that no router forwards: to this node, or else to the one that its destination names.
    OnLink(Message, Option<Eui64>),
}

/// The node as the one that is asked.
#[derive(Debug)]
pub(crate) struct Responder {
    registered: NeighbourCache,
    /// What an advertisement tells of header compression.
    contexts: Contexts,
    /// Router Advertisements to all.
    advertisements: Rate,
    /// Router Advertisements to one host.
    answers: SharedRate<Address>,
    /// Those that wait to leave.
    pub waiting: Advertisements,
}

/// Whether a solicitation names the node that its frame came from. A node may have an EUI-64 and a short address, of which
/// the frame shows one.
fn is_own_name(named: Option<Eui64>, link: Option<Eui64>) -> bool {
    let is_short = |node| ShortAddr::from_eui64(node).is_some();
    named.zip(link).is_none_or(|(named, link)| named == link || is_short(named) != is_short(link))
}

impl Responder {
    /// `rng` draws the delays of advertisements.
    pub fn new(contexts: Contexts, rng: Rng) -> Self {
        // One may leave late and the next one early.
        let distance = MIN_DELAY_BETWEEN_RAS + MAX_RA_DELAY_TIME;
        let advertisements = Rate::new(1, distance);
        let answers = SharedRate::new(ADVERTISEMENTS_PER_SECOND, ERROR_SOURCES);
        let waiting = Advertisements::new(rng);
        Self { registered: NeighbourCache::new(), contexts, advertisements, answers, waiting }
    }

    /// Takes a message that came under `header`, from the neighbour `link` if it came over this link.
    pub fn take(
        &mut self,
        now: Instant,
        forwarder: &mut Forwarder,
        header: &Header,
        message: Icmpv6,
        link: Option<Eui64>,
    ) -> Result<Reply, DropReason> {
        let from = header.source;
        match message {
            Icmpv6::Rpl(message) => {
                let multicast = header.destination.is_multicast();
                Ok(Reply::Tell(Output::Rpl { from, multicast, message }))
            }
            Icmpv6::EchoRequest(_) if from.is_unspecified() => Err(DropReason::Malformed),
            Icmpv6::EchoRequest(echo) => {
                // RFC 4443 s4.2: what was asked at one address is answered from it.
                let source = if header.destination.is_multicast() {
                    forwarder.addresses.source_for(&from)
                } else {
                    header.destination
                };
                let body = Icmpv6::EchoReply(echo);
                Ok(Reply::Routed(Message { source, destination: from, body }))
            }
            Icmpv6::EchoReply(echo) => Ok(Reply::Tell(Output::Pong { from, echo })),
            Icmpv6::NeighbourSolicitation(message) => {
                // A node that names another node could take over its registrations, or exceed its own share.
                if !is_own_name(message.source_node, link) {
                    return Err(DropReason::NotForUs);
                }
                self.answer_neighbour(now, forwarder, header, &message)
            }
            Icmpv6::RouterSolicitation(message) => {
                self.advertise(now, &forwarder.addresses, header, &message)
            }
            error => Ok(match error::trouble(&forwarder.addresses, from, error) {
                None => Reply::None,
                Some(Trouble::Own(output)) => Reply::Tell(output),
                Some(Trouble::Carried(problem, inner)) => Reply::Relayed(problem, inner),
            }),
        }
    }

    fn answer_neighbour(
        &mut self,
        now: Instant,
        forwarder: &mut Forwarder,
        header: &Header,
        message: &Solicitation,
    ) -> Result<Reply, DropReason> {
        let Forwarder { addresses, routes } = forwarder;
        let (cache, link) = (&mut self.registered, message.source_node);
        let register = |subject, asked: &Registration| {
            let registrant = (header.source, link.unwrap_or(asked.node));
            register(now, cache, routes, subject, asked, registrant)
        };
        let answer = neighbour::answer(addresses, header, message, register)?;
        let Answer { source, destination, message } = answer;
        let body = Icmpv6::NeighbourAdvertisement(message);
        let node = link.filter(|_| destination == header.source);
        Ok(Reply::OnLink(Message { source, destination, body }, node))
    }

    /// Answers a host that asks for routers.
    fn advertise(
        &mut self,
        now: Instant,
        addresses: &Addresses,
        header: &Header,
        message: &RouterSolicitation,
    ) -> Result<Reply, DropReason> {
        let (to, said) = neighbour::advertise(addresses, &self.contexts, header, message)?;
        // RFC 4861 s6.2.6: what goes to all of them goes once in three seconds at most.
        let may_leave = if to.is_multicast() {
            self.advertisements.take(now)
        } else {
            self.answers.take(now, to)
        };
        if !may_leave {
            return Ok(Reply::None);
        }
        let source = addresses.link_local();
        let body = Icmpv6::RouterAdvertisement(said);
        let message_to = Message { source, destination: to, body };
        self.waiting.push(now, message_to, message.source_node);
        Ok(Reply::None)
    }
}
