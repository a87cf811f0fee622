# SPDX-License-Identifier: Apache-2.0
"""An SVG file in a third of the bytes: styles stand once, as classes, and points to a hundredth.

What is drawn does not change. A style that matplotlib repeats on every mark becomes a class, and
with it the colour that it takes on a dark screen; groups that say nothing, and names that nothing
refers to, go; so do digits that no screen shows.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

SPACE = "http://www.w3.org/2000/svg"
# Attributes whose numbers are places or lengths, in points.
PLACES = frozenset({"d", "x", "y", "width", "height", "transform", "viewBox", "points"})
_COMMAND = re.compile(r"[A-Za-z]|-?[0-9.]+(?:e[-+]?[0-9]+)?")
_NUMBER = re.compile(r"-?[0-9]*\.[0-9]+(?:e[-+]?[0-9]+)?")
_USED = re.compile(r"#([\w-]+)")


def compact(text: str, *, title: str, caption: str, dark: Mapping[str, str]) -> str:
    """The same picture, smaller, with its title and caption for those who hear it.

    Parameters
    ----------
    text
        An SVG file as matplotlib writes it.
    title, caption
        What it says, and how to read it.
    dark
        What each colour becomes on a dark screen.

    Returns
    -------
    str
        An SVG file; the same characters for the same text.
    """
    root = ET.fromstring(text)  # noqa: S314 - matplotlib made it just now
    for part in root.iter():
        part.tag = part.tag.rpartition("}")[2]
        part.attrib = {name.rpartition("}")[2]: value for name, value in part.attrib.items()}
    # What was said of every element is inherited instead, so that groups can say otherwise.
    first = [str(part.text).replace("*{", "svg{") for part in root.iter("style")]
    for part in [*root.findall("title"), *root.findall("metadata")]:
        root.remove(part)
    shared = ET.Element("defs")
    _gather(root, shared)
    classes: dict[str, str] = {}
    for part in (shared, root):
        _simplify(part, classes)
    heads = []
    for tag, words in (("title", title), ("desc", caption)):
        heads.append(ET.Element(tag, {"id": tag}))
        heads[-1].text = words
    style = ET.Element("style")
    style.text = "".join(first) + _rules(classes, dark)
    root[:] = [*heads, style, *([shared] if len(shared) else []), *root]
    root.attrib.pop("version", None)
    root.attrib |= {"xmlns": SPACE, "role": "img", "aria-labelledby": "title desc"}
    ET.indent(root, "")
    return ET.tostring(root, encoding="unicode") + "\n"


def _gather(root: ET.Element, shared: ET.Element) -> None:
    """Move all that is only referred to into one place, each thing once, under a short name."""
    known: dict[str, str] = {}
    renamed: dict[str, str] = {}
    for parent in list(root.iter()):
        for defs in parent.findall("defs"):
            for part in defs:
                if part.tag == "style":
                    continue
                old = part.attrib.pop("id")
                part.tail = None
                body = ET.tostring(part, encoding="unicode")
                if body not in known:
                    known[body] = f"{part.tag[0]}{len(known)}"
                    part.set("id", known[body])
                    shared.append(part)
                renamed[old] = known[body]
            parent.remove(defs)
    for part in root.iter():
        for name in {"href", "clip-path"} & part.attrib.keys():
            part.set(name, _USED.sub(lambda found: "#" + renamed[found[1]], part.attrib[name]))
        if part not in shared:
            part.attrib.pop("id", None)


def _simplify(part: ET.Element, classes: dict[str, str]) -> None:
    """Turn styles into classes and round places, from the inside out; drop idle groups."""
    kept: list[ET.Element] = []
    for child in part:
        _simplify(child, classes)
        if child.tag == "g" and not child.attrib:
            kept += child
        elif child.tag != "g" or len(child):
            kept.append(child)
    part[:] = kept
    for name in PLACES & part.attrib.keys():
        value = part.attrib[name]
        part.set(name, _path(value) if name == "d" else _NUMBER.sub(_rounded, value))
    style = part.attrib.pop("style", "")
    if style:
        pairs = [pair.partition(":") for pair in style.split(";") if pair.strip()]
        rule = ";".join(f"{name.strip()}:{value.strip()}" for name, _, value in pairs)
        part.set("class", classes.setdefault(rule, _letters(len(classes))))
    _share(part, classes)


def _share(part: ET.Element, classes: Mapping[str, str]) -> None:
    """Give a group the class that all of its marks have; opacity is no style that is inherited."""
    names = {child.get("class") for child in part}
    if part.tag != "g" or part.get("class") or len(part) < 2 or len(names) != 1 or names == {None}:
        return
    (name,) = names
    rule = next(style for style, known in classes.items() if known == name)
    if re.search(r"(?<![-\w])opacity:", rule):
        return
    part.set("class", str(name))
    for child in part:
        del child.attrib["class"]


def _rounded(found: re.Match[str]) -> str:
    """A number to two decimals, without idle zeros."""
    text = f"{float(found[0]):.2f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def _path(text: str) -> str:
    """The commands of a path, none repeated that goes without saying."""
    out, implied = "", ""
    for word in _COMMAND.findall(text):
        if word.isalpha():
            if word in "MZz" or word != implied:
                out += word
            # After a move, further points are lines.
            implied = "L" if word == "M" else "" if word in "Zz" else word
        else:
            value = _NUMBER.sub(_rounded, word)
            out += value if out[-1].isalpha() or value[0] == "-" else f" {value}"
    return out


def _letters(index: int) -> str:
    """The name of a class: a, b, …, z, aa, ab, …."""
    name = chr(97 + index % 26)
    return name if index < 26 else _letters(index // 26 - 1) + name


def _rules(classes: Mapping[str, str], dark: Mapping[str, str]) -> str:
    """The classes, and their colours on a dark screen."""
    light, night = "", ""
    for style, name in classes.items():
        light += f".{name}{{{style}}}"
        pairs = [pair.split(":", 1) for pair in style.split(";")]
        swaps = [f"{kind}:{dark[color]}" for kind, color in pairs if color in dark]
        night += f".{name}{{{';'.join(swaps)}}}" if swaps else ""
    return f"{light}@media screen and (prefers-color-scheme:dark){{{night}}}"
