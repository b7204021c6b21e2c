#!/bin/sh
# Builds a release in dist/: archives for the machines of docs/platforms.md, packages for
# Debian, wheels for Python, a software bill of materials, and SHA256SUMS of all. The same
# sources, tools and version give the same bytes.
#
#	scripts/dist.sh [VERSION]    v0.1.0; as git describes the commit where none is given
#
# DIST is the folder to write to. ONLY lists the programs to build, such as "linux-amd64
# linux-arm64-static"; libetrun, packages and wheels are made with linux-amd64 and linux-arm64.
#
# Needs: go, gcc and gcc-aarch64-linux-gnu for what has cgo, dpkg-deb.
set -eu
umask 022

cd "$(dirname "$0")/.."
version=${1:-$(git describe --tags --always --dirty 2>/dev/null || echo unknown)}
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 0)}
export SOURCE_DATE_EPOCH LC_ALL=C TZ=UTC
# Without cgo unless a program has it: the tools that run here then share what is compiled for the static programs.
export CGO_ENABLED=0 GOFLAGS="${GOFLAGS:-} -trimpath"
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

# go_build builds a package for a machine, with further arguments for go.
go_build() { # GOOS GOARCH CGO PACKAGE LDFLAGS FILE [ARGUMENT]
	cc=gcc
	[ "$2" = "$(go env GOHOSTARCH)" ] || cc=aarch64-linux-gnu-gcc
	[ "$(go env GOHOSTARCH) $2" != "arm64 amd64" ] || cc=x86_64-linux-gnu-gcc
	os=$1 arch=$2 cgo=$3 package=$4 flags=$5 file=$6
	shift 6
	GOOS=$os GOARCH=$arch GOARM=7 CGO_ENABLED=$cgo CC=$cc CGO_CFLAGS="-O2" CGO_LDFLAGS="-O2 -Wl,--build-id=none" \
		go build -buildvcs=false -ldflags "-s -w -buildid= -X main.release=$version $flags" "$@" -o "$file" "$package"
}

build() { # NAME GOOS GOARCH CGO TAGS
	tags=$5
	[ "$tags" != - ] || tags=
	go_build "$2" "$3" "$4" ./cmd/etrun "" "$work/$1/etrun" -tags "$tags"
	case $1 in linux-amd64 | linux-arm64) build_library "$1" "$3" ;; esac
}

soname=libetrun.so.2

# The library for C and its header, in folders that can be moved together.
build_library() { # NAME GOARCH
	go_build linux "$2" 1 ./cbindings/libetrun "-extldflags=-Wl,-soname,$soname" "$work/$1/c/lib/$soname" -buildmode=c-shared
	go_build linux "$2" 1 ./cbindings/libetrun "" "$work/$1/static/libetrun.a" -buildmode=c-archive
	rm "$work/$1"/c/lib/*.h "$work/$1"/static/*.h # cgo's, without const
	ln -s $soname "$work/$1/c/lib/libetrun.so"
	mkdir -p "$work/$1/c/include" "$work/$1/c/lib/pkgconfig"
	cp cbindings/libetrun/etrun.h "$work/$1/c/include"
	pkgconfig "\${pcfiledir}/../.." "\${prefix}/lib" >"$work/$1/c/lib/pkgconfig/etrun.pc"
}

pkgconfig() { # PREFIX LIBDIR
	cat <<PC
prefix=$1
libdir=$2
includedir=\${prefix}/include

Name: etrun
Description: run ExecuTorch programs
URL: https://github.com/etrun-go/etrun
Version: ${version#v}
Cflags: -I\${includedir}
Libs: -L\${libdir} -letrun
Libs.private: -lpthread -ldl
PC
}

# Files that go with every program.
documents() { # FOLDER
	cp README.md LICENSE NOTICE CHANGELOG.md "$1"
	cp -r docs "$1/docs"
	cp -r "$work/bom/licenses" "$1/licenses"
	mkdir -p "$1/man" "$1/completions" "$1/systemd"
	cp "$work"/man/* "$1/man"
	cp "$work"/completions/* "$1/completions"
	cp deploy/etrun.service deploy/etrun.socket "$1/systemd"
	examples "$1"
}

# The model of the quick starts, in the places that README.md names.
examples() { # FOLDER
	mkdir -p "$1/testdata" "$1/cbindings/libetrun/testdata"
	cp -r testdata/digits "$1/testdata"
	cp cbindings/libetrun/testdata/digits.c "$1/cbindings/libetrun/testdata"
}

# copyright writes the licenses of a package's contents.
copyright() {
	cat NOTICE LICENSE
	find "$work/bom/licenses" -type f | sort | while read -r file; do
		printf '\n\n%s\n\n' "${file#"$work/bom/licenses/"}"
		cat "$file"
	done
}

# debian makes a package of the files in a folder, which has no DEBIAN folder yet. The
# rest of its control file comes from standard input.
debian() { # PACKAGE ARCHITECTURE FOLDER
	number=$(echo "${version#v}" | sed 's/-\([0-9]*\)-g/+\1.g/; s/-/~/g')
	case $version in v[0-9]*.*) ;; *) number=0~$number ;; esac
	mkdir -p "$3/usr/share/doc/$1" "$3/DEBIAN"
	copyright >"$3/usr/share/doc/$1/copyright"
	gzip -9n <CHANGELOG.md >"$3/usr/share/doc/$1/changelog.gz"
	{
		cat <<CONTROL
Package: $1
Version: $number
Architecture: $2
Maintainer: The etrun authors <noreply@github.com>
Priority: optional
Installed-Size: $(du -sk "$3/usr" | cut -f1)
Homepage: https://github.com/etrun-go/etrun
CONTROL
		sed "s/VERSION/$number/"
	} >"$3/DEBIAN/control"
	find "$3" -type d -exec chmod 755 {} +
	find "$3" -newermt "@$SOURCE_DATE_EPOCH" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
	dpkg-deb --root-owner-group -Zxz --build "$3" "$dist/$1_${number}_$2.deb" >/dev/null
}

# A package of the program. It runs without libXNNPACK, on the engine in Go, and uses Debian's
# where it is of the version that the program knows, or what `etrun doctor --fix` has fetched.
package() { # NAME ARCHITECTURE
	root=$work/deb-$2
	mkdir -p "$root/usr/bin" "$root/usr/share/man/man1" "$root/usr/share/doc/etrun" \
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
	cp -r README.md docs "$work/bom/etrun.cdx.json" "$root/usr/share/doc/etrun/"
	examples "$root/usr/share/etrun"
	debian etrun "$2" "$root" <<CONTROL
Section: science
Depends: libc6 (>= 2.34)
Suggests: libxnnpack0.20241108
Description: run ExecuTorch programs
 A command-line tool and server for programs that PyTorch's ExecuTorch exports (.pte):
 portable operators, XNNPACK on the CPU, Ethos-U NPUs.
CONTROL
}

# Packages of the library: what programs need, and what compilers need.
library_packages() { # NAME ARCHITECTURE
	triplet=x86_64-linux-gnu
	[ "$2" != arm64 ] || triplet=aarch64-linux-gnu
	root=$work/libetrun2-$2 dev=$work/libetrun-dev-$2
	mkdir -p "$root/usr/lib/$triplet" "$dev/usr/lib/$triplet/pkgconfig" "$dev/usr/include" "$dev/usr/share/doc/libetrun-dev"
	install -m 644 "$work/$1/c/lib/$soname" "$root/usr/lib/$triplet/$soname"
	ln -s $soname "$dev/usr/lib/$triplet/libetrun.so"
	install -m 644 "$work/$1/static/libetrun.a" "$dev/usr/lib/$triplet/libetrun.a"
	install -m 644 cbindings/libetrun/etrun.h "$dev/usr/include/etrun.h"
	pkgconfig /usr "\${prefix}/lib/$triplet" >"$dev/usr/lib/$triplet/pkgconfig/etrun.pc"
	cp docs/c.md cbindings/libetrun/testdata/digits.c "$dev/usr/share/doc/libetrun-dev"
	debian libetrun2 "$2" "$root" <<CONTROL
Section: libs
Depends: libc6 (>= 2.34)
Suggests: libxnnpack0.20241108
Description: run ExecuTorch programs, shared library
 The library for C and other languages: portable operators, XNNPACK on the CPU,
 Ethos-U NPUs.
CONTROL
	debian libetrun-dev "$2" "$dev" <<CONTROL
Section: libdevel
Depends: libetrun2 (= VERSION)
Description: run ExecuTorch programs, header and static library
 The header of libetrun, its file for pkg-config, and the library for static linking.
CONTROL
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
cp cmd/etrun/internal/webpage/LICENSE.marked "$work/bom/licenses"
cp "$work/bom/etrun.cdx.json" "$dist/etrun-$version.cdx.json"

echo "$programs" | while read -r name _; do
	[ -n "$name" ] || continue
	folder=etrun-$version-$name
	mkdir -p "$work/tar/$folder"
	cp "$work/$name/etrun" "$work/tar/$folder/"
	[ ! -e "$work/$name/c" ] || cp -r "$work/$name/c/." "$work/tar/$folder/"
	documents "$work/tar/$folder"
	tar -C "$work/tar" --sort=name --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX --mtime="@$SOURCE_DATE_EPOCH" -c "$folder" |
		gzip -9n >"$dist/$folder.tar.gz"
done
for arch in amd64 arm64; do
	[ -e "$work/linux-$arch/etrun" ] || continue
	package "linux-$arch" $arch
	library_packages "linux-$arch" $arch
	go run ./scripts/wheel -version "$version" -library "$work/linux-$arch/c/lib/$soname" -licenses "$work/bom/licenses" -out "$dist" python/etrun
done
sums=$(cd "$dist" && find . -maxdepth 1 -type f -printf '%P\n' | sort | xargs sha256sum --)
echo "$sums" >"$dist/SHA256SUMS"
[ -n "${KEEP_WORK:-}" ] || rm -rf "$work"
say "$(wc -l <"$dist/SHA256SUMS") files in $dist"
