package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"quern.dev/quern/api"
)

// outFlags are the flags of commands that write a result of any size to a file.
type outFlags struct{ path, format string }

func (o *outFlags) add(command *cobra.Command) {
	command.Flags().StringVar(&o.path, "out", "", "write all rows to this file, however many; a worker of the server runs the statement")
	command.Flags().StringVarP(&o.format, "format", "f", "", "of the file: parquet, arrow, csv or ndjson (default: from the name of the file, or parquet)")
}

// formatOf returns the format of the file.
func (o *outFlags) formatOf(command string) (api.StatementFormat, error) {
	format := api.StatementFormat(o.format)
	if o.format == "" {
		format = api.StatementFormatParquet

		switch ending := filepath.Ext(o.path); ending {
		case ".csv", ".ndjson", ".arrow":
			format = api.StatementFormat(ending[1:])
		case ".arrows":
			format = api.StatementFormatArrow
		}
	}

	if !format.Valid() {
		return "", usageError{fmt.Errorf("--format must be parquet, arrow, csv or ndjson, not %q", o.format), command}
	}

	return format, nil
}

// save runs a statement as a long statement and writes its result to a file. If an earlier command for the same statement and
// file was interrupted, save goes on with it.
func (p *program) save(ctx context.Context, client *api.Client, request api.QueryRequest, out outFlags, command string) error {
	format, err := out.formatOf(command)
	if err != nil {
		return err
	}

	if request.Format = &format; p.escape {
		request.EscapeFormulas = &p.escape
	}

	saver, bar := p.saver(client, out.path)
	defer bar.clear()

	purpose, err := purposeOf(request)
	if err != nil {
		return err
	}

	id := saver.Pending(purpose)
	if id == uuid.Nil || !isThere(ctx, client, id) {
		made, err := api.Read[api.Statement](client.RunQuery(ctx, &api.RunQueryParams{Prefer: new("respond-async")}, request))
		if err != nil {
			return err
		}

		id = made.ID
		if err := saver.Begin(id, purpose); err != nil {
			return err
		}
	}

	return p.saveResult(ctx, client, saver, bar, id)
}

func (p *program) saver(client *api.Client, path string) (*api.Saver, *progress) {
	bar := &progress{to: p.err}

	return &api.Saver{Client: client, Path: path, Progress: func(done, total int64) { bar.bar(filepath.Base(path), done, total, done) }}, bar
}

// purposeOf returns what a file is written for, so that another statement does not go on with it.
func purposeOf(request api.QueryRequest) (string, error) {
	content, err := json.Marshal(request)
	sum := sha256.Sum256(content)

	return hex.EncodeToString(sum[:]), err
}

// isThere reports whether a statement can still have a result.
func isThere(ctx context.Context, client *api.Client, id uuid.UUID) bool {
	found, err := api.Read[api.Statement](client.GetStatement(ctx, id))

	return err == nil && found.Status != api.StatementStatusFailed && found.Status != api.StatementStatusCancelled
}

// saveResult waits for a long statement, writes its result to the file, and deletes it.
func (p *program) saveResult(ctx context.Context, client *api.Client, saver *api.Saver, bar *progress, id uuid.UUID) error {
	done, err := p.awaitStatement(ctx, client, bar, id)
	if err == nil {
		var written int64
		if written, err = saver.Save(ctx, id); err == nil {
			bar.clear()
			// The file is there, so a statement that cannot be deleted only stays until it expires.
			_, _ = api.Check(client.DeleteStatement(ctx, id))

			return p.done("Wrote %s, %s, to %s.", counted(done.Progress.Rows, "row", "rows"), size(written), saver.Path)
		}
	}

	if err != nil && done.Status != "" && done.Status != api.StatementStatusCompleted && ctx.Err() == nil {
		return errors.Join(err, saver.Forget()) // it has no result to go on with
	}

	if ctx.Err() != nil {
		bar.clear()
		p.err.printf("The statement goes on. Run the same command again to get its result, or cancel it: quern statement cancel %s\n", id)
	}

	return err
}

const mostWait = 2 * time.Second

// awaitStatement waits until a long statement has ended.
func (p *program) awaitStatement(ctx context.Context, client *api.Client, bar *progress, id uuid.UUID) (api.Statement, error) {
	for wait := 100 * time.Millisecond; ; wait = min(2*wait, mostWait) {
		found, err := api.Read[api.Statement](client.GetStatement(ctx, id))
		if err != nil {
			return found, err
		}

		switch found.Status {
		case api.StatementStatusCompleted:
			return found, nil
		case api.StatementStatusFailed:
			return found, statementFailure(found)
		case api.StatementStatusCancelled:
			return found, errors.New("the statement was cancelled")
		case api.StatementStatusQueued:
			bar.say("Waiting for a worker of the server")
		case api.StatementStatusRunning:
			text := fmt.Sprintf("Computing: %.0f%%", 100*found.Progress.Part)
			if found.Progress.Rows > 0 {
				text = fmt.Sprintf("Writing to the object store: %s, %s", counted(found.Progress.Rows, "row", "rows"), size(found.Progress.Bytes))
			}

			bar.say(text)
		}

		select {
		case <-ctx.Done():
			return found, ctx.Err()
		case <-time.After(wait):
		}
	}
}

// statementFailure returns the error of a failed statement as if the request had failed.
func statementFailure(s api.Statement) error {
	failure := &api.Error{Status: http.StatusUnprocessableEntity}
	if s.Error != nil {
		failure.ErrorCode, failure.Message = api.ErrorCode(s.Error.Code), s.Error.Message
		failure.SubErrors = &s.Error.SubErrors
	}

	return failure
}
