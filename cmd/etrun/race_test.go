//go:build race

package main

// shadow is how many times as much memory the race detector takes.
const shadow = 8
