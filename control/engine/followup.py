"""What follows from the tuner's work: its runs are stored, its alpha is set, a broken promise is taken back."""

from typing import TYPE_CHECKING, Any

from control.engine.tuner import Ended
from control.tuning.decide import Judged
from storage import runs

if TYPE_CHECKING:
    from control.engine.loop import Loop


def take_up(loop: "Loop", ended: Ended) -> None:
    """Store a tuning run with the twin runs behind its prediction, and set the alpha it chose.

    Raises:
        StoreError: the store failed.
    """
    about = {key: ended.params[key] for key in ("policy", "sim_s", "window_s")}
    predicted, unchanged = ended.found.predicted, ended.found.unchanged
    ids = {"predicted_run": runs.save(loop.store, "prediction", about | {"alpha": predicted["alpha"]}, predicted)}
    ids["unchanged_run"] = ids["predicted_run"]
    if unchanged is not predicted:
        ids["unchanged_run"] = runs.save(loop.store, "prediction", about | {"alpha": unchanged["alpha"]}, unchanged)
    run = runs.save(loop.store, "tune", ended.params, ended.result | ids)
    loop.live.tuner.last_run = run
    if ended.set_alpha is None:
        old = loop.live.alpha
        new = ended.result["alpha"] if ended.result["decision"] == "suggested" else old
        loop.event("tuning", f"tuning: {ended.result['reason']}", old=old, new=new)
        return
    high_s = ended.result["predicted_high_s"]
    loop.tuner.applied(loop.live, loop.history, run, ended.set_alpha, high_s)
    loop.set_alpha(ended.set_alpha, f"tuning: {ended.result['reason']}")


def settle(loop: "Loop", judged: Judged) -> None:
    """Write down what came of a tuned alpha; go back to the one before where it broke its promise.

    Raises:
        StoreError: the store failed.
    """
    promise, realised_s, review, back = judged
    found = runs.get(loop.store, promise.run_id)
    if found is not None:
        came: dict[str, Any] = {"realised_p95_s": realised_s, "realised_until_sim_s": loop.live.now_s}
        came |= {"outcome": judged.outcome, "review": None if review is None else review._asdict()}
        came |= {"decision": "rolled_back"} if back else {}
        runs.update(loop.store, promise.run_id, found["result"] | came)
    if back:
        loop.set_alpha(promise.before, f"rolled back: {judged.outcome}")
    elif review is not None:
        loop.event("tuning", f"tuning: {judged.outcome}")
