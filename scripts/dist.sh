#!/bin/sh
# Builds a release in dist/: archives for the machines of docs/platforms.md, packages for
# Debian, a software bill of materials, and SHA256SUMS of all. The same sources, tools and
# version give the same bytes.
#
#	scripts/dist.sh [VERSION]    v0.1.0; as git describes the commit where none is given
#
# DIST is the folder to write to. ONLY lists the programs to build, such as "linux-amd64
# linux-arm64-static"; packages are made of linux-amd64 and linux-arm64.
#
# Needs: go, gcc and gcc-aarch64-linux-gnu for what has cgo, dpkg-deb.
set -eu
umask 022

cd "$(dirname "$0")/.."
version=${1:-$(git describe --tags --always --dirty 2>/dev/null || echo unknown)}
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 0)}
export SOURCE_DATE_EPOCH LC_ALL=C TZ=UTC
dist=${DIST:-$PWD/dist}
work=$dist/work
say() { echo "dist: $*"; }

# Every program: name, GOOS, GOARCH, CGO_ENABLED, tags.
programs="
linux-amd64         linux  amd64   1 -
linux-amd64-nocgo   linux  amd64   0 -
linux-amd64-static  linux  amd64   0 nodl
linux-arm64         linux  arm64   1 -
linux-arm64-nocgo   linux  arm64   0 -
linux-arm64-static  linux  arm64   0 nodl
linux-arm-static    linux  arm     0 nodl
linux-riscv64-static linux riscv64 0 nodl
darwin-arm64        darwin arm64   0 -
"
if [ -n "${ONLY:-}" ]; then
	programs=$(for name in $ONLY; do
		echo "$programs" | grep "^$name " || {
			say "$name: no such program" >&2
			exit 1
		}
	done)
fi

build() { # NAME GOOS GOARCH CGO TAGS
	tags=$5 cc=gcc
	[ "$tags" != - ] || tags=
	[ "$3" = "$(go env GOHOSTARCH)" ] || cc=aarch64-linux-gnu-gcc
	[ "$(go env GOHOSTARCH) $3" != "arm64 amd64" ] || cc=x86_64-linux-gnu-gcc
	GOOS=$2 GOARCH=$3 GOARM=7 CGO_ENABLED=$4 CC=$cc CGO_CFLAGS="-O2" CGO_LDFLAGS="-O2 -Wl,--build-id=none" \
		go build -trimpath -buildvcs=false -tags "$tags" -ldflags "-s -w -buildid= -X main.release=$version" \
		-o "$work/$1/etrun" ./cmd/etrun
}

# Files that go with every program.
documents() { # FOLDER
	cp README.md LICENSE CHANGELOG.md "$1"
	cp -r docs "$1/docs"
	cp -r "$work/bom/licenses" "$1/licenses"
	mkdir -p "$1/man" "$1/completions" "$1/systemd"
	cp "$work"/man/* "$1/man"
	cp "$work"/completions/* "$1/completions"
	cp deploy/etrun.service deploy/etrun.socket "$1/systemd"
}

# A package of the program. It runs without libXNNPACK, on the engine in Go, and uses Debian's
# where it is of the version that the program knows, or what `etrun doctor --fix` has fetched.
package() { # NAME ARCHITECTURE
	root=$work/deb-$2
	mkdir -p "$root/DEBIAN" "$root/usr/bin" "$root/usr/share/man/man1" "$root/usr/share/doc/etrun" \
		"$root/usr/share/bash-completion/completions" "$root/usr/share/zsh/vendor-completions" \
		"$root/usr/share/fish/vendor_completions.d" "$root/usr/lib/systemd/system"
	install -m 755 "$work/$1/etrun" "$root/usr/bin/etrun"
	for page in "$work"/man/*; do
		gzip -9n <"$page" >"$root/usr/share/man/man1/$(basename "$page").gz"
	done
	install -m 644 "$work/completions/etrun.bash" "$root/usr/share/bash-completion/completions/etrun"
	install -m 644 "$work/completions/_etrun" "$root/usr/share/zsh/vendor-completions/_etrun"
	install -m 644 "$work/completions/etrun.fish" "$root/usr/share/fish/vendor_completions.d/etrun.fish"
	install -m 644 deploy/etrun.service deploy/etrun.socket "$root/usr/lib/systemd/system"
	{
		cat LICENSE
		find "$work/bom/licenses" -type f | sort | while read -r file; do
			printf '\n\n%s\n\n' "${file#"$work/bom/licenses/"}"
			cat "$file"
		done
	} >"$root/usr/share/doc/etrun/copyright"
	gzip -9n <CHANGELOG.md >"$root/usr/share/doc/etrun/changelog.gz"
	cp -r README.md docs "$work/bom/etrun.cdx.json" "$root/usr/share/doc/etrun/"
	number=$(echo "${version#v}" | sed 's/-\([0-9]*\)-g/+\1.g/; s/-/~/g')
	case $version in v[0-9]*.*) ;; *) number=0~$number ;; esac
	cat >"$root/DEBIAN/control" <<CONTROL
Package: etrun
Version: $number
Architecture: $2
Maintainer: The etrun authors <noreply@github.com>
Section: science
Priority: optional
Installed-Size: $(du -sk "$root/usr" | cut -f1)
Depends: libc6 (>= 2.34)
Suggests: libxnnpack0.20241108
Homepage: https://github.com/etrun-go/etrun
Description: run ExecuTorch programs
 A command-line tool and server for programs that PyTorch's ExecuTorch exports (.pte):
 portable operators, XNNPACK on the CPU, Ethos-U NPUs.
CONTROL
	find "$root" -type d -exec chmod 755 {} +
	find "$root" -newermt "@$SOURCE_DATE_EPOCH" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
	dpkg-deb --root-owner-group -Zxz --build "$root" "$dist/etrun_${number}_$2.deb" >/dev/null
}

rm -rf "$dist"
mkdir -p "$work/man" "$work/completions" "$work/bom"
say "version $version"
echo "$programs" | while read -r name os arch cgo tags; do
	[ -n "$name" ] || continue
	say "$name"
	build "$name" "$os" "$arch" "$cgo" "$tags"
done

say "manual pages, completions, bill of materials"
go run -tags manpages,nodl -ldflags "-X main.release=$version" ./cmd/etrun __manpages "$work/man"
own=$work/own
go build -tags nodl -o "$own" ./cmd/etrun
"$own" completion bash >"$work/completions/etrun.bash"
"$own" completion zsh >"$work/completions/_etrun"
"$own" completion fish >"$work/completions/etrun.fish"
# shellcheck disable=SC2046 # a list of programs
(cd tools && go run ./bom -version "$version" -out "$work/bom" $(find "$work"/*/etrun -type f | sort))
cp "$work/bom/etrun.cdx.json" "$dist/etrun-$version.cdx.json"

echo "$programs" | while read -r name _; do
	[ -n "$name" ] || continue
	folder=etrun-$version-$name
	mkdir -p "$work/tar/$folder"
	cp "$work/$name/etrun" "$work/tar/$folder/"
	documents "$work/tar/$folder"
	tar -C "$work/tar" --sort=name --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX --mtime="@$SOURCE_DATE_EPOCH" -c "$folder" |
		gzip -9n >"$dist/$folder.tar.gz"
done
for arch in amd64 arm64; do
	[ ! -e "$work/linux-$arch/etrun" ] || package "linux-$arch" $arch
done
sums=$(cd "$dist" && find . -maxdepth 1 -type f -printf '%P\n' | sort | xargs sha256sum --)
echo "$sums" >"$dist/SHA256SUMS"
[ -n "${KEEP_WORK:-}" ] || rm -rf "$work"
say "$(wc -l <"$dist/SHA256SUMS") files in $dist"
