#!/bin/sh
# lock.sh UV: write the locks anew. Each names one version of every package, for all Pythons from
# 3.11 and all systems, with the hashes of all of its files, and no index.
set -eu
cd "$(dirname "$0")"
lock() {
	"$uv" pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes \
		--no-annotate --no-header --no-emit-index-url --no-emit-find-links "$@"
}
uv=$1
lock --extra host --extra accel --extra test -o test.txt ../pyproject.toml
echo 'setuptools>=78.1.1' | lock --extra host -c test.txt -o run.txt ../pyproject.toml - # editable
lock --extra sim -o sim.txt ../pyproject.toml
for source in *.in; do
	case $source in
	local.in) lock --no-deps -o local.txt local.in ;; # two files of it are used, and no code
	*) lock -o "${source%.in}.txt" "$source" ;;
	esac
done
