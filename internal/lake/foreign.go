package lake

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"quern.dev/quern/internal/fault"
)

// Attachment says which Iceberg table of another catalog a table shows, and who reads it.
type Attachment struct {
	Account    uuid.UUID `json:"account"` // that may use the connection
	Connection uuid.UUID `json:"connection"`
	Name       string    `json:"name"`     // of the table, for people
	Table      uuid.UUID `json:"table"`    // the UUID in its metadata
	Snapshot   int64     `json:"snapshot"` // Iceberg's id of the pinned snapshot; 0 for a table without one
}

// Foreign is an Iceberg table of another catalog at its current snapshot.
type Foreign struct {
	Attachment

	Columns []Column
	Files   []ForeignFile
}

// ForeignFile is a data file of such a table.
type ForeignFile struct {
	Address  string
	Size     int64
	Rows     int64
	Snapshot int64 // that added the file

	bounds map[int]bound
}

// Totals returns the number of rows and bytes of all files.
func (f Foreign) Totals() (rows, bytes int64) {
	for _, file := range f.Files {
		rows, bytes = rows+file.Rows, bytes+file.Size
	}

	return rows, bytes
}

// UnfitError means that a table of another catalog cannot be attached, or one of its files not be read. Reason is a sentence.
type UnfitError struct{ Reason string }

func (e *UnfitError) Error() string { return e.Reason }

func unfit(format string, values ...any) error { return &UnfitError{fmt.Sprintf(format, values...)} }

// Bounds of what is read of another catalog. All of it is held in memory.
const (
	maxForeignFiles     = 20_000
	maxForeignColumns   = 5_000
	maxForeignManifests = 5_000
	maxForeignAvro      = 64 << 20
	maxFileBytes        = 1 << 40
	maxFileRows         = 1 << 40
)

// currentMetadata is what is needed of Iceberg's metadata of a table. Older versions differ in fields that are not needed.
type currentMetadata struct {
	Version       int               `json:"format-version"`
	UUID          string            `json:"table-uuid"`
	CurrentSchema int               `json:"current-schema-id"`
	Schemas       []foreignSchema   `json:"schemas"`
	Current       *int64            `json:"current-snapshot-id"`
	Snapshots     []tableSnapshot   `json:"snapshots"`
	Properties    map[string]string `json:"properties"`
}

type foreignSchema struct {
	ID     int            `json:"schema-id"`
	Fields []foreignField `json:"fields"`
}

type foreignField struct {
	ID   int             `json:"id"`
	Name string          `json:"name"`
	Type json.RawMessage `json:"type"`
}

// ReadForeign reads the current snapshot of a table of another catalog from its metadata. read returns an object of its store. Everything that is read is hostile input.
//
// Faults: UnfitError if the table cannot be attached; those of read.
func ReadForeign(ctx context.Context, metadata []byte, read func(ctx context.Context, address string, most int64) ([]byte, error)) (f Foreign, err error) {
	var m currentMetadata
	if err := json.Unmarshal(metadata, &m); err != nil {
		return f, unfit("The metadata of the table is not that of an Iceberg table.")
	}

	switch {
	case m.Version != 1 && m.Version != formatVersion:
		return f, unfit("The table has version %d of the Iceberg format. Only the versions 1 and 2 can be attached.", m.Version)
	case m.Properties["encryption.key-id"] != "":
		return f, unfit("The table is encrypted.")
	case m.Properties["schema.name-mapping.default"] != "":
		return f, unfit("The table has a name mapping (schema.name-mapping.default), so some of its files may lack the ids of their columns. Rewrite its data files and remove the property.")
	}

	if f.Table, err = uuid.Parse(m.UUID); err != nil || f.Table == uuid.Nil {
		return f, unfit("The metadata of the table has no table-uuid.")
	}

	columns, kinds, err := m.columns()
	if err != nil {
		return f, err
	}

	f.Columns = columns

	if m.Current == nil || *m.Current == -1 {
		return f, nil
	}

	at := slices.IndexFunc(m.Snapshots, func(s tableSnapshot) bool { return s.ID == *m.Current })
	if at < 0 || m.Snapshots[at].List == "" {
		return f, unfit("The metadata of the table has no list of the manifests of its current snapshot.")
	}

	f.Snapshot = *m.Current
	f.Files, err = readFiles(ctx, m.Snapshots[at].List, kinds, read)

	return f, err
}

// columns returns the columns of the current schema, and the types of the fields as the table has them.
func (m currentMetadata) columns() (columns []Column, kinds map[int]string, err error) {
	at := slices.IndexFunc(m.Schemas, func(s foreignSchema) bool { return s.ID == m.CurrentSchema })

	switch {
	case at < 0 || len(m.Schemas[at].Fields) == 0:
		return nil, nil, unfit("The metadata of the table has no current schema.")
	case len(m.Schemas[at].Fields) > maxForeignColumns:
		return nil, nil, unfit("The table has %d columns. At most %d can be attached.", len(m.Schemas[at].Fields), maxForeignColumns)
	}

	var refused []string

	kinds = map[int]string{}

	for _, field := range m.Schemas[at].Fields {
		var kind string
		if err := json.Unmarshal(field.Type, &kind); err != nil {
			kind = "nested"
		}

		column := Column{ID: field.ID, Name: field.Name, Type: foreignType(kind)}
		if column.Type == "" {
			refused = append(refused, fmt.Sprintf("%q (%s)", shortened(field.Name), shortened(kind)))
		}

		if _, isTwice := kinds[field.ID]; isTwice || field.ID < 1 || field.ID > 1<<30 {
			return nil, nil, unfit("The schema of the table has no unique ids.")
		}

		kinds[field.ID] = kind
		columns = append(columns, column)
	}

	if len(refused) > 0 {
		return nil, nil, unfit("These columns have types that cannot be read: %s. Attach a table without them.", strings.Join(refused[:min(len(refused), 5)], ", "))
	}

	if err := validate(columns); err != nil {
		return nil, nil, unfit("%s Names are compared without case.", fault.From(err).Subs[0].Message)
	}

	return columns, kinds, nil
}

// shortened returns the beginning of a text that somebody else wrote.
func shortened(text string) string {
	if text = strings.ToValidUTF8(text, "?"); len(text) > 60 {
		text = strings.ToValidUTF8(text[:60], "") + "…"
	}

	return text
}

// foreignType returns the type in which a column of a table of another catalog is read, and empty for one that cannot be read.
func foreignType(kind string) Type {
	switch kind {
	case "boolean":
		return Boolean
	case "int", "long":
		return Bigint
	case "float", "double":
		return Double
	case "date":
		return Date
	case "time":
		return Time
	case "timestamp", "timestamptz": // the latter in UTC
		return Timestamp
	case "string", "uuid":
		return Varchar
	}

	if t := Type(strings.ReplaceAll(kind, " ", "")); t.Valid() && strings.HasPrefix(string(t), "decimal(") {
		return t
	}

	return ""
}

// readFiles reads the data files of a snapshot.
func readFiles(ctx context.Context, list string, kinds map[int]string, read func(ctx context.Context, address string, most int64) ([]byte, error)) (files []ForeignFile, err error) {
	content, err := read(ctx, list, maxForeignAvro)
	if err != nil {
		return nil, err
	}

	manifests, err := decodeManifestList(content)
	if err != nil {
		return nil, err
	}

	found := make([][]ForeignFile, len(manifests))

	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(readers)

	for n, m := range manifests {
		group.Go(func() (err error) {
			defer fault.Recover(&err)

			content, err := read(ctx, m.path, maxForeignAvro)
			if err == nil {
				found[n], err = m.decode(content, kinds)
			}

			return err
		})
	}

	if err := group.Wait(); err != nil {
		return nil, err
	}

	files = slices.Concat(found...)
	met := make(map[string]bool, len(files))

	for _, file := range files {
		if met[file.Address] {
			return nil, unfit("The snapshot of the table has a data file twice.")
		}

		met[file.Address] = true
	}

	if len(files) > maxForeignFiles {
		return nil, unfit("The table has %d data files. At most %d can be attached. Compact the table.", len(files), maxForeignFiles)
	}

	return files, nil
}
