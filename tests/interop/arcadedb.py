"""An ArcadeDB server that speaks Bolt and Neo4j's Cypher; run in an environment that has arcadedb-embedded.

python arcadedb.py FOLDER PORT: prints "ready", and ends with its standard input.
"""

import os
import sys

from arcadedb_embedded import create_server

folder, port = sys.argv[1], int(sys.argv[2])
server = create_server(
    root_path=folder,
    root_password="of-the-tests",
    config={"http_port": 0, "server_plugins": "Bolt:com.arcadedb.bolt.BoltProtocolPlugin", "bolt_port": port},
)
server.start()
server.create_database("graph")
print("ready", flush=True)
os.dup2(2, 1)  # nobody reads the standard output any more, and the server logs
sys.stdin.read()
server.stop()
