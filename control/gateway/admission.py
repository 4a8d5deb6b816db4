"""Who is let in: what is served, whether anything is up, how many may wait."""

import asyncio
from typing import TYPE_CHECKING

from aiohttp import web

from control.gateway.call import Broken
from control.gateway.openai import Ask, BadRequestError, read_ask
from control.gateway.replies import problem
from control.policy.codes import UP

if TYPE_CHECKING:
    from control.gateway.gateway import Gateway

BODY_S = 60.0  # the body of a request may take so long


async def read_request(request: web.BaseRequest, content: str, most_mb: int) -> Ask:
    """A request's body, checked; `content`: the field that it must have.

    Raises:
        BadRequestError: it cannot be used, is too large, broke off or took too long.
    """
    if request.headers.get("expect", "").lower() == "100-continue" and request.transport is not None:
        request.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    try:
        async with asyncio.timeout(BODY_S):
            return read_ask(await request.read(), content)
    except TimeoutError as error:
        raise BadRequestError(f"the body did not come within {BODY_S:g} s", 408) from error
    except web.HTTPRequestEntityTooLarge as error:
        raise BadRequestError(f"the body is larger than {most_mb} MB", 413) from error
    except web.RequestPayloadError as error:
        raise BadRequestError(f"the body broke off: {error}") from error


def turn_away(gateway: "Gateway", ask: Ask) -> web.Response | None:
    """The response to a request that is not let in; None: it is."""
    if gateway.stopping:
        return problem(503, Broken.STOPPING.value[0], "service_unavailable", retry_after_s=5)
    world, most = gateway.door.live.world, gateway.settings.most_waiting
    rows = world.instances
    up = rows["state"].tolist().count(UP)  # a few rows: lists beat NumPy
    if up == 0:
        gateway.totals.turned_away += 1
        return problem(503, "no server of the fleet is up", "service_unavailable", retry_after_s=5)
    if ask.model and ask.model not in gateway.model_names:
        known = ", ".join(sorted(gateway.model_names))
        return problem(404, f"the model {ask.model!r:.200} does not exist; served are: {known}", "NotFoundError")
    waiting = sum(rows["n_waiting"].tolist()) + int(world.clock[0]["n_held"])
    if waiting < most:
        return None
    gateway.totals.turned_away += 1
    wait_s = min(60, max(1, int(float(rows["queued_work_s"].sum()) / up / 10)))
    return problem(429, f"{waiting} calls wait already, at most {most} may", "overloaded", retry_after_s=wait_s)


def unknown(request: web.BaseRequest, served: list[tuple[str, str]]) -> web.Response:
    """The response to what is not served; `served`: methods and paths that are."""
    known = [method for method, path in served if path == request.path]
    if known:
        return problem(405, f"{request.method} {request.path}: {known[0]} is accepted", "invalid_request_error")
    paths = ", ".join(path for _, path in served)
    return problem(404, f"{request.path} is not served; accepted are {paths}", "invalid_request_error")
