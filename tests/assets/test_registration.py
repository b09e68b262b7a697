"""Batches are registered as partitions by several processes at once."""

import dagster as dg

from graphrag_assets.assets.corpus import register_batches
from graphrag_assets.assets.index_names import IndexNames
from graphrag_assets.assets.scan import scan


def test_processes_that_register_the_same_batches_concurrently_do_not_fail(project, monkeypatch):
    for name in "abcdef":
        project.write(f"{name}/x.txt", "Cyrus Field met William Thomson in Valentia.")
    names, found = IndexNames(), scan(project.index)
    with dg.DagsterInstance.local_temp(str(project.root)) as instance:
        add, first = instance.add_dynamic_partitions, []

        def overtaken(name, keys):
            """The first attempt looks, is overtaken by another process, and inserts."""
            if not first:
                first.append(keys)
                add(name, keys[:3])
                storage = instance.event_log_storage
                with storage.index_connection() as connection:
                    connection.exec_driver_sql(
                        "INSERT INTO dynamic_partitions (partitions_def_name, partition) VALUES (?, ?)", (name, keys[0])
                    )
            add(name, keys)

        monkeypatch.setattr(instance, "add_dynamic_partitions", overtaken)
        register_batches(names, instance, found.known)
        assert sorted(instance.get_dynamic_partitions(names.batches.name)) == list("abcdef")
