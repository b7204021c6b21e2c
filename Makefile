.PHONY: deps

# Debian's libXNNPACK in lib/; without it etrun runs on its reference engine.
deps:
	scripts/deps.sh
