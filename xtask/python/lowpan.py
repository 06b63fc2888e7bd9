"""6LoWPAN beside scapy, an implementation of its own.

    lowpan.py build            prints vectors: frames that scapy builds, and the packet that they carry
    lowpan.py read FILE.pcap   reads frames that Lowmesh built, way HWR, and checks every packet's checksum

A vector is a line: name, packet, frames, all but the name in hexadecimal. Headers are compressed with RFC 6282's
stateless forms, for scapy knows no contexts; in captures, context 0 is put back by hand.
"""

import logging
import struct
import sys

logging.getLogger("scapy").setLevel(logging.ERROR)

from scapy.config import conf  # noqa: E402

conf.dot15d4_protocol = "sixlowpan"

from scapy.layers.dot15d4 import Dot15d4, Dot15d4Data  # noqa: E402
from scapy.layers.inet import UDP  # noqa: E402
from scapy.layers.inet6 import IPv6  # noqa: E402
from scapy.layers.sixlowpan import (  # noqa: E402
    LoWPAN_IPHC,
    LoWPANFragmentationFirst,
    LoWPANFragmentationSubsequent,
)
from scapy.packet import Raw  # noqa: E402

# Octets of the MAC header of a data frame with two long addresses and one PAN.
MAC_OCTETS = 21
FCS_OCTETS = 2
# Octets that a frame leaves for 6LoWPAN.
ROOM = 96
# Nodes 1 and 2 of Lowmesh, link-local.
SOURCE, DESTINATION = "fe80::4c:4d00:0:1", "fe80::4c:4d00:0:2"
CONTEXT = bytes.fromhex("fd00000000000000")


def packet(source, destination, octets, hop_limit=64, traffic_class=0, flow_label=0):
    header = IPv6(src=source, dst=destination, hlim=hop_limit, tc=traffic_class, fl=flow_label)
    data = bytes((7 * at) % 256 for at in range(octets))
    return IPv6(bytes(header / UDP(sport=6383, dport=6384) / Raw(data)))


def frames(whole, **fields):
    """One frame, or fragments by RFC 4944 s5.3 whose first octets are compressed."""
    compressed = bytes(LoWPAN_IPHC(**fields) / whole)
    if len(compressed) <= ROOM:
        return [compressed]
    size = len(bytes(whole))
    gain = size - len(compressed)
    covered = (ROOM - 4 + gain) // 8 * 8
    first = LoWPANFragmentationFirst(datagramSize=size, datagramTag=7)
    all_frames = [bytes(first / Raw(compressed[: covered - gain]))]
    rest = bytes(whole)
    while covered < size:
        step = (ROOM - 5) // 8 * 8
        next_one = LoWPANFragmentationSubsequent(
            datagramSize=size, datagramTag=7, datagramOffset=covered // 8
        )
        all_frames.append(bytes(next_one / Raw(rest[covered : covered + step])))
        covered += step
    return all_frames


def build():
    inline = {"nh": 0, "cid": 0, "sac": 0, "m": 0, "dac": 0}
    far, near = "2001:db8::1", "2001:db8::2"
    cases = [
        ("all-inline", packet(far, near, 20, 33, 0, 0), {"tf": 3, "hlim": 0, "sam": 0, "dam": 0}),
        ("hop-limit-64", packet(far, near, 20), {"tf": 3, "hlim": 2, "sam": 0, "dam": 0}),
        ("hop-limit-255", packet(far, near, 20, 255), {"tf": 3, "hlim": 3, "sam": 0, "dam": 0}),
        ("link-local-64-bits", packet(SOURCE, DESTINATION, 20), {"tf": 3, "hlim": 2, "sam": 1, "dam": 1}),
        ("two-fragments", packet(SOURCE, DESTINATION, 100), {"tf": 3, "hlim": 2, "sam": 1, "dam": 1}),
        ("four-fragments", packet(far, near, 300), {"tf": 3, "hlim": 2, "sam": 0, "dam": 0}),
        ("fourteen-fragments", packet(SOURCE, DESTINATION, 1232), {"tf": 3, "hlim": 2, "sam": 1, "dam": 1}),
    ]
    for name, whole, fields in cases:
        columns = [bytes(whole)] + frames(whole, **inline, **fields)
        print(name, *(column.hex() for column in columns))


def interface_id(link_address):
    octets = bytearray(struct.pack(">Q", link_address))
    octets[0] ^= 2
    return bytes(octets)


def address(inline, mode, link_address):
    """An address of context 0: 64 bits in line, or out of the link address."""
    low = bytes(inline)[8:] if mode == 1 else interface_id(link_address)
    return CONTEXT + low


def is_sound(frame):
    """Whether a whole frame holds a UDP packet whose checksum is right."""
    parsed = Dot15d4(frame)
    if IPv6 not in parsed or UDP not in parsed:
        return False
    mac, iphc, header = parsed[Dot15d4Data], parsed[LoWPAN_IPHC], parsed[IPv6]
    raw = bytearray(bytes(header))
    raw[8:24] = address(raw[8:24], iphc.sam, mac.src_addr)
    raw[24:40] = address(raw[24:40], iphc.dam, mac.dest_addr)
    told = struct.unpack(">H", raw[46:48])[0]
    raw[46:48] = b"\0\0"
    again = IPv6(bytes(raw))
    del again[UDP].chksum
    return told == IPv6(bytes(again))[UDP].chksum and told != 0


def read(path):
    octets = open(path, "rb").read()
    at, whole, sound, fragments = 24, 0, 0, 0
    waiting, complete = {}, 0
    while at < len(octets):
        captured = struct.unpack("<I", octets[at + 8 : at + 12])[0]
        record = octets[at + 16 : at + 16 + captured]
        at += 16 + captured
        # A TAP header says its own length; the check sequence ends the frame.
        frame = record[struct.unpack("<H", record[2:4])[0] : -FCS_OCTETS]
        parsed = Dot15d4(frame)
        if LoWPANFragmentationFirst in parsed:
            fragments += 1
            layer = parsed[LoWPANFragmentationFirst]
            key = (parsed[Dot15d4Data].src_addr, layer.datagramTag)
            waiting[key] = (layer.datagramSize, frame[:MAC_OCTETS], {0: frame[MAC_OCTETS + 4 :]})
        elif LoWPANFragmentationSubsequent in parsed:
            fragments += 1
            layer = parsed[LoWPANFragmentationSubsequent]
            key = (parsed[Dot15d4Data].src_addr, layer.datagramTag)
            if key not in waiting:
                continue
            size, mac, parts = waiting[key]
            parts[layer.datagramOffset] = frame[MAC_OCTETS + 5 :]
            if layer.datagramOffset * 8 + len(parts[layer.datagramOffset]) >= size:
                gathered = b"".join(parts[offset] for offset in sorted(parts))
                complete += 1
                sound += is_sound(mac + gathered)
                del waiting[key]
        elif LoWPAN_IPHC in parsed:
            whole += 1
            sound += is_sound(frame)
    print(f"frames {whole}, fragments {fragments}, packets {complete}, sound {sound}")
    if sound == 0 or complete == 0 or sound != whole + complete:
        sys.exit("scapy does not read what Lowmesh built")


if __name__ == "__main__":
    if sys.argv[1:] == ["build"]:
        build()
    elif len(sys.argv) == 3 and sys.argv[1] == "read":
        read(sys.argv[2])
    else:
        sys.exit(__doc__)
