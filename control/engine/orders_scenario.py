"""The order that begins a scenario afresh, on its own fleet."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from control.config import EngineSettings
from control.engine.outcome import Outcome, compare, value
from control.engine.source import Source
from control.engine.state import Live, start
from control.errors import SettingError
from control.model.fleet import load_fleet
from control.policy.codes import ACTIVE
from control.workload.scenarios import WINDOW_IDS, scenario


def begin_scenario(live: Live, command: Mapping[str, Any]) -> Outcome:
    """Begin the named scenario at time 0 with a seed: fleet, policy and load are its own, the speed stays."""
    old, name, seed = live.source.name, str(value(command, "scenario")), value(command, "seed")
    compare(command, old)
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 2**62:
        raise SettingError(f"seed = {seed!r:.80}: expected a whole number >= 0")
    if live.source.scenario is None:
        raise SettingError("a trace is replayed: start the engine with --demo for scenarios")
    mix = scenario(name)
    source = Source(mix.name, seed, scenario=mix, first_id=live.source.first_id + WINDOW_IDS * live.next_window)
    begun = start(load_fleet(mix.fleet), source, mix.policy, EngineSettings.alpha, live.speed)
    begun.begun_as = live.origin
    ended = int(np.count_nonzero(live.world.workflows["state"] == ACTIVE))
    text = f"scenario {old} → {name}, seed {seed}; {ended} workflows ended"
    event = {"kind": "scenario", "target": None, "text": text, "old": old, "new": name}
    return Outcome(True, "", event, successor=begun)
