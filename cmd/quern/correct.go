package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"quern.dev/quern/api"
)

func (p *program) ingestionCorrect() *cobra.Command {
	var remove []string

	command := p.act("correct DATASET ID RECORD [FIELD=VALUE...]", "Correct fields of a record that a model read in a document", cobra.MinimumNArgs(3),
		func(ctx context.Context, client *api.Client, args []string) error {
			at, err := datasetName(args[0])
			if err != nil {
				return err
			}

			changes, err := readCorrections(args[3:], remove)
			if err != nil {
				return err
			}

			id, err := ingestionID(ctx, client, at, args[1])
			if err != nil {
				return err
			}

			return p.correct(ctx, client, at, id, args[2], changes)
		})
	command.Long = `Correct fields of a record that a model read in a document. ` + "`quern ingestion records --flagged`" + ` shows the records with fields in doubt.

FIELD= says that the field has no value. The dataset keeps the corrections and applies them whenever the same document is loaded into it. The rows
that are loaded now change with ` + "`quern ingestion reload`" + `.`
	command.Example = `  quern ingestion correct shop/lines ID 0-12 price=1.30
  quern ingestion correct shop/lines ID 0-12 'item=Bolt M6' colour=
  quern ingestion reload shop/lines ID`
	command.Flags().StringSliceVar(&remove, "remove", nil, "remove the correction of this field; can be repeated")

	return command
}

// correction is a change of one field that the command line asks for.
type correction struct {
	field   string
	value   *string // nil if the field has no value
	removes bool    // the correction instead
}

func readCorrections(texts, remove []string) (changes []correction, err error) {
	for _, text := range texts {
		field, value, found := strings.Cut(text, "=")
		if !found || field == "" {
			return nil, usageError{fmt.Errorf("%q must be FIELD=VALUE, or FIELD= for no value", text), "quern ingestion correct"}
		}

		changes = append(changes, correction{field: field, value: given[string](value)})
	}

	for _, field := range remove {
		changes = append(changes, correction{field: field, removes: true})
	}

	if len(changes) == 0 {
		return nil, usageError{errors.New("name a field: FIELD=VALUE, or --remove FIELD"), "quern ingestion correct"}
	}

	return changes, nil
}

func (p *program) correct(ctx context.Context, client *api.Client, at name, id uuid.UUID, record string, changes []correction) error {
	var (
		now api.DocumentRecord
		err error
	)

	for _, c := range changes {
		if c.removes {
			now, err = api.Read[api.DocumentRecord](client.UncorrectField(ctx, at.owner, at.namespace, at.dataset, id, record, c.field))
		} else {
			now, err = api.Read[api.DocumentRecord](client.CorrectField(ctx, at.owner, at.namespace, at.dataset, id, record, c.field, api.FieldCorrection{Value: c.value}))
		}

		if err != nil {
			return fmt.Errorf("%s: %w", c.field, err)
		}
	}

	return one(p, now, func() {
		if now.Row == nil { // of a dry run, or without any value
			p.out.printf("Corrected record %s. The next load of the document has it.\n", record)

			return
		}

		p.out.printf("Corrected record %s. `quern ingestion reload %s %s` changes the row.\n", record, at, id)
	}, recordColumns()...)
}

func (p *program) ingestionReload() *cobra.Command {
	wish := &uploadWish{}

	command := p.onIngestion("reload", "Load documents that a model read again, with the corrections", func(ctx context.Context, client *api.Client, at name, id uuid.UUID) error {
		l := &loading{program: p, client: client, at: at, wish: wish, begun: true}
		if wish.yes {
			wish.accept = append(wish.accept, acceptAll)
		}

		now, err := api.Read[api.Ingestion](client.ReloadIngestion(ctx, at.owner, at.namespace, at.dataset, id, &api.ReloadIngestionParams{IdempotencyKey: new(uuid.NewString())}))
		if err != nil {
			return err
		}

		done, err := l.outcome(ctx, now)
		if err == nil && done.Status == api.IngestionStatusWaiting {
			done, err = l.settle(ctx, done)
		}

		if err != nil {
			return p.stop(ctx, err, "Stopped waiting. The server continues; `quern ingestion show` shows the progress.")
		}

		return l.loaded(done, len(done.FileIds))
	})
	command.Long = `Load documents that a model read again, with the corrections. The new rows replace those of the ingestion in one snapshot.
What the model has answered about the same text and the same fields is not asked again.`
	command.Flags().StringSliceVar(&wish.accept, "accept", nil, "accept this doubt: a code, or all; can be repeated")
	yesFlag(command, &wish.yes)

	return command
}
