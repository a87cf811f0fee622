# SPDX-License-Identifier: Apache-2.0
"""Which plan a kernel follows."""
