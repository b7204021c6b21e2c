#!/bin/sh
# Installs the missing tools for building and checking, in addition to Go: a C compiler for
# cgo and one for the other architecture of a release; g++, python3 with NumPy, curl and
# systemd-analyze for tests of the shared library, the Python package, the server and its unit; promtool for its
# alert rules, and npm for a client of OpenAI's API and a checker of types in Python; qemu-user with a C library to run arm
# and arm64 programs; debootstrap for a bare root; for the firmware of Arm's Ethos-U models a
# compiler and a machine to run it on. As root, or with sudo.
set -eu

missing=""
promtool=""
command -v gcc >/dev/null || missing="$missing gcc libc6-dev"
command -v g++ >/dev/null || missing="$missing g++"
case $(uname -m) in
aarch64) other=x86_64 packages="gcc-x86-64-linux-gnu libc6-dev-amd64-cross" ;;
*) other=aarch64 packages="gcc-aarch64-linux-gnu libc6-dev-arm64-cross" ;;
esac
command -v $other-linux-gnu-gcc >/dev/null || missing="$missing $packages"
command -v debootstrap >/dev/null || missing="$missing debootstrap"
command -v qemu-aarch64 >/dev/null || command -v qemu-aarch64-static >/dev/null || missing="$missing qemu-user"
[ -e /usr/aarch64-linux-gnu/lib/ld-linux-aarch64.so.1 ] || missing="$missing libc6-arm64-cross"
command -v /usr/bin/python3 >/dev/null || missing="$missing python3"
/usr/bin/python3 -c 'import numpy' 2>/dev/null || missing="$missing python3-numpy"
command -v curl >/dev/null || missing="$missing curl"
command -v systemd-analyze >/dev/null || missing="$missing systemd"
command -v arm-none-eabi-gcc >/dev/null || missing="$missing gcc-arm-none-eabi"
command -v qemu-system-arm >/dev/null || missing="$missing qemu-system-arm"
command -v npm >/dev/null || missing="$missing npm"
command -v promtool >/dev/null || promtool=" promtool"
[ -n "$missing$promtool" ] || {
	echo "tools: all there"
	exit 0
}

as_root=""
if [ "$(id -u)" != 0 ]; then
	command -v sudo >/dev/null || {
		echo "tools: missing:$missing$promtool; install them as root" >&2
		exit 1
	}
	as_root=sudo
fi
echo "tools: installing$missing$promtool"
export DEBIAN_FRONTEND=noninteractive
$as_root apt-get -qq update
# shellcheck disable=SC2086 # a list of packages
[ -z "$missing" ] || $as_root apt-get -qq install --yes --no-install-recommends $missing
[ -n "$promtool" ] || exit 0
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
apt-get -qq -o APT::Sandbox::User=root download prometheus # to install it would start a server
dpkg-deb --fsys-tarfile prometheus_*.deb >package.tar
tar -xf package.tar ./usr/bin/promtool
$as_root install -m 755 usr/bin/promtool /usr/local/bin/promtool
