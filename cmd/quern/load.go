package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"quern.dev/quern/api"
)

// loading loads an uploaded session into a dataset.
type loading struct {
	*program

	client  *api.Client
	at      name
	wish    *uploadWish
	session uuid.UUID
	first   bool // the first of several sessions
	creates bool // this load creates the dataset
	begun   bool // the service was asked to load the files

	declined bool // the user did not accept the doubts
}

// run shows a preview of the files and loads them.
func (l *loading) run(ctx context.Context, files int) error {
	if l.first {
		tried, err := l.ingest(ctx, true)
		if err != nil {
			return err
		}

		if err := l.preview(tried); err != nil || l.wish.dryRun {
			return err
		}
	}

	l.begun = true

	done, err := l.ingest(ctx, false)
	if err == nil && done.Status == api.IngestionStatusWaiting {
		done, err = l.settle(ctx, done)
	}

	if err != nil {
		return err
	}

	return l.loaded(done, files)
}

// left returns what happens to the load after the user interrupted the command.
func (l *loading) left() string {
	if l.begun {
		return "Stopped waiting. The server continues to load the files; give the same command again to see the result."
	}

	return "Stopped. The files are uploaded but not loaded; give the same command again to continue."
}

// ingest requests an ingestion and waits for its end. The idempotency key is derived from the request, so that the same
// command finds the ingestion that an earlier one began. If that ingestion ended without loading anything, its ID
// becomes a part of the key, so that a new ingestion begins.
func (l *loading) ingest(ctx context.Context, dryRun bool) (api.Ingestion, error) {
	mode := api.NewIngestionModeAppend
	if l.wish.replace && l.first {
		mode = api.NewIngestionModeReplace
	}

	if len(l.wish.key) > 0 || l.wish.merge {
		mode = api.NewIngestionModeMerge
	}

	request := api.NewIngestion{SessionID: l.session, Mode: &mode, Key: givenList(l.wish.key), Options: &l.wish.options, DryRun: &dryRun}
	switch {
	case !dryRun:
		request.Accept = l.accepted()
	case l.wish.draft:
		request.Draft = new(true)
	case l.wish.sample != 0:
		request.Sample = &l.wish.sample
	}

	for parts := []any{request, l.at.String()}; ; {
		content, err := json.Marshal(parts)
		if err != nil {
			return api.Ingestion{}, err
		}

		hash := sha256.Sum256(content)
		key := "quern-upload-" + hex.EncodeToString(hash[:16])

		now, err := api.Read[api.Ingestion](l.client.CreateIngestion(ctx, l.at.owner, l.at.namespace, l.at.dataset, &api.CreateIngestionParams{IdempotencyKey: &key}, request))
		if err != nil {
			return now, err
		}

		if !hasFailed(now) {
			return l.outcome(ctx, now)
		}

		parts = append(parts, now.ID)
	}
}

// hasFailed reports whether an ingestion ended without loading anything.
func hasFailed(i api.Ingestion) bool {
	return i.Status == api.IngestionStatusFailed || i.Status == api.IngestionStatusCancelled
}

// outcome waits until an ingestion ends or waits for a decision.
func (l *loading) outcome(ctx context.Context, now api.Ingestion) (api.Ingestion, error) {
	now, err := l.wait(ctx, now)
	if err != nil || !hasFailed(now) {
		return now, err
	}

	return now, l.failure(now)
}

func (l *loading) wait(ctx context.Context, now api.Ingestion) (api.Ingestion, error) {
	line := &progress{to: l.err}
	defer line.clear()

	for pause := 50 * time.Millisecond; now.FinishedAt == nil && now.Status != api.IngestionStatusWaiting; pause = min(pause*3/2, time.Second) {
		doing := capital(now.Progress.Phase)
		if p := now.Progress; p.BytesTotal == 0 || p.BytesDone == 0 {
			line.say(doing)
		} else {
			line.bar(doing, p.BytesDone, p.BytesTotal, p.BytesDone)
		}

		select {
		case <-ctx.Done():
			return now, ctx.Err()
		case <-time.After(pause):
		}

		found, err := api.Read[api.Ingestion](l.client.GetIngestion(ctx, l.at.owner, l.at.namespace, l.at.dataset, now.ID))
		if err != nil {
			return now, err
		}

		now = found
	}

	return now, nil
}

// failure returns why nothing was loaded, and prints the rows that caused it.
func (l *loading) failure(failed api.Ingestion) error {
	text := "the files were not loaded: the ingestion was cancelled"
	if failed.Error != nil {
		text = "the files were not loaded: " + failed.Error.Message
	}

	l.setAside(failed)

	if l.wish.draft {
		return exitError{exitNotLoaded, strings.Replace(text, "the files were not loaded", "no definition was drafted", 1), "Nothing was saved. Describe the columns with --column, or try other documents."}
	}

	if failed.Error != nil && slices.Contains([]api.ErrorCode{api.INTERNAL, api.UNAVAILABLE, api.TIMEOUT, api.UPSTREAMUNAVAILABLE}, failed.Error.Code) {
		return exitError{exitNotLoaded, text, "No rows were stored. The files are not the cause; give the same command again later."}
	}

	if failed.Filenames != nil && !slices.ContainsFunc(*failed.Filenames, func(file string) bool { return !isDocument(file) }) {
		return exitError{exitNotLoaded, text, "No rows were stored. The options for reading files do not apply to a document: correct it, or load its tables as a workbook or CSV."}
	}

	return exitError{exitNotLoaded, text, "No rows were stored. `quern upload --help` lists the options for reading files; use --dry-run to try them."}
}

func (l *loading) setAside(about api.Ingestion) {
	if about.SetAside == nil || len(*about.SetAside) == 0 {
		return
	}

	rows := *about.SetAside
	for _, row := range rows[:min(5, len(rows))] {
		l.err.printf("  %s, row %s: %s\n", cell(row.File), grouped(row.Row), cell(row.Reason))
	}

	if more := max(about.Progress.RowsSetAside, int64(len(rows))) - 5; more > 0 {
		l.err.printf("  and %s more; `quern ingestion aside %s %s` shows all\n", grouped(more), l.at, about.ID)
	}
}

// preview prints the result of a dry run.
func (l *loading) preview(tried api.Ingestion) error {
	found := tried.Preview
	if found == nil {
		return nil
	}

	if l.wish.dryRun && l.format != "table" {
		return one(l.program, *found, nil)
	}

	if l.format == "table" {
		l.out.printf("\n")
		l.table(cells(found.Columns, []column[api.ResultColumn]{
			{"column", func(c api.ResultColumn) any { return c.Name }},
			{"type", func(c api.ResultColumn) any { return c.Type }},
			{"first values", func(c api.ResultColumn) any { return examples(c.Name, found.Rows) }},
		}))
		l.out.printf("\n")
	}

	if l.tell(found.Doubts); l.wish.dryRun {
		if tried.Documents != nil && l.format == "table" {
			l.out.printf("`quern ingestion records %s %s` shows where each field was read; --flagged, what is in doubt.\n", l.at, tried.ID)
		}

		return nil
	}

	return l.confirmDoubts(found.Doubts)
}

func examples(column string, rows []api.Row) string {
	var values []string
	for _, row := range rows[:min(3, len(rows))] {
		values = append(values, plain(row[column]))
	}

	return strings.Join(values, " · ")
}

func (l *loading) loaded(done api.Ingestion, files int) error {
	if l.format != "table" {
		return one(l.program, done, nil,
			column[api.Ingestion]{"id", func(i api.Ingestion) any { return i.ID }},
			column[api.Ingestion]{"rows", func(i api.Ingestion) any { return i.Progress.RowsDone }},
			column[api.Ingestion]{"setAside", func(i api.Ingestion) any { return i.Progress.RowsSetAside }})
	}

	verb := "Loaded"
	if done.Mode == api.IngestionModeReplace {
		verb = "Replaced all rows: loaded"
	}

	if l.creates {
		l.err.printf("Created %s.\n", l.at)
	}

	l.out.printf("%s %s of %s into %s.\n", verb, counted(done.Progress.RowsDone, "row", "rows"), counted(int64(files), "file", "files"), l.at)

	if done.Progress.RowsSetAside > 0 {
		l.err.printf("%s did not fit and %s set aside:\n", counted(done.Progress.RowsSetAside, "row", "rows"), map[bool]string{true: "was", false: "were"}[done.Progress.RowsSetAside == 1])
		l.setAside(done)
	}

	if done.Warnings != nil {
		for _, warning := range *done.Warnings {
			l.err.printf("note: %s\n", l.err.clean(warning))
		}
	}

	if l.first && l.out.screen {
		l.err.printf("%s\n", l.err.style(dim, fmt.Sprintf("Ask a question: quern ask -n %s 'your question'", name{l.at.owner, l.at.namespace, ""})))
	}

	return nil
}

// isDocument reports whether the name is that of a document, such as a PDF file.
func isDocument(file string) bool {
	return slices.Contains([]string{".pdf", ".docx", ".html", ".htm", ".eml"}, strings.ToLower(filepath.Ext(file)))
}
