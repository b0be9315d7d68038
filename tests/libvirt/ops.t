#!/usr/bin/env python3
"""What people do with a libvirt domain's CD drive, with libvirt's default configuration: QEMU as the user libvirt-qemu."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "lib"))
import host

host.enter()
from operations import run_operations

run_operations(True)
