#!/bin/sh
# A folder includes only from the layers above it.
exec "$(dirname "$0")/../../scripts/check-layers"
