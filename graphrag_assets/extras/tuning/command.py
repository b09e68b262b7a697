"""`index tune`: prompts tuned to the corpus, adopted and taken back."""

from typing import Any

import click
from rich.text import Text

from graphrag_assets.assets.index import Index
from graphrag_assets.cli.terminal import Console, print_table, table_of
from graphrag_assets.contracts.prompt_profile import BUILT_IN, PromptProfile
from graphrag_assets.errors import StoreError
from graphrag_assets.extras.tuning.tuning import adopt_profile, tune_prompts


@click.command()
@click.option("--sample", default=30, show_default=True, type=click.IntRange(min=1), help="Text units to tune on.")
@click.option("--types", default="", help='Entity types, in place of those found: "PERSON, SHIP: a vessel".')
@click.option("--examples", default=4, show_default=True, type=click.IntRange(min=0), help="Worked examples.")
@click.option("--list", "only_list", is_flag=True, help="Only list the versions of the profile.")
@click.option("--adopt", type=click.IntRange(min=0), help="Only put this version in force; 0: the built-in prompts.")
def tune(only_list: bool, adopt: int | None, **options: Any) -> None:
    """Tune the prompts to the documents of the index: a chat model reads a sample of them."""
    console, index = Console(), Index.from_environment()
    if not index.working.path.exists():
        raise StoreError("Nothing is indexed yet, so there are no text units to tune on. Run `graphrag-assets index`.")
    if only_list:
        _print_versions(console, index)
    elif adopt is not None:
        adopt_profile(index, adopt)
        what = "The built-in prompts are" if adopt == BUILT_IN else f"Version {adopt} of the prompt profile is"
        console.say(f"{what} in force. `graphrag-assets index plan` prices what the next `index` extracts again.")
    else:
        with console.status("Reading the sample"):
            version, profile = tune_prompts(index, **options)
        _print_profile(console, profile)
        for name in ("entity_types", "relationship_types"):
            if name in index.settings.model_fields_set:
                console.say(f"GRAPHRAG_{name.upper()} comes before the types of a profile: unset it to use these.")
        console.say(f"This is version {version}. `graphrag-assets index tune --adopt {version}` puts it in force.")


def _print_versions(console: Console, index: Index) -> None:
    table = table_of("version", "in force", "made", "made by", "entity types")
    versions = index.working.read(
        "SELECT version, adopted, made_at, model, list_transform(entity_types, lambda t: t.type) FROM prompt_profile "
        "ORDER BY version"
    )
    for version, adopted, made_at, model, kinds in versions.iter_rows():
        types = Text(", ".join(kinds))
        table.add_row(str(version), "yes" if adopted else "", f"{made_at:%Y-%m-%d %H:%M}", model, types)
    print_table(console, table)
    if not versions["adopted"].any():
        console.say("The built-in prompts are in force.")


def _print_profile(console: Console, profile: PromptProfile) -> None:
    lines = {
        "Domain": profile.domain,
        "Persona": profile.persona,
        "Language": profile.language_name or "that of each document",
        "Ratings": profile.rating_scale,
    }
    for name, line in lines.items():
        if line:
            console.say(f"{name}: {line}")
    for name, kinds in (("entity type", profile.entity_types), ("relationship type", profile.relationship_types)):
        table = table_of(name, numbers=["mentions"])
        for heading in ("such as", "meaning")[: 1 + any(kind.definition for kind in kinds)]:
            table.add_column(heading)
        for kind in kinds:
            row = (kind.type, f"{kind.n:,}", ", ".join(kind.examples), kind.definition)
            table.add_row(*map(Text, row[: len(table.columns)]))
        if kinds:
            console.print(table)
    sizes = [f"{len(one.entities)} entities, {len(one.relationships)} relationships" for one in profile.examples]
    console.say(f"Worked examples: {'; '.join(sizes) or 'none'}.")
