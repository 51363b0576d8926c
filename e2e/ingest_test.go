package e2e

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

// ingestion is an ingestion as the API returns it.
type ingestion struct {
	ID, Status, Mode, SessionID, SnapshotID string
	DryRun                                  bool
	FileIDs                                 []string `json:"fileIds"`
	Filenames                               []string
	Progress                                progress
	SetAside                                []setAside
	Warnings                                []string
	Error                                   *struct{ Code, Message string }
	Preview                                 *struct {
		Columns []struct{ Name, Type string }
		Rows    []map[string]any
		Doubts  []struct{ Column, Option, Message string }
	}
	Doubts                           []ingestDoubt
	CreatedAt, StartedAt, FinishedAt *time.Time
}

type ingestDoubt struct {
	Option, Message string
	Suggestions     []string
}

type progress struct {
	Phase                                         string
	BytesDone, BytesTotal, RowsDone, RowsSetAside int64
}

type setAside struct {
	File   string
	Row    int64
	Reason string
}

func (i ingestion) ended() bool { return i.Status != "queued" && i.Status != "running" }

type snapshot struct {
	SnapshotID, Operation string
	RowCount              int
	Current               bool
}

// cleanAtStart makes the cleanup jobs run as soon as the stopped service starts again, instead of a minute after the
// previous cleanup.
func (s *service) cleanAtStart() {
	s.t.Helper()
	withDatabase(s.t, s.databaseURL, func(ctx context.Context, connection *pgx.Conn) {
		for _, statement := range []string{`DELETE FROM river_job`, `DELETE FROM river_leader`, `DELETE FROM leases`} {
			_, err := connection.Exec(ctx, statement)
			require.NoError(s.t, err, statement)
		}
	})
}

// awaitJob waits until a periodic job has run since cleanAtStart.
func (s *service) awaitJob(kind string) {
	s.t.Helper()
	await(s.t, kind+" has run", func() bool {
		return s.count(`SELECT count(*) FROM river_job WHERE kind = $1 AND state = 'completed'`, kind) > 0
	})
}

// ingest creates an ingestion of the files of a session into a dataset. path is OWNER/NAMESPACE/NAME.
func ingest(t *testing.T, s *service, bearer, path, sessionID string) (id string) {
	t.Helper()

	answer := call(t, http.MethodPost, s.url+"/data/"+path+"/ingestions", bearer, fmt.Sprintf(`{"sessionId": %q}`, sessionID))
	require.Equal(t, http.StatusAccepted, answer.status, answer.body)

	var made ingestion
	answer.json(t, &made)

	return made.ID
}

// postRows stores the rows in a request body.
func postRows(t *testing.T, s *service, bearer, path, body string) {
	t.Helper()

	answer := call(t, http.MethodPost, s.url+"/data/"+path+"/rows", bearer, body)
	require.Equal(t, http.StatusOK, answer.status, answer.body)
}

// snapshots returns the snapshots of a dataset, newest first.
func snapshots(t *testing.T, s *service, bearer, path string) (list []snapshot) {
	t.Helper()

	for cursor := ""; ; {
		var page struct {
			Data       []snapshot
			NextCursor string
		}

		answer := call(t, http.MethodGet, s.url+"/data/"+path+"/snapshots?limit=100"+cursor, bearer, "")
		require.Equal(t, http.StatusOK, answer.status, answer.body)
		answer.json(t, &page)

		list = append(list, page.Data...)
		if page.NextCursor == "" {
			return list
		}

		cursor = "&cursor=" + page.NextCursor
	}
}

// filled is a dataset that a test fills.
type filled struct {
	t                      *testing.T
	s                      *service
	bearer                 string
	owner, namespace, name string
}

// newFilled creates a dataset of the bearer. owner is the bearer's username.
func newFilled(t *testing.T, s *service, owner, bearer string) *filled {
	t.Helper()

	return &filled{t, s, bearer, owner, makeDataset(t, s, bearer), "orders"}
}

func (d *filled) path() string { return d.owner + "/" + d.namespace + "/" + d.name }

func (d *filled) url() string { return d.s.url + "/data/" + d.path() }

func (d *filled) call(method, address, body string, headers ...string) *answer {
	d.t.Helper()

	return call(d.t, method, d.url()+address, d.bearer, body, headers...)
}

// create requests an ingestion. more contains further members of the request.
func (d *filled) create(sessionID, more string, headers ...string) *answer {
	d.t.Helper()

	if more != "" {
		more = ", " + more
	}

	return d.call(http.MethodPost, "/ingestions", fmt.Sprintf(`{"sessionId": %q%s}`, sessionID, more), headers...)
}

// accepted returns the ingestion that create created.
func (d *filled) accepted(answer *answer) (made ingestion) {
	d.t.Helper()
	require.Equal(d.t, http.StatusAccepted, answer.status, answer.body)
	answer.json(d.t, &made)

	return made
}

func (d *filled) get(id string) (found ingestion) {
	d.t.Helper()

	answer := d.call(http.MethodGet, "/ingestions/"+id, "")
	require.Equal(d.t, http.StatusOK, answer.status, answer.body)
	answer.json(d.t, &found)

	return found
}

// wait returns the ingestion when it has ended.
func (d *filled) wait(id string) (found ingestion) {
	d.t.Helper()
	await(d.t, "the ingestion has ended", func() bool {
		found = d.get(id)

		return found.ended()
	})

	return found
}

// load uploads files and waits until their ingestion has ended.
func (d *filled) load(more string, files ...string) ingestion {
	d.t.Helper()

	return d.wait(d.accepted(d.create(uploadFiles(d.t, d.s, d.bearer, files...), more)).ID)
}

// loaded is load for an ingestion that must succeed.
func (d *filled) loaded(more string, files ...string) ingestion {
	d.t.Helper()

	done := d.load(more, files...)
	require.Equal(d.t, "completed", done.Status, "%+v", done.Error)

	return done
}

func (d *filled) post(body string, headers ...string) *answer {
	d.t.Helper()

	return d.call(http.MethodPost, "/rows", body, headers...)
}

func (d *filled) snapshots() []snapshot {
	d.t.Helper()

	return snapshots(d.t, d.s, d.bearer, d.path())
}

// table reads the table with another Iceberg implementation, and checks that the service describes the same contents.
func (d *filled) table() tableContents {
	d.t.Helper()

	account, id := d.s.tableName(d.owner, d.namespace, d.name)
	found := readTable(d.t, d.s.databaseURL, account, id)
	said := d.describe()
	require.Len(d.t, found.rows, said.RowCount)

	for i, column := range found.columns {
		require.Equal(d.t, column.name, said.ColumnNames[i])
		require.Equal(d.t, []string{column.name, column.kind}, []string{said.Columns[i].Name, said.Columns[i].Type})
		require.True(d.t, said.Columns[i].Nullable)
	}

	list := d.snapshots()
	require.True(d.t, list[0].Current)
	require.Equal(d.t, said.SnapshotID, list[0].SnapshotID)
	require.Equal(d.t, said.RowCount, list[0].RowCount)

	for _, earlier := range list[1:] {
		require.False(d.t, earlier.Current)
	}

	return found
}

type description struct {
	RowCount    int
	SnapshotID  string
	ColumnNames []string
	Columns     []struct {
		Name, Type string
		Nullable   bool
	}
}

func (d *filled) describe() description {
	d.t.Helper()

	answer := d.call(http.MethodGet, "", "")
	require.Equal(d.t, http.StatusOK, answer.status, answer.body)

	var dataset struct{ Metadata description }
	answer.json(d.t, &dataset)

	return dataset.Metadata
}

// numbers returns rows of one column of whole numbers.
func numbers(list ...int64) (rows [][]any) {
	for _, n := range list {
		rows = append(rows, []any{n})
	}

	return sorted(rows)
}

// number returns the value of such a row.
func number(row []any) int64 {
	n, _ := row[0].(int64)

	return n
}

const (
	notReady   = "Only a waiting, failed or cancelled ingestion can be retried."
	hasEnded   = "The ingestion has ended already."
	wasCleared = "The dataset was cleared, deleted or restored after this request was accepted."
)

func TestIngestScenarios(t *testing.T) {
	t.Parallel()

	s := start(t)
	key := s.newKey()

	for name, play := range map[string]func(*testing.T, *service, *signer){
		"files become rows":                    ingestFiles,
		"append and replace":                   ingestModes,
		"files of a session: all or none":      ingestTogether,
		"a dry run":                            ingestDryRun,
		"a workbook":                           ingestWorkbook,
		"options":                              ingestOptions,
		"rows that do not fit":                 ingestSetAside,
		"a file that fails, and fails again":   ingestFailing,
		"cancelled while it is queued":         ingestCancelQueued,
		"cancelled while it runs":              ingestCancelRunning,
		"stored while it is converted":         ingestPipelined,
		"the same file twice":                  ingestTwice,
		"an editor's files":                    ingestByEditor,
		"sessions and files that do not fit":   ingestRefused,
		"repeats":                              ingestRepeated,
		"pages":                                ingestPages,
		"a snapshot restored":                  ingestRestore,
		"what was accepted before a clear":     ingestCleared,
		"a dataset renamed, deleted, restored": ingestMoves,
		"a dataset handed over":                ingestTransfer,
		"a dataset handed over too early":      ingestTransferBusy,
		"a dataset gone for good":              ingestGone,
		"rows in each form":                    rowsInEachForm,
		"rows that are refused":                rowsRefused,
		"rows, repeated":                       rowsRepeated,
		"rows meet a clear":                    rowsCleared,
		"rows without a store":                 rowsOutage,
		"what is another's differs in no byte": ingestUnseen,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			play(t, s, key)
		})
	}
}
