"""A member of a group with Group OSCORE, from a file of lowmesh, with EdDSA and sign_protected.

    aiocoap_group_oscore.py serve PORT FILE           a server at [::1] with /hello, /body and /count
    aiocoap_group_oscore.py get FILE URI [MEMBER]     asks in group mode, or in pairwise mode for a member
    aiocoap_group_oscore.py put FILE URI FILE         writes a body and prints the answer
"""

import asyncio
import sys

import aiocoap
import aiocoap.resource
from aiocoap import oscore
from aiocoap.oscore_sitewrapper import OscoreSiteWrapper


def settings(path):
    """The single values of a file, and its other members."""
    values, members = {}, []
    for line in open(path):
        keyword, encoding, value = line.strip().split(",", 2)
        value = value.strip('"')
        octets = bytes.fromhex(value) if encoding == "hex" else value.encode()
        if keyword in ("member_id", "member_credential"):
            members.append(octets)
        else:
            values[keyword] = octets
    return values, dict(zip(members[::2], members[1::2]))


def member(path):
    values, others = settings(path)
    assert values["sign_alg"] == b"EdDSA" and values["sign_protected"] == b"true"
    aead = oscore.algorithms["AES-CCM-16-64-128"]
    return oscore.SimpleGroupContext(
        aead, oscore.hashfunctions["sha256"], oscore.Ed25519(), aead, oscore.EcdhSsHkdf256(),
        values["group_id"], values["master_secret"], values["master_salt"], values["sender_id"],
        values["private_key"], values["credential"], others, None,
    )


class Hello(aiocoap.resource.Resource):
    async def render_get(self, request):
        return aiocoap.Message(payload=b"hello from aiocoap")


class Body(aiocoap.resource.Resource):
    body = b""

    async def render_get(self, request):
        return aiocoap.Message(payload=self.body)

    async def render_put(self, request):
        self.body = request.payload
        return aiocoap.Message(code=aiocoap.CHANGED, payload=str(len(self.body)).encode())


class Count(aiocoap.resource.ObservableResource):
    number = 0

    async def counting(self):
        while True:
            await asyncio.sleep(0.3)
            self.number += 1
            self.updated_state()

    async def render_get(self, request):
        return aiocoap.Message(payload=str(self.number).encode())


async def serve(port, path):
    site, count = aiocoap.resource.Site(), Count()
    site.add_resource(["hello"], Hello())
    site.add_resource(["body"], Body())
    site.add_resource(["count"], count)
    context = await aiocoap.Context.create_server_context(None, bind=("::1", port))
    context.server_credentials[":group"] = member(path)
    context.serversite = OscoreSiteWrapper(site, context.server_credentials)
    counting = asyncio.create_task(count.counting())
    print("ready", flush=True)
    await counting


async def ask(message, path, to=None):
    group = member(path)
    # Each start has numbers of its own; a real member would store the last one.
    with open(path + ".aiocoap-numbers", "a+") as numbers:
        numbers.seek(0)
        group.sender_sequence_number = 100 * len(numbers.read())
        numbers.write("x")
    context = await aiocoap.Context.create_client_context()
    context.client_credentials[message.get_request_uri()] = group.pairwise_for(to) if to else group
    response = await context.request(message).response
    print(response.code, response.payload.decode())
    await context.shutdown()


kind, *args = sys.argv[1:]
if kind == "serve":
    asyncio.run(serve(int(args[0]), args[1]))
elif kind == "get":
    to = args[2].encode() if len(args) > 2 else None
    asyncio.run(ask(aiocoap.Message(code=aiocoap.GET, uri=args[1]), args[0], to))
else:
    body = open(args[2], "rb").read()
    asyncio.run(ask(aiocoap.Message(code=aiocoap.PUT, uri=args[1], payload=body), args[0]))
