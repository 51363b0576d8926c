package app

import (
	"fmt"
	"io"
	"log/slog"
	"os"

	"quern.dev/quern/internal/config"
)

// Doctor looks at what the service needs of this machine: one line each.
func Doctor(environ []string, out io.Writer) error {
	c, err := config.Read[config.Doctor](lookup(environ))
	if err != nil {
		return err
	}

	// A folder of its own: the service may be running.
	if c.Sandbox.Dir, err = os.MkdirTemp("", "quern-doctor-"); err != nil {
		return err
	}
	defer os.RemoveAll(c.Sandbox.Dir)

	c.Sandbox.Ready = 1

	opened, err := openSandbox(c.Sandbox, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	defer opened.Close()

	_, err = fmt.Fprintf(out, "sandbox\t%s\n", opened.Tier())

	return err
}
