package main

import (
	"cmp"
	"fmt"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
)

// release is the version that `make release` sets; any other build uses the version of its module.
var release string //nolint:gochecknoglobals // set by the linker

func version() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		Run: func(cmd *cobra.Command, _ []string) {
			_, _ = fmt.Fprintln(cmd.OutOrStdout(), "quernd", stamped())
		},
	}
}

// stamped returns the version of the program and of Go.
func stamped() string {
	build, _ := debug.ReadBuildInfo()

	return cmp.Or(release, strings.Trim(build.Main.Version, "()")) + " " + build.GoVersion
}
