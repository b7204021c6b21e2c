#!/bin/sh
# Puts the packages of npm for tests (clients of OpenAI's and Ollama's API, pyright), as pinned by a lock file, into .deps/npm of the
# checkout. Scripts of packages are not run.
#
# Needs: npm, and its registry.
set -eu

cd "$(dirname "$0")/.."
from=serve/openai/testdata/npm
to=.deps/npm
if cmp -s "$from/package-lock.json" "$to/package-lock.json" && [ -e "$to/node_modules/ollama/package.json" ]; then
	echo "npm: the packages are in $to"
	exit 0
fi
new=$to.new # not in its place before it is complete
rm -rf "$to" "$new"
mkdir -p "$new"
cp "$from/package.json" "$from/package-lock.json" "$new"
(cd "$new" && npm ci --ignore-scripts --no-audit --no-fund)
mv "$new" "$to"
