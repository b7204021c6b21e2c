#!/bin/sh
# Puts Debian's libXNNPACK, with its thread pool and cpuinfo, into lib/ of the checkout.
#
# The packages come through apt and its signature check, with sources, lists and
# cache of our own: the system's libraries, lists and settings stay as they are, and
# no root is needed. The mirror is the machine's own, only the suite differs. Where
# lib/ is complete nothing is done; remove lib/ to fetch again.
#
# etrun doctor --fix runs this script for a folder of its own, ETRUN_LIB, with a program in
# the place of go, ETRUN_RETARGET.
#
# Needs: apt, dpkg-deb and go, on Debian 12 or later, amd64 or arm64.
set -eu

if [ -n "${ETRUN_LIB:-}" ]; then
	lib=$ETRUN_LIB
	deps=$lib/.deps
else
	cd "$(dirname "$0")/.."
	lib=$PWD/lib
	deps=$PWD/.deps
fi
retarget=${ETRUN_RETARGET:-go run ./scripts/retarget}
xnnpack=libXNNPACK.so.0.20241108
keyring=/usr/share/keyrings/debian-archive-keyring.gpg

say() { echo "deps: $*"; }
die() {
	echo "deps: $*" >&2
	exit 1
}

[ "$(cat "$lib/.complete" 2>/dev/null)" = "$xnnpack" ] && {
	say "$xnnpack is in lib/"
	exit 0
}

for tool in apt-get dpkg-deb "${retarget%% *}"; do
	command -v "$tool" >/dev/null || die "$tool: missing"
done
[ -r "$keyring" ] || die "$keyring: missing (package debian-archive-keyring)"

# The mirror: the machine's own archive of a whole Debian suite, best one named debian.
mirror=$(apt-get indextargets --format '$(COMPONENT) $(RELEASE) $(REPO_URI)' 'Created-By: Packages' |
	awk '$1 == "main" && $2 ~ /^(bookworm|trixie|forky|sid|oldstable|stable|testing|unstable)$/ {
		if (first == "" || first !~ /\/debian\/?$/ && $3 ~ /\/debian\/?$/) first = $3
	} END { print first }')
[ -n "$mirror" ] || die "no Debian archive among this machine's apt sources"

rm -rf "$deps"
mkdir -p "$deps/etc" "$deps/state/lists/partial" "$deps/cache/archives/partial" "$deps/debs" "$deps/root"
for suite in trixie forky; do
	echo "deb [signed-by=$keyring] $mirror $suite main"
done >"$deps/etc/sources.list"

apt_private() {
	apt-get -qq \
		-o Dir::Etc::SourceList="$deps/etc/sources.list" -o Dir::Etc::SourceParts=/dev/null \
		-o Dir::Etc::Preferences=/dev/null -o Dir::Etc::PreferencesParts=/dev/null \
		-o Dir::State="$deps/state" -o Dir::State::Status=/dev/null -o Dir::Cache="$deps/cache" \
		-o APT::Sandbox::User="$(id -un)" -o Acquire::Languages=none -o Acquire::Retries=3 \
		-o Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false \
		-o Acquire::IndexTargets::deb::Contents-deb::DefaultEnabled=false \
		-o APT::Update::Error-Mode=any "$@"
}

# The pool of trixie (2024-06) stalls for milliseconds on a busy core; later ones do not.
say "fetching from the machine's Debian mirror"
apt_private update
(cd "$deps/debs" && apt_private download libxnnpack0.20241108/trixie libcpuinfo0/trixie libpthreadpool0/forky)
for deb in "$deps"/debs/*.deb; do
	dpkg-deb -x "$deb" "$deps/root"
done

mkdir -p "$lib"
for name in "$xnnpack" libcpuinfo.so.0 libpthreadpool.so.0; do
	found=$(find "$deps/root" -name "$name" | head -n 1)
	[ -n "$found" ] || die "$name: not in the packages"
	install -m 644 "$found" "$lib/$name"
done

glibc=$(getconf GNU_LIBC_VERSION | awk '{ print $2 }')
if dpkg --compare-versions "$glibc" lt 2.38; then
	say "glibc $glibc: retargeting the one symbol that asks for 2.38"
	$retarget "$lib/$xnnpack"
fi

rm -rf "$deps"
echo "$xnnpack" >"$lib/.complete"
say "$xnnpack is in lib/"
