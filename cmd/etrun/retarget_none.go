//go:build nodl || !linux || !(amd64 || arm64)

package main

import (
	"errors"

	"github.com/spf13/cobra"
)

// newRetarget returns a command that fails: builds without dynamic loading need no library.
func newRetarget(*app) *cobra.Command {
	return &cobra.Command{Use: retargetCommand + " FILE", Hidden: true, Args: cobra.ExactArgs(1),
		RunE: func(*cobra.Command, []string) error { return errors.New(staticBuild) }}
}
