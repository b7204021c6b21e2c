#!/bin/sh
# Installs the packages of dist/ into a bare root, runs them there, and removes them again:
# nothing may stay. Then a program in C is compiled with the library's package for compilers,
# and the wheel runs with Debian's NumPy. The root is made by debootstrap, of the suite and the
# archive of this machine, or of another suite: SUITE=trixie. systemd-analyze of the suite verifies
# the units. DIST is the folder of the packages.
#
# Needs: root or sudo, debootstrap, the archive, and permission to chroot, which containers
# give by default. Where mounts are not permitted, the package is tested without /proc. There
# is no way to do without the rest: the step fails.
set -eu

cd "$(dirname "$0")/.."
if [ "$(id -u)" != 0 ]; then
	exec sudo PATH="$PATH" "$0" "$@"
fi
die() {
	echo "deb: $*" >&2
	exit 1
}
arch=$(dpkg --print-architecture)
dist=${DIST:-dist}
package=$(ls "$dist"/etrun_*_"$arch".deb) || die "no package for $arch in $dist/; make dist first"
release=$(basename "$dist"/etrun-*.cdx.json .cdx.json)
archive=$(apt-get indextargets --format '$(COMPONENT) $(RELEASE) $(REPO_URI)' 'Created-By: Packages' |
	awk '$1 == "main" && $2 !~ /-/ && $3 ~ /\/(debian|ubuntu)\/?$/ { print $2, $3; exit }')
[ -n "$archive" ] || die "no archive of a whole suite among this machine's apt sources; there is nothing to make a root of"

archive="${SUITE:-${archive% *}} ${archive#* }"

root=$(mktemp -d)
trap 'rm -rf --one-file-system "$root"' EXIT
echo "deb: debootstrap $archive"
# shellcheck disable=SC2086 # suite and archive
debootstrap --variant=minbase ${archive% *} "$root" "${archive#* }" >"$root.log" 2>&1 || {
	tail -n 20 "$root.log" >&2
	die "debootstrap failed"
}
rm -f "$root.log"
mkdir "$root/test"
cp "$package" "$root/test/etrun.deb"
cp "$dist"/libetrun2_*_"$arch".deb "$root/test/libetrun2.deb"
cp "$dist"/libetrun-dev_*_"$arch".deb "$root/test/libetrun-dev.deb"
cp "$dist"/etrun-*_"$(uname -m)".whl "$root/test"
cp testdata/digits/images.f32.bin cbindings/libetrun/testdata/digits.c "$root/test"
cp testdata/digits/portable.pte testdata/digits/xnnpack.pte testdata/pte/bundle.bpte "$root/test"
cat >"$root/test/run" <<'RUN'
set -eu
mount -t proc proc /proc 2>/dev/null || echo "deb: no permission to mount /proc; going on without"
files() { find / -xdev \( -path /proc -o -path /sys -o -path /run -o -path /test -o -path /tmp -o -path /var/cache -o -path /var/log -o -path /var/lib/apt -o -path /var/lib/dpkg \) -prune -o -print | sort; }
export DEBIAN_FRONTEND=noninteractive
# It stays, as the list of files begins with it.
apt-get -qq install --yes --no-install-recommends systemd >/test/log 2>&1 || { cat /test/log; exit 1; }
files >/test/before
apt-get -qq install --yes --no-install-recommends /test/etrun.deb >/test/log 2>&1 || { cat /test/log; exit 1; }
cd /test
etrun version
case $(etrun version) in "$1 "*) true ;; *) false ;; esac || { echo "deb: etrun version: want $1"; exit 1; }
[ "$(etrun --version)" = "$(etrun version)" ] || { echo "deb: etrun --version differs from etrun version"; exit 1; }
etrun check portable.pte
etrun verify bundle.bpte
etrun portable.pte --input ones
etrun xnnpack.pte --input ones
etrun doctor
etrun eval /usr/share/etrun/testdata/digits/xnnpack.pte /usr/share/etrun/testdata/digits/samples
for page in etrun etrun-run etrun-serve; do gzip -dc /usr/share/man/man1/$page.1.gz | grep -q '^\.TH'; done
bash -n /usr/share/bash-completion/completions/etrun
test -s /usr/share/zsh/vendor-completions/_etrun -a -s /usr/share/fish/vendor_completions.d/etrun.fish
test -s /usr/share/doc/etrun/docs/install.md -a -s /usr/share/doc/etrun/copyright -a -s /usr/share/doc/etrun/etrun.cdx.json
test -s /usr/lib/systemd/system/etrun.service -a -s /usr/lib/systemd/system/etrun.socket
for unit in etrun.service etrun.socket; do
	systemd-analyze verify --man=no /usr/lib/systemd/system/$unit >/test/log 2>&1 || { cat /test/log; exit 1; }
	if grep -q "$unit" /test/log; then
		cat /test/log
		exit 1
	fi
done
echo "deb: systemd $(systemd-analyze --version | awk 'NR == 1 { print $2 }') accepts the units"
apt-get -qq purge --yes etrun >/test/log 2>&1 || { cat /test/log; exit 1; }
files >/test/after
diff /test/before /test/after || { echo "deb: files stayed after purge"; exit 1; }
[ -z "$(dpkg-query --show etrun 2>/dev/null)" ] || { echo "deb: dpkg still knows the package"; exit 1; }
# The library for C, and Python.
apt-get -qq install --yes --no-install-recommends /test/libetrun2.deb /test/libetrun-dev.deb gcc libc6-dev pkg-config python3-numpy >/test/log 2>&1 ||
	{ cat /test/log; exit 1; }
# shellcheck disable=SC2046 # flags
gcc -Wall -Werror -o digits digits.c $(pkg-config --cflags --libs etrun)
./digits xnnpack.pte images.f32.bin scores.bin
gcc -Wall -Werror -o static digits.c "$(pkg-config --variable=libdir etrun)/libetrun.a" -lpthread -ldl
./static xnnpack.pte images.f32.bin scores.static
cmp scores.bin scores.static
python3 -m zipfile -e etrun-*.whl site
cat >wheel.py <<'PY'
import etrun, numpy
images = numpy.fromfile("images.f32.bin", "f4").reshape(-1, 1, 1, 8, 8)
model = etrun.load("xnnpack.pte", threads=1)
scores = numpy.concatenate([model(image) for image in images])
assert etrun.__file__.startswith("/test/site"), etrun.__file__
assert scores.tobytes() == open("scores.bin", "rb").read(), "Python and C have other scores"
print("etrun", etrun.__version__, "runs in Python with NumPy", numpy.__version__)
PY
PYTHONPATH=site python3 wheel.py
apt-get -qq purge --yes libetrun-dev libetrun2 >/test/log 2>&1 || { cat /test/log; exit 1; }
[ -z "$(find /usr/lib /usr/include /usr/share/doc -name '*etrun*')" ] || { echo "deb: files of libetrun stayed after purge"; exit 1; }
RUN
echo "deb: installing, running and removing $package"
unshare=""
unshare --mount true 2>/dev/null && unshare="unshare --mount"
$unshare chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root bash /test/run "etrun ${release#etrun-}"
echo "deb: ok"
