"""How the corpus is partitioned: one partition per batch, which is an entry directly under the input folder."""

import dagster as dg

document_batches = dg.DynamicPartitionsDefinition(name="document_batches")
