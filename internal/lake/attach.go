package lake

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/parquet/metadata"
	"github.com/apache/iceberg-go"
	"github.com/google/uuid"

	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/postgres"
)

// attachmentOf returns the attachment of a file with an address, and none for one of our store.
func attachmentOf(address string, attached *Attachment) Attachment {
	if address == "" || attached == nil {
		return Attachment{}
	}

	return *attached
}

// IsAttached reports whether a table shows an Iceberg table of another catalog.
func IsAttached(ctx context.Context, q postgres.Querier, t Table) (bool, error) {
	attached, err := selectAttached(ctx, q, t)

	return attached != nil, err
}

// attachingID is the id under which files of an attached table are staged, instead of the id of an ingestion.
func attachingID(t Table) uuid.UUID { return uuid.NewSHA1(t.Dataset, []byte("attaching")) }

// Attaching returns the change that makes a table show another one as it was read, and stages the files that are new. Files that a dead worker staged are dropped. isDone reports that
// there is nothing to change. The caller must hold the lease for commits to the table.
//
// Faults: ErrOwnRows.
func (l *Lake) Attaching(ctx context.Context, t Table, found Foreign) (change Change, isDone bool, err error) {
	var (
		snapshot *Snapshot
		files    []File
		attached *Attachment
	)

	err = l.db.Do(ctx, func(q querier) (err error) {
		if snapshot, files, err = selectCurrent(ctx, q, t); err == nil {
			attached, err = selectAttached(ctx, q, t)
		}

		return err
	})
	if err != nil {
		return Change{}, false, err
	}

	if !mayShow(snapshot, attached, found) {
		return Change{}, false, ErrOwnRows
	}

	gone, fresh := found.compare(files)
	if snapshot != nil && *attached == found.Attachment && slices.Equal(snapshot.Columns, found.Columns) && len(gone)+len(fresh) == 0 {
		return Change{}, true, nil
	}

	change = Change{Table: t, Mode: Attached, Ingestions: []uuid.UUID{attachingID(t)}, Columns: found.Columns, Files: gone, Attach: found.Attachment}
	if snapshot != nil {
		change.Base = snapshot.ID
	}

	for _, f := range gone {
		change.Removed += f.Rows
	}

	return change, false, l.stageForeign(ctx, t, found, fresh)
}

// mayShow reports whether a table may show another one: it has never had rows, or shows the same table already.
func mayShow(snapshot *Snapshot, attached *Attachment, found Foreign) bool {
	return snapshot == nil && attached == nil || snapshot != nil && attached != nil && attached.Table == found.Table
}

// MayAttach reports whether a table may show another one as it was read.
func (l *Lake) MayAttach(ctx context.Context, t Table, found Foreign) (may bool, err error) {
	err = l.db.Do(ctx, func(q querier) error {
		snapshot, _, err := selectCurrent(ctx, q, t)
		if err != nil {
			return err
		}

		attached, err := selectAttached(ctx, q, t)
		may = mayShow(snapshot, attached, found)

		return err
	})

	return may, err
}

// compare returns the files of the table that are no longer in f, and those of f that are new.
func (f Foreign) compare(files []File) (gone []File, fresh []ForeignFile) {
	known := make(map[string]ForeignFile, len(f.Files))
	for _, file := range f.Files {
		known[file.Address] = file
	}

	for _, file := range files {
		if same, isThere := known[file.Address]; isThere && same.Size == file.Size && same.Rows == file.Rows {
			delete(known, file.Address)
		} else {
			gone = append(gone, file)
		}
	}

	for _, file := range f.Files {
		if _, isNew := known[file.Address]; isNew {
			fresh = append(fresh, file)
		}
	}

	return gone, fresh
}

// stageForeign inserts the rows of files that are not written: they are where the other catalog says.
func (l *Lake) stageForeign(ctx context.Context, t Table, of Foreign, files []ForeignFile) error {
	staged := make([]foreignStaged, len(files))

	for n, f := range files {
		id := uuid.Must(uuid.NewV7())

		entry, err := l.foreignEntry(dataKey(t, id), f)
		if err != nil {
			return err
		}

		staged[n] = foreignStaged{ForeignFile: f, id: id, key: dataKey(t, id), name: of.nameOf(f), entry: entry}
	}

	return l.db.InTx(ctx, func(tx postgres.Tx) error {
		if err := insertTable(ctx, tx, t); err != nil {
			return err
		}

		if err := l.DropTx(ctx, tx, t, attachingID(t)); err != nil {
			return err
		}

		return insertForeign(ctx, tx, t, of.Table, staged)
	})
}

// nameOf returns the origin of the rows of a file: the table, the snapshot that added the file, and the name of the file.
func (f Foreign) nameOf(file ForeignFile) string {
	return fmt.Sprintf("%s@%d/%s", f.Name, file.Snapshot, file.Address[strings.LastIndex(file.Address, "/")+1:])
}

// foreignEntry returns the entry of a file in our own manifests. Its address is made of the key in lake_files, which names no object.
func (l *Lake) foreignEntry(key string, f ForeignFile) ([]byte, error) {
	builder, err := iceberg.NewDataFileBuilder(*iceberg.UnpartitionedSpec, iceberg.EntryContentData, l.base+key, iceberg.ParquetFile, nil, nil, nil, f.Rows, f.Size)
	if err != nil {
		return nil, err
	}

	entry, canBeEncoded := builder.Build().(iceberg.AvroEntryMarshaler)
	if !canBeEncoded {
		return nil, errors.ErrUnsupported
	}

	return entry.MarshalAvroEntry(*iceberg.UnpartitionedSpec, schemaOf(nil), formatVersion)
}

// attach takes out the files that are gone, adds the new ones, and sets the columns.
func (l *Lake) attach(ctx context.Context, change Change, d *draft, manifests *[]iceberg.ManifestFile) error {
	current := d.base.current

	switch {
	case current == nil && change.Base != uuid.Nil, current != nil && current.ID != change.Base:
		return ErrReplaced
	case current != nil:
		if err := l.exchange(ctx, change, d, manifests, change.Removed); err != nil {
			return err
		}
	}

	d.made.Columns, d.attach = change.Columns, change.Attach

	return nil
}

// openForeign returns the readers of attached tables, by attachment. It asks each time whether reading is still permitted, also for cached files.
func (l *Lake) openForeign(ctx context.Context, files []File) (opened map[Attachment]ReadForeignFile, err error) {
	for _, f := range files {
		if _, isOpen := opened[f.At]; isOpen || f.Address == "" {
			continue
		}

		if l.foreign == nil {
			return nil, errors.New("this process reads no attached tables")
		}

		if opened == nil {
			opened = map[Attachment]ReadForeignFile{}
		}

		if opened[f.At], err = l.foreign(ctx, f.At); err != nil {
			return nil, err
		}
	}

	return opened, nil
}

// cannotRead is the fault for a file that differs from what its attached table says. Only attaching another snapshot helps.
func cannotRead(file File, reason string) error {
	return fault.New(fault.InvalidState, fmt.Sprintf("A data file of the attached table %s cannot be read: %s Run the source of the dataset again, which attaches the current snapshot.", file.At.Name, reason))
}

// fits checks that a copy has the size and rows that the other catalog says, and that its columns have unique ids.
func (f File) fits(copied *os.File) error {
	info, err := copied.Stat()
	if err != nil {
		return err
	}

	if info.Size() != f.Size {
		return cannotRead(f, "it has another size than the table says.")
	}

	var reason *UnfitError
	if err := checkForeign(copied, f.Size, f.Rows); errors.As(err, &reason) {
		return cannotRead(f, reason.Reason)
	} else if err != nil {
		return err
	}

	return nil
}

// checkForeign returns UnfitError for a Parquet file that cannot be read as that of an attached table.
func checkForeign(file io.ReaderAt, size, rows int64) (err error) {
	defer fault.Recover(&err)

	encrypted := []byte("PARE")
	if end := make([]byte, len(encrypted)); size >= trailer {
		if _, err := file.ReadAt(end, size-int64(len(end))); err == nil && bytes.Equal(end, encrypted) {
			return unfit("it is encrypted.")
		}
	}

	content, err := footer(file, size)
	if err != nil {
		return unfit("it is not a Parquet file.")
	}

	meta, err := metadata.NewFileMetaData(content, nil)
	if err != nil {
		return unfit("it is not a Parquet file.")
	}

	if meta.IsSetEncryptionAlgorithm() {
		return unfit("it is encrypted.")
	}

	if meta.GetNumRows() != rows || checkRowGroups(meta, meta.Schema.NumColumns()) != nil {
		return unfit("it has another number of rows than the table says.")
	}

	root, met := meta.Schema.Root(), map[int32]bool{}

	for i := range root.NumFields() {
		id := root.Field(i).FieldID()
		if id < 1 || met[id] {
			return unfit("its columns have no unique ids.")
		}

		met[id] = true
	}

	return nil
}
