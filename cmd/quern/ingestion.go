package main

import (
	"context"
	"fmt"
	"iter"
	"strings"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"quern.dev/quern/api"
)

func (p *program) ingestionCommand() *cobra.Command {
	return group("ingestion", "List, show, correct, reload, retry and cancel ingestions", p.ingestionList(), p.ingestionShow(), p.ingestionAside(), p.ingestionRecords(), p.ingestionCorrect(), p.ingestionReload(), p.ingestionRetry(), p.ingestionCancel())
}

// onIngestion returns a command on one ingestion of a dataset.
func (p *program) onIngestion(use, short string, run func(ctx context.Context, client *api.Client, at name, id uuid.UUID) error) *cobra.Command {
	return p.onDataset(use+" DATASET ID", short, 2, func(ctx context.Context, client *api.Client, at name, args []string) error {
		id, err := ingestionID(ctx, client, at, args[0])
		if err != nil {
			return err
		}

		return run(ctx, client, at, id)
	})
}

// ingestionID returns the id of the ingestion that a text names.
func ingestionID(ctx context.Context, client *api.Client, at name, text string) (uuid.UUID, error) {
	return findID(text, "`quern ingestion list` shows the ids", allIngestions(ctx, client, at), func(i api.Ingestion) listed {
		return listed{i.ID, moment(i.CreatedAt) + ", " + string(i.Status)}
	})
}

func (p *program) ingestionList() *cobra.Command {
	var limit int

	command := p.onDataset("list DATASET", "List the ingestions of a dataset, newest first", 1, func(ctx context.Context, client *api.Client, at name, _ []string) error {
		return list(p, allIngestions(ctx, client, at), limit, "No ingestions yet. `quern upload` creates one.", ingestionColumns()...)
	})
	limitFlag(command, &limit)

	return command
}

func allIngestions(ctx context.Context, client *api.Client, at name) iter.Seq2[api.Ingestion, error] {
	return api.Pages(func(cursor *string) ([]api.Ingestion, *string, error) {
		page, err := api.Read[api.IngestionList](client.ListIngestions(ctx, at.owner, at.namespace, at.dataset, &api.ListIngestionsParams{Cursor: cursor, Limit: new(int32(100))}))

		return page.Data, page.NextCursor, err
	})
}

func ingestionColumns() []column[api.Ingestion] {
	return []column[api.Ingestion]{
		{"ingestion", func(i api.Ingestion) any { return i.ID }},
		{"at", func(i api.Ingestion) any { return i.CreatedAt }},
		{"what", ingestionKind},
		{"files", ingestionFiles},
		{"status", func(i api.Ingestion) any { return string(i.Status) }},
		{"rows", func(i api.Ingestion) any { return i.Progress.RowsDone }},
		{"set aside", func(i api.Ingestion) any { return i.Progress.RowsSetAside }},
		{"why", func(i api.Ingestion) any { return ingestionReason(i) }},
	}
}

const shownFiles = 3

// ingestionFiles returns the names of the first files.
func ingestionFiles(i api.Ingestion) any {
	if i.Filenames == nil {
		return ""
	}

	names := *i.Filenames
	text := strings.Join(names[:min(len(names), shownFiles)], ", ")

	if more := len(names) - shownFiles; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}

	return text
}

func ingestionKind(i api.Ingestion) any {
	if i.DryRun {
		return "dry run"
	}

	return string(i.Mode)
}

// ingestionReason returns why nothing was loaded.
func ingestionReason(i api.Ingestion) string {
	if i.Error == nil {
		return ""
	}

	return i.Error.Message
}

func (p *program) ingestionShow() *cobra.Command {
	return p.onIngestion("show", "Show the progress of an ingestion, or why it failed", func(ctx context.Context, client *api.Client, at name, id uuid.UUID) error {
		found, err := api.Read[api.Ingestion](client.GetIngestion(ctx, at.owner, at.namespace, at.dataset, id))
		if err != nil {
			return err
		}

		return one(p, found, func() { p.showIngestion(at, found) }, ingestionColumns()...)
	})
}

func (p *program) showIngestion(at name, i api.Ingestion) {
	snapshot := ""
	if i.SnapshotID != nil {
		snapshot = i.SnapshotID.String()
	}

	p.facts(
		fact{"ingestion", i.ID}, fact{"dataset", at.String()}, fact{"what", ingestionKind(i)}, fact{"files", ingestionFiles(i)}, fact{"status", string(i.Status)}, fact{"why", ingestionReason(i)},
		fact{"phase", i.Progress.Phase}, fact{"rows", i.Progress.RowsDone}, fact{"set aside", i.Progress.RowsSetAside},
		fact{"snapshot", snapshot}, fact{"created", i.CreatedAt}, fact{"started", i.StartedAt}, fact{"finished", i.FinishedAt},
	)

	if i.Documents != nil {
		for _, d := range *i.Documents {
			p.out.printf("read by a model: %s, %s, %s tokens sent and %s answered\n", p.out.clean(d.File), counted(int64(d.Pages), "page", "pages"), grouped(d.InputTokens), grouped(d.OutputTokens))
		}
	}

	about := &loading{program: p, at: at}
	if i.Doubts != nil {
		about.tell(*i.Doubts)
	}

	about.setAside(i)
}

func (p *program) ingestionRetry() *cobra.Command {
	wish := &uploadWish{}

	command := p.onIngestion("retry", "Continue a waiting ingestion, or try a failed or cancelled one again", func(ctx context.Context, client *api.Client, at name, id uuid.UUID) error {
		asking := &loading{program: p, wish: wish}

		again, err := api.Read[api.Ingestion](client.RetryIngestion(ctx, at.owner, at.namespace, at.dataset, id, api.IngestionRetry{Accept: asking.accepted()}))
		if err != nil {
			return err
		}

		return p.done("Queued again. `quern ingestion show %s %s` shows its progress.", at, again.ID)
	})
	command.Flags().StringSliceVar(&wish.accept, "accept", nil, "accept this doubt: a code, or all; can be repeated")

	return command
}

func (p *program) ingestionCancel() *cobra.Command {
	return p.onIngestion("cancel", "Cancel an ingestion; none of its rows are stored", func(ctx context.Context, client *api.Client, at name, id uuid.UUID) error {
		if _, err := api.Read[api.Ingestion](client.CancelIngestion(ctx, at.owner, at.namespace, at.dataset, id)); err != nil {
			return err
		}

		return p.done("Cancelled. %s is unchanged.", at)
	})
}
