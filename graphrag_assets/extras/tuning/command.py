"""`index tune`: prompts tuned to the corpus, compared with those in force, adopted and taken back."""

import difflib
from typing import Any

import click
from rich.text import Text

from graphrag_assets.cli.tables import print_table, table_of
from graphrag_assets.cli.terminal import Console
from graphrag_assets.contracts.prompt_profile import BUILT_IN, PromptProfile
from graphrag_assets.errors import StoreError
from graphrag_assets.extras.cost_preview.command import cost_table
from graphrag_assets.extras.tuning.tuning import Tuned, TuningOptions, adopt_profile, plan_tuning, tune_prompts
from graphrag_assets.indexing.index import Index
from graphrag_assets.llm.prompts import PROFILED, prompts_of
from graphrag_assets.store.prompt_profiles import profile_in_force

_NEXT = "`graphrag-assets index plan` prices what the next `graphrag-assets index` extracts again."
_STYLES = {"+": "green", "-": "red", "@": "cyan"}


@click.command()
@click.option("--sample", default=30, show_default=True, type=click.IntRange(min=1), help="Text units to tune on.")
@click.option("--types", default="", help='Entity types: "PERSON, SHIP: a vessel"; or changes: "+PORT, -EVENT".')
@click.option("--examples", default=4, show_default=True, type=click.IntRange(min=0), help="Worked examples.")
@click.option(
    "--language",
    default="auto",
    show_default=True,
    help="Language to write in, ISO 639-1. auto: that of nearly all documents; none: that of each document.",
)
@click.option("--plan", "only_plan", is_flag=True, help="Only estimate the cost of the tuning.")
@click.option("--diff", "show_diff", is_flag=True, help="Show how the prompts would change.")
@click.option("--apply", is_flag=True, help="Put the profile in force.")
@click.option("--list", "only_list", is_flag=True, help="Only list the versions of the profile.")
@click.option("--rollback", type=click.IntRange(min=0), help="Only put this version in force; 0: the built-in prompts.")
def tune(
    only_plan: bool,
    show_diff: bool,
    apply: bool,
    only_list: bool,
    rollback: int | None,
    **options: Any,
) -> None:
    """Tune the prompts to the documents of the index, and compare extraction with and without it."""
    console, index = Console(), _existing_index()
    if only_list:
        _print_profiles(console, index)
    elif rollback is not None:
        _put_in_force(console, index, rollback)
    elif only_plan:
        with console.status("Dry run: reading the sample"):
            costs, notes = plan_tuning(index, TuningOptions(**options))
        print_table(console, cost_table(costs))
        for note in notes:
            console.say(note)
    else:
        _tune(console, index, TuningOptions(**options), apply, show_diff)


def _tune(console: Console, index: Index, options: TuningOptions, apply: bool, diff: bool) -> None:
    before = profile_in_force(index.working.read)
    with console.status("Reading the sample"):
        tuned = tune_prompts(index, options, "tune")
    _print_profile(console, tuned)
    for name in ("entity_types", "relationship_types"):
        if name in index.settings.model_fields_set:
            console.say(f"GRAPHRAG_{name.upper()} comes before the types of a profile: unset it to use these.")
    if diff:
        _print_diff(console, index, before, tuned.profile)
    if apply:
        _put_in_force(console, index, tuned.version)
    else:
        console.say(
            f"Version {tuned.version} is not adopted: the prompts in force stay. "
            "The same command with `--apply` adopts it and pays for nothing again."
        )


def _put_in_force(console: Console, index: Index, version: int) -> None:
    adopt_profile(index, version)
    what = "The built-in prompts are" if version == BUILT_IN else f"Version {version} of the prompt profile is"
    console.say(f"{what} in force. {_NEXT}")


def _print_profiles(console: Console, index: Index) -> None:
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


def _existing_index() -> Index:
    index = Index.from_environment()
    if not index.working.path.exists():
        raise StoreError("Nothing is indexed yet, so there are no text units to tune on. Run `graphrag-assets index`.")
    return index


def _print_profile(console: Console, tuned: Tuned) -> None:
    profile, read = tuned.profile, len(tuned.sample.ids)
    console.say(f"Version {tuned.version}, from {read} text units.")
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
    if not tuned.proof:
        console.say("No chat model extracts, so there are no prompts to compare.")
        return
    numbers = ("entities", "relationships", "names in text", "other types", "agreement", "tokens")
    title = f"extraction of {len(tuned.sample.held_out)} other text units"
    table = table_of("prompts", numbers=numbers, title=title)
    for prompts, found in tuned.proof.items():
        shares = (f"{100 * share:.1f} %" for share in (found.literal, found.other, found.agreement))
        table.add_row(prompts, f"{found.entities:.1f}", f"{found.relationships:.1f}", *shares, f"{found.tokens:,.0f}")
    print_table(console, table)


def _print_diff(console: Console, index: Index, before: PromptProfile | None, after: PromptProfile) -> None:
    """The prompts of all tasks that the profile concerns, as a unified diff."""
    old, new = prompts_of(index.settings, before), prompts_of(index.settings, after)
    for task in PROFILED:
        prompts = (old.preview(task).splitlines(), new.preview(task).splitlines())
        lines = difflib.unified_diff(*prompts, f"{task} in force", f"{task} tuned", n=1, lineterm="")
        for line in lines:
            console.print(Text(line, style=_STYLES.get(line[0], "")), soft_wrap=True)
