package source

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/connection"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/lake"
	"quern.dev/quern/internal/postgres"
)

// Table is an Iceberg table that a source attaches.
type Table struct {
	Namespace string `json:"namespace"` // its parts are separated by dots
	Name      string `json:"name"`
}

func (t Table) String() string { return t.Namespace + "." + t.Name }

// checkTable returns ValidationFailed for a table that cannot be attached. It asks the other side.
func (s *Sources) checkTable(ctx context.Context, who auth.Principal, want *Want) error {
	switch {
	case want.Table == nil:
		return fault.Invalid("iceberg", "must name the table of the catalog")
	case want.Rows != nil:
		return fault.Invalid("postgresql", "is only for a connection to a database")
	case want.Prefix != "" || want.Pattern != "*" || want.Changed != Keep || want.Deleted != Keep || len(want.Accept) > 0:
		return fault.Invalid("prefix", "pattern, changed, deleted and accept are only for sources that load: a table is attached as it is")
	}

	tables, err := s.Connections.OpenIceberg(ctx, who, want.Connection)
	if err != nil {
		return err
	}

	found, err := readTable(ctx, tables, *want.Table)
	if unfit, isUnfit := errors.AsType[*lake.UnfitError](err); isUnfit {
		return fault.Invalid("iceberg", unfit.Reason)
	}

	if err != nil {
		return err
	}

	dataset, err := s.existing(ctx, who, want.At)
	if err != nil || dataset == nil {
		return err
	}

	return s.Ingest.CheckAttach(ctx, *dataset, found)
}

// maxMoments limits how long the metadata and the manifests of a table are read.
const maxMoments = 10 * time.Minute

// readTable reads the current snapshot of a table.
//
// Faults: UpstreamUnavailable; lake.UnfitError for a table that cannot be attached.
func readTable(ctx context.Context, tables *connection.Tables, of Table) (found lake.Foreign, err error) {
	ctx, cancel := context.WithTimeout(ctx, maxMoments)
	defer cancel()

	metadata, err := tables.Load(ctx, of.Namespace, of.Name)
	if err != nil {
		return found, connection.FailedIceberg(err)
	}

	found, err = lake.ReadForeign(ctx, metadata, func(ctx context.Context, address string, most int64) ([]byte, error) {
		return readObject(ctx, tables, address, most)
	})
	found.Name = of.String()

	if err != nil {
		return found, err
	}

	for _, file := range found.Files {
		if !tables.Has(file.Address) {
			return found, outside()
		}
	}

	return found, nil
}

// outside is the reason for a table with files elsewhere.
func outside() error {
	return &lake.UnfitError{Reason: "The table has files that are not in the bucket and under the prefix of the connection. Make a connection to where they are."}
}

// readObject reads a manifest of a table.
func readObject(ctx context.Context, tables *connection.Tables, address string, most int64) ([]byte, error) {
	object, err := tables.Open(ctx, address)

	switch {
	case errors.Is(err, connection.ErrOutside):
		return nil, outside()
	case fault.Is(err, fault.NotFound): // the snapshot may have expired since its metadata was read
		return nil, fault.New(fault.UpstreamUnavailable, "The store has no longer a manifest of the table. Another snapshot may have taken its place: run the source again.")
	case err != nil:
		return nil, connection.FailedIceberg(err)
	}

	defer func() { _ = object.Close() }()

	content, err := io.ReadAll(io.LimitReader(object, most+1))
	if err != nil {
		return nil, connection.FailedIceberg(err)
	}

	if int64(len(content)) > most {
		return nil, &lake.UnfitError{Reason: fmt.Sprintf("A manifest of the table is larger than %d bytes. Rewrite the manifests of the table.", most)}
	}

	return content, nil
}

// attachTable attaches the current snapshot of the table. If nothing has changed since the last run, the dataset stays as it is.
func (w *working) attachTable(ctx context.Context) error {
	tables, err := w.Connections.OpenIceberg(ctx, w.who, w.source.Connection)
	if err != nil {
		return orConnectionGone(err)
	}

	found, err := readTable(ctx, tables, *w.source.Table)
	if unfit, isUnfit := errors.AsType[*lake.UnfitError](err); isUnfit {
		return stop(StopFile, unfit.Reason+" Then resume the source.")
	}

	if err != nil {
		return err
	}

	found.Account, found.Connection = w.source.Account, w.source.Connection

	err = w.Ingest.Attach(ctx, w.who, w.dataset, found, func(ctx context.Context) error {
		if err := w.stillUsable(ctx); err != nil {
			return err
		}

		return w.record(ctx, func(postgres.Tx) error { return nil })
	})

	switch {
	case fault.Is(err, fault.NotFound):
		return stop(StopDataset, "The dataset is gone, or you may no longer change it.")
	case fault.Is(err, fault.Conflict):
		return stop(StopDataset, fault.From(err).Message)
	case err != nil:
		return err
	}

	return w.settled(ctx, func(tx postgres.Tx) error { return settleTable(ctx, tx, w.run, found, w.dataset.ID) })
}

// Files opens the files of attached tables for those who read the datasets.
type Files struct {
	Connections *connection.Connections
	Credentials auth.Credentials
}

// Open returns how the files of an attached table are read, if the account that attached it may still use the connection.
//
// Faults: InvalidState if it may not, Unavailable.
func (f Files) Open(ctx context.Context, at lake.Attachment) (lake.ReadForeignFile, error) {
	who, err := f.Credentials.Current(ctx, auth.Holder{Account: at.Account})

	var tables *connection.Tables
	if err == nil {
		tables, err = f.Connections.OpenIceberg(ctx, who, at.Connection)
	}

	if fault.Is(err, fault.Unauthorized) || fault.Is(err, fault.NotFound) || fault.Is(err, fault.Forbidden) {
		return nil, fault.New(fault.InvalidState, fmt.Sprintf("The files of the attached table %s may no longer be read: the connection was deleted, or the account that attached the table may no longer use it.", at.Name))
	}

	if err != nil {
		return nil, late(err)
	}

	return func(ctx context.Context, address string) (io.ReadCloser, error) {
		object, err := tables.Open(ctx, address)

		switch {
		case fault.Is(err, fault.NotFound):
			return nil, fault.New(fault.InvalidState, fmt.Sprintf("A data file of the attached table %s is no longer in its store: the snapshot that this statement reads has expired there. "+
				"Run the source of the dataset again, which attaches the current snapshot.", at.Name))
		case errors.Is(err, connection.ErrOutside):
			return nil, fault.New(fault.InvalidState, fmt.Sprintf("A data file of the attached table %s is not in the store of the connection. Run the source of the dataset again.", at.Name))
		case err != nil:
			return nil, late(connection.FailedIceberg(err))
		default:
			return failing{object}, nil
		}
	}, nil
}

// late returns the fault of a statement when the other side does not answer, which may pass.
func late(err error) error {
	if fault.Is(err, fault.UpstreamUnavailable) {
		return fault.New(fault.Unavailable, fault.From(err).Message)
	}

	return err
}

// failing reports errors of reading as problems of the connection.
type failing struct{ io.ReadCloser }

func (f failing) Read(p []byte) (int, error) {
	n, err := f.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, context.Canceled) {
		err = late(connection.FailedIceberg(err))
	}

	return n, err
}
