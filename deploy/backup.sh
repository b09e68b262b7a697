#!/bin/sh
# Backs up an index, also while it is in use. Run it in the project's folder, as the user who owns the index:
#   GRAPHRAG_DATA=/var/lib/graphrag deploy/backup.sh FOLDER
# Writers wait while their files are copied; readers are not affected. A backup under its final name is complete.
set -eu

index=${GRAPHRAG_DATA:-data}/index
python=.venv/bin/python
[ -x "$python" ] || python=python3

[ -e "$index/working.duckdb" ] || { echo "There is no index in $index. Set GRAPHRAG_DATA to its data folder." >&2; exit 1; }
mkdir -p "$1"
part=$(mktemp -d "$1/.backup.XXXXXX")
trap 'rm -rf "$part"' EXIT
# The shell that holds the lock expands the file names: a write-ahead log may appear or disappear before.
# shellcheck disable=SC2016
mkdir -p "$index/locks"
flock "$index/locks/working.lock" sh -c 'cp "$1"/working.duckdb* "$2/"' copy "$index" "$part"
# Nothing of it is there before the first publication, and then the ledger is what was paid for.
# shellcheck disable=SC2016
flock "$index/locks/publishing.lock" sh -c 'for name in publications graphrag.duckdb; do
    if [ -e "$1/$name" ]; then cp -a "$1/$name" "$2/"; fi
done' copy "$index" "$part"
if [ -e "$index/ledger.sqlite" ]; then
    "$python" -c 'import sqlite3, sys; sqlite3.connect(sys.argv[1]).backup(sqlite3.connect(sys.argv[2]))' \
        "$index/ledger.sqlite" "$part/ledger.sqlite"
fi
# Another backup of the same second has the name: a folder with files in it is never replaced.
stamp=$1/$(date -u +%Y-%m-%dT%H%M%SZ)
target=$stamp n=1
until mv -T "$part" "$target" 2>/dev/null; do
    [ -e "$target" ] || { echo "$part cannot be renamed to $target" >&2; exit 1; }
    n=$((n + 1)) target=$stamp-$n
done
echo "$target"
