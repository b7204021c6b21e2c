#!/bin/sh
# Builds a release again, in another folder and with an empty build cache, and compares it
# with the one in dist/. It builds some of the programs, which takes minutes; all of them with
# ONLY=.
set -eu

cd "$(dirname "$0")/.."
[ -e dist/SHA256SUMS ] || {
	echo "reproduce: dist/SHA256SUMS: missing; make dist first" >&2
	exit 1
}
version=$(ls dist/*.cdx.json | sed 's|dist/etrun-\(.*\)\.cdx\.json|\1|')
other=$(mktemp -d)
trap 'rm -rf "$other"' EXIT
mkdir "$other/another folder" # of another length, too
git ls-files -z --cached --others --exclude-standard | tar --null --files-from - -c | tar -x -C "$other/another folder"

SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
# All modules of the release are in these, as its bill of materials lists them.
ONLY=${ONLY-linux-amd64 linux-arm64-nocgo}
export SOURCE_DATE_EPOCH ONLY
(
	umask 077
	GOCACHE=$other/cache DIST=$other/dist \
		sh "$other/another folder/scripts/dist.sh" "$version"
)
status=0
while read -r digest name; do
	first=$(grep -F "  $name" dist/SHA256SUMS | cut -d ' ' -f 1)
	if [ "$digest" = "$first" ]; then
		echo "reproduce: $name: identical"
	else
		echo "reproduce: $name: $digest, and ${first:-nothing} in dist/" >&2
		status=1
	fi
done <"$other/dist/SHA256SUMS"
exit $status
