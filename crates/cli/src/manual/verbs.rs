//! The pages of all verbs.

use super::page::{Example, Page};
use crate::exit::Exit::{
    self, ClientError, Done, Failed, Interrupted, NoAnswer, Partial, Security, ServerError, Usage,
};

/// How verbs end that compute from files.
const LOCAL: &[Exit] = &[Done, Failed, Usage];
/// How verbs end that simulate.
const RUNS: &[Exit] = &[Done, Failed, Usage, Interrupted];
/// How verbs end that ask a server.
const REQUEST: &[Exit] = &[Done, Failed, Usage, NoAnswer, ClientError, ServerError, Security];
/// How verbs end that ask all members of a group.
const MEMBERS: &[Exit] =
    &[Done, Failed, Usage, NoAnswer, ClientError, ServerError, Security, Partial];
/// How verbs end that ask over a node.
const NODE_REQUEST: &[Exit] = &[Done, Failed, Usage, NoAnswer, ClientError, ServerError];
/// How verbs end that ask whether somebody is there.
const PING: &[Exit] = &[Done, Failed, Usage, NoAnswer, Security];

const STREAMS: &str =
    "The command prints the payload of the response to stdout and everything else to stderr.";
const GROUPS: &str = "A group, such as coap://[ff02::fd%25eth0]/hello, can send many responses. The command prints each \
     when it arrives: `from ADDRESS` to stderr, then the payload to stdout, on lines of its own. With --json, each \
     response is one line with the address as `from`.";
const GROUP_END: &str = "The command does not know how many members a group has, so it always ends after --timeout, by default 8 s. \
     Members respond within 5 s by default, and send no errors unless No-Response is 0. The exit code is that of an \
     error if a member sent one.";
const ENTITIES: &str =
    "An entity is one resource, /e/NAME, that combines resources of several devices, its members.";
const NODE_OPTIONS: &str =
    "The options of the node precede the verb; `lowmesh node --help` lists them.";

const fn example(what: &'static str, line: &'static str) -> Example {
    Example { what, line }
}

/// A page without notes.
const fn page(verb: &'static str, examples: &'static [Example], exits: &'static [Exit]) -> Page {
    Page { verb, notes: &[], examples, exits }
}

/// The page of a verb that asks a server.
const fn request(verb: &'static str, examples: &'static [Example]) -> Page {
    Page { verb, notes: &[STREAMS, GROUPS, GROUP_END], examples, exits: REQUEST }
}

/// The page of a verb that asks over a node.
const fn node_request(verb: &'static str, examples: &'static [Example]) -> Page {
    Page { verb, notes: &[NODE_OPTIONS, STREAMS], examples, exits: NODE_REQUEST }
}

/// Every verb, in the order of the help; the empty name is the command itself.
pub const PAGES: &[Page] = &[
    page(
        "",
        &[
            example("Simulate a mesh of 25 nodes, three times", "lowmesh run grid-25 --seeds 3"),
            example("Read a resource of a CoAP server", "lowmesh get coap://[::1]/hello"),
            example("Print every key of a scenario with its meaning", "lowmesh show grid-25"),
        ],
        &[Done, Failed, Usage, NoAnswer, ClientError, ServerError, Security, Partial, Interrupted],
    ),
    page(
        "reproduce",
        &[
            example("List the publications", "lowmesh reproduce"),
            example(
                "Check the claims of one in two minutes",
                "lowmesh reproduce righetti2023 --quick",
            ),
            example(
                "Check all of them, and write a report",
                "lowmesh reproduce righetti2023 --report righetti.html",
            ),
        ],
        RUNS,
    ),
    page(
        "run",
        &[
            example("Simulate a built-in scenario", "lowmesh run grid-25 --seeds 3"),
            example(
                "Change a value of the scenario",
                "lowmesh run grid-25 --set traffic.period=2s",
            ),
            example(
                "Compare two timers, and write a report",
                "lowmesh run grid-25 --set sweep.coap.congestion=default,cocoa \\\n    --report timers.html",
            ),
            example("Count the runs of a file and their time", "lowmesh run mine.toml -n"),
            example(
                "Capture one run for Wireshark",
                "lowmesh run grid-25 --seeds 1 --pcap grid.pcap",
            ),
        ],
        RUNS,
    ),
    page(
        "rerun",
        &[
            example("Repeat a stored run", "lowmesh rerun 3f2a9c"),
            example("Repeat it with a capture", "lowmesh rerun 3f2a9c --pcap run.pcap"),
        ],
        LOCAL,
    ),
    page(
        "compare",
        &[
            example("Compare two folders of `run --out`", "lowmesh compare before after"),
            example(
                "Compare the values of a swept key",
                "lowmesh compare results --by coap.congestion --baseline default",
            ),
        ],
        LOCAL,
    ),
    #[cfg(target_os = "linux")]
    Page {
        verb: "emulate",
        notes: &[
            "The ends are the namespaces NAME-a (10.9.0.1) and NAME-b (10.9.0.2). COMMAND runs in a; when it ends, \
             the link ends too, with the same exit code. Without COMMAND the link lasts until Ctrl-C, and `ip netns \
             exec NAME-a PROGRAM` runs a program at an end.",
            "One value applies to both directions; two values with a comma apply first from a to b, then from b to a.",
        ],
        examples: &[
            example(
                "Open a link like NB-IoT",
                "lowmesh emulate --rate 60k,30k --delay 200ms,400ms --queue 14100 --mtu 296",
            ),
            example(
                "Store a value in a node that has its own TCP",
                "lowmesh emulate --rate 250k --node -- lowmesh put coap+tcp://[fd00:6c6d:0:1::2]/body -e hello",
            ),
            example(
                "Run a client over a link that loses packets",
                "lowmesh emulate --rate 250k --loss 2% --peer ./server -- ./client",
            ),
        ],
        exits: LOCAL,
    },
    Page {
        verb: "groups",
        notes: &[ENTITIES],
        examples: &[
            example("Run the Entity Manager", "lowmesh groups serve --state groups.state"),
            example(
                "Combine two resources into one",
                "lowmesh groups create room coap://[::1]:6001/s/t coap://[::1]:6002/s/t",
            ),
            example("Print the mean of their values", "lowmesh groups query room --eo avg"),
        ],
        exits: MEMBERS,
    },
    Page {
        verb: "groups serve",
        notes: &[
            ENTITIES,
            "Any client can make the Entity Manager send requests to any device. So it listens on loopback, and at other addresses only with --oscore-only, which refuses clients without a key, or with --open. A client must also prove its address, with an Echo option or a connection, before the Entity Manager asks members for it.",
            "The Entity Manager stores a change in the file of --state before it sends a message about it. After a restart it removes memberships that were not complete.",
        ],
        examples: &[
            example("Run the Entity Manager", "lowmesh groups serve --state groups.state"),
            example(
                "Run it for a network, with multicast over two hops",
                "lowmesh groups serve --address :: --open --interface eth0 --hops 2",
            ),
        ],
        exits: LOCAL,
    },
    page(
        "groups create",
        &[
            example(
                "Combine two resources into one",
                "lowmesh groups create room coap://[::1]:6001/s/t coap://[::1]:6002/s/t",
            ),
            example(
                "Let the members join a group",
                "lowmesh groups create lamps coap://[fd00::1]/lamp coap://[fd00::2]/lamp \\\n    --ect multicast --scope 5",
            ),
            example("Combine two entities into one", "lowmesh groups create floor /e/room /e/hall"),
        ],
        REQUEST,
    ),
    page(
        "groups list",
        &[example("List all entities", "lowmesh groups list -m gateway.example")],
        REQUEST,
    ),
    page(
        "groups show",
        &[example("Show the state of each member", "lowmesh groups show room")],
        REQUEST,
    ),
    Page {
        verb: "groups query",
        notes: &[
            "Operations are lst (each response), avg, min and max. The profile defines fields that are not given.",
        ],
        examples: &[
            example("Print each value", "lowmesh groups query room"),
            example(
                "Print the mean of the first two",
                "lowmesh groups query room --eo avg --enr 2",
            ),
            example("Write to all members", "lowmesh groups query lamps --put on"),
        ],
        exits: MEMBERS,
    },
    page(
        "groups update",
        &[
            example("Make the mean the default", "lowmesh groups update room --eo avg,lst"),
            example("Add a member", "lowmesh groups update room --add coap://[::1]:6003/s/t"),
        ],
        REQUEST,
    ),
    page("groups delete", &[example("Delete an entity", "lowmesh groups delete room")], MEMBERS),
    page(
        "merge",
        &[example("Join the stores of two shards", "lowmesh merge part1 part2 --into all")],
        LOCAL,
    ),
    Page {
        verb: "node",
        notes: &["The options of the node precede the verb."],
        examples: &[
            example(
                "Answer other nodes until Ctrl-C",
                "lowmesh node --zep localhost:17754 --eui64 02:4c:4d:00:00:00:00:01 \\\n    --address 2001:db8::1/64 --route ::/0 via fe80::4c:4d00:0:2",
            ),
            example(
                "Ping a neighbour, and capture the frames",
                "lowmesh node --zep localhost:17754 --eui64 02:4c:4d:00:00:00:00:01 \\\n    --pcap node.pcap --drops ping fe80::4c:4d00:0:2",
            ),
        ],
        exits: NODE_REQUEST,
    },
    Page {
        verb: "node ping",
        notes: &[NODE_OPTIONS],
        examples: &[
            example(
                "Ping a neighbour four times",
                "lowmesh node --zep localhost:17754 --eui64 02:4c:4d:00:00:00:00:01 \\\n    ping fe80::4c:4d00:0:2",
            ),
            example(
                "Send ten packets that need fragments",
                "lowmesh node --zep localhost:17754 --eui64 02:4c:4d:00:00:00:00:01 \\\n    --fragments sfr --counters ping fe80::4c:4d00:0:2 -c 10 -s 1232",
            ),
        ],
        exits: &[Done, Failed, Usage, NoAnswer],
    },
    Page {
        verb: "node udp",
        notes: &[
            NODE_OPTIONS,
            "The command prints one line to stdout for each datagram, as text if possible and otherwise in hexadecimal. It prints everything else to stderr.",
        ],
        examples: &[
            example(
                "Send a datagram to the echo port",
                "lowmesh node --zep localhost:17754 --eui64 02:4c:4d:00:00:00:00:01 \\\n    udp fe80::4c:4d00:0:2 7 hello",
            ),
            example(
                "Print datagrams to a port",
                "lowmesh node --zep localhost:17754 --eui64 02:4c:4d:00:00:00:00:01 \\\n    udp --listen 4000",
            ),
        ],
        exits: &[Done, Failed, Usage, NoAnswer],
    },
    node_request(
        "node get",
        &[example(
            "Read the clock of a node",
            "lowmesh node --zep localhost:17754 --eui64 02:4c:4d:00:00:00:00:01 \\\n    get coap://[fe80::4c:4d00:0:2]/clock",
        )],
    ),
    node_request(
        "node put",
        &[example(
            "Send a file in blocks of 64 octets",
            "lowmesh node --zep localhost:17754 --eui64 02:4c:4d:00:00:00:00:01 \\\n    --fragments sfr put coap://[fe80::4c:4d00:0:2]/config \\\n    -f config.json -t json -b 64",
        )],
    ),
    node_request(
        "node post",
        &[example(
            "Send a reading",
            "lowmesh node --zep localhost:17754 --eui64 02:4c:4d:00:00:00:00:01 \\\n    post coap://[fe80::4c:4d00:0:2]/readings -e 21.5",
        )],
    ),
    node_request(
        "node delete",
        &[example(
            "Delete a resource",
            "lowmesh node --zep localhost:17754 --eui64 02:4c:4d:00:00:00:00:01 \\\n    delete coap://[fe80::4c:4d00:0:2]/config",
        )],
    ),
    node_request(
        "node fetch",
        &[example(
            "Get two entries",
            "lowmesh node --zep localhost:17754 --eui64 02:4c:4d:00:00:00:00:01 \\\n    fetch coap://[fe80::4c:4d00:0:2]/config -e [1,2] -t json",
        )],
    ),
    node_request(
        "node patch",
        &[example(
            "Change one entry",
            "lowmesh node --zep localhost:17754 --eui64 02:4c:4d:00:00:00:00:01 \\\n    patch coap://[fe80::4c:4d00:0:2]/config -f change.json -t json",
        )],
    ),
    node_request(
        "node ipatch",
        &[example(
            "Set one entry",
            "lowmesh node --zep localhost:17754 --eui64 02:4c:4d:00:00:00:00:01 \\\n    ipatch coap://[fe80::4c:4d00:0:2]/config -f change.json -t json",
        )],
    ),
    page(
        "scenarios",
        &[
            example("List the built-in scenarios", "lowmesh scenarios"),
            example("List them for a program", "lowmesh scenarios --json"),
        ],
        LOCAL,
    ),
    Page {
        verb: "serve",
        notes: &[
            "--port serves coap and coap+tcp. The next port serves coaps (with --psk) and coaps+tcp (with --cert). --ws-port serves coap+ws, or coaps+ws with --cert, to programs and to the web pages of --ws-origin. Ctrl-C ends the server after the requests in progress.",
        ],
        examples: &[
            example("Serve resources to try a client with", "lowmesh serve --demo"),
            example("Serve a folder, and let clients write", "lowmesh serve files --writable"),
            example(
                "Serve it over DTLS and TLS",
                "lowmesh serve files --psk @key --identity me --cert cert.pem --key key.pem",
            ),
        ],
        exits: LOCAL,
    },
    Page {
        verb: "proxy",
        notes: &[
            "A client names the target with Proxy-Uri. Targets are coap, coap+tcp and coap+ws, with --target-psk also coaps, and with --cafile also coaps+tcp and coaps+ws.",
            "By default a proxy listens on loopback (see --address) and forwards only to public addresses (see --allow-target). Rules apply to addresses, not to names. A denied address stays denied even if another rule allows it.",
        ],
        examples: &[
            example(
                "Forward requests of this machine to a private network",
                "lowmesh proxy --allow-target fd00::/8",
            ),
            example(
                "Send a request through the proxy",
                "lowmesh get -P coap://localhost coap://[fd00::1]/hello",
            ),
            example(
                "Run a reverse proxy for a server",
                "lowmesh proxy --to coap+tcp://[fd00::1]/ --address ::",
            ),
        ],
        exits: LOCAL,
    },
    page(
        "show",
        &[
            example("Print every key of a scenario with its meaning", "lowmesh show grid-25"),
            example("Start a scenario of your own", "lowmesh show grid-25 > mine.toml"),
            example(
                "Keep a random topology for all seeds",
                "lowmesh show pister-26 --freeze 1 > fixed.toml",
            ),
        ],
        LOCAL,
    ),
    page(
        "tune",
        &[
            example(
                "Search for the best parameters of a timer",
                "lowmesh tune grid-25 --timer cocoa",
            ),
            example(
                "Search for a short delay, with a report",
                "lowmesh tune grid-25 --objective delay_p95 --report tuned.html",
            ),
        ],
        RUNS,
    ),
    page(
        "validate",
        &[example("Compare with a testbed under CSMA", "lowmesh validate ecoap data")],
        RUNS,
    ),
    page(
        "validate ecoap",
        &[
            example("Compare with the measurements in a folder", "lowmesh validate ecoap data"),
            example("Cross-validate the model", "lowmesh validate ecoap data --cross --seeds 1"),
        ],
        RUNS,
    ),
    request(
        "get",
        &[
            example("Print a resource", "lowmesh get coap://[::1]/hello"),
            example(
                "Get it over DTLS with a key",
                "lowmesh get coaps://host/hello --psk @key --identity me",
            ),
            example("Observe it for ten minutes", "lowmesh get coap://[::1]/time -s 10min"),
            example(
                "Get it from all servers on a link",
                "lowmesh get coap://224.0.1.187/hello -B 6",
            ),
        ],
    ),
    request(
        "put",
        &[
            example("Write a text", "lowmesh put coap://[::1]/name -e kitchen"),
            example(
                "Send a file as JSON",
                "lowmesh put coap://[::1]/config -e @config.json -t json",
            ),
        ],
    ),
    request(
        "post",
        &[
            example("Send a reading", "lowmesh post coap://[::1]/readings -e 21.5"),
            example(
                "Send CBOR from another program",
                "lowmesh post coap://[::1]/readings -f - -t cbor < reading.cbor",
            ),
        ],
    ),
    request("delete", &[example("Delete a resource", "lowmesh delete coap://[::1]/name")]),
    request(
        "fetch",
        &[example(
            "Request a part of a resource",
            "lowmesh fetch coap://[::1]/config -e @query.json -t json",
        )],
    ),
    request(
        "patch",
        &[example(
            "Change a part of a resource",
            "lowmesh patch coap://[::1]/config -e @change.json -t json",
        )],
    ),
    request(
        "ipatch",
        &[example(
            "Set a part of a resource; a repeated request changes nothing more",
            "lowmesh ipatch coap://[::1]/config -e @change.json -t json",
        )],
    ),
    Page {
        verb: "observe",
        notes: &[
            STREAMS,
            "When the command ends, it cancels the observation at the server.",
            "For a group, it prints `from ADDRESS` to stderr before each state, and goes on if a member sends an error.",
        ],
        examples: &[
            example("Print each state until Ctrl-C", "lowmesh observe coap://[::1]/time"),
            example("End after three states", "lowmesh observe coap://[::1]/time --count 3"),
        ],
        exits: REQUEST,
    },
    Page {
        verb: "discover",
        notes: &["[ff02::fd%eth0] and 224.0.1.187 are the groups of all CoAP servers on a link."],
        examples: &[
            example("List the resources of a server", "lowmesh discover localhost"),
            example("Show only observable ones", "lowmesh discover localhost obs=*"),
            example("Find the servers on a link", "lowmesh discover 224.0.1.187"),
        ],
        exits: REQUEST,
    },
    page(
        "ping",
        &[
            example("Ping a server four times", "lowmesh ping localhost"),
            example("Ping it over TCP every 100 ms", "lowmesh ping coap+tcp://localhost -i 100ms"),
        ],
        PING,
    ),
    page(
        "keygen",
        &[
            example("Make an OSCORE context for each end", "lowmesh keygen oscore home"),
            example("Make a certificate for a server", "lowmesh keygen tls home"),
        ],
        LOCAL,
    ),
    page(
        "keygen oscore",
        &[
            example("Make home-client.conf and home-server.conf", "lowmesh keygen oscore home"),
            example(
                "Send a request with one of them",
                "lowmesh get -E home-client.conf coap://host/hello",
            ),
        ],
        LOCAL,
    ),
    Page {
        verb: "keygen group",
        notes: &[
            "Each file has the secrets of the whole group and the private key of one member. Move it to its member, and keep no copy.",
            "A member that leaves knows these secrets: make new files for the remaining members.",
        ],
        examples: &[
            example(
                "Make floor-switch.conf, floor-lamp1.conf and floor-lamp2.conf",
                "lowmesh keygen group floor --member switch --member lamp1 --member lamp2",
            ),
            example(
                "Send a request to all members with one of them",
                "lowmesh get --group-oscore floor-switch.conf \\\n    'coap://[ff02::fd%eth0]/hello'",
            ),
        ],
        exits: LOCAL,
    },
    page(
        "keygen psk",
        &[
            example("Make a key", "lowmesh keygen psk key"),
            example(
                "Send a request with it",
                "lowmesh get --psk @key --identity me coaps://host/hello",
            ),
        ],
        LOCAL,
    ),
    page(
        "keygen tls",
        &[
            example("Make home-cert.pem and home-key.pem", "lowmesh keygen tls home"),
            example(
                "Make a certificate for other names",
                "lowmesh keygen tls home --host sensors.example.org --host 192.0.2.7",
            ),
        ],
        LOCAL,
    ),
    Page {
        verb: "completions",
        notes: &[
            "The script calls this command for completions, so it also completes values of flags.",
        ],
        examples: &[
            example("In ~/.bashrc", "lowmesh completions bash"),
            example(
                "For fish",
                "lowmesh completions fish > ~/.config/fish/completions/lowmesh.fish",
            ),
        ],
        exits: LOCAL,
    },
    page("man", &[example("Write the pages into a folder", "lowmesh man man1")], LOCAL),
];
