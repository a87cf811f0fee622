# SPDX-License-Identifier: Apache-2.0
"""`precision-lab inputs`: what a norm can be fed with."""

from __future__ import annotations

import click

from precision_lab.cli.output import as_json, fields, print_json, print_table


@click.command("inputs")
@click.option("--layers", is_flag=True, help="List the layers of the captures too.")
@as_json
def command(*, layers: bool, as_json: bool) -> None:
    """List the families of synthetic inputs, the gains and biases, and the captured activations."""
    from precision_lab.inputs import biases, captures, families, gains

    loaded = {name: row.load() for name, row in captures.items()} if layers or as_json else {}
    if as_json:
        print_json(
            {
                "families": [
                    fields(row, "name description parameters") for row in families.values()
                ],
                "gains": [fields(row, "name description") for row in gains.values()],
                "biases": [fields(row, "name description") for row in biases.values()],
                "captures": [
                    {
                        **fields(row, "name description"),
                        **fields(loaded[row.name], "model norm eps"),
                        "layers": [layer.name for layer in loaded[row.name].layers],
                    }
                    for row in captures.values()
                ],
            }
        )
        return
    print_table(
        ("family", "parameters", "what it is"),
        (
            (
                row.name,
                " ".join(f"{name}={value:g}" for name, value in row.parameters.items()),
                row.description,
            )
            for row in families.values()
        ),
        left=3,
    )
    for kind, table in (("gain", gains), ("bias", biases), ("capture", captures)):
        click.echo()
        rows = ((row.name, row.description) for row in table.values())
        print_table((kind, "what it is"), rows, left=2)
    for name, capture in loaded.items():
        click.echo()
        print_table(
            (name, "rows", "hidden", "largest |x|"),
            ((layer.name, *layer.x.shape, f"{abs(layer.x).max():.4g}") for layer in capture.layers),
        )
