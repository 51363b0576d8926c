package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"quern.dev/quern/internal/build"
)

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
	info := build.Read()

	return info.Version + " " + info.Go
}
