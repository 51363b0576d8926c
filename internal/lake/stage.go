package lake

import (
	"cmp"
	"context"
	"io"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/postgres"
)

const (
	// staleAfter is how long writing a data file may take before the file counts as abandoned.
	staleAfter = 24 * time.Hour
	// stillWriting is how long a writer may continue to write an object after it was dropped.
	stillWriting = 10 * time.Minute
)

// Plan assigns ids and types to the columns of a file that is to be written. Names are compared without case.
//
// When appending, a column that the table has keeps its id, its spelling and its type, and the caller must convert
// the values to that type. The one exception is a decimal, which gets more digits before the point if the wanted type
// has more. When replacing, a column keeps its id only if its type is the same. New columns get new ids. The ids are
// reserved for this name and type, so that two writers never give the same id to different columns.
func (l *Lake) Plan(ctx context.Context, t Table, want []Column, mode Mode) ([]Column, error) {
	if err := validate(want); err != nil {
		return nil, err
	}

	var planned []Column

	// Usually every column is already known, and no lock is needed.
	err := l.db.Do(ctx, func(q postgres.Querier) error {
		_, err := l.planFor(ctx, q, t, want, mode, &planned)

		return err
	})
	if err != nil || planned != nil {
		return planned, err
	}

	err = l.db.InTx(ctx, func(tx postgres.Tx) error {
		if err := insertTable(ctx, tx, t); err != nil {
			return err
		}

		if err := lockTable(ctx, tx, t); err != nil {
			return err
		}

		reserved, err := l.planFor(ctx, tx, t, want, mode, &planned)
		if err != nil || planned != nil {
			return err
		}

		planned = reserved.planned

		return updateGiven(ctx, tx, t, reserved.given, reserved.last)
	})

	return planned, err
}

type reservation struct {
	planned, given []Column
	last           int
}

// planFor sets planned if nothing has to be reserved. Otherwise it returns the required reservation.
func (l *Lake) planFor(ctx context.Context, q postgres.Querier, t Table, want []Column, mode Mode, planned *[]Column) (r reservation, err error) {
	s, err := selectState(ctx, q, t)
	if err != nil || s == nil {
		return r, err
	}

	if s.removed {
		return r, fault.Absent()
	}

	var current []Column
	if s.current != nil {
		current = s.current.Columns
	}

	r.planned, r.given, r.last = assign(current, s.given, want, s.last, mode)
	if slices.Equal(r.given, s.given) {
		*planned = r.planned
	}

	return r, nil
}

// StageTx inserts the row of a data file before its object is written. NotFound if the table was removed.
func (l *Lake) StageTx(ctx context.Context, tx postgres.Tx, t Table, ingestion uuid.UUID, source Source) (Staged, error) {
	id := cmp.Or(source.ID, uuid.Must(uuid.NewV7()))
	s := Staged{Table: t, ID: id, Ingestion: ingestion, Source: source, Key: dataKey(t, id)}

	done, err := insertStaged(ctx, tx, s, l.now().Add(staleAfter+l.deleteGrace))
	if err == nil && !done {
		err = fault.Absent()
	}

	return s, err
}

// Write writes a local Parquet file to the store. The file must have exactly these columns. Write can be repeated.
func (l *Lake) Write(ctx context.Context, s Staged, path string, columns []Column) (Staged, error) {
	return l.WriteCounted(ctx, s, path, columns, new(atomic.Int64))
}

// WriteCounted is Write, and counts the bytes that are sent. It counts those twice that are sent twice.
func (l *Lake) WriteCounted(ctx context.Context, s Staged, path string, columns []Column, sent *atomic.Int64) (Staged, error) {
	file, err := os.Open(path)
	if err != nil {
		return s, err
	}
	defer func() { _ = file.Close() }()

	if s, err = l.describe(s, file, columns); err != nil {
		return s, err
	}

	return s, l.store.WriteFile(ctx, s.Key, countingFile{file, sent}, s.Size)
}

// countingFile counts the bytes that are read.
type countingFile struct {
	io.ReaderAt

	read *atomic.Int64
}

func (c countingFile) ReadAt(p []byte, offset int64) (int, error) {
	n, err := c.ReaderAt.ReadAt(p, offset)
	c.read.Add(int64(n))

	return n, err
}

// WriteStream writes the bytes of a Parquet file to the store while the file is being made. Written must follow when it is complete.
func (l *Lake) WriteStream(ctx context.Context, s Staged, content io.Reader) (size int64, err error) {
	return l.store.Write(ctx, s.Key, content)
}

// Written does what Write does for a local Parquet file whose bytes WriteStream has written.
func (l *Lake) Written(s Staged, path string, columns []Column) (Staged, error) {
	file, err := os.Open(path)
	if err != nil {
		return s, err
	}
	defer func() { _ = file.Close() }()

	return l.describe(s, file, columns)
}

// describe adds to a staged file what its footer says.
func (l *Lake) describe(s Staged, file *os.File, columns []Column) (Staged, error) {
	info, err := file.Stat()
	if err != nil {
		return s, err
	}

	d, err := describe(file, info.Size(), l.base+s.Key, columns)
	if err != nil {
		return s, err
	}

	s.Columns, s.Size, s.Rows, s.entry, s.bounds = columns, info.Size(), d.rows, d.entry, d.bounds

	return s, nil
}

// ReadyTx marks files as written, so that they can be committed. ErrDropped if one was dropped in the meantime.
func (l *Lake) ReadyTx(ctx context.Context, tx postgres.Tx, staged []Staged) error {
	for _, s := range staged {
		done, err := updateReady(ctx, tx, s)
		if err != nil {
			return err
		}

		if !done {
			return ErrDropped
		}
	}

	return nil
}

// RestageTx puts files in the place of staged ones that are not committed. ErrDropped if one was dropped in the meantime.
func (l *Lake) RestageTx(ctx context.Context, tx postgres.Tx, t Table, out []File, in []Staged) error {
	keys := make([]string, len(out))
	for n, f := range out {
		keys[n] = f.Key
	}

	if all, err := dropReady(ctx, tx, t, keys, l.now().Add(l.deleteGrace)); err != nil {
		return err
	} else if !all {
		return ErrDropped
	}

	return l.ReadyTx(ctx, tx, in)
}

// DropTx drops the staged files of an ingestion that are not committed.
func (l *Lake) DropTx(ctx context.Context, tx postgres.Tx, t Table, ingestion uuid.UUID) error {
	return l.DropFromTx(ctx, tx, t, ingestion, uuid.Nil)
}

// DropFromTx is DropTx for the staged files of one uploaded file.
func (l *Lake) DropFromTx(ctx context.Context, tx postgres.Tx, t Table, ingestion, file uuid.UUID) error {
	now := l.now()

	return dropStaged(ctx, tx, t, ingestion, file, now.Add(max(l.deleteGrace, stillWriting)), now.Add(l.deleteGrace))
}
