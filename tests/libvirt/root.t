#!/usr/bin/env python3
"""The same operations where qemu.conf makes QEMU run as root: the main ones, all with --long."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "lib"))
import host

host.enter()
from operations import run_operations

run_operations("--long" in sys.argv, as_root=True)
