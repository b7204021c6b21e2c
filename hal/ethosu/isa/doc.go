// Package isa (no compatibility promise) decodes the input of an Ethos-U: the configuration word,
// the driver payload around a command stream (COP1, COP2), and the stream's commands, registers and
// fields, with their text form. It executes nothing.
package isa
