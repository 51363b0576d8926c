package lake

import (
	"context"
	"os"

	"github.com/google/uuid"

	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/postgres"
)

// Object is an object derived from the rows of a table and stored beside the table. Fetch reads it.
type Object struct {
	Table Table
	ID    uuid.UUID
	Key   string
	Size  int64 // set by WriteObject
}

// File returns the key and size of the object as a File for Fetch.
func (o Object) File() File { return File{Key: o.Key, Size: o.Size} }

// StageObjectTx inserts the row of an object before the object is written. NotFound if the table was removed.
func (l *Lake) StageObjectTx(ctx context.Context, tx postgres.Tx, t Table, suffix string) (Object, error) {
	id := uuid.Must(uuid.NewV7())
	o := Object{Table: t, ID: id, Key: tableKey(t) + "/derived/" + id.String() + suffix}

	done, err := insertObject(ctx, tx, o, l.now().Add(staleAfter+l.deleteGrace))
	if err == nil && !done {
		err = fault.Absent()
	}

	return o, err
}

// WriteObject writes a local file to the store. It can be repeated.
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

// KeepObjectTx records that a written object is needed. ErrDropped if writing took so long that the object was
// already claimed for removal.
func (l *Lake) KeepObjectTx(ctx context.Context, tx postgres.Tx, o Object) error {
	done, err := keepObject(ctx, tx, o)
	if err == nil && !done {
		err = ErrDropped
	}

	return err
}

// DropObjectTx records that an object is no longer needed. The object is removed after the grace period.
func (l *Lake) DropObjectTx(ctx context.Context, tx postgres.Tx, t Table, key string) error {
	return dropObject(ctx, tx, t, key, l.now().Add(l.deleteGrace))
}
