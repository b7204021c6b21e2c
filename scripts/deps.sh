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

# What is fetched: package, suite, version, digests (SHA-256) for amd64 and for arm64. The
# pool of trixie (2024-06), Debian 13's own, stalls for milliseconds on a busy core; forky's
# does not.
pins="
libxnnpack0.20241108 trixie 0.0~git20241108.4ea82e5-2   da884404596e1c64482d7063bd866f7defd7ba06bac39c4ed4c7e7b4e3ae6b4d b41ecc82ede57136e60bb309c143dc557e9a80f356f910da4220059ad8390110
libcpuinfo0          trixie 0.0~git20250327.39ea79a-1   e0cc014fe6e6ffb5c9a353ffa5af4c118e0010de419d8454c42256f9d2a52b21 4a74413171dff27c486011b5d7e7aa971fb7cb331895ab9727169a8b9efa2604
libpthreadpool0      forky  0.0~git20251020.0e6ca13-1.1 377f2a2f541a8965e98d3eea14dd56b4474e2dc92d530cff00ed9d8548f19566 2ea230752f31e9c0c9c2cc8177c5d3e7408e7a8a47d6a78931763600fe522301
"
keyring=/usr/share/keyrings/debian-archive-keyring.gpg

say() { echo "deps: $*"; }
die() {
	echo "deps: $*" >&2
	exit 1
}

there=$(cat "$lib/.complete" 2>/dev/null || true)
case $there in
"$xnnpack" | libXNNPACK.so.0.20260727) # the second one is of scripts/xnnpack.sh
	say "$there is in lib/"
	exit 0
	;;
esac

for tool in apt-get dpkg-deb "${retarget%% *}"; do
	command -v "$tool" >/dev/null || die "$tool: missing"
done
# The mirror: the machine's own archive of a whole Debian suite, best one named debian.
mirror=$(apt-get indextargets --format '$(COMPONENT) $(RELEASE) $(REPO_URI)' 'Created-By: Packages' |
	awk '$1 == "main" && $2 ~ /^(bookworm|trixie|forky|sid|oldstable|stable|testing|unstable)$/ {
		if (first == "" || first !~ /\/debian\/?$/ && $3 ~ /\/debian\/?$/) first = $3
	} END { print first }')
[ -n "$mirror" ] || die "no Debian archive among this machine's apt sources to fetch libXNNPACK from (other ways: docs/install.md)"
[ -r "$keyring" ] || die "$keyring: missing (package debian-archive-keyring)"

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

# fetch takes the version of the table, whose digest must be the recorded one, or where the
# suite has moved on what it has now, by apt's signatures alone.
fetch() { # PACKAGE SUITE VERSION AMD64 ARM64
	if (cd "$deps/debs" && apt_private download "$1=$3" 2>/dev/null); then
		digest=$4
		[ "$(dpkg --print-architecture)" = amd64 ] || digest=$5
		got=$(sha256sum "$deps/debs/$1"_*.deb | cut -d ' ' -f 1)
		[ "$got" = "$digest" ] || die "$1 $3: digest $got, want $digest"
		return
	fi
	say "$1 $3 is gone from $2, which is a moving suite: taking the version that it has now, whose digest is not recorded"
	(cd "$deps/debs" && apt_private download "$1/$2") || die "$1: not in $2; nothing else has it"
	say "took $(cd "$deps/debs" && echo "$1"_*.deb)"
}

say "fetching from the machine's Debian mirror"
apt_private update
echo "$pins" | while read -r package suite version amd64 arm64; do
	[ -z "$package" ] || fetch "$package" "$suite" "$version" "$amd64" "$arm64"
done
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
