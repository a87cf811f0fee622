# SPDX-License-Identifier: Apache-2.0
"""Which implementations are known? Each is a plan, in the file of its kind of source.

It must not know how a plan is run.
"""
