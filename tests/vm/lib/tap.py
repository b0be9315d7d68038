"""Test Anything Protocol for the script tests: one line a result, the reason below a failure."""

import shutil
import sys
import traceback


class Tap:
    """Counts and prints results.  Use as a context: the plan is printed at its end, and an exception
    is a failed result, so that a test that dies half way can never pass."""

    def __init__(self):
        self.count = 0
        self.failed = 0

    def ok(self, good, name, *why):
        self.count += 1
        self.failed += not good
        print("%s %d - %s" % ("ok" if good else "not ok", self.count, name))
        if not good:
            self.note(*why)
        sys.stdout.flush()
        return bool(good)

    def equal(self, got, expected, name):
        return self.ok(got == expected, name, "got:      %r" % (got,), "expected: %r" % (expected,))

    def match(self, text, pattern, name):
        """pattern: a compiled regular expression that must be found in text."""
        return self.ok(pattern.search(text), name, "no match for %r in:" % pattern.pattern, text[-3000:])

    def skip(self, name, reason):
        self.count += 1
        print("ok %d - %s # SKIP %s" % (self.count, name, reason), flush=True)

    def note(self, *lines):
        for text in lines:
            for line in str(text).splitlines():
                print("# " + line)
        sys.stdout.flush()

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        if kind is not None and issubclass(kind, Exception):
            self.ok(False, "the test runs to its end", "".join(traceback.format_exception(kind, value, trace)))
        print("1..%d" % self.count, flush=True)
        # Other kinds (an interrupt) go on their way.
        if kind is None or issubclass(kind, Exception):
            sys.exit(1 if self.failed else 0)


def run_tests(names, folder):
    """Runs each function test_… of a module's names with a Tap; the folder goes at the end."""
    with Tap() as tap:
        try:
            for test in [value for name, value in list(names.items()) if name.startswith("test_")]:
                test(tap)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
