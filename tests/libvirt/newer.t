#!/usr/bin/env python3
"""The same operations under a libvirt as new as the engine (libvirt 12): the main ones, all with --long."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "lib"))
import host

host.enter()
from operations import run_operations

folder = host.newer_libvirt()
if folder is None:
    print("1..0 # SKIP the packages of libvirt 12 cannot be had here (see above)")
else:
    run_operations("--long" in sys.argv, newer=folder)
