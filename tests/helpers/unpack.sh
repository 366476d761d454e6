#!/bin/sh
# unpack.sh FOLDER PACKAGE...: put programs of this machine's Debian into FOLDER, for tests.
#
# 1. The packages come with all that they need and this machine lacks, whatever it lacks.
# 2. Nothing is installed and nothing is started, and any user may: apt gets lists and a cache of
#    its own (build/apt). Lists older than a day are fetched again, because mirrors drop old files.
# 3. FOLDER/made is written last, after each program of the packages has found its libraries.
set -eu
folder=$1; shift
apt=$PWD/build/apt
mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial"
apt_get() {
	apt-get -qq -o Dir::State::lists="$apt/lists" -o Dir::Cache="$apt/cache" \
		-o Dir::Cache::archives="$apt/cache/archives" -o Debug::NoLocking=1 -o APT::Sandbox::User= \
		-o Acquire::Languages=none "$@" >/dev/null
}
[ -n "$(find "$apt/fetched" -mmin -1440 2>/dev/null)" ] || { apt_get update && touch "$apt/fetched"; }
rm -f "$apt"/cache/archives/*.deb
apt_get --yes --download-only --no-install-recommends install "$@"
rm -rf "$folder" "$folder.part"
mkdir -p "$folder.part" && chmod 755 "$folder.part"
for package in "$apt"/cache/archives/*.deb; do
	dpkg-deb -x "$package" "$folder.part"
	rm "$package"
done
libraries=$(find "$folder.part" -type d -name '*-linux-*' -path '*/lib/*' | tr '\n' ':')
for program in "$folder.part"/usr/bin/* "$folder.part"/usr/sbin/*; do
	[ -x "$program" ] || continue
	lacks=$(LD_LIBRARY_PATH=$libraries ldd "$program" 2>/dev/null | sed -n 's/ => not found//p')
	[ -z "$lacks" ] || { echo "$program lacks" $lacks >&2; exit 1; }
done
touch "$folder.part/made"
mv "$folder.part" "$folder"
