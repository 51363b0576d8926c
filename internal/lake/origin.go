package lake

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"quern.dev/quern/internal/postgres"
)

// LoadedBy returns those of the files that have rows of the ingestions, and these rows.
func (l *Lake) LoadedBy(ctx context.Context, q postgres.Querier, t Table, files []File, ingestions []uuid.UUID) (found []File, rows []*RowSet, err error) {
	if len(files) == 0 || len(ingestions) == 0 {
		return nil, nil, nil
	}

	keys := make([]string, len(files))
	for n, f := range files {
		keys[n] = f.Key
	}

	parts, err := selectLoadedBy(ctx, q, t, keys, ingestions)
	if err != nil {
		return nil, nil, err
	}

	for _, f := range files {
		if len(parts[f.Key]) == 0 {
			continue
		}

		set := NewRowSet(f.Rows)

		for _, p := range parts[f.Key] {
			for row := p.First; row < p.First+p.Rows; row++ {
				if !set.Add(row) {
					return nil, nil, fmt.Errorf("the data file %s has no row %d, or has it in two parts", f.Key, row)
				}
			}
		}

		found, rows = append(found, f), append(rows, set)
	}

	return found, rows, nil
}
