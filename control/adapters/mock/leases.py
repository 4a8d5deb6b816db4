"""KV that a prefiller keeps for a decoder to fetch, and how a decoder finds it."""

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import aiohttp

from control.adapters.mock.core import Clock, Core
from control.adapters.mock.metrics import Book
from control.adapters.mock.settings import MockSettings

TAKE = "/mock/leases/take"


@dataclass(frozen=True)
class Lease:
    """KV kept for one hand-over."""

    tokens: int  # of the prompt
    held_tokens: int  # kept from use
    until_s: float  # on the core's clock


class Leases:
    """The hand-overs of one server, by the first of their block numbers."""

    def __init__(self, settings: MockSettings, clock: Clock, core: Core, book: Book) -> None:
        self.settings, self.clock, self.core, self.book = settings, clock, core, book
        self.engine_id = str(uuid.uuid4())
        self.kept: dict[int, Lease] = {}
        self.next_block = 1
        PEERS[self.engine_id] = self

    def grant(self, request_id: str, tokens: int, address: tuple[str, int]) -> dict[str, Any]:
        """Keep the KV of a prompt; the `kv_transfer_params` that lead a decoder to it."""
        blocks = -(-tokens // self.settings.block_size)
        first = self.next_block
        self.next_block += blocks
        until_s = self.clock.now() + self.settings.lease_s
        self.kept[first] = Lease(tokens, self.core.hold(tokens), until_s)
        self.clock.call_at(until_s, lambda: self.expire(first))
        return {
            "do_remote_prefill": True,
            "do_remote_decode": False,
            "remote_engine_id": self.engine_id,
            "remote_block_ids": list(range(first, first + blocks)),
            "remote_request_id": request_id,
            "remote_host": address[0],
            "remote_port": address[1],
            "tp_size": 1,
            "mock_ticket": f"{self.engine_id}/{first}",  # no client may know it, every one must pass it on
        }

    def expire(self, first: int) -> None:
        """Nobody came for a hand-over."""
        lease = self.kept.pop(first, None)
        if lease is not None:
            self.core.release(lease.held_tokens)
            self.book.expired_leases += 1

    def take(self, engine_id: object, blocks: object, ticket: object) -> int | None:
        """A decoder has come for these blocks: the tokens they hold, None where they are not kept (any more)."""
        if engine_id != self.engine_id or not isinstance(blocks, list) or not blocks or not isinstance(blocks[0], int):
            return None
        if ticket != f"{self.engine_id}/{blocks[0]}":
            return None
        lease = self.kept.pop(blocks[0], None)
        if lease is None:
            return None
        self.core.release(lease.held_tokens)
        return lease.tokens

    def close(self) -> None:
        """The server is gone, and what it kept with it."""
        PEERS.pop(self.engine_id, None)


#: The servers of this process, by engine id.
PEERS: dict[str, Leases] = {}


async def fetch(transfer: Mapping[str, Any], settings: MockSettings) -> int | None:
    """The tokens of a hand-over, from a server of this process or by HTTP; None where it cannot be found."""
    engine_id, blocks = transfer.get("remote_engine_id"), transfer.get("remote_block_ids")
    ticket = transfer.get("mock_ticket")
    if isinstance(engine_id, str) and engine_id in PEERS:
        return PEERS[engine_id].take(engine_id, blocks, ticket)
    url = f"http://{transfer.get('remote_host')}:{transfer.get('remote_port')}{TAKE}"
    asked = {"remote_engine_id": engine_id, "remote_block_ids": blocks, "mock_ticket": ticket}
    limit = aiohttp.ClientTimeout(total=max(0.05, settings.lookup_s))
    try:
        async with aiohttp.ClientSession(timeout=limit) as session, session.post(url, json=asked) as found:
            answer = await found.json()
            tokens = answer.get("tokens") if isinstance(answer, dict) else None
            return tokens if isinstance(tokens, int) else None
    except (TimeoutError, aiohttp.ClientError, ValueError):
        return None
