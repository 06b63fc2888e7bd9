"""Observes a resource with aiocoap, for `cargo xtask interop`.

    aiocoap_observer.py URI

Writes each state as a line, until it is ended.
"""

import asyncio
import sys

import aiocoap


async def main(uri):
    context = await aiocoap.Context.create_client_context()
    request = context.request(aiocoap.Message(code=aiocoap.GET, uri=uri, observe=0))
    print((await request.response).payload.decode(), flush=True)
    async for response in request.observation:
        print(response.payload.decode(), flush=True)


asyncio.run(main(sys.argv[1]))
