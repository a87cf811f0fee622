# SPDX-License-Identifier: Apache-2.0
"""Kernels: black boxes that claim to compute a norm."""
