// Package isa (no compatibility promise) knows what an Ethos-U reads: the configuration
// word, the driver payload around a command stream (COP1, COP2), the stream's commands,
// registers and fields, and their text form. It runs nothing.
package isa
