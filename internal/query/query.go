package query

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	lru "github.com/hashicorp/golang-lru/v2"

	"quern.dev/quern/internal/audit"
	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/catalog"
	"quern.dev/quern/internal/disk"
	"quern.dev/quern/internal/engine"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/lake"
	"quern.dev/quern/internal/postgres"
	"quern.dev/quern/internal/span"
)

// Config holds the dependencies and limits of a Query.
type Config struct {
	DB      *postgres.DB
	Catalog catalog.Catalog
	Lake    *lake.Lake
	Engine  *engine.Engine
	Folder  *disk.Watch // the work folder, for sealed processes and temporary files
	Log     *slog.Logger
	Now     func() time.Time

	Meter *catalog.Meter // counts statements; nil means that they are not counted

	Credentials auth.Credentials // checked again before each statement, which may have waited for a slot

	Timeout     time.Duration // longest duration of a statement
	DefaultRows int64         // largest number of rows of a result, unless the statement has a larger LIMIT
	MaxRows     int64         // largest number of rows of a result, whatever its LIMIT
	MaxBytes    int64         // largest size of a result
	CacheBytes  int64         // size of the cache for copies of data files

	MaxRunning  int           // statements that run at once
	MaxPerUser  int           // statements of one caller, running or waiting
	MaxWaiting  int           // statements that wait
	WaitTimeout time.Duration // longest wait for a slot

	Exports Exports
	Longs   Longs

	Cluster *Cluster // nil without Trino
}

// Query runs statements.
type Query struct {
	Config

	gate     *gate // of the statements in sealed processes
	there    *gate // of those on the cluster
	indexes  *indexes
	profiles *lru.Cache[string, engine.Profile]
	invalid  atomic.Int64
	given    atomic.Int64
}

// New returns a Query.
func New(c Config) *Query {
	q := &Query{Config: c, gate: newGate(c.MaxRunning, c.MaxPerUser, c.MaxWaiting, c.WaitTimeout), indexes: newIndexes(c.Lake), profiles: newProfiles()}
	if c.Cluster != nil {
		q.there = newGate(c.Cluster.MaxRunning, c.MaxPerUser, c.MaxWaiting, c.WaitTimeout)
	}

	return q
}

// Types of the engine that callers of this package need.
type (
	Column = engine.Column
	Form   = engine.Form
)

// The forms of a result.
const (
	Rows    = engine.Rows
	CSV     = engine.CSV
	Parquet = engine.Parquet
	Arrow   = engine.Arrow

	EscapedCSV = engine.EscapedCSV
)

// Statement is a statement to run, with the scope and the moment of the data.
type Statement struct {
	Username  string
	Namespace string
	Dataset   string // the only dataset that the statement may read; empty means no restriction
	Text      string
	// Parameters are the values of the parameters in Text. A statement that a model writes has none.
	Parameters Parameters
	// Lasting is set for a statement that is kept as the answer to a question. Its result must follow from the data alone.
	Lasting bool
	// Needs is what a statement that was kept is expected to read. If it reads something else, Run fails with *ChangedError
	// before any data is read.
	Needs   []Need
	Explain bool
	AsOf    time.Time // moment of the data; zero means now
	Form    Form
	// ParquetVersion is the version of a result in Parquet. 0 means 1, which every program reads.
	ParquetVersion int
	Pinned         map[uuid.UUID]uuid.UUID // snapshots to read, by dataset; they take precedence over AsOf
	OfRun          bool                    // wait for a slot until the run ends; a request is refused after Config.WaitTimeout
	// BeforeRead is called with the snapshots before any data is read. An error stops the statement. It may be nil.
	BeforeRead func(ctx context.Context, reads []Read) error

	pieces   *engine.PieceSize // of a long statement: its result has no limit and is cut into pieces
	recorder func(ctx context.Context, reads []Read, tables []readTable) error
	sealed   bool // run in a sealed process, whatever the engine of the datasets
	exported bool // with the limits of exports
}

// Run runs one statement with the rights of the caller.
//
// Faults: those of the package.
func (q *Query) Run(ctx context.Context, who auth.Principal, want Statement) (*Result, error) {
	values, err := want.Parameters.parse()
	if err != nil {
		return nil, err
	}

	waits := briefly
	if want.OfRun {
		waits = untilItEnds
	}

	before := 0

	result, err := q.begin(ctx, who, waits, func(ctx context.Context, r *running) (result *Result, err error) {
		result, before, err = r.start(ctx, who, want, values)

		return result, err
	})

	if fault.Is(err, fault.QueryInvalid) {
		q.invalid.Add(1)
	}

	return result, locate(err, want.Text, before)
}

// begin takes a slot and a sealed process and calls run. Closing the result releases both; if run fails, begin releases
// them.
func (q *Query) begin(ctx context.Context, who auth.Principal, waits patience, run func(context.Context, *running) (*Result, error)) (_ *Result, err error) {
	began := q.Now()
	ctx, spanned := span.Start(ctx, "statement")

	defer func() {
		if err != nil {
			spanned.End(err)
		}
	}()

	if waits == briefly { // a run was checked when its question was asked
		if err := q.DB.Do(ctx, func(db postgres.Querier) error { return q.left(ctx, db, who) }); err != nil {
			return nil, err
		}
	}

	leave, err := q.gate.enter(ctx, who.Account, waits)
	if err != nil {
		return nil, err
	}

	at := &place{who: who.Account, waits: waits, leave: leave}

	ctx, unwatch := q.watch(ctx, who)
	end := func() {
		unwatch()
		at.leave()
	}

	session, err := q.Engine.Open(ctx, q.Timeout)
	if err != nil {
		end()

		return nil, err
	}

	r := &running{Query: q, session: session, at: at, leave: end, began: began, span: spanned}
	r.meter(who.Account)

	var result *Result

	// Release the slot and the sealed process also after a panic.
	err = fault.Try(func() (err error) {
		result, err = run(ctx, r)

		return err
	})
	if err != nil {
		spanned.End(err) // before close ends it as a success
		r.close()

		return nil, err
	}

	return result, nil
}

// left fails if the caller has used up a limit of statements.
func (q *Query) left(ctx context.Context, db postgres.Querier, who auth.Principal) error {
	return q.Catalog.Left(ctx, db, who.Account, catalog.QuerySeconds, catalog.ScannedBytes)
}

// checkRunning is how often the credential of a running statement is checked.
const checkRunning = time.Second

// watch returns a context that ends when the credential of the caller is no longer valid, with that fault as its cause. A
// revoked token must not keep a slot and a processor until its statement times out. While the database does not answer,
// the statement continues; the check before the first row still protects its rows.
func (q *Query) watch(ctx context.Context, who auth.Principal) (watched context.Context, unwatch func()) {
	watched, end := context.WithCancelCause(ctx)

	go func() {
		for {
			select {
			case <-watched.Done():
				return
			case <-time.After(checkRunning):
			}

			err := fault.Try(func() error { return q.Credentials.Check(watched, who) })
			if fault.Is(err, fault.Unauthorized) {
				end(err)
			}
		}
	}()

	return watched, func() { end(nil) }
}

// running is a statement in progress, with the resources that it holds.
type running struct {
	*Query

	session  *engine.Session
	at       *place // nil for the work of workers
	leave    func()
	releases []func()
	count    func() // counts the statement as usage of the caller; for the first call only
	scanned  int64  // size of the data files that are read, in bytes
	began    time.Time
	span     *span.Span
	action   string // for the audit
	local    *local // nil if the statement is the server's own

	progress func(engine.Progress) // of a result in pieces; may be nil

	positions *int // index of the dataset whose rows the statement locates as ProvenanceView; nil if there is none
}

// close releases the resources. It does not wait for the sealed process to end, because that would delay the end of the
// response until the kernel has removed the process. The engine starts another process only after that, so the memory
// limit still holds.
func (r *running) close() {
	r.count()
	r.leave()
	r.span.End(nil)

	go func() {
		err := fault.Try(func() error {
			if r.session != nil {
				r.session.Close()
			}

			for _, release := range r.releases {
				release()
			}

			return nil
		})
		if err != nil {
			r.Log.Error("a statement could not be closed", "error", err)
		}
	}()
}

// meter makes the time from now on count as usage of an account.
func (r *running) meter(account uuid.UUID) {
	from := r.Now()
	r.count = sync.OnceFunc(func() { r.Meter.Add(account, r.Now().Sub(from), r.scanned) })
}

// rows returns the largest number of rows of the result: the default, or a larger LIMIT of the statement up to MaxRows.
func (r *running) rows(s *statement) int64 {
	if limit, _, ok := s.limit(); ok && limit > r.DefaultRows {
		return min(limit, r.MaxRows)
	}

	return r.DefaultRows
}

// narrow drops data files that the statement does not need: files without a row that meets the conditions and, if the
// statement needs only the first rows of a dataset, all but the first files.
func (r *running) narrow(ctx context.Context, s *statement, reads []resolved) error {
	if len(reads) != 1 {
		return nil
	}

	one := &reads[0]

	if rows, ok := s.firstRows(); ok {
		one.files = first(one.files, rows)

		return nil
	}

	conditions := s.conditions(one.snapshot.Columns)
	if len(conditions) == 0 || len(one.files) < 2 {
		return nil
	}

	return r.DB.Do(ctx, func(q postgres.Querier) (err error) {
		one.files, err = r.Lake.Prune(ctx, q, one.table(), one.files, one.snapshot.Columns, conditions)

		return err
	})
}

// checkAgain is how long a check of the credential is valid. A statement that took longer checks the credential again
// before it returns its first row.
const checkAgain = 250 * time.Millisecond

// run mounts the data files and starts the statement. The audit is written at the same time; no row is returned before the
// audit is stored.
func (r *running) run(ctx context.Context, who auth.Principal, s *statement, reads []resolved, query engine.Query) (*Result, error) {
	if len(s.parameters) != len(query.Parameters) {
		return nil, fault.New(fault.Internal, "The statement could not be run.")
	}

	numbers, err := r.mount(ctx, reads)
	if err != nil {
		return nil, err
	}

	var views []engine.View

	for _, one := range reads {
		view := one.view(func(file lake.File) string { return numbers[file.Key] })
		if r.local != nil {
			view = r.local.view(one, view)
		}

		views = append(views, view)
	}

	if r.positions != nil {
		query.Views = append(query.Views, located(views[*r.positions]))
	}

	query.Views = append(views, query.Views...) // the datasets come first: Source is an index among them

	if tree, of := s.withProvenance(); r.positions == nil && query.Pieces == nil && tree != nil && query.Form == Rows && !query.Explain {
		query.ProvenanceTree, query.Source = tree, of.read
	}

	if err := r.Credentials.Check(ctx, who); err != nil {
		return nil, err
	}

	checked, written := r.Now(), make(chan error, 1)

	go func() { written <- fault.Try(func() error { return r.audit(ctx, who, distinct(reads)) }) }()

	began, err := r.session.Run(query)
	if unaudited := <-written; unaudited != nil {
		return nil, unaudited
	}

	if err != nil {
		if r.local != nil {
			err = r.local.spelled(err)
		}

		return nil, refused(err, reads)
	}

	result := &Result{Columns: began.Columns, Reads: snapshots(reads), Engine: catalog.DuckDB, result: began, files: began, began: r.began, given: &r.given, close: r.close, maxRows: r.MaxRows}
	result.held = func() error {
		if r.Now().Sub(checked) < checkAgain {
			return nil
		}

		return r.Credentials.Check(ctx, who)
	}

	if began.ProvenanceTree {
		result.source, err = r.sources(ctx, reads[query.Source])
	}

	return result, err
}

// mount mounts each file once in the sealed process. It returns the names of the files there, by key.
func (r *running) mount(ctx context.Context, reads []resolved) (map[string]string, error) {
	var (
		numbers = map[string]string{}
		files   []lake.File
		size    int64
	)

	for _, one := range reads {
		for _, file := range one.files {
			if _, met := numbers[file.Key]; !met {
				numbers[file.Key] = strconv.Itoa(len(files)) + ".parquet"
				files, size = append(files, file), size+file.Size
			}
		}
	}

	if size > r.CacheBytes {
		return nil, fault.New(fault.LimitExceeded, fmt.Sprintf("The statement reads data files of %d bytes, but this server has space for %d. Read fewer datasets, or add a filter that selects fewer data files.", size, r.CacheBytes))
	}

	r.scanned += size

	release, err := r.Lake.FetchAll(ctx, files, func(path string, n int) error { return r.session.Mount(path, numbers[files[n].Key]) })
	r.releases = append(r.releases, release)

	return numbers, err
}

// audit records the read of each dataset in the account of its owner. A statement that reads no dataset is recorded in the
// account of the caller.
func (r *running) audit(ctx context.Context, who auth.Principal, reads []resolved) error {
	entries := map[uuid.UUID][]audit.Entry{}
	if len(reads) == 0 {
		entries[who.Account] = []audit.Entry{who.Audit(who.Account, r.Now(), r.action, audit.Target{Kind: "account", ID: who.Account.String()})}
	}

	for _, one := range reads {
		entries[one.Account] = append(entries[one.Account], who.Audit(one.Account, r.Now(), r.action, one.Audit()))
	}

	for _, list := range entries {
		err := r.DB.InTx(ctx, func(tx postgres.Tx) error {
			for _, entry := range list {
				if err := audit.WriteTx(ctx, tx, entry); err != nil {
					return err
				}
			}

			return nil
		})
		if err != nil {
			return err
		}
	}

	return nil
}

// snapshots returns the snapshot of each dataset that is read.
func snapshots(reads []resolved) (list []Read) {
	for _, one := range distinct(reads) {
		list = append(list, Read{Account: one.Account, ID: one.ID, Dataset: one.path(), Snapshot: one.snapshot.ID, CommittedAt: one.snapshot.CommittedAt})
	}

	return list
}

// distinct returns each dataset once, even if the statement uses several names for it.
func distinct(reads []resolved) (datasets []resolved) {
	for _, one := range reads {
		if !slices.ContainsFunc(datasets, func(other resolved) bool { return other.ID == one.ID }) {
			datasets = append(datasets, one)
		}
	}

	return datasets
}

func columnNames(reads []resolved) (names []string) {
	for _, one := range reads {
		for _, c := range one.snapshot.Columns {
			if !slices.Contains(names, c.Name) {
				names = append(names, c.Name)
			}
		}
	}

	return names
}
