# SPDX-License-Identifier: Apache-2.0
"""matplotlib, imported whatever ``MPLBACKEND`` says.

Figures are drawn on an SVG canvas of their own, so no backend is needed; but matplotlib refuses to
be imported where the variable names one that is not installed, as a notebook's often is.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress

first = "matplotlib" not in sys.modules
wanted = os.environ.pop("MPLBACKEND", None)
try:
    import matplotlib as mpl
finally:
    if wanted is not None:
        os.environ["MPLBACKEND"] = wanted
# The reader's own plots keep theirs, where there is one of that name.
if wanted and first:
    with suppress(ValueError, ImportError):
        mpl.rcParams["backend"] = wanted
