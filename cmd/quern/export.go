package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"quern.dev/quern/api"
)

const arrow = "arrow"

func (p *program) exportCommand() *cobra.Command {
	var format, to string

	command := p.onDataset("export DATASET", "Write a whole dataset to a file or to standard output", 1, func(ctx context.Context, client *api.Client, at name, _ []string) error {
		if format == "" {
			format = "csv"
			switch ending := filepath.Ext(to); ending {
			case ".ndjson", ".parquet", ".arrow":
				format = ending[1:]
			case ".arrows":
				format = arrow
			}
		}

		if !slices.Contains([]string{"csv", "ndjson", "parquet", arrow}, format) {
			return usageError{fmt.Errorf("--format must be csv, ndjson, parquet or arrow, not %q", format), "quern export"}
		}

		if to == "" && (format == "parquet" || format == arrow) && p.out.screen {
			return usageError{errors.New("a Parquet or Arrow file cannot be shown on a terminal: use --to FILE"), "quern export"}
		}

		body, err := p.exported(ctx, client, at, format)
		if err != nil {
			return err
		}
		defer func() { _ = body.Close() }()

		if to == "" {
			_, err := io.Copy(p.out.file, body)

			return err
		}

		written, err := save(to, body)
		if err != nil {
			return err
		}

		p.err.printf("Wrote %s to %s.\n", size(written), to)

		return nil
	})
	command.Flags().StringVarP(&format, "format", "f", "", "csv, ndjson, parquet or arrow (default: from the name in --to, or csv)")
	command.Flags().StringVar(&to, "to", "", "file to write (default standard output)")

	return command
}

// exported waits until a large export is finished, and opens it.
func (p *program) exported(ctx context.Context, client *api.Client, at name, format string) (io.ReadCloser, error) {
	for told := false; ; told = true {
		// A redirect leads to the object store; net/http does not send the token there.
		params := &api.ExportDatasetParams{Format: given[api.ExportDatasetParamsFormat](format)}
		if p.escape {
			params.EscapeFormulas = &p.escape
		}

		response, err := api.Check(client.ExportDataset(ctx, at.owner, at.namespace, at.dataset, params))
		if err != nil {
			return nil, err
		}

		if response.StatusCode != http.StatusAccepted {
			return response.Body, nil
		}

		_ = response.Body.Close()

		if !told && p.err.screen {
			p.err.printf("%s\n", p.err.style(dim, "The server is writing the file. This can take a while."))
		}

		seconds, _ := strconv.Atoi(response.Header.Get("Retry-After"))

		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(time.Duration(max(1, seconds)) * time.Second):
		}
	}
}

// save writes a file completely or not at all.
func save(path string, body io.Reader) (written int64, err error) {
	file, err := os.CreateTemp(filepath.Dir(path), ".quern-*")
	if err != nil {
		return 0, err
	}

	written, err = io.Copy(file, body)
	if err = errors.Join(err, file.Close()); err == nil {
		err = os.Rename(file.Name(), path)
	}

	if err != nil {
		_ = os.Remove(file.Name())
	}

	return written, err
}
