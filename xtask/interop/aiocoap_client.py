"""Asks `lowmesh serve --demo` with aiocoap, for `cargo xtask interop`.

    aiocoap_client.py BASE BODY [OSCORE_FOLDER]

BASE is a URI without path, BODY a file. Says `all as it should be`, or ends with what is not.
"""

import asyncio
import sys

import aiocoap

PATIENCE_S = 15


async def ask(context, uri, code=aiocoap.GET, payload=b""):
    message = aiocoap.Message(code=code, uri=uri, payload=payload)
    return await context.request(message).response


async def get(context, base, body):
    response = await ask(context, base + "/hello")
    assert response.payload == b"hello world", response


async def separate(context, base, body):
    response = await ask(context, base + "/separate")
    assert response.code == aiocoap.CONTENT and response.payload, response


async def long_bodies(context, base, body):
    response = await ask(context, base + "/large-update", aiocoap.PUT, body)
    assert response.code == aiocoap.CHANGED, response
    response = await ask(context, base + "/large-update")
    assert response.payload == body, len(response.payload)


async def observe(context, base, body):
    request = context.request(aiocoap.Message(code=aiocoap.GET, uri=base + "/time", observe=0))
    states = [(await request.response).payload]
    async for response in request.observation:
        states.append(response.payload)
        if len(states) == 2:
            break
    request.observation.cancel()
    # Both may be of one second.
    assert states == sorted(states) and len(states) == 2, states


async def discover(context, base, body):
    response = await ask(context, base + "/.well-known/core?rt=Type1")
    links = response.payload.decode()
    assert "</link1>" in links and "</link2>" not in links, links


async def error(context, base, body):
    response = await ask(context, base + "/none")
    assert response.code == aiocoap.NOT_FOUND, response


async def main(base, body, oscore_folder):
    context = await aiocoap.Context.create_client_context()
    if oscore_folder:
        credentials = {base + "/*": {"oscore": {"basedir": oscore_folder}}}
        context.client_credentials.load_from_dict(credentials)
    cases = [get, separate, long_bodies, observe, discover, error]
    try:
        async with asyncio.timeout(PATIENCE_S):
            await asyncio.gather(*(case(context, base, body) for case in cases))
    finally:
        await context.shutdown()
    print("all as it should be")


with open(sys.argv[2], "rb") as file:
    asyncio.run(main(sys.argv[1], file.read(), (sys.argv + [None])[3]))
