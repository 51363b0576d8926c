package lake

import (
	"context"

	"github.com/apache/iceberg-go"
	"github.com/google/uuid"

	"quern.dev/quern/internal/postgres"
)

const (
	// mostSkipped limits how many rows a part skips. A reader of one row loads the parts around it, so parts stay small.
	mostSkipped = 256
	// longGap is the number of consecutive missing rows from which on a new part begins. Shorter gaps are skipped within a part.
	longGap = 8
)

// RewrittenTx is ReadyTx for a file that has the rows of another file except those in gone, in the same order. It
// takes over the place and the provenance of that file. If the file is not committed, it is removed like a file that
// was never finished.
func (l *Lake) RewrittenTx(ctx context.Context, tx postgres.Tx, s Staged, from File, gone *RowSet) error {
	if err := l.ReadyTx(ctx, tx, []Staged{s}); err != nil {
		return err
	}

	parts, err := selectAllParts(ctx, tx, s.Table, from.Key)
	if err != nil {
		return err
	}

	return insertRewritten(ctx, tx, s, from.Key, without(parts, gone), l.now().Add(staleAfter+l.deleteGrace))
}

// ingestedPart is a part with the ingestion that loaded it.
type ingestedPart struct {
	Part

	ingestion *uuid.UUID
}

// without returns the parts of a file without some of its rows.
func without(parts []ingestedPart, gone *RowSet) (left []ingestedPart) {
	at := int64(0) // position in the new file

	for _, p := range parts {
		var (
			made    *ingestedPart
			last    int64 // number of the last row of made in the uploaded file
			number  = p.FirstRow
			skipped = p.Skipped
			end     = p.First + p.Rows
		)

		for row := p.First; row < end; {
			for len(skipped) > 0 && skipped[0] <= number {
				skipped, number = skipped[1:], number+1
			}

			if gone.Has(row) {
				row, number = row+1, number+1

				continue
			}

			if gap := number - last - 1; made == nil || gap >= longGap || len(made.Skipped)+int(gap) > mostSkipped {
				left = append(left, ingestedPart{Part{First: at, Source: Source{File: p.File, Name: p.Name, FirstRow: number, Places: Places{Pages: p.Pages}}}, p.ingestion})
				made = &left[len(left)-1]
			} else {
				for missing := last + 1; missing < number; missing++ {
					made.Skipped = append(made.Skipped, missing)
				}
			}

			// Keep all rows up to the next one that is missing.
			run := min(gone.next(row), end) - row
			if len(skipped) > 0 {
				run = min(run, skipped[0]-number)
			}

			made.Rows, row, number, at = made.Rows+run, row+run, number+run, at+run
			last = number - 1
		}
	}

	return left
}

// changeRows takes out the files that were rewritten without some of their rows, and adds the rewritten and the new
// files.
func (l *Lake) changeRows(ctx context.Context, change Change, d *draft, manifests *[]iceberg.ManifestFile) error {
	base := uuid.Nil
	if d.base.current != nil {
		base = d.base.current.ID
	}

	if base != change.Base {
		return ErrReplaced
	}

	if d.base.current == nil {
		return d.mergeColumns(nil)
	}

	rows := change.Removed

	for _, s := range d.staged {
		if s.Ingestion == change.Rewritten {
			rows += s.Rows
		}
	}

	return l.exchange(ctx, change, d, manifests, rows)
}

// StagedFiles returns the staged files of ingestions that are completely written, in the order in which they were
// staged, and the columns of each.
func (l *Lake) StagedFiles(ctx context.Context, q postgres.Querier, t Table, ingestions []uuid.UUID) ([]File, [][]Column, error) {
	return selectStagedFiles(ctx, q, t, ingestions)
}
