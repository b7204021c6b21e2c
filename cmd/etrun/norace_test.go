//go:build !race

package main

const shadow = 1
