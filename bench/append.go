package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"
)

const (
	appendRows   = 10 // in a post
	appendTenth  = 10
	appendAround = 11 // posts of which the median is taken
	appendBare   = 30
	appendSlower = 2 // how much slower the last ones may be
)

// runAppend measures whether posts of rows to one dataset get slower: the last ones to a dataset beside those
// around the 10th to another one, in turn. What iceberg-go alone takes to append the same rows is printed.
func runAppend(ctx context.Context, b *bench) ([]result, error) {
	s, stop, err := b.startService(ctx)
	if err != nil {
		return nil, err
	}
	defer stop()

	old, err := s.newDataset(ctx)
	if err != nil {
		return nil, err
	}

	young, err := s.newDataset(ctx)
	if err != nil {
		return nil, err
	}

	if err := old.fill(ctx, b.posts-appendAround-1); err != nil {
		return nil, err
	}

	if err := young.fill(ctx, appendTenth-appendAround/2-2); err != nil {
		return nil, err
	}

	last, tenth, err := alternate(ctx, appendAround, old.appending("old"), young.appending("young"))
	if err != nil {
		return nil, err
	}

	bare, err := bareAppends(ctx, s.place)
	if err != nil {
		return nil, err
	}

	fmt.Fprintf(os.Stderr, "append: ours %s, iceberg-go alone %s\n", milliseconds(tenth), milliseconds(bare))

	return []result{{
		name: "append", ours: milliseconds(last), bare: milliseconds(tenth), ratio: tenth / last, enough: last <= appendSlower*tenth,
	}}, nil
}

func (d dataset) fill(ctx context.Context, posts int) error {
	begin := time.Now()

	for i := range posts {
		if err := d.append(ctx, i); err != nil {
			return fmt.Errorf("post %d: %w", i+1, err)
		}

		if (i+1)%100 == 0 {
			fmt.Fprintf(os.Stderr, "append: %d posts in %v\n", i+1, time.Since(begin).Round(time.Millisecond))
		}
	}

	return nil
}

func (d dataset) appending(name string) side {
	return side{name, func(ctx context.Context) (float64, string, error) {
		begin := time.Now()
		err := d.append(ctx, 0)
		took := time.Since(begin)

		return float64(took), took.String(), err
	}}
}

func (d dataset) append(ctx context.Context, post int) error {
	var stored struct{ Indexed int }
	if err := d.ask(ctx, "ada", http.MethodPost, d.path+"/rows", map[string]any{"data": rowsToPost(post)}, &stored); err != nil {
		return err
	}

	if stored.Indexed != appendRows {
		return fmt.Errorf("%d rows were stored and not %d", stored.Indexed, appendRows)
	}

	return nil
}

type postedRow struct {
	ID   int64   `json:"id"`
	Page string  `json:"page"`
	Took float64 `json:"took"`
	At   string  `json:"at"`
	Open bool    `json:"open"`
}

func rowsToPost(post int) []postedRow {
	rows := make([]postedRow, appendRows)

	for i := range rows {
		id := post*appendRows + i
		rows[i] = postedRow{
			ID: int64(id), Page: fmt.Sprintf("/page/%d", id%97), Took: float64(id%1000)/8 + 0.5,
			At: time.Unix(1_700_000_000+int64(id), 0).UTC().Format("2006-01-02T15:04:05"), Open: id%3 == 0,
		}
	}

	return rows
}

// bareAppends is the median of what iceberg-go takes for the same rows. It keeps the table, so that it reads as little as it can.
func bareAppends(ctx context.Context, p *place) (float64, error) {
	to, drop, err := bareTable(ctx, p, iceberg.NewSchema(0,
		iceberg.NestedField{ID: 1, Name: "id", Type: iceberg.PrimitiveTypes.Int64},
		iceberg.NestedField{ID: 2, Name: "page", Type: iceberg.PrimitiveTypes.String},
		iceberg.NestedField{ID: 3, Name: "took", Type: iceberg.PrimitiveTypes.Float64},
		iceberg.NestedField{ID: 4, Name: "at", Type: iceberg.PrimitiveTypes.Timestamp},
		iceberg.NestedField{ID: 5, Name: "open", Type: iceberg.PrimitiveTypes.Bool},
	))
	if err != nil {
		return 0, err
	}
	defer drop()

	schema, err := table.SchemaToArrowSchema(to.Schema(), nil, false, false)
	if err != nil {
		return 0, err
	}

	took := make([]float64, appendBare)

	for i := range took {
		begin := time.Now()

		rows, err := arrowRows(schema, rowsToPost(i))
		if err != nil {
			return 0, err
		}

		if to, err = to.Append(ctx, rows, nil); err != nil {
			return 0, err
		}

		took[i] = float64(time.Since(begin))
	}

	return median(took), nil
}

func arrowRows(schema *arrow.Schema, rows []postedRow) (array.RecordReader, error) {
	text, err := json.Marshal(rows)
	if err != nil {
		return nil, err
	}

	batch, _, err := array.RecordFromJSON(memory.DefaultAllocator, schema, bytes.NewReader(text))
	if err != nil {
		return nil, err
	}

	return array.NewRecordReader(schema, []arrow.RecordBatch{batch})
}
