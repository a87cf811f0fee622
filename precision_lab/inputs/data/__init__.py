# SPDX-License-Identifier: Apache-2.0
"""The captures that the package ships; `README.md` beside this file says where they come from."""
