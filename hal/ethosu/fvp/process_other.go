//go:build !linux

package fvp

import "os/exec"

const supported = false

func ownGroup(*exec.Cmd) {}

func awaitEnd(*exec.Cmd) {}

func killGroup(*exec.Cmd) {}
