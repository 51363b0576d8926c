package lake

import (
	"context"
	"os"

	"github.com/google/uuid"

	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/postgres"
)

// Object is something made of a table's rows that stands beside it. Fetch reads it.
type Object struct {
	Table Table
	ID    uuid.UUID
	Key   string
	Size  int64 // after WriteObject
}

// File is what Fetch wants to know of it.
func (o Object) File() File { return File{Key: o.Key, Size: o.Size} }

// StageObjectTx announces an object: the row stands before it. NotFound: the table was removed.
func (l *Lake) StageObjectTx(ctx context.Context, tx postgres.Tx, t Table, suffix string) (Object, error) {
	id := uuid.Must(uuid.NewV7())
	o := Object{Table: t, ID: id, Key: tableKey(t) + "/derived/" + id.String() + suffix}

	done, err := insertObject(ctx, tx, o, l.now().Add(staleAfter+l.grace))
	if err == nil && !done {
		err = fault.Absent()
	}

	return o, err
}

// WriteObject puts a local file into the store. Repeating it is fine.
func (l *Lake) WriteObject(ctx context.Context, o Object, path string) (Object, error) {
	file, err := os.Open(path)
	if err != nil {
		return o, err
	}
	defer func() { _ = file.Close() }()

	info, err := file.Stat()
	if err != nil {
		return o, err
	}

	o.Size = info.Size()

	return o, l.store.WriteFile(ctx, o.Key, file, o.Size)
}

// KeepObjectTx says that a written object is needed from now on. ErrDropped: it took too long.
func (l *Lake) KeepObjectTx(ctx context.Context, tx postgres.Tx, o Object) error {
	done, err := keepObject(ctx, tx, o)
	if err == nil && !done {
		err = ErrDropped
	}

	return err
}

// DropObjectTx says that an object is not needed any more. It goes after the grace.
func (l *Lake) DropObjectTx(ctx context.Context, tx postgres.Tx, t Table, key string) error {
	return dropObject(ctx, tx, t, key, l.now().Add(l.grace))
}
