"""Large fleets: nothing on the page or the wire may grow with the instances, and a sick one may not vanish."""

from typing import Any

import orjson

from control.present import groups, live, occupancy, power, queues
from tests.support import details
from tests.support.snapshots import snapshot


def big(count: int = 1000) -> dict[str, Any]:
    found = snapshot(count=count)
    found["instances"][3] |= {"state": "down", "queued": 90, "kv_used_fraction": 0.97, "power_w": 1.0}
    return found


def body(payload: dict[str, Any]) -> dict[str, Any]:
    answered = live.answer(payload, [live.row_of_snapshot(payload)], [], True, live.Limits())
    found: dict[str, Any] = orjson.loads(orjson.dumps(answered))
    return found


def test_sixty_four_instances_are_sent_each_for_itself() -> None:
    sent = body(snapshot(count=64))
    assert sent["static"]["groups"] is False
    assert len(sent["static"]["instances"]["name"]) == 64


def test_a_thousand_are_sent_by_gpu_type_with_their_number() -> None:
    sent = body(big())
    fixed = sent["static"]
    assert fixed["count"] == 1000
    assert fixed["instances"]["name"] == ["H100", "A100", "L4"]
    assert fixed["instances"]["count"] == [334, 333, 333]
    assert len(orjson.dumps(sent)) < 10_000


def test_sums_stay_sums_and_the_fullest_cache_stands_for_its_type() -> None:
    sent = body(big())["rows"]["instances"]
    assert sent["queued"][0] == [333 * 2 + 90]
    assert sent["kv_used_fraction"][0] == [0.97]
    assert sent["kv_used_fraction"][1] == [0.4568]


def test_the_worst_state_of_a_type_is_its_state_and_is_counted() -> None:
    now = body(big())["now"]
    assert now["states"] == ["do", "up", "up"]
    assert now["groups"][0]["states"] == {"down": 1, "up": 333}


def test_least_median_and_greatest_of_a_type_are_told() -> None:
    now = body(big())["now"]
    assert now["groups"][0]["queued"] == [2, 2, 90]
    assert now["groups"][0]["power"] == [1, 358.6, 358.6]


def test_a_type_with_one_cap_shows_what_it_may_draw_in_all() -> None:
    rows = [{"tdp_w": 300.0, "power_cap_w": None}, {"tdp_w": 300.0, "power_cap_w": 200.0}]
    static = groups.static_of({"A40": rows})
    assert static["power_cap_w"] == [500.0]


def test_a_server_that_tells_nothing_leaves_a_hole() -> None:
    assert groups.row_of([{"power_w": None}, {}], ("power_w",)) == (None,)


def test_the_table_of_caches_holds_the_fullest_and_says_so() -> None:
    rows = [details.cache(f"gpu-{k}", running=k / 2000) for k in range(1000)]
    shown = details.kv(rows=rows)
    listed = occupancy.instances(shown).rows
    assert [listed[0][0].text, len(listed)] == ["gpu-999", 80]
    assert occupancy.left_out(shown) == "The 80 fullest caches, of 1,000."
    assert occupancy.left_out(details.kv()) == ""


def test_the_table_of_meters_holds_those_that_draw_most() -> None:
    rows = [details.meter(f"gpu-{k}", power_w=float(k)) for k in range(1000)]
    shown = details.power(rows)
    assert [row[0].text for row in power.instances(shown).rows[:2]] == ["gpu-999", "gpu-998"]
    assert power.left_out(shown) == "The 80 instances that draw most now, of 1,000."


def test_a_thousand_queues_show_the_longest_and_count_the_rest() -> None:
    document = {"queues": [details.queue(f"gpu-{k}", 1 if k < 900 else 0, k) for k in range(1000)]}
    found = queues.queues_of(document, queues.Filter())
    busy = queues.busiest(found)
    assert [len(busy), busy[0].instance] == [80, "gpu-899"]
    assert len(queues.overview(found, ["support"])) == 80
    said = queues.quiet(found, len(busy))
    assert said.startswith("820 shorter queues are left out")
    assert said.endswith("No such call waits on 100 other instances.")
