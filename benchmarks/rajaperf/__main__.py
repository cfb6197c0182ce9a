"""Run as ``python -m benchmarks.rajaperf``."""

import sys

from .cli import main

sys.exit(main())
