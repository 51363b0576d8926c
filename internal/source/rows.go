package source

import (
	"context"
	"errors"
	"io"
	"slices"

	"github.com/google/uuid"

	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/catalog"
	"quern.dev/quern/internal/connection"
	"quern.dev/quern/internal/extract"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/ingest"
	"quern.dev/quern/internal/lake"
	"quern.dev/quern/internal/postgres"
	"quern.dev/quern/internal/upload"
)

// Modes of a source of rows.
const (
	Full    = "full"    // each run replaces the rows of the dataset
	Growing = "growing" // each run loads the rows whose cursor column is higher than before
)

// AsText is a column that has become text because its type has no exact counterpart.
const AsText Event = "asText"

// Rows are the rows of a database that a source loads.
type Rows struct {
	Schema  string   `json:"schema,omitempty"`
	Table   string   `json:"table,omitempty"`
	Query   string   `json:"query,omitempty"`
	Mode    string   `json:"mode"`
	Cursor  string   `json:"cursor,omitempty"` // name of the column
	Overlap string   `json:"overlap,omitempty"`
	Key     []string `json:"key,omitempty"`
	AsText  []string `json:"asText,omitempty"`
}

func (r Rows) extract(from string) extract.Rows {
	return extract.Rows{
		Schema: r.Schema, Table: r.Table, Query: r.Query, Cursor: r.Cursor, Overlap: r.Overlap, From: from, Unique: r.Mode == Growing && len(r.Key) == 0, AsText: r.AsText,
	}
}

func (r Rows) ingestMode() lake.Mode {
	switch {
	case r.Mode == Full:
		return ingest.Replace
	case len(r.Key) > 0:
		return lake.Merged
	default:
		return ingest.Append
	}
}

// load is the load of rows that is in progress: claimed while its ingestion is not named.
type load struct {
	Cursor    string    `json:"cursor"` // that is valid when the rows are loaded
	Size      int64     `json:"size"`
	Session   uuid.UUID `json:"session"`
	Owner     uuid.UUID `json:"owner"` // account of the dataset
	Dataset   uuid.UUID `json:"dataset"`
	Ingestion uuid.UUID `json:"ingestion"`
}

// checkKind returns ValidationFailed for a request that does not fit the kind of the connection.
func (s *Sources) checkKind(ctx context.Context, who auth.Principal, want *Want) error {
	found, err := s.Connections.Get(ctx, who, want.Connection)
	if err != nil {
		return err
	}

	switch {
	case found.Kind != connection.KindHTTPS && len(want.Paths) > 0:
		return fault.Invalid("paths", "is only for a connection to addresses")
	case found.Kind != connection.KindIceberg && want.Table != nil:
		return fault.Invalid("iceberg", "is only for a connection to an Iceberg catalog")
	case found.Kind == connection.KindIceberg:
		return unreached(found.Kind, s.checkTable(ctx, who, want))
	case found.Kind == connection.KindPostgres:
		return unreached(found.Kind, s.checkRows(ctx, who, want))
	case want.Rows != nil:
		return fault.Invalid("postgresql", "is only for a connection to a database")
	case found.Kind == connection.KindS3:
		return nil
	case want.Prefix != "" || want.Pattern != "*":
		return fault.Invalid("prefix", "and pattern are only for a connection to a bucket; paths names the files")
	default:
		return checkPaths(want.Paths)
	}
}

// unreached returns ValidationFailed with the reason if the other side could not be reached, as for a new connection.
func unreached(kind string, err error) error {
	if fault.Is(err, fault.UpstreamUnavailable) {
		return fault.Invalid(kind, fault.From(err).Message)
	}

	return err
}

// checkRows returns ValidationFailed for rows that cannot be loaded exactly. It asks the other side.
func (s *Sources) checkRows(ctx context.Context, who auth.Principal, want *Want) (err error) {
	rows := want.Rows

	switch {
	case rows == nil:
		return fault.Invalid("postgresql", "must say which rows of the database are loaded")
	case want.Prefix != "" || want.Pattern != "*" || want.Changed != Keep || want.Deleted != Keep:
		return fault.Invalid("prefix", "pattern, changed and deleted are only for a connection with files")
	case (rows.Table == "") == (rows.Query == ""):
		return fault.Invalid("postgresql", "must have either table or query")
	case rows.Mode == Full && (rows.Cursor != "" || rows.Overlap != "" || len(rows.Key) > 0):
		return fault.Invalid("postgresql", "must have cursorColumn, overlap and key only in the mode growing")
	case rows.Mode == Growing && rows.Cursor == "":
		return fault.Invalid("postgresql.cursorColumn", "is required in the mode growing")
	}

	if rows.Mode == Growing && len(rows.Key) == 0 {
		if rows.Key, err = s.declaredKey(ctx, who, *want); err != nil {
			return err
		}

		if len(rows.Key) == 0 && rows.Overlap != "" && rows.Overlap != "0" {
			return fault.Invalid("postgresql.overlap", "needs a key: without one, the rows of the overlap would be appended again")
		}
	}

	target, err := s.Connections.OpenPostgres(ctx, who, want.Connection)
	if err != nil {
		return err
	}

	return told(ctx, target.Check(ctx, rows.extract("")), func(reason string) error { return fault.Invalid("postgresql", reason) })
}

// told returns the error for a failure of reading: by unfit if somebody must change something, and otherwise that of the connection.
func told(ctx context.Context, err error, unfit func(reason string) error) error {
	if reason, ok := errors.AsType[*extract.UnfitError](err); ok {
		return unfit(reason.Reason)
	}

	if _, isOurs := errors.AsType[*fault.Error](err); err == nil || isOurs || ctx.Err() != nil {
		return err
	}

	return connection.FailedPostgres(err)
}

// declaredKey returns the key of the dataset, and none if it has none or does not exist yet.
func (s *Sources) declaredKey(ctx context.Context, who auth.Principal, want Want) ([]string, error) {
	found, err := s.existing(ctx, who, want.At)
	if err != nil || found == nil {
		return nil, err
	}

	return found.Key.Columns, nil
}

// existing returns the dataset if it exists and the caller may change it, and nil otherwise. A later check refuses callers without the right.
func (s *Sources) existing(ctx context.Context, who auth.Principal, at catalog.Path) (found *catalog.Dataset, err error) {
	at.Username = who.NameOf(at.Username)

	err = s.DB.Do(ctx, func(q postgres.Querier) error {
		dataset, err := s.Catalog.AllowDraft(ctx, q, who, auth.Editor, at)
		if fault.Is(err, fault.NotFound) {
			return nil
		}

		found = &dataset

		return err
	})

	return found, err
}

// loadRows finishes the load that an earlier run or attempt has begun, and then loads what is new.
func (w *working) loadRows(ctx context.Context) error {
	// Only the holder of the lease changes the load, and the lease was taken after the source was read.
	err := w.DB.Do(ctx, func(q postgres.Querier) error {
		found, err := selectSource(ctx, q, w.source.Account, w.source.ID)
		if err == nil && found != nil {
			w.source = *found
		}

		return err
	})
	if err != nil {
		return err
	}

	if l := w.source.load; l != nil && l.Ingestion != uuid.Nil {
		if err := w.continueRows(ctx, *l); err != nil {
			return err
		}
	}

	return w.loadNewRows(ctx)
}

// continueRows finishes a load whose ingestion was named. If nobody can finish it, its rows are read again.
func (w *working) continueRows(ctx context.Context, l load) error {
	found, err := w.Ingest.Find(ctx, l.Owner, l.Dataset, l.Ingestion)
	if err != nil {
		return err
	}

	if found == nil {
		if isForgotten, err := w.submitRows(ctx, l); err != nil || isForgotten {
			return err
		}
	} else if found.Status == ingest.Failed || found.Status == ingest.Cancelled {
		// From now on it cannot be retried: its rows would be loaded twice.
		isOver, err := w.Ingest.Supersede(ctx, l.Owner, l.Dataset, l.Ingestion)
		if err != nil {
			return err
		}

		if isOver {
			return w.setLoad(ctx, nil)
		}
	}

	return w.waitRows(ctx, l)
}

func (w *working) setLoad(ctx context.Context, l *load) error {
	err := w.record(ctx, func(tx postgres.Tx) error { return updateLoad(ctx, tx, w.source, l) })
	if err == nil {
		w.source.load = l
	}

	return err
}

// loadNewRows reads the rows that are new into a file, and loads it.
func (w *working) loadNewRows(ctx context.Context) error {
	// The transaction of the other side does not wait for our store.
	content, err := w.newScratch()
	if err != nil {
		return err
	}

	defer content.close()

	found, err := w.readRows(ctx, content.Writer)
	if err != nil || found.Rows == 0 && w.source.Rows.Mode == Growing {
		return err
	}

	size, err := content.file.Seek(0, io.SeekCurrent)
	if err != nil {
		return err
	}

	if err := content.rewind(); err != nil {
		return err
	}

	l, err := w.claimRows(ctx, found, size)
	if err != nil {
		return err
	}

	if err := w.Uploads.Receive(ctx, w.who, l.Session, content.file); err != nil {
		return err
	}

	l.Owner, l.Dataset, l.Ingestion = w.dataset.Account, w.dataset.ID, uuid.Must(uuid.NewV7())
	if err := w.setLoad(ctx, &l); err != nil {
		return err
	}

	if isForgotten, err := w.submitRows(ctx, l); err != nil || isForgotten {
		return err
	}

	return w.waitRows(ctx, l)
}

func (w *working) readRows(ctx context.Context, to io.Writer) (extract.Found, error) {
	target, err := w.Connections.OpenPostgres(ctx, w.who, w.source.Connection)
	if err != nil {
		return extract.Found{}, orConnectionGone(err)
	}

	found, err := target.Read(ctx, w.source.Rows.extract(w.source.Cursor), to)

	return found, told(ctx, err, func(reason string) error { return stop(StopFile, reason+" Then resume the source.") })
}

// claimRows records that the rows are going to be loaded, together with the upload session that receives them.
func (w *working) claimRows(ctx context.Context, found extract.Found, size int64) (load, error) {
	l := load{Cursor: found.Cursor, Size: size}

	var now findings
	for _, column := range found.Texts {
		now.notes = append(now.notes, Note{column, AsText})
	}

	err := w.record(ctx, func(tx postgres.Tx) error {
		session, err := w.Uploads.ExpectTx(ctx, tx, w.who, upload.NewFile{Name: "rows.parquet", Size: size})
		if err != nil {
			return err
		}

		l.Session = session.ID

		if err := tellFiles(ctx, tx, w.run, now); err != nil {
			return err
		}

		return updateLoad(ctx, tx, w.source, &l)
	})

	if fault.Is(err, fault.ValidationFailed) || fault.Is(err, fault.PayloadTooLarge) {
		return load{}, stop(StopFile, "The rows are more than the largest file that the service accepts. Load fewer with a query or the mode growing. Then resume the source.")
	}

	if err == nil {
		w.source.load = &l
	}

	return l, err
}

// submitRows creates the ingestion of a load, if it does not exist yet. If the content has expired meanwhile, the load is forgotten.
func (w *working) submitRows(ctx context.Context, l load) (isForgotten bool, err error) {
	// A source reads some rows again on purpose, so rows that were loaded before are no doubt.
	accept := append(slices.Clone(w.source.Accept), ingest.LoadedBefore, ingest.RowsPresent)
	request := ingest.Request{ID: l.Ingestion, Session: l.Session, Mode: w.source.Rows.ingestMode(), Source: w.source.ID, Accept: accept}

	if request.Mode == lake.Merged {
		request.Key = w.source.Rows.Key
	}

	_, err = w.Ingest.Create(ctx, w.who, w.source.At, request)

	switch {
	case fault.Is(err, fault.InvalidState):
		return true, w.setLoad(ctx, nil)
	case fault.Is(err, fault.NotFound), fault.Is(err, fault.Forbidden):
		return false, stop(StopDataset, "The dataset is gone, or you may no longer change it.")
	case fault.Is(err, fault.ValidationFailed):
		return false, stop(StopFile, fault.From(err).Message)
	default:
		return false, err
	}
}

// waitRows waits for the end of the ingestion. The new value of the cursor becomes valid in the transaction that records that the rows are loaded.
func (w *working) waitRows(ctx context.Context, l load) error {
	found, err := w.ended(ctx, l.Owner, l.Dataset, l.Ingestion)
	if err != nil {
		return err
	}

	switch found.Status {
	case ingest.Completed:
		return w.settled(ctx, func(tx postgres.Tx) error { return settleLoad(ctx, tx, w.run, l, found) })
	case ingest.Cancelled:
		return stopError{Stop: Stop{StopFile, "The load was cancelled. Resume the source to read the rows again.", l.Ingestion}}
	case ingest.Failed:
		return stopError{Stop: Stop{StopFile, "The rows could not be loaded. Their ingestion has the reason. Retry the ingestion, or resume the source to read the rows again.", l.Ingestion}}
	default:
		return stopError{Stop: Stop{StopDoubt, "The rows wait for somebody to decide about a doubt. Retry their ingestion and accept the doubt, or cancel it; then resume the source.", l.Ingestion}}
	}
}
