package app

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"text/tabwriter"
	"time"

	"quern.dev/quern/internal/catalog"
	"quern.dev/quern/internal/erase"
	"quern.dev/quern/internal/job"
	"quern.dev/quern/internal/postgres"
)

// Erasure says how the receipt of an erasure is printed, and how long the command waits for it.
type Erasure struct {
	JSON bool
	Wait time.Duration
}

// EraseDataset erases OWNER/NAMESPACE/DATASET or OWNER/ID at once and prints the receipt.
func (o Operator) EraseDataset(ctx context.Context, target string, how Erasure) error {
	return o.erase(ctx, how, func(d erase.Desk) (erase.Receipt, error) { return d.BeginDataset(ctx, target) })
}

// EraseHistory erases everything that a dataset had before its current snapshot, and prints the receipt.
func (o Operator) EraseHistory(ctx context.Context, target string, how Erasure) error {
	return o.erase(ctx, how, func(d erase.Desk) (erase.Receipt, error) { return d.BeginHistory(ctx, target) })
}

// EraseUser erases a user with everything that the account owns, and prints the receipt.
func (o Operator) EraseUser(ctx context.Context, username string, how Erasure) error {
	return o.erase(ctx, how, func(d erase.Desk) (erase.Receipt, error) { return d.BeginUser(ctx, username) })
}

const erasePoll = 200 * time.Millisecond

// erase begins an erasure, or continues with one that has begun, and waits until the workers of the service are done.
func (o Operator) erase(ctx context.Context, how Erasure, begin func(d erase.Desk) (erase.Receipt, error)) error {
	return o.withDatabase(ctx, func(db *postgres.DB) error {
		jobs, err := job.New(job.Config{DB: db, Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			return err
		}

		desk := erase.Desk{DB: db, Catalog: catalog.Catalog{DB: db, Now: time.Now, DeleteGrace: o.config.Data.DeleteGrace}, Jobs: jobs, Now: time.Now}

		receipt, err := begin(desk)
		if err != nil {
			return err
		}

		for end := time.Now().Add(how.Wait); receipt.State == erase.Running && time.Now().Before(end); {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(erasePoll):
			}

			if receipt, err = desk.Get(ctx, receipt); err != nil {
				return err
			}
		}

		if receipt, err = desk.Finish(ctx, receipt); err != nil {
			return err
		}

		return o.printReceipt(receipt, how.JSON)
	})
}

func (o Operator) printReceipt(r erase.Receipt, asJSON bool) error {
	if asJSON {
		encoder := json.NewEncoder(o.out)
		encoder.SetIndent("", "  ")

		return encoder.Encode(r)
	}

	_, _ = fmt.Fprintf(o.out, "receipt %s\n%s %s\nrequested %s\n", r.ID, r.Kind, r.Target, r.RequestedAt.UTC().Format(time.RFC3339))

	if r.FinishedAt == nil {
		return o.said(nil, "not finished: a worker of the service continues. Run the command again to see the receipt.")
	}

	_, _ = fmt.Fprintf(o.out, "finished %s\n\nERASED\n", r.FinishedAt.UTC().Format(time.RFC3339))

	table := tabwriter.NewWriter(o.out, 0, 0, 2, ' ', 0)
	for _, what := range slices.Sorted(maps.Keys(r.Erased)) {
		_, _ = fmt.Fprintf(table, "%s\t%d\n", what, r.Erased[what])
	}

	if err := table.Flush(); err != nil {
		return err
	}

	_, _ = fmt.Fprintln(o.out, "\nOUT OF REACH")
	for _, what := range r.OutOfReach {
		_, _ = fmt.Fprintln(o.out, what)
	}

	return nil
}
