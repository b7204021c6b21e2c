//go:build race

package main

// shadow is the memory overhead factor of the race detector.
const shadow = 8
