//! What a node answers to the ICMPv6 messages that come: echoes (RFC 4443 s4), solicitations (RFC 4861, RFC 6775).

use alloc::vec::Vec;

use lowmesh_machine::DropReason;
use lowmesh_shares::{Rate, SharedRate};
use lowmesh_units::{Eui64, Instant, Rng, ShortAddr};
use lowmesh_wire::icmpv6::Icmpv6;
use lowmesh_wire::ipv6::{Address, Header};
use lowmesh_wire::lowpan::Contexts;
use lowmesh_wire::neighbour::{Advertisement, Registration, Solicitation};
use lowmesh_wire::router::RouterSolicitation;

use crate::advertisement::Advertisements;
use crate::error::{self, Message, Trouble};
use crate::event::{Output, Problem};
use crate::forward::Forwarder;
use crate::neighbour::{self, Answer};
use crate::params::{
    ADVERTISEMENTS_PER_SECOND, ERROR_SOURCES, HOP_LIMIT_ON_LINK, MAX_RA_DELAY_TIME,
    MIN_DELAY_BETWEEN_RAS,
};
use crate::registration::Registry;
use crate::routing::{Role, Routing};
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
    /// What the routing protocol is to hear of registrations.
    pub news: Vec<Output>,
}

/// What a node is to its neighbours.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Standing {
    role: Role,
    /// Whether the routing protocol announces the addresses of hosts (RFC 9010).
    announces: bool,
}

impl Standing {
    pub fn of(routing: &dyn Routing) -> Self {
        let role = routing.role();
        Self { role, announces: role == Role::Router && routing.root().is_some() }
    }
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
        let (registered, news) = (NeighbourCache::new(), Vec::new());
        Self { registered, contexts, advertisements, answers, waiting, news }
    }

    /// Takes a message that came under `header`, from the neighbour `link` if it came over this link.
    pub fn take(
        &mut self,
        now: Instant,
        (forwarder, standing): (&mut Forwarder, Standing),
        header: &Header,
        message: Icmpv6,
        link: Option<Eui64>,
    ) -> Result<Reply, DropReason> {
        let from = header.source;
        let is_host = standing.role == Role::Host;
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
                self.answer_neighbour(now, (forwarder, standing), header, &message)
            }
            // RFC 4861 s6.2.6: only routers answer.
            Icmpv6::RouterSolicitation(_) if is_host => Ok(Reply::None),
            Icmpv6::RouterSolicitation(message) => {
                self.advertise(now, (&forwarder.addresses, standing), header, &message)
            }
            Icmpv6::RouterAdvertisement(_) | Icmpv6::NeighbourAdvertisement(_) if is_host => {
                // RFC 4861 s6.1.2 and s7.1.2: nothing that passed a router.
                let heard = link.filter(|_| header.hop_limit == HOP_LIMIT_ON_LINK);
                let told = heard.map(|from| Reply::Tell(Output::Discovery { from, message }));
                told.ok_or(DropReason::Malformed)
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
        (forwarder, Standing { role, announces }): (&mut Forwarder, Standing),
        header: &Header,
        message: &Solicitation,
    ) -> Result<Reply, DropReason> {
        // A host takes no registration: to its neighbours it is no router.
        let message = match role {
            Role::Host => &Solicitation { registration: None, ..*message },
            Role::Router | Role::Adrift => message,
        };
        let Forwarder { addresses, routes, leaves } = forwarder;
        let (cache, news, link) = (&mut self.registered, &mut self.news, message.source_node);
        let mut registry = Registry { cache, routes, leaves, news, announces };
        let register = |subject, asked: &Registration| {
            let registrant = (header.source, link.unwrap_or(asked.node));
            registry.register(now, subject, asked, registrant)
        };
        let answer = neighbour::answer(addresses, header, message, register)?;
        let Answer { source, destination, mut message } = answer;
        message.router = role != Role::Host;
        // RFC 9010 s9.2.2: R says that the address is announced.
        if let Some(said) = &mut message.registration
            && (!announces || said.status != 0)
        {
            said.flags &= !Registration::ROUTED;
        }
        let body = Icmpv6::NeighbourAdvertisement(message);
        let node = link.filter(|_| destination == header.source);
        Ok(Reply::OnLink(Message { source, destination, body }, node))
    }

    /// Forgets the registrations that are over.
    pub fn expire(&mut self, now: Instant, forwarder: &mut Forwarder) {
        self.registry(forwarder).expire(now);
    }
    /// When the first registration of a leaf is over.
    pub fn next_expiry(&self) -> Option<Instant> {
        self.registered.next_expiry()
    }
    /// The routing protocol gave a leaf up: the advertisement that tells it so, and where it goes.
    pub fn refuse(
        &mut self,
        forwarder: &mut Forwarder,
        address: Address,
        status: u8,
    ) -> Option<(Message, Eui64)> {
        let (said, node) = self.registry(forwarder).refuse(&address)?;
        let registration = Some(Registration { status, ..said });
        let message = Advertisement {
            router: true,
            solicited: false,
            overriding: false,
            target: address,
            target_node: None,
            registration,
        };
        let body = Icmpv6::NeighbourAdvertisement(message);
        let (source, destination) = (forwarder.addresses.link_local(), Address::link_local(node));
        Some((Message { source, destination, body }, node))
    }
    fn registry<'a>(&'a mut self, forwarder: &'a mut Forwarder) -> Registry<'a> {
        let Forwarder { routes, leaves, .. } = forwarder;
        let (cache, news, announces) = (&mut self.registered, &mut self.news, true);
        Registry { cache, routes, leaves, news, announces }
    }

    /// Answers a host that asks for routers.
    fn advertise(
        &mut self,
        now: Instant,
        (addresses, standing): (&Addresses, Standing),
        header: &Header,
        message: &RouterSolicitation,
    ) -> Result<Reply, DropReason> {
        let (to, mut said) = neighbour::advertise(addresses, &self.contexts, header, message)?;
        if standing.role == Role::Adrift {
            // RFC 4861 s4.2: with a lifetime of zero it is no default router.
            said.lifetime = 0;
        }
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
