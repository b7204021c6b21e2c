#!/bin/sh
# Installs the commit as `go install …/cmd/etrun@v0.1.0` would a published version, from a
# module proxy of files, and checks that the command knows its version, tells how to get
# libXNNPACK, and finds it where doctor --fix puts it.
set -eu

cd "$(dirname "$0")/.."
module=github.com/etrun-go/etrun
version=v0.1.0
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
die() {
	echo "goinstall: $*" >&2
	exit 1
}

files=$out/proxy/$module/@v
mkdir -p "$files" "$out/home"
echo $version >"$files/list"
echo "{\"Version\":\"$version\",\"Time\":\"2000-01-01T00:00:00Z\"}" >"$files/$version.info"
git show HEAD:go.mod >"$files/$version.mod"
git archive --format=zip --prefix="$module@$version/" -o "$files/$version.zip" HEAD -- . ':!tools' # a module of its own

# The other modules come from this machine's cache where they are there.
cache=$(go env GOMODCACHE)
proxies=file://$out/proxy,file://$cache/cache/download,$(go env GOPROXY)
(
	cd "$out"
	GOPROXY=$proxies GONOSUMDB=$module GOMODCACHE=$out/modules GOBIN=$out/bin GOFLAGS="-modcacherw -trimpath" go install $module/cmd/etrun@$version
)
etrun() { env -u ETRUN_XNNPACK -u XDG_DATA_HOME HOME="$out/home" "$out/bin/etrun" "$@"; }
etrun version
case $(etrun version) in "etrun $version "*) ;; *) die "want version $version" ;; esac
etrun testdata/digits/xnnpack.pte --input ones
etrun doctor >"$out/doctor"
grep XnnpackBackend "$out/doctor"
if grep -q 'XnnpackBackend *loaded, native' "$out/doctor"; then
	echo "goinstall: libXNNPACK is installed on this machine"
	exit 0
fi
grep -q 'doctor --fix downloads it' "$out/doctor" || die "doctor does not tell how to get libXNNPACK"
if [ -e lib/.complete ]; then
	mkdir -p "$out/home/.local/share/etrun"
	cp -r lib "$out/home/.local/share/etrun/lib"
	etrun doctor | grep 'XnnpackBackend *loaded, native' || die "libXNNPACK is not found in ~/.local/share/etrun/lib"
else
	echo "goinstall: NOT TESTED: finding libXNNPACK, as lib/ has none" >&2
fi
