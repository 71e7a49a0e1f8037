"""A client of the wirespool packet recorder: sessions as tables, packets as objects.

```text
from wirespool import Client

client = Client("https://recorder.example:8420", token_file="token", ca="ca.pem")
frame = client.sessions("host 10.0.0.1 and since 1h ago").to_pandas()
for packet in client.packets("port 53", "scapy"):
    print(packet.summary())
```
"""

from ._client import Answer, Client, Summary
from ._errors import Broken, Error, Incomplete, Problem, QueryPlace, Unreachable
from ._extract import Extract, Packets
from ._pcapng import Packet, read_packets
from ._schema import Session
from ._sessions import Sessions
from ._statement import Statement

__version__ = "0.1.0"

__all__ = [
    "Answer",
    "Broken",
    "Client",
    "Error",
    "Extract",
    "Incomplete",
    "Packet",
    "Packets",
    "Problem",
    "QueryPlace",
    "Session",
    "Sessions",
    "Statement",
    "Summary",
    "Unreachable",
    "__version__",
    "read_packets",
]
