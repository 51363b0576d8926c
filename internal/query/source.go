package query

import (
	"context"
	"encoding/json"
	"sort"
	"strconv"

	"github.com/google/uuid"

	"quern.dev/quern/internal/engine"
	"quern.dev/quern/internal/lake"
	"quern.dev/quern/internal/postgres"
)

// sources tells where the rows of a dataset come from; nil tells nothing.
type sources struct {
	files   []lake.File
	skipped [][]int64 // of each file, the rows of its source that are not in it, less those before each
	names   [][]byte  // as JSON
}

func (r *running) sources(ctx context.Context, one reading) (*sources, error) {
	s := &sources{files: one.files, skipped: make([][]int64, len(one.files)), names: make([][]byte, len(one.files))}
	keys := make([]string, len(one.files))

	for i, file := range one.files {
		keys[i] = file.Key

		name, err := json.Marshal(file.Name)
		if err != nil {
			return nil, err
		}

		s.names[i] = name
	}

	var skipped map[string][]int64

	err := r.DB.Do(ctx, func(q postgres.Querier) (err error) {
		skipped, err = r.Lake.Skipped(ctx, q, one.table(), keys)

		return err
	})

	for i, key := range keys {
		for n, row := range skipped[key] {
			s.skipped[i] = append(s.skipped[i], row-int64(n))
		}
	}

	return s, err
}

// row is the row of the source that the data file's row is.
func (s *sources) row(file int, number int64) int64 {
	row := s.files[file].FirstRow + number
	before := sort.Search(len(s.skipped[file]), func(i int) bool { return s.skipped[file][i] > row })

	return row + int64(before)
}

// mark adds __metadata to a row: what SQL finds has the score 1.
func (s *sources) mark(row engine.Row) json.RawMessage {
	object := row.JSON[:len(row.JSON)-1]

	marked := make([]byte, 0, len(object)+128) //nolint:mnd // room for what follows
	marked = append(marked, object...)

	if len(object) > 1 {
		marked = append(marked, ',')
	}

	marked = append(marked, `"__metadata":{"score":1`...)

	if s != nil && row.File >= 0 && row.File < len(s.files) && s.files[row.File].Source != uuid.Nil {
		marked = append(marked, `,"source":{"file":`...)
		marked = append(marked, s.names[row.File]...)
		marked = append(marked, `,"row":`...)
		marked = strconv.AppendInt(marked, s.row(row.File, row.Number), 10)
		marked = append(marked, '}')
	}

	return append(marked, "}}"...)
}
