package source

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"quern.dev/quern/internal/audit"
	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/catalog"
	"quern.dev/quern/internal/connection"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/ingest"
	"quern.dev/quern/internal/job"
	"quern.dev/quern/internal/postgres"
	"quern.dev/quern/internal/upload"
)

// Sources keeps sources and runs them.
type Sources struct {
	DB          *postgres.DB
	Catalog     catalog.Catalog
	Connections *connection.Connections
	Uploads     upload.Uploads
	Ingest      *ingest.Ingest
	Credentials auth.Credentials
	Jobs        func() *job.Client // returns the client only after startup is complete
	Log         *slog.Logger
	Now         func() time.Time
}

// Status is the status of a source.
type Status string

const (
	Active  Status = "active"
	Paused  Status = "paused"  // by its owner
	Stopped Status = "stopped" // by the service, until somebody decides
)

// Source loads the files of a connection into a dataset.
type Source struct {
	Account    uuid.UUID
	ID         uuid.UUID
	Name       string
	Connection uuid.UUID
	At         catalog.Path
	Prefix     string
	Pattern    string
	Paths      []string // of a source of addresses; relative to that of the connection
	Options    ingest.Options
	Accept     []string // codes of doubts that do not stop the source
	Changed    Policy   // what happens to the rows of a file that has changed: Keep or Replace
	Deleted    Policy   // what happens to the rows of a file that is gone: Keep or Remove
	Rows       *Rows    // of a database; nil for a source of files
	Table      *Table   // that is attached; nil for a source that loads
	Cursor     string   // highest value of the cursor column that is loaded
	Schedule   Schedule
	Status     Status
	Stop       Stop
	LastRun    *Run
	Open       []OpenFile // only of a source that was asked for alone
	CreatedAt  time.Time

	token   uuid.UUID // that acts; uuid.Nil for a person who signed in
	dataset uuid.UUID // of the first load; uuid.Nil before it
	next    due
	load    *load // of rows, in progress
}

// Policy is what a source does about a file that was loaded and is no longer the same.
type Policy string

const (
	Keep    Policy = "keep"    // its rows stay
	Replace Policy = "replace" // the new content replaces its rows
	Remove  Policy = "remove"  // its rows are removed
)

// Stop is why a source or a run has stopped.
type Stop struct {
	Code      StopCode // of a source; empty for a run
	Reason    string
	Ingestion uuid.UUID // that must be decided about; uuid.Nil if it is something else
}

// StopCode says for programs why a source has stopped.
type StopCode string

const (
	StopDoubt      StopCode = "doubt"      // a file, or the rows of a database, wait for somebody
	StopFile       StopCode = "file"       // a file, or the rows of a database, cannot be loaded
	StopDataset    StopCode = "dataset"    // it is gone, or the right on it is
	StopConnection StopCode = "connection" // it is gone, or is no longer shared
	StopCredential StopCode = "credential" // it is no longer valid
	StopGone       StopCode = "gone"       // no file is left, and rows would be removed
)

func (s Source) audit() audit.Target { return audit.Target{Kind: "source", ID: s.ID.String()} }

func (s Source) holder() auth.Holder { return auth.Holder{Account: s.Account, Token: s.token} }

// wants reports whether the source loads the file with this path.
func (s Source) wants(file string) bool {
	if len(s.Paths) > 0 {
		return slices.Contains(s.Paths, file)
	}

	rest, below := strings.CutPrefix(file, s.Prefix)
	if !below || strings.HasSuffix(file, "/") {
		return false
	}

	if !strings.Contains(s.Pattern, "/") {
		rest = path.Base(file)
	}

	matches, err := path.Match(s.Pattern, rest)

	return err == nil && matches
}

// nameOf returns the name of a file in its ingestion, which rows tell as their origin: the path below the folder of the prefix.
func (s Source) nameOf(file string) string {
	if len(s.Paths) > 0 {
		file = connection.FileName(file)
	}

	if name := file[strings.LastIndex(s.Prefix, "/")+1:]; len(name) <= upload.MaxNameBytes {
		return name
	}

	return path.Base(file)
}

// maxSources is the largest number of sources of an account.
const maxSources = 100

// Want is a request for a source.
type Want struct {
	Name       string
	Connection uuid.UUID
	At         catalog.Path
	Prefix     string
	Pattern    string
	Paths      []string
	Options    ingest.Options
	Accept     []string
	Changed    Policy
	Deleted    Policy
	Rows       *Rows
	Table      *Table
	Schedule   Schedule
	Once       auth.Once
}

// mayRead refuses restricted tokens: sources use connections, which belong to the whole account.
func mayRead(who auth.Principal) error {
	if who.Token != nil && who.Token.Restricted {
		return fault.New(fault.Forbidden, "A restricted token cannot use sources. Use a token without restrictions.")
	}

	return nil
}

// mayChange also refuses tokens that only read.
func mayChange(who auth.Principal) error { return cmp.Or(mayRead(who), who.RequireEditor()) }

func tokenOf(who auth.Principal) uuid.UUID { return who.Holder().Token }

func checkPattern(pattern string) error {
	if _, err := path.Match(pattern, ""); err != nil {
		return fault.Invalid("pattern", "is not a pattern: a [ must have its ], and \\ must be followed by a character")
	}

	return nil
}

// checkOptions returns ValidationFailed for an option with which no file can be read.
func checkOptions(o ingest.Options) error {
	if found := o.Check(); found != nil {
		return fault.Invalid("options."+found.Option, found.Problem)
	}

	return nil
}

// Create makes a source. It loads nothing until it is run, or until its first slot.
//
// Faults: Forbidden, NotFound for a dataset or a connection that the caller cannot use, ValidationFailed, Conflict for a name that is in use, LimitExceeded.
func (s *Sources) Create(ctx context.Context, who auth.Principal, want Want) (made Source, err error) {
	if err := mayChange(who); err != nil {
		return Source{}, err
	}

	if err := checkPattern(want.Pattern); err != nil {
		return Source{}, err
	}

	want.At.Username = who.NameOf(want.At.Username)
	want.Changed, want.Deleted = cmp.Or(want.Changed, Keep), cmp.Or(want.Deleted, Keep)

	if err := cmp.Or(want.Schedule.check(), checkOptions(want.Options)); err != nil {
		return Source{}, err
	}

	if err := s.checkKind(ctx, who, &want); err != nil {
		return Source{}, orNoConnection(err)
	}

	draft := Source{
		Account: who.Account, ID: uuid.Must(uuid.NewV7()), Name: want.Name, Connection: want.Connection, At: want.At, Prefix: want.Prefix, Pattern: want.Pattern, Paths: want.Paths,
		Options: want.Options, Accept: want.Accept, Changed: want.Changed, Deleted: want.Deleted, Rows: want.Rows, Table: want.Table, Schedule: want.Schedule, Status: Active, CreatedAt: s.now(), token: tokenOf(who),
	}

	if draft.next, err = draft.plan(draft.CreatedAt); err != nil {
		return Source{}, err
	}

	err = s.DB.InTx(ctx, func(tx postgres.Tx) error {
		first, repeated, err := want.Once.ClaimTx(ctx, tx, who.Account, who, draft.ID, draft.CreatedAt)
		if err != nil {
			return err
		}

		if !repeated {
			if err := s.createTx(ctx, tx, who, draft); err != nil {
				return err
			}
		}

		made, err = present(selectSource(ctx, tx, who.Account, first))

		return err
	})
	if _, isTaken := postgres.ViolatesUnique(err); isTaken {
		err = fault.New(fault.Conflict, "You have a source with this name already. Names are compared without case.")
	}

	return made, err
}

// orNoConnection returns the fault for a connection that the caller may not use.
func orNoConnection(err error) error {
	if fault.Is(err, fault.NotFound) {
		return fault.New(fault.NotFound, "There is no connection with this id that you may use. GET /connections lists those that you may use.")
	}

	return err
}

func (s *Sources) createTx(ctx context.Context, tx postgres.Tx, who auth.Principal, draft Source) error {
	if _, err := s.Catalog.DraftTx(ctx, tx, who, draft.At); err != nil {
		if fault.Is(err, fault.NotFound) {
			err = fault.New(fault.NotFound, "There is no dataset of this user with this name, or you cannot see it.")
		}

		return err
	}

	if n, err := countSources(ctx, tx, who.Account); err != nil || n >= maxSources {
		if err == nil {
			err = fault.New(fault.LimitExceeded, fmt.Sprintf("You have %d sources, which is the maximum. Delete one first.", n))
		}

		return err
	}

	if err := insertSource(ctx, tx, draft); err != nil {
		return err
	}

	return audit.WriteTx(ctx, tx, who.Audit(who.Account, draft.CreatedAt, "source.create", draft.audit()))
}

func (s *Sources) now() time.Time { return s.Now().UTC().Truncate(time.Millisecond) }

func present(found *Source, err error) (Source, error) {
	if err == nil && found == nil {
		err = fault.Absent()
	}

	if err != nil {
		return Source{}, err
	}

	return *found, nil
}

// Get returns a source of the caller with its last run and its open files.
//
// Faults: NotFound, Forbidden.
func (s *Sources) Get(ctx context.Context, who auth.Principal, id uuid.UUID) (found Source, err error) {
	if err := mayRead(who); err != nil {
		return Source{}, err
	}

	err = s.DB.Do(ctx, func(q postgres.Querier) error {
		found, err = present(selectSource(ctx, q, who.Account, id))

		return err
	})
	if err != nil {
		return Source{}, err
	}

	return s.withOpen(ctx, found)
}

// List returns the sources of the caller, oldest first.
//
// Faults: Forbidden.
func (s *Sources) List(ctx context.Context, who auth.Principal, after uuid.UUID, limit int) (list []Source, next uuid.UUID, err error) {
	if err := mayRead(who); err != nil {
		return nil, uuid.Nil, err
	}

	err = s.DB.Do(ctx, func(q postgres.Querier) error {
		list, err = selectSources(ctx, q, who.Account, after, limit+1)

		return err
	})

	if len(list) > limit {
		list = list[:limit]
		next = list[limit-1].ID
	}

	return list, next, err
}

// Delete deletes a source with its history. A run in progress ends.
//
// Faults: NotFound, Forbidden.
func (s *Sources) Delete(ctx context.Context, who auth.Principal, id uuid.UUID) error {
	_, err := s.change(ctx, who, id, "source.delete", func(tx postgres.Tx, now *Source) error { return deleteSource(ctx, tx, *now) })

	return err
}
