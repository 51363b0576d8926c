package ingest

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

	"quern.dev/quern/bench/rig"
)

const (
	appendRows   = 10 // rows of one post
	appendTenth  = 10
	appendAround = 11 // posts whose median is taken
	appendBare   = 30
	appendSlower = 2 // factor by which the last posts may be slower
)

// Append measures whether posts of rows to one dataset become slower: it compares the last posts to one dataset with
// those around the 10th to another one, in turn. It also prints how long iceberg-go alone takes to append the same
// rows.
func Append(ctx context.Context, b *rig.Bench) ([]rig.Result, error) {
	s, stop, err := b.StartService(ctx)
	if err != nil {
		return nil, err
	}
	defer stop()

	old, err := s.NewDataset(ctx)
	if err != nil {
		return nil, err
	}

	young, err := s.NewDataset(ctx)
	if err != nil {
		return nil, err
	}

	if err := Fill(ctx, old, b.Posts-appendAround-1); err != nil {
		return nil, err
	}

	if err := Fill(ctx, young, appendTenth-appendAround/2-2); err != nil {
		return nil, err
	}

	last, tenth, err := rig.Alternate(ctx, appendAround, appending(old, "old"), appending(young, "young"))
	if err != nil {
		return nil, err
	}

	bare, err := bareAppends(ctx, s.Location)
	if err != nil {
		return nil, err
	}

	fmt.Fprintf(os.Stderr, "append: ours %s, iceberg-go alone %s\n", rig.Milliseconds(tenth), rig.Milliseconds(bare))

	return []rig.Result{{
		Name: "append", Ours: rig.Milliseconds(last), Bare: rig.Milliseconds(tenth), Ratio: tenth / last, Enough: last <= appendSlower*tenth,
	}}, nil
}

func Fill(ctx context.Context, d rig.Dataset, posts int) error {
	begin := time.Now()

	for i := range posts {
		if err := post(ctx, d, i); err != nil {
			return fmt.Errorf("post %d: %w", i+1, err)
		}

		if (i+1)%100 == 0 {
			fmt.Fprintf(os.Stderr, "append: %d posts in %v\n", i+1, time.Since(begin).Round(time.Millisecond))
		}
	}

	return nil
}

func appending(d rig.Dataset, name string) rig.Side {
	return rig.Side{Name: name, Round: func(ctx context.Context) (float64, string, error) {
		begin := time.Now()
		err := post(ctx, d, 0)
		took := time.Since(begin)

		return float64(took), took.String(), err
	}}
}

func post(ctx context.Context, d rig.Dataset, post int) error {
	var stored struct{ Indexed int }
	if err := d.Ask(ctx, "ada", http.MethodPost, d.Path+"/rows", map[string]any{"data": RowsToPost(post)}, &stored); err != nil {
		return err
	}

	if stored.Indexed != appendRows {
		return fmt.Errorf("%d rows were stored and not %d", stored.Indexed, appendRows)
	}

	return nil
}

type PostedRow struct {
	ID   int64   `json:"id"`
	Page string  `json:"page"`
	Took float64 `json:"took"`
	At   string  `json:"at"`
	Open bool    `json:"open"`
}

func RowsToPost(post int) []PostedRow {
	rows := make([]PostedRow, appendRows)

	for i := range rows {
		id := post*appendRows + i
		rows[i] = PostedRow{
			ID: int64(id), Page: fmt.Sprintf("/page/%d", id%97), Took: float64(id%1000)/8 + 0.5,
			At: time.Unix(1_700_000_000+int64(id), 0).UTC().Format("2006-01-02T15:04:05"), Open: id%3 == 0,
		}
	}

	return rows
}

// bareAppends returns the median time that iceberg-go takes for the same rows. It keeps the table, so that it reads as
// little as possible.
func bareAppends(ctx context.Context, p *rig.Location) (float64, error) {
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

		rows, err := arrowRows(schema, RowsToPost(i))
		if err != nil {
			return 0, err
		}

		if to, err = to.Append(ctx, rows, nil); err != nil {
			return 0, err
		}

		took[i] = float64(time.Since(begin))
	}

	return rig.Median(took), nil
}

func arrowRows(schema *arrow.Schema, rows []PostedRow) (array.RecordReader, error) {
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
