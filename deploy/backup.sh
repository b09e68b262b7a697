#!/bin/sh
# Backs up an index, also while it is in use. Run it in the project's folder, as the user who owns the index:
#   GRAPHRAG_DATA=/var/lib/graphrag deploy/backup.sh FOLDER
# Writers wait while their files are copied; readers are not affected. A backup under its final name is complete.
set -eu

index=${GRAPHRAG_DATA:-data}/index
target=$1/$(date -u +%Y-%m-%dT%H%M%SZ)
python=.venv/bin/python
[ -x "$python" ] || python=python3

rm -rf "$target.part"
trap 'rm -rf "$target.part"' EXIT
mkdir -p "$target.part"
# The shell that holds the lock expands the file names: a write-ahead log may appear or disappear before.
# shellcheck disable=SC2016
flock "$index/working.lock" sh -c 'cp "$1"/working.duckdb* "$2/"' copy "$index" "$target.part"
flock "$index/publishing.lock" cp -a "$index/publications" "$index/CURRENT" "$index/graphrag.duckdb" "$target.part/"
if [ -e "$index/ledger.sqlite" ]; then
    "$python" -c 'import sqlite3, sys; sqlite3.connect(sys.argv[1]).backup(sqlite3.connect(sys.argv[2]))' \
        "$index/ledger.sqlite" "$target.part/ledger.sqlite"
fi
mv "$target.part" "$target"
echo "$target"
