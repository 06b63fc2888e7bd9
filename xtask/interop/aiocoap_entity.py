"""The client of a manager of entities, for `cargo xtask interop`.

    aiocoap_entity.py create BASE NAME MEMBER...
    aiocoap_entity.py get BASE PATH [ACCEPT]       prints the answer, with its code unless that is 2.05
    aiocoap_entity.py observe BASE PATH COUNT      prints so many states, a line each
    aiocoap_entity.py delete BASE NAME
"""

import asyncio
import json
import sys

import aiocoap

PATIENCE_S = 20
JSON = 50


def shown(response):
    text = response.payload.decode(errors="replace")
    return text if response.code == aiocoap.CONTENT else f"{response.code} {text}"


async def create(context, base, name, *members):
    profile = json.dumps({"name": name, "er": members}).encode()
    message = aiocoap.Message(code=aiocoap.POST, uri=base + "/e", payload=profile, content_format=JSON)
    response = await context.request(message).response
    print(response.code, "/".join(response.opt.location_path))


async def get(context, base, path, accept=None):
    message = aiocoap.Message(code=aiocoap.GET, uri=base + path)
    if accept is not None:
        message.opt.accept = int(accept)
    print(shown(await context.request(message).response))


async def observe(context, base, path, count):
    request = context.request(aiocoap.Message(code=aiocoap.GET, uri=base + path, observe=0))
    print(shown(await request.response), flush=True)
    left = int(count) - 1
    async for response in request.observation:
        print(shown(response), flush=True)
        left -= 1
        if left <= 0:
            break
    request.observation.cancel()


async def delete(context, base, name):
    message = aiocoap.Message(code=aiocoap.DELETE, uri=f"{base}/e/{name}")
    print((await context.request(message).response).code)


async def main(verb, *args):
    context = await aiocoap.Context.create_client_context()
    try:
        async with asyncio.timeout(PATIENCE_S):
            await {"create": create, "get": get, "observe": observe, "delete": delete}[verb](context, *args)
    finally:
        await context.shutdown()


asyncio.run(main(*sys.argv[1:]))
