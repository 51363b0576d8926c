package ingest

import (
	"cmp"
	"context"
	"os"
	"slices"

	"quern.dev/quern/internal/engine"
	"quern.dev/quern/internal/lake"
	"quern.dev/quern/internal/postgres"
	"quern.dev/quern/internal/values"
)

// indexValues writes the value index of the text columns. The session cannot be used afterwards. A table
// without text gets an index too, which is empty.
func indexValues(session *engine.Session, view engine.View, path string) error {
	var (
		names  []string
		listed []engine.ListedColumn
		failed error
		bounds = values.DefaultBounds()
	)

	for _, c := range view.Columns {
		if c.Type == engine.Varchar {
			names = append(names, c.Name)
		}
	}

	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer file.Close()

	_, err = values.Build(file, func(yield func(values.Entry) bool) {
		if len(names) == 0 {
			return
		}

		listed, failed = session.Values(view, names, engine.ValueBounds{
			Column: bounds.Column, Table: bounds.Table, Bytes: int64(bounds.Bytes), Length: bounds.Length,
		}, func(v engine.Value) bool {
			return yield(values.Entry{Column: names[v.Column], Value: v.Text, Count: v.Count})
		})
	}, bounds, func(column string) bool {
		at := slices.Index(names, column)

		return at < len(listed) && listed[at].Sampled
	})

	if err := cmp.Or(failed, err); err != nil {
		return err
	}

	return file.Close()
}

// storeValues stores the value index as an object. The row of the object is inserted first.
func (g *Ingest) storeValues(ctx context.Context, c chore, path string) (object lake.Object, err error) {
	if err := c.lease.InTx(ctx, func(tx postgres.Tx) error {
		object, err = g.Lake.StageObjectTx(ctx, tx, c.due.Table, ".values")

		return err
	}); err != nil {
		return object, err
	}

	return g.Lake.WriteObject(ctx, object, path)
}
