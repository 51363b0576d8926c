package e2e

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// long is a long statement of a caller.
type long struct {
	d *filled

	ID       string
	Status   string
	Query    string
	Format   string
	Progress struct {
		Part        float64
		Rows, Bytes int64
	}
	Columns   []struct{ Name, Type string }
	Snapshots []struct{ Dataset, SnapshotID string }
	Error     *struct {
		Code, Message string
		SubErrors     []struct{ Code, Message string }
	}
}

// piece is a piece of a result, or its end.
type piece struct {
	Number               int
	Rows, Bytes          int64
	SHA256               string `json:"sha256"`
	HeadBytes, TailBytes int
}

type pieceList struct {
	Data []piece
	End  *piece
}

const async = "Prefer: respond-async"

// start starts a long statement.
func (d *filled) start(statement, more string) *long {
	d.t.Helper()

	return d.started(d.ask(statement, more, async))
}

func (d *filled) started(answer *answer) *long {
	d.t.Helper()
	require.Equal(d.t, http.StatusAccepted, answer.status, answer.body)

	l := &long{d: d}
	answer.json(d.t, l)
	require.True(d.t, strings.HasSuffix(answer.header.Get("Location"), "/query/statements/"+l.ID), answer.header.Get("Location"))

	return l
}

func (l *long) call(method, path string) *answer {
	l.d.t.Helper()

	return call(l.d.t, method, l.d.s.url+"/query/statements/"+l.ID+path, l.d.bearer, "")
}

// by returns the same statement for another caller.
func (l *long) by(bearer string) *long {
	other := *l
	other.d = l.d.by(bearer)

	return &other
}

func (l *long) refresh() *long {
	l.d.t.Helper()

	answer := l.call(http.MethodGet, "")
	require.Equal(l.d.t, http.StatusOK, answer.status, answer.body)
	answer.json(l.d.t, l)

	return l
}

// await waits for a status.
func (l *long) await(status string) *long {
	l.d.t.Helper()
	await(l.d.t, "the statement is "+status, func() bool {
		l.refresh()
		require.True(l.d.t, l.Status == status || l.Status == "queued" || l.Status == "running", "%+v", l)

		return l.Status == status
	})

	return l
}

func (l *long) pieces() (list pieceList) {
	l.d.t.Helper()

	answer := l.call(http.MethodGet, "/pieces")
	require.Equal(l.d.t, http.StatusOK, answer.status, answer.body)
	answer.json(l.d.t, &list)

	return list
}

// address returns the address of a piece.
func (l *long) address(number int) string {
	l.d.t.Helper()

	answer := l.call(http.MethodGet, fmt.Sprintf("/pieces/%d", number))
	require.Equal(l.d.t, http.StatusSeeOther, answer.status, answer.body)

	return answer.header.Get("Location")
}

// get returns the content of a piece.
func (l *long) get(p piece) string {
	l.d.t.Helper()

	content := download(l.d.t, l.address(p.Number)).body
	sum := sha256.Sum256([]byte(content))
	require.Equal(l.d.t, p.SHA256, hex.EncodeToString(sum[:]))
	require.Len(l.d.t, content, int(p.Bytes))

	return content
}

// statementObjects returns the number of pieces in the object store.
func (p *place) statementObjects() (number int) {
	p.t.Helper()

	for key := range p.objects() {
		if strings.HasPrefix(key, "statements/") {
			number++
		}
	}

	return number
}

func TestLongStatements(t *testing.T) {
	t.Parallel()

	s := start(t, "QUERN_EXPORT_WORKERS=2")
	key := s.newKey()

	for name, play := range map[string]func(*testing.T, *service, *signer){
		"from the start to the end":       longLife,
		"of others":                       longOthers,
		"that can no longer be read":      longRevoked,
		"of a deleted dataset":            longDeletedDataset,
		"cancelled":                       longCancelled,
		"that fail":                       longFailed,
		"with parameters":                 longParameters,
		"of a result that is too large":   longOverflow,
		"with an address that is expired": longExpiredAddress,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			play(t, s, key)
		})
	}
}

func longLife(t *testing.T, s *service, key *signer) {
	t.Helper()

	d := newFilled(t, s, "lena", key.token("lena"))
	d.loaded("", "n,word\n1,one\n2,two\n3,\n")

	l := d.start("SELECT n, word FROM orders ORDER BY n DESC", "")
	require.Contains(t, []string{"queued", "running"}, l.Status)
	require.Equal(t, "parquet", l.Format)
	l.await("completed")
	require.EqualValues(t, 3, l.Progress.Rows)
	require.InDelta(t, 1, l.Progress.Part, 0)
	require.Equal(t, []struct{ Name, Type string }{{"n", "bigint"}, {"word", "varchar"}}, l.Columns)
	require.Len(t, l.Snapshots, 1)
	require.Equal(t, d.path(), l.Snapshots[0].Dataset)

	list := l.pieces()
	require.Len(t, list.Data, 1)
	require.Nil(t, list.End)

	_, rows := readParquet(t, l.get(list.Data[0]))
	require.Equal(t, "[[3 <nil>] [2 two] [1 one]]", fmt.Sprint(rows))

	// Rows page by page.
	var page struct {
		Data       []map[string]any
		NextCursor string
	}

	var seen []any

	for cursor := ""; ; cursor = "&cursor=" + page.NextCursor {
		page.NextCursor, page.Data = "", nil
		l.call(http.MethodGet, "/rows?limit=2"+cursor).json(t, &page)

		for _, row := range page.Data {
			seen = append(seen, row["n"])
		}

		if page.NextCursor == "" {
			break
		}
	}

	require.Equal(t, []any{3.0, 2.0, 1.0}, seen)

	// The list has it, newest first.
	second := d.start("SELECT 1 AS one", `"format": "csv"`).await("completed")

	var listed struct{ Data []long }

	call(t, http.MethodGet, s.url+"/query/statements?limit=1", d.bearer, "").json(t, &listed)
	require.Equal(t, second.ID, listed.Data[0].ID)
	require.Equal(t, "one\n1\n", second.get(second.pieces().Data[0]))
	require.Equal(t, http.StatusUnprocessableEntity, second.call(http.MethodGet, "/rows").status, "CSV has no pages")
	require.Equal(t, http.StatusNotFound, second.call(http.MethodGet, "/pieces/2").status)

	// Deleted, it is gone, and so is its object.
	address := l.address(1)
	require.Equal(t, http.StatusNoContent, l.call(http.MethodDelete, "").status)
	require.Equal(t, http.StatusNotFound, l.call(http.MethodGet, "").status)
	require.Equal(t, http.StatusNotFound, l.call(http.MethodGet, "/pieces/1").status)
	require.NotEmpty(t, address)
}

func longOthers(t *testing.T, s *service, key *signer) {
	t.Helper()

	d := newFilled(t, s, "otto", key.token("otto"))
	d.loaded("", "n\n1\n")

	l := d.start("SELECT n FROM orders", "").await("completed")
	share(t, s, d.bearer, "datasets/"+d.path(), "eve", "viewer")

	restricted := restrictedToken(t, s, d.bearer, target("self", d.namespace, "orders"))

	for _, bearer := range []string{key.token("eve"), restricted} {
		other := l.by(bearer)

		for _, request := range []string{"GET ", "GET /pieces", "GET /pieces/1", "GET /rows", "POST /cancel", "DELETE "} {
			method, path, _ := strings.Cut(request, " ")
			require.Equal(t, http.StatusNotFound, other.call(method, path).status, request)
		}

		var listed struct{ Data []long }

		call(t, http.MethodGet, s.url+"/query/statements", bearer, "").json(t, &listed)
		require.Empty(t, listed.Data)
	}

	own := d.by(restricted).start("SELECT n FROM orders", "").await("completed")
	require.Len(t, own.pieces().Data, 1)
	require.Len(t, own.by(d.bearer).pieces().Data, 1, "the person sees what the token started")
}

// longRevoked checks that a caller who may no longer read a dataset gets no address, and the same answer as for the statement itself.
func longRevoked(t *testing.T, s *service, key *signer) {
	t.Helper()

	d := newFilled(t, s, "rita", key.token("rita"))
	d.loaded("", "n\n1\n")

	viewer := d.by(key.token("bob"))
	me(t, s, viewer.bearer)
	share(t, s, d.bearer, "datasets/"+d.path(), "bob", "viewer")

	const statement = "SELECT n\nFROM orders"

	l := viewer.start(statement, "").await("completed")
	given, err := url.Parse(l.address(1))
	require.NoError(t, err)
	require.Equal(t, "60", given.Query().Get("X-Amz-Expires"))

	unshare(t, s, d.bearer, "datasets/"+d.path(), "bob")

	now := viewer.ask(statement, "")
	require.GreaterOrEqual(t, now.status, http.StatusBadRequest)

	for _, path := range []string{"/pieces", "/pieces/1", "/rows"} {
		refused := l.call(http.MethodGet, path)
		require.Equal(t, now.status, refused.status, refused.body)
		require.JSONEq(t, now.body, refused.body, path)
	}

	share(t, s, d.bearer, "datasets/"+d.path(), "bob", "viewer")
	require.Len(t, l.pieces().Data, 1)
}

func longDeletedDataset(t *testing.T, s *service, key *signer) {
	t.Helper()

	d := newFilled(t, s, "dora", key.token("dora"))
	d.loaded("", "n\n1\n")

	l := d.start("SELECT n FROM orders", "").await("completed")
	require.Equal(t, http.StatusNoContent, call(t, http.MethodDelete, d.url(), d.bearer, "").status)

	refused := l.call(http.MethodGet, "/pieces/1")
	require.JSONEq(t, d.ask("SELECT n FROM orders", "").body, refused.body)

	// Another dataset with the same name is not the one that was read.
	made := call(t, http.MethodPost, s.url+"/ingest/new/"+d.namespace+"/orders", d.bearer, "")
	require.Equal(t, http.StatusCreated, made.status, made.body)

	refused = l.call(http.MethodGet, "/pieces/1")
	require.Equal(t, http.StatusUnprocessableEntity, refused.status)
	require.Contains(t, refused.body, "no longer exists")
}

// minutesLong is a statement that runs for minutes.
const minutesLong = "SELECT range AS id, sha256(sha256(CAST(range AS VARCHAR))) AS sum FROM range(400000000)"

func longCancelled(t *testing.T, s *service, key *signer) {
	t.Helper()

	d := newFilled(t, s, "cora", key.token("cora"))

	l := d.start(minutesLong, "").await("running")
	require.Equal(t, http.StatusUnprocessableEntity, l.call(http.MethodGet, "/pieces").status)

	for range 2 {
		answer := l.call(http.MethodPost, "/cancel")
		require.Equal(t, http.StatusOK, answer.status, answer.body)
		answer.json(t, l)
		require.Equal(t, "cancelled", l.Status)
	}

	await(t, "the worker has stopped", func() bool {
		return s.count(`SELECT count(*) FROM leases WHERE work_id = $1`, l.ID) == 0
	})

	ended := d.start("SELECT 1", "").await("completed")
	answer := ended.call(http.MethodPost, "/cancel")
	require.Equal(t, http.StatusUnprocessableEntity, answer.status)
	require.Contains(t, answer.body, "INVALID_STATE")

	// A running statement can be deleted at once.
	deleted := d.start(minutesLong, "").await("running")
	require.Equal(t, http.StatusNoContent, deleted.call(http.MethodDelete, "").status)
	await(t, "the worker has stopped", func() bool {
		return s.count(`SELECT count(*) FROM leases WHERE work_id = $1`, deleted.ID) == 0
	})
}

func longFailed(t *testing.T, s *service, key *signer) {
	t.Helper()

	d := newFilled(t, s, "fred", key.token("fred"))
	d.loaded("", "n,region\n1,x\n")

	l := d.start("SELECT regoin\nFROM orders", "").await("failed")
	require.Equal(t, "QUERY_INVALID", l.Error.Code)
	require.Equal(t, `There is no column "regoin".`, l.Error.Message)
	require.Equal(t, "line 1, column 8", l.Error.SubErrors[0].Message)
	require.Equal(t, http.StatusUnprocessableEntity, l.call(http.MethodGet, "/pieces").status)

	for _, statement := range []string{"EXPLAIN SELECT 1", "SELECT n FROM absent", "DELETE FROM orders", "SELECT CAST('x' AS INTEGER)"} {
		require.Equal(t, "QUERY_INVALID", d.start(statement, "").await("failed").Error.Code, statement)
	}

	require.Equal(t, http.StatusUnprocessableEntity, d.ask("SELECT 1", `"explain": true`, async).status)
}

func longParameters(t *testing.T, s *service, key *signer) {
	t.Helper()

	d := newFilled(t, s, "pia", key.token("pia"))
	d.loaded("", "n,word\n1,secretword\n2,two\n")

	l := d.start("SELECT n, $more AS more FROM orders WHERE word = $word", `"parameters": {"word": "secretword", "more": 1.50}, "format": "ndjson"`).await("completed")
	require.Equal(t, `{"n":1,"more":1.5}`+"\n", l.get(l.pieces().Data[0]))
	require.Zero(t, s.count(`SELECT count(*) FROM statements WHERE request LIKE '%secretword%'`), "values of parameters are forgotten")
	require.Equal(t, http.StatusUnprocessableEntity, d.ask("SELECT $1", `"parameters": [{"type": "date", "value": "x"}]`, async).status)
}

// longOverflow checks that a result that would be cut becomes a long statement if the caller allows it.
func longOverflow(t *testing.T, s *service, key *signer) {
	t.Helper()

	d := newFilled(t, s, "olga", key.token("olga"))

	const large = "SELECT range AS id FROM range(12345)"

	for _, accept := range []string{"application/json", "text/csv", "application/vnd.apache.parquet"} {
		l := d.started(d.ask(large, `"overflow": "statement"`, "Accept: "+accept)).await("completed")
		require.EqualValues(t, 12345, l.Progress.Rows)

		small := d.ask("SELECT 1 AS one", `"overflow": "statement"`, "Accept: "+accept)
		require.Equal(t, http.StatusOK, small.status, small.body)
		require.Equal(t, accept, small.header.Get("Content-Type"))
	}

	require.Len(t, d.resultOf(d.ask("SELECT range AS id FROM range(9999)", `"overflow": "statement"`)).Data, 9999)
	require.Equal(t, http.StatusUnprocessableEntity, d.ask(large, "", "Accept: text/csv").status)
}

func longExpiredAddress(t *testing.T, s *service, key *signer) {
	t.Helper()

	d := newFilled(t, s, "axel", key.token("axel"))
	l := d.start("SELECT 1 AS one", `"format": "csv"`).await("completed")
	address := l.address(1)
	require.Equal(t, "one\n1\n", download(t, address).body)

	time.Sleep(61 * time.Second)

	refused, err := try(newRequest(t, http.MethodGet, address, "", ""))
	require.NoError(t, err)
	require.Equal(t, http.StatusForbidden, refused.status)
	require.NotContains(t, refused.body, "one")
	require.Equal(t, "one\n1\n", download(t, l.address(1)).body, "a new one works")
}
