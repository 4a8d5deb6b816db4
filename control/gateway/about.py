"""What the gateway tells of itself: models, health, metrics."""

from typing import TYPE_CHECKING

from aiohttp import web

from control.gateway.replies import as_json
from control.gateway.text import metrics_text
from control.policy.codes import UP

if TYPE_CHECKING:
    from control.gateway.gateway import Gateway

TEXT = {"content-type": "text/plain; version=0.0.4; charset=utf-8"}


class About:
    """The endpoints beside the answers."""

    def __init__(self, gateway: "Gateway") -> None:
        self.gateway = gateway

    async def models(self, request: web.BaseRequest) -> web.Response:
        """Models that may be asked for."""
        rows = [
            {"id": name, "object": "model", "owned_by": "headway", "max_model_len": self.gateway.longest}
            for name in sorted(self.gateway.model_names)
        ]
        return as_json({"object": "list", "data": rows})

    async def health(self, request: web.BaseRequest) -> web.Response:
        """200 while any real server is up."""
        rows = self.gateway.door.live.world.instances
        real = rows["remote"] == 1
        up, simulated = int((real & (rows["state"] == UP)).sum()), int((~real).sum())
        told = {"status": "ok" if up else "no server is up", "up": up, "of": int(real.sum()), "simulated": simulated}
        return as_json(told, 200 if up else 503)

    async def metrics(self, request: web.BaseRequest) -> web.Response:
        """Our own metrics, as a Prometheus text."""
        return web.Response(body=metrics_text(self.gateway), headers=TEXT)
