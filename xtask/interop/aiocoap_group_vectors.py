"""Writes tests/vectors/oscore/group_aiocoap.txt: messages of groups that aiocoap 0.4.17 has protected.

    aiocoap_group_vectors.py > FILE

aiocoap signs with an empty sign_protected (see docs/topics/group-oscore.md), and implements draft-23, which has the wire format of
RFC 10021. Signatures of ES256 are random, so a second run writes others.
"""

import cbor2
from aiocoap import CONTENT, GET, Message, oscore
from aiocoap.message import Direction
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from cryptography.hazmat.primitives import serialization

SECRET = bytes(range(1, 17))
SALT = bytes.fromhex("9e7ca92223786340")
GROUP_ID = bytes.fromhex("0a0b0c")
MANAGER = bytes([9] * 32)
IDS = {"client": b"\x01", "server": b"srv"}
KEYS = {"client": bytes([1] * 32), "server": bytes([2] * 32)}
RAW = (serialization.Encoding.Raw, serialization.PublicFormat.Raw)


def eddsa(key):
    public = ed25519.Ed25519PrivateKey.from_private_bytes(key).public_key().public_bytes(*RAW)
    return key, cbor2.dumps({8: {1: {1: 1, 3: -8, -1: 6, -2: public}}})


def es256(key):
    private = ec.derive_private_key(int.from_bytes(key, "big"), ec.SECP256R1())
    numbers = private.public_key().public_numbers()
    x, y = (one.to_bytes(32, "big") for one in (numbers.x, numbers.y))
    return private, cbor2.dumps({8: {1: {1: 2, 3: -7, -1: 1, -2: x, -3: y}}})


def member(who, other, signature, pairwise, make, salt):
    aead = oscore.algorithms["AES-CCM-16-64-128"]
    private, credential = make(KEYS[who])
    return oscore.SimpleGroupContext(
        aead, oscore.hashfunctions["sha256"], signature, aead, pairwise, GROUP_ID, SECRET, salt, IDS[who],
        private, credential, {IDS[other]: make(KEYS[other])[1]}, eddsa(MANAGER)[1],
    )


def show(kind, plain, outer):
    print(f"{kind}: {plain.hex()} {int(outer.code):02x} {outer.opt.oscore.hex() or '-'} {outer.payload.hex()}")


def plaintext(message):
    return bytes([message.code]) + message.opt.encode() + (b"\xff" + message.payload if message.payload else b"")


def incoming(message):
    copy = Message(code=message.code, payload=message.payload)
    copy.opt.oscore = message.opt.oscore
    copy.direction = Direction.INCOMING
    return copy


def exchange(name, client, server, request_context, response_context):
    request = Message(code=GET, uri_path=("tv1",))
    request.direction = Direction.OUTGOING
    outer, ours = request_context.protect(request)
    show(f"request {name}", plaintext(request), outer)
    bag = server._uncompress(outer.opt.oscore, b"")[2]
    _, theirs = server.get_oscore_context_for(bag).unprotect(incoming(outer))
    for number in range(2):
        response = Message(code=CONTENT, payload=b"Hello World!")
        response.direction = Direction.OUTGOING
        outer, _ = response_context.protect(response, theirs)
        show(f"response {name}", plaintext(response), outer)


def group(name, signature, make, pairwise, salt):
    client = member("client", "server", signature, pairwise, make, salt)
    server = member("server", "client", signature, pairwise, make, salt)
    client.sender_sequence_number, server.sender_sequence_number = 20, 300
    fields = [SECRET, salt, GROUP_ID, eddsa(MANAGER)[1]]
    for who in IDS:
        fields += [IDS[who], KEYS[who], make(KEYS[who])[1]]
    print(f"group {name}:", *(field.hex() or "-" for field in fields))
    to_server, to_client = client.pairwise_for(IDS["server"]), server.pairwise_for(IDS["client"])
    exchange(f"{name} group group", client, server, client, server)
    exchange(f"{name} group pairwise", client, server, client, to_client)
    exchange(f"{name} pairwise pairwise", client, server, to_server, to_client)


print("# Messages of Group OSCORE made by aiocoap 0.4.17 with xtask/interop/aiocoap_group_vectors.py.")
print("# group NAME: master secret, salt, Gid, credential of the manager; of the client and of the server: ID, private key, credential")
print("# request NAME MODE MODE: plaintext, outer code, OSCORE option, payload; then two responses, the second with a Partial IV")
print()
group("EdDSA", oscore.Ed25519(), eddsa, oscore.EcdhSsHkdf256(), SALT)


class Es256Agreement(oscore.ECDSA_SHA256_P256):
    """aiocoap says -7 for the agreement of P-256 too, which RFC 10021 s2.1.10 calls -27."""

    value = -27


group("ES256", oscore.ECDSA_SHA256_P256(), es256, Es256Agreement(), b"")
