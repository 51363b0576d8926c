package main

import (
	"cmp"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"quern.dev/quern/internal/app"
)

func doctor() *cobra.Command {
	var how app.Examination

	command := &cobra.Command{
		Use:   "doctor",
		Short: "Check the settings and the systems that they name, and show how to fix problems",
		Long: "Check the settings and the systems that they name: sandbox, database, object store, issuer, models, tracing store, clock.\n" +
			"Print one line for each, with what to do; exit with code 1 if something is wrong. Nothing is changed except probe objects, which are removed.\n" +
			"An access token in QUERN_DOCTOR_TOKEN or --token is checked too, and never printed.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			how.Token = cmp.Or(how.Token, os.Getenv("QUERN_DOCTOR_TOKEN"))

			// If the command is interrupted, it still removes the objects that it wrote.
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()

			return app.Doctor(ctx, os.Environ(), how, cmd.OutOrStdout())
		},
	}
	command.Flags().StringVar(&how.Token, "token", "", "access token of the issuer to check; QUERN_DOCTOR_TOKEN is safer, because process lists do not show it")
	command.Flags().BoolVar(&how.JSON, "json", false, "print the findings as JSON")

	return command
}
