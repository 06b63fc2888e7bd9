"""A CoAP server made with aiocoap, for `cargo xtask interop`.

    aiocoap_server.py PORT [OSCORE_FOLDER]

UDP and TCP at PORT, WebSockets at PORT + 3000 (aiocoap's choice). Says `ready` to stderr once it listens.
"""

import asyncio
import sys

import aiocoap
from aiocoap import resource
from aiocoap.credentials import CredentialsMap
from aiocoap.oscore_sitewrapper import OscoreSiteWrapper

PERIOD_S = 0.2
SLOWER_THAN_AN_ACK_S = 0.5
LARGE = bytes(octet % 251 for octet in range(20_000))


class Hello(resource.Resource):
    async def render_get(self, request):
        return aiocoap.Message(payload=b"hello world", content_format=0)


class Slow(resource.Resource):
    """Its ACK is empty, and its response comes by itself."""

    async def render_get(self, request):
        await asyncio.sleep(SLOWER_THAN_AN_ACK_S)
        return aiocoap.Message(payload=b"at last")


class Body(resource.Resource):
    """Keeps what is put into it."""

    body = LARGE

    async def render_get(self, request):
        return aiocoap.Message(payload=self.body)

    async def render_put(self, request):
        self.body = request.payload
        return aiocoap.Message(code=aiocoap.CHANGED, payload=b"%d" % len(self.body))


class Count(resource.ObservableResource):
    """Counts while somebody looks."""

    observers = {}

    def __init__(self, pad):
        super().__init__()
        self.pad = pad
        self.count = 0
        self.timer = None

    def tick(self):
        self.count += 1
        self.updated_state()
        self.wind()

    def wind(self):
        self.timer = asyncio.get_running_loop().call_later(PERIOD_S, self.tick)

    def update_observation_count(self, observers):
        self.observers[self] = observers
        if observers and self.timer is None:
            self.wind()
        elif not observers and self.timer is not None:
            self.timer.cancel()
            self.timer = None

    async def render_get(self, request):
        return aiocoap.Message(payload=b"%d" % self.count + self.pad)


class State(resource.ObservableResource):
    """Tells who looks at it what is put into it."""

    state = b""

    async def render_get(self, request):
        return aiocoap.Message(payload=self.state)

    async def render_put(self, request):
        self.state = request.payload
        self.updated_state()
        return aiocoap.Message(code=aiocoap.CHANGED)


class Reading(State):
    """A number, as text."""

    async def render_get(self, request):
        return aiocoap.Message(payload=self.state, content_format=0)


class Observers(resource.Resource):
    """How many observe what counts."""

    async def render_get(self, request):
        return aiocoap.Message(payload=b"%d" % sum(Count.observers.values()))


async def main(port, oscore_folder):
    site = resource.Site()
    wkc = resource.WKCResource(site.get_resources_as_linkheader, impl_info=None)
    site.add_resource([".well-known", "core"], wkc)
    site.add_resource(["hello"], Hello())
    site.add_resource(["slow"], Slow())
    site.add_resource(["body"], Body())
    site.add_resource(["count"], Count(b""))
    site.add_resource(["large-count"], Count(b"." * 3000))
    site.add_resource(["state"], State())
    site.add_resource(["reading"], Reading())
    site.add_resource(["observers"], Observers())
    credentials = CredentialsMap()
    if oscore_folder:
        credentials.load_from_dict({":peer": {"oscore": {"basedir": oscore_folder}}})
    site = OscoreSiteWrapper(site, credentials)
    server = await aiocoap.Context.create_server_context(
        site, bind=("::1", port), server_credentials=credentials
    )
    print("ready", file=sys.stderr, flush=True)
    try:
        await asyncio.get_running_loop().create_future()
    finally:
        await server.shutdown()


asyncio.run(main(int(sys.argv[1]), (sys.argv + [None])[2]))
