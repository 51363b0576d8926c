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
		Short: "Look at the settings and at what they lead to, and say what to mend",
		Long: "Look at the settings and at what they lead to: sandbox, database, object store, issuer, models, tracing store, clock.\n" +
			"One line for each, with what to do about it; exit code 1 if something is wrong. Nothing is changed but probe objects, which are removed.\n" +
			"An access token in QUERN_DOCTOR_TOKEN or after --token is looked at too, and never printed.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			how.Token = cmp.Or(how.Token, os.Getenv("QUERN_DOCTOR_TOKEN"))

			// Ended early it still removes what it wrote.
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()

			return app.Doctor(ctx, os.Environ(), how, cmd.OutOrStdout())
		},
	}
	command.Flags().StringVar(&how.Token, "token", "", "an access token of the issuer to look at; better in QUERN_DOCTOR_TOKEN, which no list of processes shows")
	command.Flags().BoolVar(&how.JSON, "json", false, "the findings as JSON")

	return command
}
