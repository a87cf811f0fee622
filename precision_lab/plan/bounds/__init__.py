# SPDX-License-Identifier: Apache-2.0
"""What can be known of each variable of a program before it is run: enclosures, and their rules.

It must not look at outputs.
"""

from __future__ import annotations
