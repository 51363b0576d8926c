package query

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"quern.dev/quern/internal/audit"
	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/catalog"
	"quern.dev/quern/internal/engine"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/lake"
	"quern.dev/quern/internal/postgres"
)

// Config is what statements need.
type Config struct {
	DB      *postgres.DB
	Catalog catalog.Catalog
	Lake    *lake.Lake
	Engine  *engine.Engine
	Log     *slog.Logger
	Now     func() time.Time

	Credentials auth.Credentials // checked again before each statement, which may have waited for a place

	Time       time.Duration // that a statement may take
	Rows       int64         // of a result, unless the statement has a LIMIT
	MaxRows    int64         // of a result, whatever the statement says
	Bytes      int64         // of a result
	CacheBytes int64         // for copies of data files

	Running int           // statements at once
	PerUser int           // of one caller
	Queue   int           // that may wait
	Wait    time.Duration // at most

	Exports Exports
}

// Query runs statements.
type Query struct {
	Config

	gate    *gate
	indexes *indexes
	invalid atomic.Int64
	given   atomic.Int64
}

// New returns a Query.
func New(c Config) *Query {
	return &Query{Config: c, gate: newGate(c.Running, c.PerUser, c.Queue, c.Wait), indexes: newIndexes(c.Lake)}
}

// The words of the packages below that callers need.
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

// Statement is what a caller wants to know.
type Statement struct {
	Username  string
	Namespace string
	Dataset   string // if it may read only this one
	Text      string
	Explain   bool
	AsOf      time.Time // the moment of the data; zero is now
	Form      Form
	Pinned    map[uuid.UUID]uuid.UUID // snapshots by dataset that are read instead, whatever the moment
	// Reading is told what will be read before anything of it is, and can refuse; nil: nobody wants to know.
	Reading func(ctx context.Context, reads []Read) error
}

// Run runs one statement with the rights of the caller.
//
// Faults: as the package says.
func (q *Query) Run(ctx context.Context, who auth.Principal, want Statement) (*Result, error) {
	before := 0 // bytes before the statement in what is run

	result, err := q.begin(ctx, who, q.Time, func(r *running) (*Result, error) {
		checked, text, err := r.read(want.Text)
		if text != want.Text {
			before = len(wrapped)
		}

		if err != nil {
			return nil, err
		}

		reads, err := r.resolve(ctx, who, want, checked.tables)
		if err != nil {
			return nil, err
		}

		if want.Reading != nil {
			if err := want.Reading(ctx, snapshots(reads)); err != nil {
				return nil, err
			}
		}

		if err := r.narrow(ctx, checked, reads); err != nil {
			return nil, err
		}

		query := engine.Query{Statement: text, Explain: want.Explain, Form: want.Form, Rows: r.rows(checked), Bytes: r.Bytes}
		r.action = "query.run"

		return r.run(ctx, who, checked, reads, query)
	})

	if fault.Is(err, fault.QueryInvalid) {
		q.invalid.Add(1)
	}

	return result, locate(err, want.Text, before)
}

// begin takes a place and a child, which whatever comes of it gives back.
func (q *Query) begin(ctx context.Context, who auth.Principal, lasting time.Duration, run func(*running) (*Result, error)) (*Result, error) {
	began := q.Now()

	leave, err := q.gate.enter(ctx, who.Account)
	if err != nil {
		return nil, err
	}

	session, err := q.Engine.Open(ctx, lasting)
	if err != nil {
		leave()

		return nil, err
	}

	r := &running{Query: q, session: session, leave: leave, began: began}

	var result *Result

	// Also after a panic the place and the child are given back.
	err = fault.Try(func() (err error) {
		result, err = run(r)

		return err
	})
	if err != nil {
		r.close()

		return nil, err
	}

	return result, nil
}

// running is a statement with what it holds.
type running struct {
	*Query

	session  *engine.Session
	leave    func()
	releases []func()
	began    time.Time
	action   string // for the audit
}

// close does not wait for the child: until the kernel has taken a process apart the caller would have no end of the
// answer. The engine has a place for another one only then, so that memory is still counted.
func (r *running) close() {
	r.leave()

	go func() {
		err := fault.Try(func() error {
			r.session.Close()

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

const wrapped = "FROM ("

// read parses what people write. DESCRIBE and SUMMARIZE are no queries to DuckDB unless they stand in one.
func (r *running) read(text string) (*statement, string, error) {
	checked, err := r.parse(text)
	if err != nil || child(checked.root, "from_table")["type"] != "SHOW_REF" {
		return checked, text, err
	}

	text = wrapped + strings.TrimRight(text, "; \t\r\n") + "\n)"
	checked, err = r.parse(text)

	return checked, text, err
}

// parse lets the child read the statement, and checks it.
func (r *running) parse(text string) (*statement, error) {
	tree, err := r.session.Parse(text)
	if err != nil {
		return nil, refused(err, nil)
	}

	return check(tree)
}

// rows is how many rows a result may have: a LIMIT of the statement itself may ask for more than the default.
func (r *running) rows(s *statement) int64 {
	if limit, _, ok := s.limit(); ok && limit > r.Rows {
		return min(limit, r.MaxRows)
	}

	return r.Rows
}

// narrow leaves out files that cannot matter: those without a row for the conditions, and for the first rows of a
// dataset all but the first files.
func (r *running) narrow(ctx context.Context, s *statement, reads []reading) error {
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

// first are the files with so many first rows.
func first(files []lake.File, rows int64) []lake.File {
	for i, file := range files {
		if rows -= file.Rows; rows <= 0 {
			return files[:i+1]
		}
	}

	return files
}

// checkAgain is the age at which a check of the credential is too old: a statement that took longer checks it again before its first row goes out.
const checkAgain = 250 * time.Millisecond

// run brings the files together and begins. The audit is written meanwhile; no row goes out before it stands.
func (r *running) run(ctx context.Context, who auth.Principal, s *statement, reads []reading, query engine.Query) (*Result, error) {
	numbers, err := r.link(ctx, reads)
	if err != nil {
		return nil, err
	}

	for _, one := range reads {
		query.Views = append(query.Views, one.view(func(file lake.File) string { return numbers[file.Key] }))
	}

	if tree, name := s.trace(); tree != nil && query.Form == Rows && !query.Explain {
		query.Traced = tree
		query.Source = slices.IndexFunc(reads, func(one reading) bool { return strings.EqualFold(one.name, name) })
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
		return nil, refused(err, reads)
	}

	result := &Result{Columns: began.Columns, Reads: snapshots(reads), result: began, began: r.began, given: &r.given, close: r.close}
	result.held = func() error {
		if r.Now().Sub(checked) < checkAgain {
			return nil
		}

		return r.Credentials.Check(ctx, who)
	}

	if began.Traced {
		result.source, err = r.sources(ctx, reads[query.Source])
	}

	return result, err
}

// link gives the child the files under numbers, each once.
func (r *running) link(ctx context.Context, reads []reading) (map[string]string, error) {
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
		return nil, fault.New(fault.LimitExceeded, fmt.Sprintf("The statement reads data files of %d bytes; this server has room for %d. Read fewer datasets, or a part that a filter can pick out.", size, r.CacheBytes))
	}

	release, err := r.Lake.FetchAll(ctx, files, func(path string, n int) error { return r.session.Link(path, numbers[files[n].Key]) })
	r.releases = append(r.releases, release)

	return numbers, err
}

// audit writes into the account of each owner that the dataset was read, and into the caller's that a statement ran
// that read none.
func (r *running) audit(ctx context.Context, who auth.Principal, reads []reading) error {
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

// snapshots are what is read of the datasets.
func snapshots(reads []reading) (list []Read) {
	for _, one := range distinct(reads) {
		list = append(list, Read{Account: one.Account, ID: one.ID, Dataset: one.path(), Snapshot: one.snapshot.ID, CommittedAt: one.snapshot.CommittedAt})
	}

	return list
}

// distinct are the datasets, whatever the statement calls them.
func distinct(reads []reading) (datasets []reading) {
	for _, one := range reads {
		if !slices.ContainsFunc(datasets, func(other reading) bool { return other.ID == one.ID }) {
			datasets = append(datasets, one)
		}
	}

	return datasets
}

func columnNames(reads []reading) (names []string) {
	for _, one := range reads {
		for _, c := range one.snapshot.Columns {
			if !slices.Contains(names, c.Name) {
				names = append(names, c.Name)
			}
		}
	}

	return names
}
