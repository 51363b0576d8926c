package ingest

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"quern.dev/quern/internal/audit"
	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/catalog"
	"quern.dev/quern/internal/engine"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/job"
	"quern.dev/quern/internal/lake"
	"quern.dev/quern/internal/postgres"
	"quern.dev/quern/internal/upload"
)

// Status is the status of an ingestion.
type Status string

const (
	Queued    Status = "queued"
	Running   Status = "running"
	Waiting   Status = "waiting" // until its doubts are accepted
	Completed Status = "completed"
	Failed    Status = "failed"
	Cancelled Status = "cancelled"
)

// Phases of an ingestion.
const (
	phaseQueued     = "queued"
	phaseFetching   = "fetching"
	phaseInspecting = "inspecting"
	phaseConverting = "converting"
	phaseStoring    = "storing"
	phaseCommitting = "committing"
)

const (
	kindFiles = "files"
	kindRows  = "rows"
)

// Ingestion is a request to add files or rows to a dataset.
type Ingestion struct {
	Account  uuid.UUID
	Dataset  uuid.UUID
	ID       uuid.UUID
	Caller   uuid.UUID
	Session  uuid.UUID
	Status   Status
	Mode     lake.Mode
	Key      []string  // names of the columns of the key by which rows are merged
	Origin   uuid.UUID // the file of a source from which the rows come; uuid.Nil for others
	Source   uuid.UUID // the source that created the ingestion; uuid.Nil if a person or a program did
	Reloads  uuid.UUID // the ingestion whose rows are replaced by loading its documents again; uuid.Nil for others
	DryRun   bool
	Epoch    int64
	Options  engine.Options
	Phase    string
	Files    []File
	Warnings []string
	Doubts   []engine.Doubt
	Accepted []string // codes of accepted doubts
	SetAside []SetAside

	PagesDone, PagesTotal  int // of documents that a model reads
	BytesDone, BytesTotal  int64
	RowsDone, RowsSetAside int64
	RowsReplaced           int64 // of the same origin

	Preview      *Preview
	ErrorCode    string
	ErrorMessage string
	Snapshot     uuid.UUID
	CreatedAt    time.Time
	StartedAt    time.Time
	FinishedAt   time.Time

	kind   string
	format engine.Format // format of a body, which only the process that received it can read
	audit  *audit.Entry  // entry of a body, written when its rows are stored
	ready  bool

	spread    bool // each file is a job of its own
	step      step // of an ingestion that is spread
	round     int  // how often it has begun
	partsLeft int  // files that the step still needs
}

// File is an uploaded file of an ingestion.
type File struct {
	ID   uuid.UUID
	Name string
	Size int64
	Key  string

	Pages                     int // if a model has read it as a document, otherwise 0
	InputTokens, OutputTokens int64

	done                step // of an ingestion that is spread: the last step that is done for the file
	bytesDone, rowsDone int64
}

func (i Ingestion) table() lake.Table { return lake.Table{Account: i.Account, Dataset: i.Dataset} }

// replacesOrigin reports whether the rows replace all rows of their origin.
func (i Ingestion) replacesOrigin() bool { return i.Mode == lake.Merged && i.Origin != uuid.Nil }

func (i Ingestion) work() job.Work {
	args := RunArgs{Account: i.Account, Dataset: i.Dataset, Ingestion: i.ID}

	return job.Work{Account: i.Account, ID: i.ID, Job: args, Queue: i.queue()}
}

// queue returns the queue of the ingestion. Large files have their own, so that they do not delay small ones.
func (i Ingestion) queue() string {
	if i.spread {
		return PartQueue
	}

	if i.BytesTotal > largeBytes || i.isExtracted() { // a model takes its time
		return LargeQueue
	}

	return Queue
}

const largeBytes = 64 << 20

// Request describes an ingestion of uploaded files.
type Request struct {
	ID      uuid.UUID // of the ingestion, if the caller has named it before; a repetition with the same id has no effect
	Session uuid.UUID
	Files   []uuid.UUID // if empty, all completed files of the session
	Mode    lake.Mode
	Key     []string // of a merge
	// Origin is the file of a source from which the rows come. A merge with an origin replaces all rows of this origin, instead of rows with the same key.
	Origin  uuid.UUID
	Source  uuid.UUID // the source that creates the ingestion, if one does: its loads are compared with each other
	Options engine.Options
	DryRun  bool
	Sample  int      // how many parts of documents a model reads in a dry run
	Draft   bool     // a dry run in which a model proposes a definition
	Accept  []string // codes of doubts that do not stop the ingestion
	Once    auth.Once
}

// noSession returns the fault for an upload session in a body that does not exist, belongs to another user or has no such
// file.
func noSession() error {
	return fault.New(fault.NotFound, "You have no upload session with this id, or it lacks one of the files. POST /file-upload/prepare begins a session and returns its ids; GET /file-upload lists yours.")
}

// Create creates an ingestion of uploaded files. A dataset of the caller's own account need not exist: it is created
// with its first snapshot.
//
// Faults: NotFound, Forbidden, ValidationFailed, InvalidState.
func (g *Ingest) Create(ctx context.Context, who auth.Principal, at catalog.Path, request Request) (made Ingestion, err error) {
	if err := checkKey(request.Mode, request.Key); err != nil {
		return Ingestion{}, err
	}

	dataset, err := g.draft(ctx, who, at)
	if err != nil {
		return Ingestion{}, err
	}

	if err := g.mayRead(ctx, dataset, &request); err != nil {
		return Ingestion{}, err
	}

	if request.Origin == uuid.Nil {
		if request.Key, err = mergeKey(request.Mode, request.Key, dataset); err != nil {
			return Ingestion{}, err
		}
	}

	if first, err := g.repeated(ctx, who, dataset, request.Once); err != nil || first != nil {
		return orZero(first), err
	}

	made = Ingestion{
		Account: dataset.Account, Dataset: dataset.ID, ID: uuid.Must(uuid.NewV7()), Caller: who.Account, Session: request.Session,
		Status: Queued, Mode: request.Mode, Key: request.Key, Origin: request.Origin, Source: request.Source, DryRun: request.DryRun, Epoch: dataset.Epoch, Options: request.Options,
		Accepted: request.Accept, Phase: phaseQueued, CreatedAt: g.Now(), kind: kindFiles,
	}
	if request.ID != uuid.Nil {
		made.ID = request.ID
	}

	binding := upload.Binding{Account: dataset.Account, Dataset: dataset.ID, Ingestion: made.ID}

	files, err := g.Uploads.Reserve(ctx, who, request.Session, request.Files, binding, request.DryRun)
	if fault.Is(err, fault.NotFound) {
		err = noSession()
	}

	if err != nil {
		return Ingestion{}, err
	}

	for _, f := range files {
		made.Files = append(made.Files, File{ID: f.ID, Name: f.Name, Size: f.Size, Key: f.Key})
		made.BytesTotal += f.Size
	}

	first := made.ID

	err = g.DB.InTx(ctx, func(tx postgres.Tx) (err error) {
		var repeated bool
		if first, repeated, err = request.Once.ClaimTx(ctx, tx, dataset.Account, who, made.ID, made.CreatedAt); err != nil || repeated {
			return err
		}

		return g.insertTx(ctx, tx, who, dataset, made)
	})

	if _, exists := postgres.ViolatesUnique(err); exists && request.ID != uuid.Nil {
		return g.load(ctx, dataset, made.ID)
	}

	if err != nil || first != made.ID {
		// If this fails, the reservation ends by itself.
		_ = g.Uploads.Release(context.WithoutCancel(ctx), who.Account, binding)
	} else if !request.DryRun {
		_ = g.Uploads.Confirm(context.WithoutCancel(ctx), who.Account, binding)
	}

	if err != nil {
		return Ingestion{}, err
	}

	return g.load(ctx, dataset, first)
}

func orZero(i *Ingestion) Ingestion {
	if i == nil {
		return Ingestion{}
	}

	return *i
}

// repeated returns the ingestion of an earlier request with the same key, before anything is reserved again.
func (g *Ingest) repeated(ctx context.Context, who auth.Principal, dataset catalog.Dataset, once auth.Once) (*Ingestion, error) {
	if !once.Given() {
		return nil, nil //nolint:nilnil // absence is not a failure here
	}

	made := uuid.Nil

	err := g.DB.Do(ctx, func(q postgres.Querier) (err error) {
		made, err = once.Find(ctx, q, dataset.Account, who, g.Now())

		return err
	})
	if err != nil || made == uuid.Nil {
		return nil, err
	}

	found, err := g.load(ctx, dataset, made)

	return &found, err
}

func (g *Ingest) insertTx(ctx context.Context, tx postgres.Tx, who auth.Principal, dataset catalog.Dataset, made Ingestion) error {
	if !made.DryRun {
		// The files are stored already. How large their rows will be is not known.
		if err := g.Catalog.RoomTx(ctx, tx, who, made.Account, 0); err != nil {
			return err
		}
	}

	made.spread = g.spreads(made)

	others, err := countUnfinished(ctx, tx, made.Account, mostCounted)
	if err != nil {
		return err
	}

	if err := insertIngestion(ctx, tx, made); err != nil {
		return err
	}

	if err := g.Jobs().InsertTx(ctx, tx, made.work().Job, behind(made.queue(), others)); err != nil {
		return err
	}

	entry := who.Audit(made.Account, made.CreatedAt, "ingestion.create", dataset.Audit())
	entry.Detail = fmt.Sprintf("%s %s, %d files", made.Mode, made.ID, len(made.Files))

	if made.DryRun {
		entry.Detail += ", dry run"
	}

	if made.Reloads != uuid.Nil {
		entry.Detail += ", reload of " + made.Reloads.String()
	}

	return audit.WriteTx(ctx, tx, entry)
}

// Get returns an ingestion. The caller must be a viewer of the dataset.
func (g *Ingest) Get(ctx context.Context, who auth.Principal, at catalog.Path, id uuid.UUID) (Ingestion, error) {
	dataset, err := g.allowDraft(ctx, who, auth.Viewer, at)
	if err != nil {
		return Ingestion{}, err
	}

	return g.load(ctx, dataset, id)
}

// Find returns an ingestion for work that waits for it, and nil if it does not exist. The caller has checked the access.
func (g *Ingest) Find(ctx context.Context, account, dataset, id uuid.UUID) (found *Ingestion, err error) {
	err = g.DB.Do(ctx, func(q postgres.Querier) error {
		found, err = selectIngestion(ctx, q, account, dataset, id)

		return err
	})

	return found, err
}

// List returns ingestions of files before the given one, newest first.
func (g *Ingest) List(ctx context.Context, who auth.Principal, at catalog.Path, before uuid.UUID, limit int) (list []Ingestion, err error) {
	dataset, err := g.allowDraft(ctx, who, auth.Viewer, at)
	if err != nil {
		return nil, err
	}

	err = g.DB.Do(ctx, func(q postgres.Querier) (err error) {
		list, err = selectIngestions(ctx, q, dataset.Account, dataset.ID, before, limit)

		return err
	})

	return list, err
}

// Retry queues a failed, cancelled or waiting ingestion again. accept adds doubts to those that were accepted before.
// For a cancelled ingestion the earlier acceptances no longer count, because a person changed their mind.
//
// Faults: NotFound, Forbidden, InvalidState, Conflict if the dataset was cleared.
func (g *Ingest) Retry(ctx context.Context, who auth.Principal, at catalog.Path, id uuid.UUID, accept []string) (Ingestion, error) {
	return g.change(ctx, who, at, id, "ingestion.retry", func(tx postgres.Tx, dataset catalog.Dataset, i Ingestion) error {
		switch {
		case i.Status != Failed && i.Status != Cancelled && i.Status != Waiting:
			return fault.New(fault.InvalidState, "Only a waiting, failed or cancelled ingestion can be retried.")
		case i.Epoch == superseded:
			return fault.New(fault.InvalidState, "The source of these rows has read them again. This ingestion cannot be retried.")
		case i.Epoch != dataset.Epoch:
			return cleared()
		}

		if i.Status == Cancelled {
			i.Accepted = nil
		}

		i.Accepted = append(i.Accepted, accept...)
		if open := i.unsettled(); i.Status == Waiting && len(open) > 0 {
			return fault.New(fault.InvalidState, "The ingestion waits until these doubts are accepted: "+strings.Join(open, ", ")+".")
		}

		if err := requeue(ctx, tx, i); err != nil {
			return err
		}

		return g.Jobs().InsertTx(ctx, tx, i.work().Job, insertOpts(i.queue()))
	})
}

// Cancel ends an ingestion that has not ended. None of its rows are loaded.
//
// Faults: NotFound, Forbidden, InvalidState.
func (g *Ingest) Cancel(ctx context.Context, who auth.Principal, at catalog.Path, id uuid.UUID) (Ingestion, error) {
	return g.change(ctx, who, at, id, "ingestion.cancel", func(tx postgres.Tx, _ catalog.Dataset, i Ingestion) error {
		switch i.Status {
		case Cancelled:
			return nil
		case Completed, Failed:
			return fault.New(fault.InvalidState, "The ingestion has ended already.")
		case Queued, Running, Waiting:
		}

		if _, err := finish(ctx, tx, i, Cancelled, nil, g.Now()); err != nil {
			return err
		}

		return g.Lake.DropTx(ctx, tx, i.table(), i.ID)
	})
}

// change calls do with a locked ingestion, if the caller is an editor of its dataset, and writes an audit entry.
func (g *Ingest) change(
	ctx context.Context, who auth.Principal, at catalog.Path, id uuid.UUID, action string,
	do func(tx postgres.Tx, dataset catalog.Dataset, i Ingestion) error,
) (changed Ingestion, err error) {
	var dataset catalog.Dataset

	err = g.DB.InTx(ctx, func(tx postgres.Tx) error {
		if dataset, err = g.Catalog.AllowDraft(ctx, tx, who, auth.Editor, at); err != nil {
			return err
		}

		found, err := lockIngestion(ctx, tx, dataset.Account, dataset.ID, id)
		if err != nil {
			return err
		}

		if found == nil || found.kind != kindFiles {
			return fault.Absent()
		}

		if err := do(tx, dataset, *found); err != nil {
			return err
		}

		entry := who.Audit(dataset.Account, g.Now(), action, dataset.Audit())
		entry.Detail = id.String()

		return audit.WriteTx(ctx, tx, entry)
	})
	if err != nil {
		return Ingestion{}, err
	}

	return g.load(ctx, dataset, id)
}

func (g *Ingest) load(ctx context.Context, dataset catalog.Dataset, id uuid.UUID) (Ingestion, error) {
	var found *Ingestion

	err := g.DB.Do(ctx, func(q postgres.Querier) (err error) {
		found, err = selectIngestion(ctx, q, dataset.Account, dataset.ID, id)

		return err
	})

	switch {
	case err != nil:
		return Ingestion{}, err
	case found == nil || found.kind != kindFiles:
		return Ingestion{}, fault.Absent()
	}

	return *found, nil
}

func cleared() *fault.Error {
	return fault.New(fault.Conflict, "The dataset was cleared, deleted or restored after this request was accepted.")
}

// asJSON encodes a value for a jsonb column.
func asJSON(value any) []byte {
	encoded, err := json.Marshal(value)
	if err != nil {
		return []byte("null") // does not happen: all values can be encoded
	}

	return encoded
}
