"""aiocoap as server and as client of the product of features, for `cargo xtask interop`.

    aiocoap_product.py serve PORT [--tls CERT KEY] [--oscore FOLDER]...
    aiocoap_product.py ask [--psk IDENTITY KEY] [--trust BASE FILE]... [--oscore BASE FOLDER]

The server keeps what is put at any path and tells observers; it says `ready` to stderr once it listens. The client takes a
command a line from stdin, a JSON object with `id`, `do` (`put`, `get`, `observe`), `uri`, `body` and `via`. It writes lines
`ID ok BODY`, `ID state BODY` and `ID error WHY`, as answers come.

OSCORE of the client is a context of its own above the transports, for two causes in aiocoap 0.4.17. A URI has one entry of
credentials, so keys of OSCORE displace those of DTLS and TLS. OSCORE also drops Proxy-Scheme and Uri-Port, which belong
outside (RFC 8613 s4.1.2), so the proxy must come into a request below it.
"""

import argparse
import asyncio
import json
import ssl
import sys

import aiocoap
from aiocoap import resource
from aiocoap.credentials import CredentialsMap
from aiocoap.message import UndecidedRemote
from aiocoap.oscore_sitewrapper import OscoreSiteWrapper
from aiocoap.proxy.client import ProxyForwarder
from aiocoap.transports.oscore import TransportOSCORE

# An observer that has missed a restart registers again after this, and at most 15 s more (RFC 7641 s3.3.1).
MAX_AGE_S = 1


class Stored(resource.ObservableResource):
    def __init__(self):
        super().__init__()
        self.state = None

    async def render_get(self, request):
        if self.state is None:
            return aiocoap.Message(code=aiocoap.NOT_FOUND)
        return aiocoap.Message(payload=self.state, max_age=MAX_AGE_S)

    async def render_put(self, request):
        self.state = request.payload
        self.updated_state()
        return aiocoap.Message(code=aiocoap.CHANGED)


async def serve(args):
    site = resource.Site()
    for number in range(8):
        site.add_resource([str(number)], Stored())
    credentials = CredentialsMap()
    entries = {f":{at}": {"oscore": {"basedir": folder}} for at, folder in enumerate(args.oscore)}
    credentials.load_from_dict(entries)
    context = None
    if args.tls:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(*args.tls)
        context.set_alpn_protocols(["coap"])
    server = await aiocoap.Context.create_server_context(
        OscoreSiteWrapper(site, credentials),
        bind=("::1", args.port),
        server_credentials=credentials,
        _ssl_context=context,
    )
    print("ready", file=sys.stderr, flush=True)
    try:
        await asyncio.get_running_loop().create_future()
    finally:
        await server.shutdown()


def say(command, what, text):
    print(command["id"], what, text, flush=True)


async def follow(command, context, message):
    request = context.request(message)
    first = await request.response
    if not first.code.is_successful():
        raise RuntimeError(str(first.code))
    say(command, "state", first.payload.decode())
    async for response in request.observation:
        say(command, "state", response.payload.decode())
    raise RuntimeError("the observation ends")


class Forwarder(ProxyForwarder):
    """A proxy, also below OSCORE; all requests are for one server."""

    def __init__(self, proxy, context):
        super().__init__(proxy, context)
        self.loop, self.target = context.loop, None

    def request(self, message, **kwargs):
        # OSCORE sends later blocks to where the last response came from, which is the proxy.
        if isinstance(message.remote, UndecidedRemote):
            self.target = message.remote
        message.remote = self.target
        return super().request(message, **kwargs)


class Client:
    """The transports, above them a proxy or none, above that OSCORE or none."""

    def __init__(self, transports, protection):
        self.transports, self.protection, self.contexts = transports, protection, {}

    def begin(self, proxy):
        below = Forwarder(proxy, self.transports) if proxy else self.transports
        if not self.protection:
            return below
        context = aiocoap.Context(client_credentials=self.protection)
        context.request_interfaces.append(TransportOSCORE(context, below))
        return context

    def through(self, proxy):
        if proxy not in self.contexts:
            self.contexts[proxy] = self.begin(proxy)
        return self.contexts[proxy]


async def carry_out(command, client):
    try:
        context = client.through(command["via"])
        body = command["body"].encode()
        code = aiocoap.PUT if command["do"] == "put" else aiocoap.GET
        message = aiocoap.Message(code=code, uri=command["uri"], payload=body)
        if command["do"] == "observe":
            message.opt.observe = 0
            await follow(command, context, message)
        response = await context.request(message).response
        if not response.code.is_successful():
            raise RuntimeError(f"{response.code} {response.payload[:200]}")
        say(command, "ok", response.payload.decode())
    except Exception as error:
        say(command, "error", repr(error).replace("\n", " "))


async def ask(args):
    context = await aiocoap.Context.create_client_context()
    credentials = {}
    if args.psk:
        identity, key = ({"ascii": text} for text in args.psk)
        credentials["coaps://*"] = {"dtls": {"psk": key, "client-identity": identity}}
    for base, file in args.trust:
        credentials[base + "/*"] = {"tlscert": {"certfile": file}}
    context.client_credentials.load_from_dict(credentials)
    protection = CredentialsMap()
    if args.oscore:
        base, folder = args.oscore
        protection.load_from_dict({base + "/*": {"oscore": {"basedir": folder}}})
    client = Client(context, protection)
    lines = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(lines), sys.stdin
    )
    running = []
    async for line in lines:
        running.append(asyncio.create_task(carry_out(json.loads(line), client)))


parser = argparse.ArgumentParser()
verbs = parser.add_subparsers(dest="verb", required=True)
server = verbs.add_parser("serve")
server.add_argument("port", type=int)
server.add_argument("--tls", nargs=2)
server.add_argument("--oscore", action="append", default=[])
client = verbs.add_parser("ask")
client.add_argument("--psk", nargs=2)
client.add_argument("--trust", nargs=2, action="append", default=[])
client.add_argument("--oscore", nargs=2)
arguments = parser.parse_args()
asyncio.run(serve(arguments) if arguments.verb == "serve" else ask(arguments))
