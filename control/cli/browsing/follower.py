"""A session without a browser: it asks for what an open page asks for, and draws nothing.

A browser that draws takes the better part of a core; ten of them on a small machine measure each other. A follower
opens the web socket, runs the page's script, runs its fragments again as often as they ask for it, and polls the live
data once a second, as `pages/_ui/static/feed.js` does.
"""

import asyncio
import threading
import time
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, Self
from urllib.parse import urlsplit

import aiohttp

from control.cli.browsing.traffic import AGE_HEADER, LIVE_PATH, Answer, Traffic
from control.gateway.speed.processes import MeasureError

EVERY_S = 1.0
WINDOW_S = 300  # the page's own default
PATIENCE_S = 240.0
SOCKET_PATH = "/_stcore/stream"
PROTOCOL = "streamlit"
LONGEST_MESSAGE = 1 << 28


class Follower:
    """One session on the page at `url`; what it receives is in `traffic` from begin() on."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self.root, self.page = f"{parts.scheme}://{parts.netloc}", parts.path.strip("/")
        self.traffic = Traffic()
        self.seq = 0
        self.script = ""
        self.timers: dict[str, asyncio.Task[None]] = {}
        self.ended_runs = 0

    @property
    def is_live(self) -> bool:
        """Whether the page has been built and live data has come."""
        return self.ended_runs > 0 and self.seq > 0

    async def follow(self) -> None:
        """Live on until cancelled.

        Raises:
            aiohttp.ClientError: the dashboard is not there, or hangs up.
        """
        async with (
            aiohttp.ClientSession(self.root) as session,
            session.ws_connect(SOCKET_PATH, protocols=(PROTOCOL,), max_msg_size=LONGEST_MESSAGE) as socket,
            asyncio.TaskGroup() as tasks,  # a poll that fails ends the session, which would look live without it
        ):
            await self.run_script(socket)
            polling = tasks.create_task(self.poll(session))
            try:
                async for message in socket:
                    self.take(socket, bytes(message.data))
            finally:
                polling.cancel()
                self.stop_timers()

    async def run_script(self, socket: aiohttp.ClientWebSocketResponse, fragment: str = "") -> None:
        """Ask for a run of the page's script, or of one fragment of it."""
        from streamlit.proto.BackMsg_pb2 import BackMsg

        asked = BackMsg()
        asked.rerun_script.query_string = ""
        asked.rerun_script.page_name = "" if self.script else self.page
        asked.rerun_script.page_script_hash = self.script
        asked.rerun_script.fragment_id = fragment
        asked.rerun_script.is_auto_rerun = bool(fragment)
        await socket.send_bytes(asked.SerializeToString())

    def take(self, socket: aiohttp.ClientWebSocketResponse, data: bytes) -> None:
        """One message of the dashboard."""
        from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

        self.traffic.frames_bytes += len(data)
        message: Any = ForwardMsg.FromString(data)
        kind = message.WhichOneof("type")
        if kind == "new_session":
            self.script = message.new_session.page_script_hash
        elif kind == "script_finished":
            self.ended_runs += 1
        elif kind == "auto_rerun":
            told = message.auto_rerun  # told again at each run of the page, with the same number
            if told.fragment_id not in self.timers:
                self.timers[told.fragment_id] = asyncio.create_task(self.again(socket, told.fragment_id, told.interval))

    async def again(self, socket: aiohttp.ClientWebSocketResponse, fragment: str, every_s: float) -> None:
        """Run a fragment again, for ever."""
        while True:
            await asyncio.sleep(every_s)
            await self.run_script(socket, fragment)

    async def poll(self, session: aiohttp.ClientSession) -> None:
        """Ask for what is new once a second."""
        while True:
            begun_s = time.monotonic()
            await self.ask(session)
            await asyncio.sleep(max(0.0, begun_s + EVERY_S - time.monotonic()))

    async def ask(self, session: aiohttp.ClientSession) -> None:
        """Take one answer with live data."""
        asked = {"since": self.seq, "window": WINDOW_S}
        async with session.get(LIVE_PATH, params=asked) as answer:
            body = await answer.json()
            head = sum(len(name) + len(value) + 4 for name, value in answer.raw_headers)
            size = head + int(answer.headers.get("Content-Length", 0))
            age_s = float(answer.headers.get(AGE_HEADER, "nan"))
        self.seq = body["seq"]
        self.traffic.answers.append(Answer(time.monotonic(), size, age_s))

    def stop_timers(self) -> None:
        """Run no fragment any more."""
        for timer in self.timers.values():
            timer.cancel()
        self.timers.clear()


class Followers:
    """Sessions without a browser, in a thread of their own for the length of a block.

    Raises:
        MeasureError: on leaving or when asked, where a session ended.
    """

    def __init__(self, url: str, count: int) -> None:
        self.all = [Follower(url) for _ in range(count)]
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, name="followers", daemon=True)
        self.running: list[Future[None]] = []

    def __enter__(self) -> Self:
        """Open the sessions."""
        self.thread.start()
        self.running = [asyncio.run_coroutine_threadsafe(follower.follow(), self.loop) for follower in self.all]
        return self

    def __exit__(self, *_: object) -> None:
        """Close them."""
        with suppress(TimeoutError):
            asyncio.run_coroutine_threadsafe(end_others(), self.loop).result(PATIENCE_S)
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()
        self.loop.close()

    def check(self) -> None:
        """MeasureError where a session has ended."""
        for one in self.running:
            if one.done() and not one.cancelled():
                raise MeasureError(f"a session without a browser ended: {one.exception() or 'the dashboard hung up'}")

    def await_live(self) -> None:
        """Wait until every session has its page and live data."""
        until_s = time.monotonic() + PATIENCE_S
        while not all(follower.is_live for follower in self.all):
            self.check()
            if time.monotonic() > until_s:
                raise MeasureError(f"sessions without a browser are not live after {PATIENCE_S:g} s")
            time.sleep(0.1)

    def begin(self) -> None:
        """Count from here on."""
        for follower in self.all:
            follower.traffic = Traffic()

    def figures(self, seconds: float) -> list[dict[str, Any]]:
        """What was counted over `seconds` s, by session."""
        self.check()
        return [follower.traffic.figures(seconds) for follower in self.all]


async def end_others() -> None:
    """End all other tasks of this loop, and wait for them."""
    others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
