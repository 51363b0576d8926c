package duckdb

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/blob"
	"quern.dev/quern/internal/catalog"
	"quern.dev/quern/internal/engine"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/lake"
	"quern.dev/quern/internal/postgres"
	"quern.dev/quern/internal/postgres/pgtest"
	"quern.dev/quern/internal/query"
	"quern.dev/quern/internal/sandbox"
	"quern.dev/quern/stack"
)

// layer is what protects the canaries from a statement.
type layer struct {
	name string
	try  func(t *testing.T, steps []string, b *bait) outcome
}

// seals opens sandboxes whose children are this program without the race detector, whose memory counts.
type seals struct {
	dir   string
	child string
}

func newSeals(t *testing.T, dir string) *seals {
	t.Helper()

	s := &seals{dir: dir, child: filepath.Join(dir, "child")}
	build := exec.CommandContext(t.Context(), "go", "test", "-c", "-o", s.child, ".")
	build.Stderr = t.Output()
	require.NoError(t, build.Run())

	return s
}

// open creates a sandbox of the tier. A job of another user is next to its jobs.
func (s *seals) open(t *testing.T, tier sandbox.Tier) *sandbox.Sandbox {
	t.Helper()

	opened, err := sandbox.New(sandbox.Config{
		Dir: filepath.Join(s.dir, "jobs-"+tier.String()), MinIsolation: sandbox.Reduced, Idle: 2, Programs: []string{engine.DuckDB, intruder},
		Binary: s.child, MaxIsolation: tier, Log: slog.New(slog.DiscardHandler),
	})
	require.NoError(t, err)
	t.Cleanup(opened.Close)
	require.Equal(t, tier, opened.Tier())
	require.NoError(t, os.CopyFS(filepath.Join(opened.Dir(), "other"), os.DirFS(filepath.Join(s.dir, "pattern", "other"))))

	return opened
}

func newEngine(s *sandbox.Sandbox) *engine.Engine {
	return engine.New(engine.Config{
		Sandbox: s, Program: engine.DuckDB, Log: slog.New(slog.DiscardHandler), Sessions: 16, Memory: mayUse, Threads: 1, Disk: mayWrite, Data: 1 << 40,
	})
}

// door is the complete protection: check, settings, kernel.
type door struct {
	query  *query.Query
	beside *query.Query // for other users, with a longer time limit
	who    auth.Principal
	cache  string
}

func openDoor(t *testing.T, s *seals, opened *sandbox.Sandbox) *door {
	t.Helper()

	d := &door{cache: filepath.Join(s.dir, "cache"), who: auth.Principal{Account: uuid.Must(uuid.NewV7()), Username: "ada"}}
	db := pgtest.New(t)
	table := lake.Table{Account: d.who.Account}

	pathStyle, err := strconv.ParseBool(stack.Env(t, "QUERN_TEST_S3_PATH_STYLE"))
	require.NoError(t, err)

	store, err := blob.New(blob.Config{
		Endpoint: stack.Env(t, "QUERN_TEST_S3_ENDPOINT"), Region: stack.Env(t, "QUERN_TEST_S3_REGION"), Bucket: stack.Env(t, "QUERN_TEST_S3_BUCKET"),
		AccessKey: stack.Env(t, "QUERN_TEST_S3_ACCESS_KEY"), SecretKey: stack.Env(t, "QUERN_TEST_S3_SECRET_KEY"), PathStyle: pathStyle,
		Prefix: "statements-test/" + uuid.NewString(), Client: &http.Client{Timeout: 20 * time.Second}, Now: time.Now,
	})
	require.NoError(t, err)
	t.Cleanup(func() {
		for object, err := range store.List(context.Background(), "") {
			require.NoError(t, err)
			require.NoError(t, store.Delete(context.Background(), object.Key))
		}
	})

	tables, err := lake.New(lake.Config{
		DB: db, Store: store, Now: time.Now, Log: slog.New(slog.DiscardHandler), DeleteGrace: time.Hour, CacheDir: d.cache, CacheBytes: 1 << 30,
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, tables.Close()) })

	names := catalog.Catalog{DB: db, Now: time.Now}

	require.NoError(t, db.Do(t.Context(), func(q postgres.Querier) error {
		if _, err := q.Exec(t.Context(), `INSERT INTO directory_names (username, account_id) VALUES ($1, $2)`, d.who.Username, d.who.Account); err != nil {
			return err
		}

		_, err := q.Exec(t.Context(), `
			INSERT INTO accounts (id, kind, username, issuer, subject, name, email, groups, seen_at, created_at)
			VALUES ($1, 'person', $2, 'issuer', $2, '', '', '{}', now(), now())`, d.who.Account, d.who.Username)

		return err
	}))

	made, err := names.CreateDataset(t.Context(), d.who, catalog.NewDataset{Namespace: "default", Name: "notes"})
	require.NoError(t, err)

	table.Dataset = made.ID
	load(t, db, tables, table, filepath.Join(s.dir, "pattern", "given.parquet"))

	config := query.Config{
		DB: db, Catalog: names, Lake: tables, Engine: newEngine(opened), Log: slog.New(slog.DiscardHandler), Now: time.Now,
		Credentials: auth.Credentials{DB: db, Now: time.Now},
		Timeout:     mayTake, DefaultRows: 1000, MaxRows: 2000, MaxBytes: mayGive, CacheBytes: 1 << 30, MaxRunning: 16, MaxPerUser: 16, MaxWaiting: 16, WaitTimeout: time.Minute,
	}
	d.query = query.New(config)
	config.Timeout = time.Minute
	d.beside = query.New(config)

	return d
}

// load makes the file the content of a table.
func load(t *testing.T, db *postgres.DB, tables *lake.Lake, table lake.Table, file string) {
	t.Helper()

	columns, err := tables.Plan(t.Context(), table, []lake.Column{{Name: "id", Type: lake.Bigint}, {Name: "v", Type: lake.Varchar}}, lake.Append)
	require.NoError(t, err)

	var (
		ingestion = uuid.Must(uuid.NewV7())
		staged    lake.Staged
	)

	require.NoError(t, db.InTx(t.Context(), func(tx postgres.Tx) error {
		staged, err = tables.StageTx(t.Context(), tx, table, ingestion, lake.Source{Name: "notes.csv"})

		return err
	}))

	staged, err = tables.Write(t.Context(), staged, file, columns)
	require.NoError(t, err)
	require.NoError(t, db.InTx(t.Context(), func(tx postgres.Tx) error { return tables.ReadyTx(t.Context(), tx, []lake.Staged{staged}) }))

	_, err = tables.Commit(t.Context(), lake.Change{Table: table, Mode: lake.Append, Ingestions: []uuid.UUID{ingestion}},
		func(postgres.Tx, lake.Snapshot) error { return nil })
	require.NoError(t, err)
}

func (d *door) try(t *testing.T, steps []string, _ *bait) (o outcome) {
	t.Helper()

	want := query.Statement{Username: d.who.Username, Namespace: "default", Text: strings.Join(steps, "; "), Form: query.Rows}
	want.Text, want.Explain = strings.CutPrefix(want.Text, "EXPLAIN ")

	began := time.Now()
	err := d.run(t.Context(), d.query, want, &o)
	o.took = time.Since(began)

	failed, isFault := errors.AsType[*fault.Error](err)

	switch {
	case err == nil:
	case !isFault:
		o.hear([]byte(err.Error()))

		o.failed = stopped
	default:
		// Only what the caller sees; causes are only in the log.
		o.hear(fmt.Appendln(nil, failed.Code, failed.Message, failed.Subs))

		o.failed = stopped
		if failed.Code == fault.QueryInvalid && !strings.Contains(failed.Message, "crashes it") {
			o.failed = refusedIt
		}

		require.NotEqual(t, fault.Internal, failed.Code, "%.200s: %.500s", want.Text, err.Error())
	}

	return o
}

func (d *door) run(ctx context.Context, q *query.Query, want query.Statement, o *outcome) error {
	result, err := q.Run(ctx, d.who, want)
	if err != nil {
		return err
	}

	defer result.Close()

	o.hear(fmt.Appendln(nil, result.Columns))

	for {
		row, err := result.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}

		if err != nil {
			return err
		}

		o.hear(append(row, '\n'))
	}
}

// good runs a valid statement, as other users do at the same time.
func (d *door) good(ctx context.Context) error {
	var o outcome

	err := d.run(ctx, d.beside, query.Statement{Username: d.who.Username, Namespace: "default", Text: "SELECT sum(id) AS s, count(*) AS n FROM notes", Form: query.Rows}, &o)
	if err == nil && !strings.Contains(o.said, `"s":499500`) && !strings.Contains(o.said, `"s":"499500"`) {
		err = fmt.Errorf("the rows are %s", o.said)
	}

	return err
}

// settings is the engine without the check.
func settings(sessions *engine.Engine) func(*testing.T, []string, *bait) outcome {
	return func(t *testing.T, steps []string, b *bait) (o outcome) {
		t.Helper()

		began := time.Now()

		session, err := sessions.Open(t.Context(), mayTake)
		require.NoError(t, err)

		defer func() {
			o.used.memory = session.Close()
			o.took = time.Since(began)
		}()

		require.NoError(t, session.Mount(filepath.Join(b.dir, "given.parquet"), "0.parquet"))

		text, explain := strings.CutPrefix(pastCheck(steps), "EXPLAIN ")

		result, err := session.Run(engine.Query{
			Statement: text, Explain: explain, Form: engine.Rows, Rows: 1000, Bytes: mayGive,
			Views: []engine.View{{Name: "notes", Files: []string{"0.parquet"}, Columns: []engine.Column{{ID: 1, Name: "id", Type: engine.Bigint}, {ID: 2, Name: "v", Type: engine.Varchar}}}},
		})

		for err == nil {
			var row engine.Row
			if row, err = result.Next(); err == nil {
				o.hear(append(row.JSON, '\n'))
			}
		}

		if errors.Is(err, io.EOF) {
			return o
		}

		o.hear([]byte(err.Error()))

		o.failed = stopped
		if _, isRefused := errors.AsType[*engine.StatementError](err); isRefused {
			o.failed = refusedIt
		}

		return o
	}
}

// pastCheck joins the steps to a text that the engine runs as the definition of its result view. Steps that are not
// queries follow a first query, and the last query becomes the result.
func pastCheck(steps []string) string {
	last := len(steps) - 1
	if last == 0 && (asks(steps[0]) || strings.HasPrefix(steps[0], "EXPLAIN ")) {
		return steps[0]
	}

	text := "SELECT 1 AS one; " + strings.Join(steps[:last], "; ")

	if asks(steps[last]) {
		return text + "; CREATE OR REPLACE TEMP VIEW __result AS " + steps[last]
	}

	return text + "; " + steps[last]
}

// kernel has neither the check nor DuckDB's settings.
func kernel(s *sandbox.Sandbox) func(*testing.T, []string, *bait) outcome {
	return func(t *testing.T, steps []string, b *bait) (o outcome) {
		t.Helper()

		began := time.Now()

		child, err := s.Start(t.Context(), intruder, sandbox.Limits{Memory: 640 << 20, Disk: mayWrite, Data: mayGive, Wall: mayTake, CPU: 2 * mayTake})
		require.NoError(t, err)

		require.NoError(t, child.Mount(filepath.Join(b.dir, "given.parquet"), "0.parquet"))
		require.NoError(t, child.Send(intrusion{steps}))

		buffer := make([]byte, 64<<10)
		for err == nil {
			var n int

			n, err = child.Data().Read(buffer)
			o.hear(buffer[:n])
		}

		var said intruded

		err = child.Receive(&said)
		o.used.memory = child.Close().Memory
		o.took = time.Since(began)

		switch {
		case err != nil:
			o.failed = stopped
			o.hear([]byte(err.Error()))
		case said.Error != "":
			o.failed = refusedIt
			o.hear([]byte(said.Error))
		}

		return o
	}
}

// free has no protection at all. It is the positive control. It waits up to patience, because a machine can be busy.
func (s *seals) free(t *testing.T, steps []string, b *bait, patience time.Duration) (o outcome) {
	t.Helper()

	tmp, in := filepath.Join(b.dir, "job", "tmp"), filepath.Join(b.dir, "job", "in")
	require.NoError(t, os.MkdirAll(tmp, 0o700))
	require.NoError(t, os.MkdirAll(in, 0o700))
	require.NoError(t, os.Link(filepath.Join(b.dir, "given.parquet"), filepath.Join(in, "0.parquet")))

	input, err := json.Marshal(intrusion{steps})
	require.NoError(t, err)

	var end bytes.Buffer

	command := exec.CommandContext(t.Context(), s.child, intruder)
	command.Dir = tmp
	command.Env = []string{"CANARY=" + canary, "HOME=" + filepath.Join(b.dir, "home-"+canary)}
	command.Stdin, command.Stderr = bytes.NewReader(input), &end

	rows, err := command.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, command.Start())

	began, ended, killed := time.Now(), make(chan struct{}), make(chan bool, 1)

	go func() {
		for {
			select {
			case <-ended:
				killed <- false

				return
			case <-time.After(20 * time.Millisecond):
			}

			o.used.most(usageOf(command.Process.Pid))

			// Stop when the effect has been observed.
			if time.Since(began) > patience || o.used.memory > usedMuch || o.used.disk > wroteMuch || o.used.threads > manyTasks {
				_ = command.Process.Kill()
				killed <- true

				return
			}
		}
	}()

	buffer := make([]byte, 64<<10)
	for err == nil && o.bytes <= gaveMuch {
		var n int

		n, err = rows.Read(buffer)
		o.hear(buffer[:n])
	}

	enough := o.bytes > gaveMuch
	if enough {
		_ = command.Process.Kill()
	}

	err = command.Wait()
	close(ended)

	var said intruded

	wasKilled := <-killed
	o.took = time.Since(began)
	o.died = err != nil && !wasKilled && !enough || json.Unmarshal(end.Bytes(), &said) == nil && said.Ruined
	o.hear(end.Bytes()[:min(end.Len(), 64<<10)])

	return o
}
