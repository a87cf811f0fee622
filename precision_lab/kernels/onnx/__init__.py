# SPDX-License-Identifier: Apache-2.0
"""ONNX models that hold one norm: found in a graph, cut out, and run by onnxruntime.

onnx is imported only where a kernel needs it.
"""
