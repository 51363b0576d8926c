package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

// storedLog is a run as an earlier version stored it. Each file testdata/logs/*.ndjson has one: the first line is the row of
// the run, with the snapshots that it read, and every other line is an event. The texts <run> and <conversation> stand for
// ids. Databases of installations contain such rows, so the files never change. New files are added by hand from a database:
// the bodies and the result must stay byte for byte as they were stored. Only rows of large steps may be left out.
type storedLog struct {
	Agent, Status, Question string
	Request, Result         json.RawMessage
	ErrorCode, ErrorMessage string
	Reads                   []struct {
		Dataset, SnapshotID string
		CommittedAt         time.Time
	}
	Objects map[string]string // content by key, of steps whose rows are too large for the database

	events []storedEvent
}

type storedEvent struct {
	Seq  int64
	Kind string
	Step int
	Body json.RawMessage
}

func readLog(t *testing.T, path string) (log storedLog) {
	t.Helper()

	content, err := os.ReadFile(path)
	require.NoError(t, err)

	lines := strings.Split(strings.TrimSpace(string(content)), "\n")
	require.NoError(t, json.Unmarshal([]byte(lines[0]), &log))

	for _, line := range lines[1:] {
		var e storedEvent
		require.NoError(t, json.Unmarshal([]byte(line), &e))
		log.events = append(log.events, e)
	}

	return log
}

// insert stores a log as a new run, which is otherwise like another run. It returns the id.
func (d *filled) insert(log storedLog, like asked) (run asked) {
	d.t.Helper()

	run = asked{RunID: uuid.Must(uuid.NewV7()).String(), ConversationID: like.ConversationID}
	account, dataset := d.s.tableName(d.owner, d.namespace, d.name)

	var result *string
	if !bytes.Equal(log.Result, []byte("null")) {
		result = new(string(log.Result))
	}

	withDatabase(d.t, d.s.databaseURL, func(ctx context.Context, connection *pgx.Conn) {
		exec := func(statement string, args ...any) {
			_, err := connection.Exec(ctx, statement, args...)
			require.NoError(d.t, err)
		}

		exec(`INSERT INTO runs (account_id, id, conversation_id, agent, status, question, request, caller, trace_id, last_seq, result, error_code, error_message,
				created_at, deadline_at, began_at, finished_at)
			SELECT account_id, $2, conversation_id, $3, $4, $5, $6::jsonb, caller, trace_id, $7, $8, $9, $10, created_at, deadline_at, created_at,
				CASE $4::text WHEN 'running' THEN NULL ELSE created_at END FROM runs WHERE id = $1`,
			like.RunID, run.RunID, log.Agent, log.Status, log.Question, string(log.Request), len(log.events), result, log.ErrorCode, log.ErrorMessage)

		for _, e := range log.events {
			body := strings.NewReplacer("<run>", run.RunID, "<conversation>", run.ConversationID).Replace(string(e.Body))
			exec(`INSERT INTO run_events (account_id, run_id, seq, kind, step, body, at) SELECT account_id, id, $2, $3, $4, $5, created_at FROM runs WHERE id = $1`,
				run.RunID, e.Seq, e.Kind, e.Step, body)
		}

		for _, read := range log.Reads {
			exec(`INSERT INTO run_reads (account_id, run_id, dataset_account, dataset_id, dataset, snapshot_id, committed_at)
				SELECT account_id, id, $2::uuid, $3::uuid, $4, $5::uuid, $6 FROM runs WHERE id = $1`, run.RunID, account, dataset, read.Dataset, read.SnapshotID, read.CommittedAt)
		}
	})

	for key, content := range log.Objects {
		_, err := d.s.place.client.PutObject(d.t.Context(), &s3.PutObjectInput{Bucket: &d.s.place.bucket, Key: new(d.s.place.prefix + key), Body: strings.NewReader(content)})
		require.NoError(d.t, err)
	}

	return run
}

// TestStoredRuns checks that clients still receive the runs that earlier versions stored, byte by byte: by REST, as a stream and
// by A2A.
func TestStoredRuns(t *testing.T) {
	t.Parallel()

	s := start(t, "QUERN_RUN_WORKERS=0") // no worker continues a run
	d := newFilled(t, s, "ada", s.newKey().token("ada"))
	like := d.accept("nl2ql", "How many orders are there?")

	logs, err := filepath.Glob(filepath.Join("testdata", "logs", "*.ndjson"))
	require.NoError(t, err)
	require.NotEmpty(t, logs)

	for _, path := range logs {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".ndjson"), func(t *testing.T) {
			t.Parallel()

			on := *d
			on.t = t
			got := on.showStored(readLog(t, path), like)
			file := strings.TrimSuffix(path, ".ndjson") + ".golden"

			if *update {
				require.NoError(t, os.WriteFile(file, []byte(got), 0o600))
			}

			want, err := os.ReadFile(file)
			require.NoError(t, err)
			require.Equal(t, string(want), got)
		})
	}
}

// showStored stores a log twice, as it is and without its end, and returns what clients receive of both.
func (d *filled) showStored(log storedLog, like asked) string {
	d.t.Helper()

	var text strings.Builder

	show := func(run asked, title, body string) {
		body = strings.NewReplacer(run.RunID, "<run>", run.ConversationID, "<conversation>").Replace(withoutSigns(body))
		text.WriteString("# " + title + "\n" + anyTime.ReplaceAllString(anyID.ReplaceAllString(strings.TrimSpace(body), "<id>"), "<time>") + "\n\n")
	}

	ended := d.insert(log, like)
	show(ended, "The run", call(d.t, http.MethodGet, d.s.url+"/query/runs/"+ended.RunID, d.bearer, "").body)

	var events strings.Builder
	for _, e := range follow(d.t, newRequest(d.t, http.MethodGet, d.s.url+"/query/runs/"+ended.RunID+"/events", d.bearer, ""), 1000) {
		fmt.Fprintf(&events, "id: %d\nevent: %s\ndata: %s\n\n", e.id, e.name, e.data)
	}

	show(ended, "Its events", events.String())

	p := newPeer(d, log.Agent)
	show(ended, "The task", p.call("GetTask", `{"id": "`+ended.RunID+`"}`).body)

	log.Status, log.Result, log.ErrorCode, log.ErrorMessage = "running", json.RawMessage("null"), "", ""
	log.events = log.events[:len(log.events)-1]
	running := d.insert(log, like)

	subscribed := openStream(d.t, p.request("SubscribeToTask", `{"id": "`+running.RunID+`"}`))
	subscribed.next()
	p.task("CancelTask", running.RunID)
	show(running, "The events of the task, which is cancelled before its end", subscribed.rest().body)

	return text.String()
}
