package query

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"sort"
	"strconv"

	"github.com/google/uuid"

	"quern.dev/quern/internal/engine"
	"quern.dev/quern/internal/lake"
	"quern.dev/quern/internal/postgres"
)

// sources finds the provenance of the rows of a dataset; a nil *sources adds no provenance.
type sources struct {
	files []lake.File
	known [][]origins // by file
	parts func(file lake.File, row int64) ([]lake.Part, error)
}

// origins is the provenance of consecutive rows of a data file.
type origins []origin

type origin struct {
	first, rows int64  // first row and number of rows in the data file
	name        []byte // name of the uploaded file, as JSON; nil if the rows did not come from a file
	firstRow    int64  // row in the uploaded file
	pages       lake.Places
	skipped     []int64 // rows of the uploaded file that are not in the data file, each minus the number of skipped rows before it
}

func (r *running) sources(ctx context.Context, one resolved) (*sources, error) {
	s := &sources{files: one.files, known: make([][]origins, len(one.files))}
	s.parts = func(file lake.File, row int64) (parts []lake.Part, err error) {
		err = r.DB.Do(ctx, func(q postgres.Querier) error {
			parts, err = r.Lake.Parts(ctx, q, one.table(), file.Key, row)

			return err
		})

		return parts, err
	}

	var keys []string

	for _, file := range one.files {
		if !file.Compacted {
			keys = append(keys, file.Key)
		}
	}

	var places map[string]lake.Places

	err := r.DB.Do(ctx, func(q postgres.Querier) (err error) {
		places, err = r.Lake.Places(ctx, q, one.table(), keys)

		return err
	})
	if err != nil {
		return nil, err
	}

	for i, file := range one.files {
		if file.Compacted {
			continue // it may have very many parts: they are read when a row needs them
		}

		from, err := newOrigin(0, file.Rows, lake.Source{File: file.Source, Name: file.Name, FirstRow: file.FirstRow, Places: places[file.Key]})
		if err != nil {
			return nil, err
		}

		s.known[i] = []origins{{from}}
	}

	return s, nil
}

func newOrigin(first, rows int64, source lake.Source) (o origin, err error) {
	o = origin{first: first, rows: rows, firstRow: source.FirstRow, pages: source.Places}

	for n, row := range source.Skipped {
		o.skipped = append(o.skipped, row-int64(n))
	}

	if source.File != uuid.Nil {
		o.name, err = json.Marshal(source.Name)
	}

	return o, err
}

// find returns the origin of a row; nil if the row is not in o.
func (o origins) find(number int64) *origin {
	after := sort.Search(len(o), func(i int) bool { return o[i].first > number })
	if after == 0 || number >= o[after-1].first+o[after-1].rows {
		return nil
	}

	return &o[after-1]
}

// origin returns the origin of a row of a data file; nil if it is not known.
func (s *sources) origin(file int, number int64) (*origin, error) {
	if file < 0 || file >= len(s.files) || number < 0 || number >= s.files[file].Rows {
		return nil, nil //nolint:nilnil // a child may say anything
	}

	for _, near := range s.known[file] {
		if found := near.find(number); found != nil {
			return found, nil
		}
	}

	if !s.files[file].Compacted {
		return nil, nil //nolint:nilnil // not known
	}

	parts, err := s.parts(s.files[file], number)
	if err != nil {
		return nil, err
	}

	near := make(origins, len(parts))
	for i, p := range parts {
		if near[i], err = newOrigin(p.First, p.Rows, p.Source); err != nil {
			return nil, err
		}
	}

	s.known[file] = append(s.known[file], near)

	return near.find(number), nil
}

// row returns the row of the uploaded file that became a row of the data file.
func (o *origin) row(number int64) int64 {
	row := o.firstRow + number - o.first
	before := sort.Search(len(o.skipped), func(i int) bool { return o.skipped[i] > row })

	return row + int64(before)
}

// Unmark removes __metadata from a row that Next returned. Quotes in texts are escaped, so every match is the name of a
// member, and the last one is the one that mark added.
func Unmark(row json.RawMessage) json.RawMessage {
	at := bytes.LastIndex(row, []byte(metadataName))
	if at < 0 {
		return row
	}

	bare := bytes.TrimSuffix(row[:at], []byte{','})

	return append(slices.Clip(bare), '}')
}

const metadataName = `"__metadata":`

// mark adds __metadata to a row: the provenance if it is known, and the score, which is 1 for all results of SQL.
func (s *sources) mark(row engine.Row) (json.RawMessage, error) {
	object := row.JSON[:len(row.JSON)-1]

	marked := make([]byte, 0, len(object)+128) //nolint:mnd // room for what follows
	marked = append(marked, object...)

	if len(object) > 1 {
		marked = append(marked, ',')
	}

	marked = append(marked, metadataName+`{"score":1`...)

	if s != nil {
		from, err := s.origin(row.File, row.Number)
		if err != nil {
			return nil, err
		}

		if from != nil && from.name != nil {
			marked = append(marked, `,"source":{"file":`...)
			marked = append(marked, from.name...)
			marked = append(marked, `,"row":`...)
			number := from.row(row.Number)
			marked = strconv.AppendInt(marked, number, 10)

			if page := from.pages.Page(number); page > 0 {
				marked = append(marked, `,"page":`...)
				marked = strconv.AppendInt(marked, int64(page), 10)
			}

			marked = append(marked, '}')
		}
	}

	return append(marked, "}}"...), nil
}
