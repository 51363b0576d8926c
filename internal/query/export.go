package query

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"quern.dev/quern/internal/audit"
	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/blob"
	"quern.dev/quern/internal/catalog"
	"quern.dev/quern/internal/engine"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/job"
	"quern.dev/quern/internal/postgres"
)

// Exports configures the export of datasets that are too large to be returned in the response. A job writes the file to
// the store, one file for each snapshot and format, and a later request returns the address of the file.
//
//	   request        worker        written
//	──────────▶ queued ─────▶ running ──────▶ ready
//	                             │              │ expired
//	                             └──▶ failed ───┴──▶ dropped ──cleanup──▶ (deleted)
//	                                      reported
//
// The row is inserted before the object is written and deleted after the object is removed. Each attempt to write has its
// own key, so a file that a late worker writes is never served. The keys of earlier attempts are kept in dropped rows, so
// that the cleanup finds them.
type Exports struct {
	Store  *blob.Store
	Jobs   func() *job.Client // a function because the client is created after Exports
	Engine *engine.Engine
	Dir    string // for temporary files, on the file system of the sandbox

	StreamMaxBytes int64         // largest size of the data files of a dataset that is exported in the response
	Timeout        time.Duration // longest duration of writing a file
	Retention      time.Duration // of a file, or of the fault if it could not be written
}

// Exported is a whole dataset: its rows, or the address of a file if the dataset is large. The address is empty while the
// file is being written. The caller closes the result.
type Exported struct {
	Name    string // suggested file name
	Result  *Result
	Address string
}

// addressTime is how long an address is valid.
const addressTime = 5 * time.Minute

// Export returns a whole dataset in a form. Its rows have no __metadata.
//
// Faults: NotFound; InvalidState if the dataset has no rows yet; the fault of an earlier attempt to write the file; and
// those of the package.
func (q *Query) Export(ctx context.Context, who auth.Principal, at catalog.Path, form Form) (Exported, error) {
	one, err := q.one(ctx, who, at, uuid.Nil)
	if err != nil {
		return Exported{}, err
	}

	if one.snapshot.ID == uuid.Nil {
		return Exported{}, fault.New(fault.InvalidState, "The dataset has no rows yet.")
	}

	exported := Exported{Name: one.Name + "." + Extension(form)}

	switch size := one.size(); {
	case size <= q.Exports.StreamMaxBytes:
		exported.Result, err = q.stream(ctx, who, one, form)

		return exported, err
	case size > q.CacheBytes && one.Engine != catalog.Trino:
		return Exported{}, fault.New(fault.LimitExceeded, fmt.Sprintf("The data files of the dataset have %d bytes, but this server has space for %d. Query only the part that you need.", size, q.CacheBytes))
	}

	key, err := q.askFor(ctx, who, one, formats()[form])
	if err != nil || key == "" {
		return exported, err
	}

	exported.Address, err = q.Exports.Store.PresignGet(ctx, key, addressTime, exported.Name)

	return exported, err
}

// formats returns the names of the forms that a file can have.
func formats() map[Form]string {
	return map[Form]string{CSV: "csv", EscapedCSV: "csv-escaped", Rows: "ndjson", Parquet: "parquet", Arrow: "arrow"}
}

// Extension returns how the name of a file with this form ends.
func Extension(form Form) string {
	switch form {
	case EscapedCSV:
		return formats()[CSV]
	case Arrow:
		return "arrows" // an Arrow file, which is not a stream, ends in .arrow
	default:
		return formats()[form]
	}
}

// size returns the total size of the data files, in bytes.
func (r *resolved) size() (bytes int64) {
	for _, file := range r.files {
		bytes += file.Size
	}

	return bytes
}

// stream exports a dataset in the response.
func (q *Query) stream(ctx context.Context, who auth.Principal, one resolved, form Form) (*Result, error) {
	return q.begin(ctx, who, briefly, func(ctx context.Context, r *running) (*Result, error) {
		text := one.everything()

		checked, err := r.parse(text)
		if err != nil {
			return nil, err
		}

		r.action = exportAction

		if onTrino([]resolved{one}) {
			return r.onCluster(ctx, who, Statement{Form: form}, checked, text, []resolved{one}, engine.Query{})
		}

		return r.run(ctx, who, checked, []resolved{one}, engine.Query{Statement: text, Form: form})
	})
}

const exportAction = "dataset.export"

func (r *resolved) everything() string { return `FROM ` + identifier(r.name) }

// The states of an export.
const (
	exportQueued  = "queued"
	exportRunning = "running"
	exportReady   = "ready"
	exportFailed  = "failed"
	exportDropped = "dropped"
)

// export is a file that is in the store or is going to be written.
type export struct {
	account, dataset, snapshot, id uuid.UUID
	format, key, state             string
	failure                        *fault.Error
	createdAt, expiresAt           time.Time
}

func (e export) args() ExportArgs {
	return ExportArgs{Account: e.account, Dataset: e.dataset, Export: e.id}
}

// exportPrefix is the prefix of the keys of all exports.
const exportPrefix = "exports/"

func exportKey() string { return exportPrefix + uuid.NewString() }

// askFor returns the key of the file if it is finished, and starts an export if none is in progress. Of several
// simultaneous requests, one starts the export.
func (q *Query) askFor(ctx context.Context, who auth.Principal, one resolved, format string) (key string, err error) {
	var failure error

	err = q.DB.InTx(ctx, func(tx postgres.Tx) error {
		found, err := lockLiveExport(ctx, tx, one.table(), one.snapshot.ID, format)
		if err != nil {
			return err
		}

		if found != nil && found.expiresAt.After(q.Now()) {
			switch found.state {
			case exportQueued, exportRunning:
				return nil
			case exportReady:
				key = found.key

				return q.auditExportTx(ctx, tx, who, one)
			}

			failure = found.failure // is reported once: the next request starts another attempt
		}

		if found != nil {
			if err := dropExport(ctx, tx, *found, q.Now()); err != nil || failure != nil {
				return err
			}
		}

		return q.startExportTx(ctx, tx, who, one, format)
	})
	if err == nil {
		err = failure
	}

	return key, err
}

func (q *Query) startExportTx(ctx context.Context, tx postgres.Tx, who auth.Principal, one resolved, format string) error {
	e := export{
		account: one.Account, dataset: one.ID, snapshot: one.snapshot.ID, format: format, id: uuid.Must(uuid.NewV7()), key: exportKey(),
		state: exportQueued, createdAt: q.Now(), expiresAt: q.Now().Add(q.Exports.Retention),
	}

	made, err := insertExport(ctx, tx, e)
	if err != nil || !made {
		return err
	}

	if err := q.Exports.Jobs().InsertTx(ctx, tx, e.args(), exportOpts()); err != nil {
		return err
	}

	return q.auditExportTx(ctx, tx, who, one)
}

func (q *Query) auditExportTx(ctx context.Context, tx postgres.Tx, who auth.Principal, one resolved) error {
	return audit.WriteTx(ctx, tx, who.Audit(one.Account, q.Now(), exportAction, one.Audit()))
}
