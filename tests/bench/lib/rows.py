"""The rows that every benchmark prints."""

import statistics
import sys

missed = []


def row(name, ours, peer, ratio=None, goal=None, unit="", more=""):
    """One comparison.  ours, peer: numbers, larger is better.  ratio: ours to peer unless given.  goal: what the ratio
    has to reach, None for a row that is only shown."""
    if ratio is None:
        ratio = ours / peer if peer else float("inf")
    words = [name, "ours=%.2f%s" % (ours, unit)]
    words.append("peer=%.2f%s" % (peer, unit) if peer is not None else "peer=-")
    words.append("ratio=%.2f" % ratio)
    if goal is None:
        verdict = "ok"
        words.append("goal=-")
    else:
        verdict = "ok" if ratio >= goal else "SHORT"
        words.append("goal=%.2f" % goal)
    if more:
        words.append(more)
    print(" ".join(words + [verdict]), flush=True)
    if verdict != "ok":
        missed.append(name)


def note(text):
    print("# " + text, flush=True)


def median(values):
    return statistics.median(values)


def done():
    sys.exit(1 if missed else 0)
