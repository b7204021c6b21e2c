//go:build !nodl && linux && (amd64 || arm64)

package main

import (
	"github.com/spf13/cobra"

	"github.com/etrun-go/etrun/cbindings/xnn/retarget"
)

// newRetarget is hidden: the script of doctor --fix runs it.
func newRetarget(a *app) *cobra.Command {
	return &cobra.Command{Use: retargetCommand + " FILE", Hidden: true, Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error { return retarget.File(args[0], a.Notes) }}
}
