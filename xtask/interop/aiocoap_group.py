"""A member of groups, or the client of one.

    aiocoap_group.py serve GROUP...     a member of these groups at eth0, with /.well-known/core and /hello
    aiocoap_group.py get URI            asks a group and prints its first answer
"""

import asyncio
import sys

import aiocoap
import aiocoap.resource


class Hello(aiocoap.resource.Resource):
    async def render_get(self, request):
        return aiocoap.Message(payload=b"hello from aiocoap")


async def serve(groups):
    site = aiocoap.resource.Site()
    links = aiocoap.resource.WKCResource(site.get_resources_as_linkheader)
    site.add_resource([".well-known", "core"], links)
    site.add_resource(["hello"], Hello())
    memberships = [(group, "eth0") for group in groups]
    await aiocoap.Context.create_server_context(site, bind=("::", 5683), multicast=memberships)
    print("ready", flush=True)
    await asyncio.get_running_loop().create_future()


async def get(uri):
    context = await aiocoap.Context.create_client_context()
    message = aiocoap.Message(code=aiocoap.GET, uri=uri, mtype=aiocoap.NON)
    response = await context.request(message).response
    print(response.payload.decode())


if sys.argv[1] == "serve":
    asyncio.run(serve(sys.argv[2:]))
else:
    asyncio.run(get(sys.argv[2]))
