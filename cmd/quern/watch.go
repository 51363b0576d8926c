package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"quern.dev/quern/api"
)

func (p *program) watchCommand() *cobra.Command {
	var (
		types       []string
		about, last string
		count       int
	)

	command := p.act("watch", "Print what happens to your datasets and runs, as it happens", cobra.NoArgs, func(ctx context.Context, client *api.Client, _ []string) error {
		parameters := api.StreamEventsParams{Types: given[string](strings.Join(types, ",")), LastEventID: given[string](last)}

		if about != "" {
			at, err := sharedName(about)
			if err != nil {
				return err
			}

			parameters.Username, parameters.Namespace, parameters.DatasetName = &at.owner, &at.namespace, given[string](at.dataset)
		}

		seen := 0

		for notice, err := range client.Notices(ctx, parameters) {
			if err != nil {
				return err
			}

			if err := p.printNotice(notice); err != nil {
				return err
			}

			if seen++; seen == count {
				return nil
			}
		}

		return nil
	})
	command.Long = command.Short + `.

The command goes on until it is interrupted, and reconnects if the connection breaks. With -o ndjson each event is one line of JSON.
The types are dataset.loaded, dataset.loadFailed, dataset.loadWaiting, dataset.columnsChanged, dataset.rowsDeleted, dataset.shared, dataset.unshared, namespace.shared,
namespace.unshared, verified.suspended, run.completed, run.failed, run.cancelled, run.waiting, source.stopped, source.failed, connection.shared and connection.unshared.`
	command.Flags().StringSliceVar(&types, "type", nil, "only events of this type; can be repeated")
	command.Flags().StringVar(&about, "dataset", "", "only events of this NAMESPACE/DATASET, or of all datasets of this NAMESPACE")
	command.Flags().StringVar(&last, "after", "", "begin after the event with this number instead of now")
	command.Flags().IntVar(&count, "count", 0, "end after this many events")

	return command
}

func (p *program) printNotice(notice api.Notice) error {
	if p.format == "json" || p.format == "ndjson" {
		line, err := json.Marshal(notice)
		if err != nil {
			return err
		}

		p.out.printf("%s\n", line)

		return nil
	}

	p.out.printf("%s  %-22s  %s\n", moment(notice.Timestamp), notice.Type, noticeText(notice.Data))

	return nil
}

// noticeText returns what an event is about, and what it tells, in a line.
func noticeText(d api.NoticeData) string {
	var parts []string

	add := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }

	if d.Namespace != nil {
		about := *d.Namespace
		if d.Username != nil {
			about = *d.Username + "/" + about
		}

		if d.Dataset != nil {
			about += "/" + *d.Dataset
		}

		add("%s", about)
	}

	if d.Connection != nil && d.Username != nil {
		add("%s/%s", *d.Username, *d.Connection)
	}

	if d.Rows != nil {
		add("%d rows", *d.Rows)
	}

	if d.RowsSetAside != nil && *d.RowsSetAside > 0 {
		add("%d set aside", *d.RowsSetAside)
	}

	if d.Code != nil {
		add("%s", *d.Code)
	}

	if d.Doubts != nil {
		add("%s", strings.Join(*d.Doubts, ", "))
	}

	if d.Columns != nil {
		for _, change := range []struct {
			sign  string
			names []string
		}{{"+", d.Columns.Added}, {"-", d.Columns.Removed}, {"~", d.Columns.Retyped}} {
			for _, column := range change.names {
				add("%s%s", change.sign, column)
			}
		}
	}

	if d.Grantee != nil {
		add("%s", *d.Grantee)
	}

	if d.Role != nil {
		add("%s", *d.Role)
	}

	if d.IngestionID != nil {
		add("ingestion %s", *d.IngestionID)
	}

	if d.RunID != nil {
		add("run %s", *d.RunID)
	}

	switch {
	case d.Source != nil:
		add("source %s", *d.Source)
	case d.SourceID != nil: // an event of an earlier version
		add("source %s", *d.SourceID)
	}

	if d.VerifiedID != nil {
		add("verified question %s", *d.VerifiedID)
	}

	return strings.Join(parts, "  ")
}
