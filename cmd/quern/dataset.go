package main

import (
	"context"
	"iter"
	"math"
	"strings"

	"github.com/spf13/cobra"

	"quern.dev/quern/api"
)

func (p *program) datasetCommand() *cobra.Command {
	return group("dataset", "List, search, show and change datasets",
		p.datasetList(), p.datasetSearch(), p.datasetShow(), p.datasetProfile(), p.datasetHistory(), p.datasetRestore(),
		p.datasetCreate(), p.datasetDescribe(), p.datasetKey(), p.datasetSemantics(), p.datasetChoices(), p.datasetRename(), p.datasetMove(), p.datasetExposure(), p.datasetClear(), p.datasetDelete(),
	)
}

// onDataset returns a command on one dataset, its first argument.
func (p *program) onDataset(use, short string, args int, run func(ctx context.Context, client *api.Client, at name, args []string) error) *cobra.Command {
	return p.act(use, short, cobra.ExactArgs(args), func(ctx context.Context, client *api.Client, args []string) error {
		at, err := datasetName(args[0])
		if err != nil {
			return err
		}

		return run(ctx, client, at, args[1:])
	})
}

func (p *program) datasetList() *cobra.Command {
	var limit int

	command := p.act("list [NAMESPACE]", "List the datasets of a namespace, or all that you can see", cobra.MaximumNArgs(1),
		func(ctx context.Context, client *api.Client, args []string) error {
			if len(args) == 0 {
				return p.listDatasets(searched(ctx, client, nil), limit, "No datasets yet. `quern upload FILE NAMESPACE/DATASET` creates one from a file.")
			}

			at, err := namespaceName(args[0])
			if err != nil {
				return err
			}

			return p.listDatasets(api.Pages(func(cursor *string) ([]api.DatasetItem, *string, error) {
				page, err := api.Read[api.DatasetList](client.ListDatasets(ctx, at.owner, at.namespace, &api.ListDatasetsParams{Cursor: cursor, Limit: new(int32(100))}))

				return page.Data, page.NextCursor, err
			}), limit, "No datasets in this namespace.")
		})
	limitFlag(command, &limit)

	return command
}

func (p *program) datasetSearch() *cobra.Command {
	var limit int

	command := p.act("search WORD...", "Find datasets by names, namespaces, columns, descriptions and values", cobra.MinimumNArgs(1),
		func(ctx context.Context, client *api.Client, args []string) error {
			return p.listDatasets(searched(ctx, client, new(strings.Join(args, " "))), limit, "No dataset that you can see matches these words.",
				column[api.DatasetItem]{"found in", func(d api.DatasetItem) any { return foundIn(d) }})
		})
	limitFlag(command, &limit)

	return command
}

func searched(ctx context.Context, client *api.Client, words *string) iter.Seq2[api.DatasetItem, error] {
	return api.Pages(func(cursor *string) ([]api.DatasetItem, *string, error) {
		page, err := api.Read[api.DatasetList](client.SearchDatasets(ctx, &api.SearchDatasetsParams{Q: words, Cursor: cursor, Limit: new(int32(100))}))

		return page.Data, page.NextCursor, err
	})
}

// foundIn lists where a search found its words.
func foundIn(d api.DatasetItem) string {
	var places []string

	if d.MatchedIn != nil {
		for _, place := range *d.MatchedIn {
			places = append(places, string(place))
		}
	}

	return strings.Join(places, ", ")
}

func (p *program) listDatasets(items iter.Seq2[api.DatasetItem, error], limit int, none string, more ...column[api.DatasetItem]) error {
	return list(p, items, limit, none, append([]column[api.DatasetItem]{
		{"dataset", func(d api.DatasetItem) any { return d.Username + "/" + d.Namespace + "/" + d.Name }},
		{"rows", func(d api.DatasetItem) any { return d.RowCount }},
		{"size", func(d api.DatasetItem) any { return p.stored(d.ByteCount) }},
		{"role", func(d api.DatasetItem) any { return string(d.Role) }},
		{"changed", func(d api.DatasetItem) any { return d.UpdatedAt }},
		{"description", func(d api.DatasetItem) any { return d.DataDescription }},
	}, more...)...)
}

// stored shows the size of a dataset: to programs the bytes, to people a rounded size.
func (p *program) stored(bytes *int64) any {
	switch {
	case bytes == nil:
		return nil
	case p.format == "csv":
		return *bytes
	default:
		return size(*bytes)
	}
}

func (p *program) datasetShow() *cobra.Command {
	return p.onDataset("show DATASET", "Show columns, types and descriptions", 1, func(ctx context.Context, client *api.Client, at name, _ []string) error {
		found, err := api.Read[api.Dataset](client.GetDataset(ctx, at.owner, at.namespace, at.dataset))
		if err != nil {
			return err
		}

		if p.format == "csv" {
			heads, rows := cells(found.Metadata.Columns, datasetColumns())

			return p.csv(heads, rows)
		}

		return one(p, found, func() {
			p.facts(
				fact{"dataset", found.Dataset.Owner + "/" + found.Dataset.Namespace + "/" + found.Dataset.Name},
				fact{"rows", found.Metadata.RowCount}, fact{"size", p.stored(found.Metadata.ByteCount)}, fact{"key", keyText(found.Metadata.Key)}, fact{"refreshed", found.Metadata.RefreshedAt},
				fact{"engine", engineText(found.Metadata.Engine)},
				fact{"description", found.Metadata.DataDescription},
			)

			if len(found.Metadata.Columns) > 0 {
				p.out.printf("\n")
				p.table(cells(found.Metadata.Columns, datasetColumns()))
			}
		})
	})
}

// engineText returns the engine of a dataset, or nothing for the one of most datasets.
func engineText(engine string) string {
	if engine == "duckdb" {
		return ""
	}

	return engine
}

func datasetColumns() []column[api.DatasetColumn] {
	return []column[api.DatasetColumn]{
		{"column", func(c api.DatasetColumn) any { return c.Name }},
		{"type", func(c api.DatasetColumn) any { return c.Type }},
		{"description", func(c api.DatasetColumn) any { return c.Description }},
	}
}

// spread draws how the values of a column are distributed, from the smallest to the largest.
func spread(bins *[]api.Bin) string {
	if bins == nil || len(*bins) < 2 {
		return ""
	}

	most := int64(1)
	for _, bin := range *bins {
		most = max(most, bin.Count)
	}

	levels, drawn := []rune("▁▂▃▄▅▆▇█"), make([]rune, len(*bins))
	for i, bin := range *bins {
		drawn[i] = levels[int(math.Round(float64(bin.Count)/float64(most)*float64(len(levels)-1)))]
	}

	return string(drawn)
}

func (p *program) datasetProfile() *cobra.Command {
	return p.onDataset("profile DATASET", "Show a summary of the values of each column", 1, func(ctx context.Context, client *api.Client, at name, _ []string) error {
		found, err := api.Read[api.Profile](client.GetProfile(ctx, at.owner, at.namespace, at.dataset))
		if api.IsCode(err, api.NOTFOUND) {
			if _, err := api.Read[api.Dataset](client.GetDataset(ctx, at.owner, at.namespace, at.dataset)); err == nil {
				return exitError{exitNotFound, "the dataset has no profile yet", "The profile is computed when the dataset has not changed for a while. Try again in a minute."}
			}
		}

		if err != nil {
			return err
		}

		columns := []column[api.ColumnProfile]{
			{"column", func(c api.ColumnProfile) any { return c.Name }},
			{"type", func(c api.ColumnProfile) any { return c.Type }},
			{"empty", func(c api.ColumnProfile) any { return c.Nulls }},
			{"distinct", func(c api.ColumnProfile) any { return c.Distinct }},
			{"smallest", func(c api.ColumnProfile) any { return c.Min }},
			{"largest", func(c api.ColumnProfile) any { return c.Max }},
			{"spread", func(c api.ColumnProfile) any { return spread(c.Bins) }},
			{"frequent", func(c api.ColumnProfile) any {
				var values []string
				for _, top := range c.TopValues[:min(3, len(c.TopValues))] {
					values = append(values, plain(top.Value))
				}

				return strings.Join(values, ", ")
			}},
		}

		if p.format == "csv" {
			heads, rows := cells(found.Columns, columns)

			return p.csv(heads, rows)
		}

		return one(p, found, func() {
			facts := []fact{{"rows", found.RowCount}, {"computed", found.ComputedAt}}
			for _, key := range found.CandidateKeys {
				facts = append(facts, fact{"unique", strings.Join(key, ", ")})
			}

			for _, join := range found.Joins {
				facts = append(facts, fact{"joins", join.Column + " = " + join.Username + "/" + join.Namespace + "/" + join.Dataset + "." + join.OtherColumn})
			}

			p.facts(facts...)
			p.out.printf("\n")
			p.table(cells(found.Columns, columns))
		})
	})
}

func (p *program) datasetHistory() *cobra.Command {
	var limit int

	command := p.onDataset("history DATASET", "Show the snapshots, newest first", 1, func(ctx context.Context, client *api.Client, at name, _ []string) error {
		return list(p, allSnapshots(ctx, client, at), limit, "No snapshots yet.",
			column[api.Snapshot]{"snapshot", func(s api.Snapshot) any { return s.SnapshotID }},
			column[api.Snapshot]{"at", func(s api.Snapshot) any { return s.CommittedAt }},
			column[api.Snapshot]{"what", func(s api.Snapshot) any { return string(s.Operation) }},
			column[api.Snapshot]{"rows", func(s api.Snapshot) any { return s.RowCount }},
			column[api.Snapshot]{"current", func(s api.Snapshot) any {
				if s.Current {
					return "yes"
				}

				return ""
			}},
		)
	})
	limitFlag(command, &limit)

	return command
}

func allSnapshots(ctx context.Context, client *api.Client, at name) iter.Seq2[api.Snapshot, error] {
	return api.Pages(func(cursor *string) ([]api.Snapshot, *string, error) {
		page, err := api.Read[api.SnapshotList](client.ListSnapshots(ctx, at.owner, at.namespace, at.dataset, &api.ListSnapshotsParams{Cursor: cursor, Limit: new(int32(100))}))

		return page.Data, page.NextCursor, err
	})
}

func (p *program) datasetRestore() *cobra.Command {
	return p.onDataset("restore DATASET SNAPSHOT", "Restore an earlier snapshot", 2, func(ctx context.Context, client *api.Client, at name, args []string) error {
		id, err := findID(args[0], "`quern dataset history` lists the snapshots", allSnapshots(ctx, client, at), func(s api.Snapshot) listed {
			return listed{s.SnapshotID, moment(s.CommittedAt) + ", " + string(s.Operation)}
		})
		if err != nil {
			return err
		}

		made, err := api.Read[api.Snapshot](client.RestoreSnapshot(ctx, at.owner, at.namespace, at.dataset, id))
		if err != nil {
			return err
		}

		return p.done("Restored %s with %s. The new snapshot is %s.", at, counted(made.RowCount, "row", "rows"), made.SnapshotID)
	})
}
