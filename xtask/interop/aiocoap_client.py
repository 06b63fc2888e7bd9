"""Asks `lowmesh serve --demo` with aiocoap, for `cargo xtask interop`.

    aiocoap_client.py BASE BODY [--server NAME] [--oscore FOLDER] [--psk IDENTITY KEY] [--through PROXY]

BASE and PROXY are URIs without path, BODY a file; NAME is `lowmesh`, `aiocoap` for aiocoap_server.py behind a proxy, or `node`
for the node of `lowmesh emulate --node`, which has a long body only. Says `all as it should be`, or ends with what is not.
"""

import argparse
import asyncio

import aiocoap
from aiocoap.proxy.client import ProxyForwarder

PATIENCE_S = 15
# Where a server keeps a long body, and where it answers in a message of its own.
LONG = {"lowmesh": "/large-update", "aiocoap": "/body", "node": "/body"}
SEPARATE = {"lowmesh": "/separate", "aiocoap": "/slow"}
# What changes by itself, and grows.
CHANGING = {"lowmesh": "/time", "aiocoap": "/count"}


async def ask(context, uri, code=aiocoap.GET, payload=b""):
    message = aiocoap.Message(code=code, uri=uri, payload=payload)
    return await context.request(message).response


async def get(context, base, body, server):
    response = await ask(context, base + "/hello")
    assert response.payload == b"hello world", response


async def separate(context, base, body, server):
    response = await ask(context, base + SEPARATE[server])
    assert response.code == aiocoap.CONTENT and response.payload, response


async def long_bodies(context, base, body, server):
    response = await ask(context, base + LONG[server], aiocoap.PUT, body)
    assert response.code == aiocoap.CHANGED, response
    response = await ask(context, base + LONG[server])
    assert response.payload == body, len(response.payload)


async def observe(context, base, body, server):
    request = context.request(aiocoap.Message(code=aiocoap.GET, uri=base + CHANGING[server], observe=0))
    states = [(await request.response).payload]
    async for response in request.observation:
        states.append(response.payload)
        if len(states) == 2:
            break
    request.observation.cancel()
    # Both may be of one second.
    assert states == sorted(states, key=lambda one: (len(one), one)) and len(states) == 2, states


async def discover(context, base, body, server):
    response = await ask(context, base + "/.well-known/core?rt=Type1")
    links = response.payload.decode()
    assert "</link1>" in links and "</link2>" not in links, links


async def error(context, base, body, server):
    response = await ask(context, base + "/none")
    assert response.code == aiocoap.NOT_FOUND, response


async def main(args, body):
    context = await aiocoap.Context.create_client_context()
    if args.oscore:
        credentials = {args.base + "/*": {"oscore": {"basedir": args.oscore}}}
        context.client_credentials.load_from_dict(credentials)
    if args.psk:
        identity, key = ({"ascii": text} for text in args.psk)
        credentials = {args.base + "/*": {"dtls": {"psk": key, "client-identity": identity}}}
        context.client_credentials.load_from_dict(credentials)
    asked = ProxyForwarder(args.through, context) if args.through else context
    cases = [get, separate, long_bodies, error, observe]
    if args.server == "lowmesh":
        cases.append(discover)
    if args.server == "node":
        cases = [long_bodies]
    try:
        async with asyncio.timeout(PATIENCE_S):
            await asyncio.gather(*(case(asked, args.base, body, args.server) for case in cases))
    finally:
        await context.shutdown()
    print("all as it should be")


parser = argparse.ArgumentParser()
parser.add_argument("base")
parser.add_argument("body", type=argparse.FileType("rb"))
parser.add_argument("--server", choices=LONG, default="lowmesh")
parser.add_argument("--oscore")
parser.add_argument("--psk", nargs=2)
parser.add_argument("--through")
arguments = parser.parse_args()
with arguments.body as file:
    asyncio.run(main(arguments, file.read()))
