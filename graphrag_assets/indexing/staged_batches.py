"""The two halves of indexing a batch on two machines: one stages what it has extracted, the other commits it.

The machine that extracts needs the input folder, models and the ledger; the one that commits has the working database.
"""

import logging

from graphrag_assets.contracts.indexing_models import IndexingModels
from graphrag_assets.errors import StagingError, full_disk_in
from graphrag_assets.indexing.index import Index
from graphrag_assets.indexing.index_batch import (
    ExtractedBatch,
    IndexedBatch,
    commit_extracted,
    extract_batch,
    named_options,
    present_digest,
    refuse_imported,
)
from graphrag_assets.runtime.peak_memory import restart_peak
from graphrag_assets.store.locks import batch_lock
from graphrag_assets.store.staging import Manifest, Staged, Staging

log = logging.getLogger(__name__)
_ERRORS = "index_errors"


def staging_of(index: Index) -> Staging | None:
    """The staging area of the settings; None where a batch is extracted and committed in one process."""
    return Staging(index.settings.staging) if index.settings.staging else None


def stage_batch(index: Index, batch: str, models: IndexingModels, run_id: str) -> Manifest:
    """Extract a batch of the input folder, and write it to the staging area; the working database is not used.

    All its text units are extracted: answers that were paid for come from the ledger. `index` must have the batch's
    settings, which are staged with it.

    Raises:
        StagingError: the staging area cannot be used.
    """
    staging = staging_of(index)
    assert staging is not None
    extracted = extract_batch(index, batch, models)
    manifest = Manifest(
        batch=batch,
        digest=extracted.digest,
        settings=named_options(index),
        options={name: str(value) for name, value in index.run_options.items()},
        run_id=run_id,
        seconds=extracted.seconds,
        usage=extracted.usage,
    )
    return staging.write({**extracted.frames, _ERRORS: extracted.errors}, manifest).manifest


def staged_batches(index: Index) -> frozenset[str]:
    """The batches of which a complete revision waits to be committed."""
    staging = staging_of(index)
    return frozenset(staged.manifest.batch for staged in staging.revisions()) if staging else frozenset()


def commit_staged(index: Index, batch: str, run_id: str) -> IndexedBatch | None:
    """Commit what is staged of a batch, and delete it there; None if nothing of the batch as it is now is staged.

    Several revisions of one batch are of the same files, extracted twice: the one with the fewest failures is
    committed. Committing the same again changes nothing.

    Raises:
        StagingError: the staging area cannot be used, or the batch was extracted with other settings.
        InputError: the batch is an imported one.
    """
    staging = staging_of(index)
    if staging is None:
        return None
    with full_disk_in(f"index_batch of {batch!r}"), index.working.exclusive(batch_lock(batch)):
        files = staging.files(batch)  # what is staged from now on stays
        revisions = staging.revisions(batch)
        if not revisions:
            return None
        refuse_imported(index, batch)
        restart_peak()
        indexed = None
        for staged in sorted(revisions, key=lambda staged: staged.manifest.n_errors):
            own = index.with_options({**index.run_options, **staged.manifest.options})
            if _is_current(own, staged, staging) and not _is_worse(own, staged.manifest):
                indexed = _commit(own, staged, staging, run_id)
            if indexed:
                break
        staging.discard(files)
    return indexed


def _is_current(index: Index, staged: Staged, staging: Staging) -> bool:
    """Whether a revision is of the files as they are now.

    Raises:
        StagingError: it was extracted with other settings. It is deleted, so that the batch is extracted again.
    """
    manifest, ours = staged.manifest, named_options(index)
    names = sorted(ours.keys() | manifest.settings.keys())
    different = [name for name in names if ours.get(name) != manifest.settings.get(name)]
    if different:
        staging.discard(file for file in staging.files(manifest.batch) if file.startswith(f"{staged.folder}/"))
        listed = "; ".join(f"{name}: {manifest.settings.get(name)} there, {ours.get(name)} here" for name in different)
        raise StagingError(
            f"The batch {manifest.batch!r} was extracted by run {manifest.run_id} with other settings than this "
            f"machine has, so it is not committed. {listed}. Give all machines the same settings and the same version; "
            "`graphrag-assets doctor cluster` compares them."
        )
    if manifest.digest == present_digest(index, manifest.batch):
        return True
    log.info("batch %s: its files have changed since it was extracted by run %s", manifest.batch, manifest.run_id)
    return False


def _is_worse(index: Index, manifest: Manifest) -> bool:
    """Whether the same files are committed already, with fewer failures: a run of the same batch was faster."""
    query = "SELECT count(*) FROM batch_state WHERE batch = $batch AND digest = $digest AND n_errors < $errors"
    parameters = {"batch": manifest.batch, "digest": manifest.digest, "errors": manifest.n_errors}
    return bool(index.working.read(query + " AND extracted", parameters).item())


def _commit(index: Index, staged: Staged, staging: Staging, run_id: str) -> IndexedBatch | None:
    frames = staging.read(staged)
    if frames is None:
        log.warning("%s is not what its manifest says, so it is not committed", staged.folder)
        return None
    manifest, errors = staged.manifest, frames.pop(_ERRORS)
    extracted = ExtractedBatch(frames, errors, manifest.digest, manifest.seconds, manifest.usage)
    return commit_extracted(index, manifest.batch, extracted, run_id)
