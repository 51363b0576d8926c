package query

import (
	"context"
	"fmt"
	"strings"
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

// Exports is how datasets leave that are too large for an answer: a job writes the file to the store, one for each
// snapshot and format, and whoever asks again gets its address.
//
//	   request        worker        written
//	──────────▶ queued ─────▶ running ──────▶ ready
//	                             │              │ expired
//	                             └──▶ failed ───┴──▶ dropped ──cleaner──▶ gone
//	                                       told
//
// The row stands before the object, and goes after it. Each attempt to write has a key of its own, so that what a
// late worker writes is nobody's file; the keys of those before stay known in rows that are dropped.
type Exports struct {
	Store  *blob.Store
	Jobs   func() *job.Client // there only when everything is wired
	Engine *engine.Engine
	Dir    string // for files on their way, on the file system of the sandbox

	Stream int64         // bytes of data files that are exported in the answer
	Time   time.Duration // that it may take to write a file
	Keep   time.Duration // a file, and the reason why there is none
}

// Exported is a whole dataset: its rows, or if it is large the address of a file, which is empty while that is
// written. The caller closes the result.
type Exported struct {
	Name    string // for the file
	Result  *Result
	Address string
}

// addressTime is how long an address works.
const addressTime = 5 * time.Minute

// Export gives a whole dataset in a form. Its rows have no __metadata.
//
// Faults: NotFound, InvalidState if it has no rows yet, the one that an earlier attempt to write the file ended with,
// and as the package says.
func (q *Query) Export(ctx context.Context, who auth.Principal, at catalog.Path, form Form) (Exported, error) {
	one, err := q.one(ctx, who, at, uuid.Nil)
	if err != nil {
		return Exported{}, err
	}

	if one.snapshot.ID == uuid.Nil {
		return Exported{}, fault.New(fault.InvalidState, "The dataset has no rows yet.")
	}

	exported := Exported{Name: one.Name + "." + strings.TrimSuffix(formats()[form], "-escaped")}

	switch size := one.size(); {
	case size <= q.Exports.Stream:
		exported.Result, err = q.stream(ctx, who, one, form)

		return exported, err
	case size > q.CacheBytes:
		return Exported{}, fault.New(fault.LimitExceeded, fmt.Sprintf("The dataset has data files of %d bytes; this server has room for %d. Query the part that you need.", size, q.CacheBytes))
	}

	key, err := q.askFor(ctx, who, one, formats()[form])
	if err != nil || key == "" {
		return exported, err
	}

	exported.Address, err = q.Exports.Store.PresignGet(ctx, key, addressTime, exported.Name)

	return exported, err
}

// formats are the names of the forms that a file can have.
func formats() map[Form]string {
	return map[Form]string{CSV: "csv", EscapedCSV: "csv-escaped", Rows: "ndjson", Parquet: "parquet"}
}

// size is how many bytes the data files have.
func (r *reading) size() (bytes int64) {
	for _, file := range r.files {
		bytes += file.Size
	}

	return bytes
}

// stream exports in the answer.
func (q *Query) stream(ctx context.Context, who auth.Principal, one reading, form Form) (*Result, error) {
	return q.begin(ctx, who, q.Time, func(r *running) (*Result, error) {
		text := one.everything()

		checked, err := r.parse(text)
		if err != nil {
			return nil, err
		}

		r.action = exportAction

		return r.run(ctx, who, checked, []reading{one}, engine.Query{Statement: text, Form: form})
	})
}

const exportAction = "dataset.export"

func (r *reading) everything() string { return `FROM ` + identifier(r.name) }

// The states of an export.
const (
	exportQueued  = "queued"
	exportRunning = "running"
	exportReady   = "ready"
	exportFailed  = "failed"
	exportDropped = "dropped"
)

// export is a file in the store, or one that is to be.
type export struct {
	account, dataset, snapshot, id uuid.UUID
	format, key, state             string
	failure                        *fault.Error
	createdAt, expiresAt           time.Time
}

func (e export) args() ExportArgs {
	return ExportArgs{Account: e.account, Dataset: e.dataset, Export: e.id}
}

// exportPrefix is where all exports are.
const exportPrefix = "exports/"

func exportKey() string { return exportPrefix + uuid.NewString() }

// askFor gives the key of the file if it is there, and sees to it that it is written if nobody does. Of several who
// ask at once one starts it.
func (q *Query) askFor(ctx context.Context, who auth.Principal, one reading, format string) (key string, err error) {
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

			failure = found.failure // is told once: who asks after that wants another attempt
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

func (q *Query) startExportTx(ctx context.Context, tx postgres.Tx, who auth.Principal, one reading, format string) error {
	e := export{
		account: one.Account, dataset: one.ID, snapshot: one.snapshot.ID, format: format, id: uuid.Must(uuid.NewV7()), key: exportKey(),
		state: exportQueued, createdAt: q.Now(), expiresAt: q.Now().Add(q.Exports.Keep),
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

func (q *Query) auditExportTx(ctx context.Context, tx postgres.Tx, who auth.Principal, one reading) error {
	return audit.WriteTx(ctx, tx, who.Audit(one.Account, q.Now(), exportAction, one.Audit()))
}
