# SPDX-License-Identifier: Apache-2.0
"""Known implementations as plans, a file for each kind of source."""
