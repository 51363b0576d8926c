package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// doubted is an ingestion with its doubts.
type doubted struct {
	ID, Status string
	Accepted   []string
	Progress   progress
	Doubts     []struct{ Column, Option, Code, Message string }
	SetAside   []setAside
	Error      *struct{ Code, Message string }
	Preview    *struct {
		Doubts []struct{ Column, Option, Code, Message string }
	}
}

func (d *filled) doubted(t *testing.T, id string) (found doubted) {
	t.Helper()
	d.wait(id)
	d.call(http.MethodGet, "/ingestions/"+id, "").json(t, &found)

	return found
}

// unmade returns a dataset that does not exist.
func unmade(t *testing.T, s *service, key *signer, owner string) *filled {
	t.Helper()

	d := &filled{t, s, key.token(owner), owner, "drafts", "orders"}
	require.Equal(t, http.StatusNotFound, d.call(http.MethodGet, "", "").status)

	return d
}

const tenOrders = "id,amount\n1,10\n2,20\n3,30\n4,40\n5,50\n6,60\n7,70\n8,80\n9,90\n10,100\n"

func TestDoubts(t *testing.T) {
	t.Parallel()

	s := start(t)
	key := s.newKey()

	for name, play := range map[string]func(*testing.T, *service, *signer){
		"a dataset is created with its first snapshot": doubtsDraft,
		"two ingestions name one dataset":              doubtsDraftShared,
		"a name that is taken meanwhile":               doubtsDraftTaken,
		"only the owner sees a draft":                  doubtsDraftHidden,
		"the same bytes":                               doubtsSameBytes,
		"most of the rows":                             doubtsRowsPresent,
		"other columns":                                doubtsOtherColumns,
		"what a file has in it":                        doubtsOfFiles,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			play(t, s, key)
		})
	}
}

func doubtsDraft(t *testing.T, s *service, key *signer) {
	t.Helper()

	d := unmade(t, s, key, "drafter")

	tried := d.load(`"dryRun": true`, tenOrders)
	require.Equal(t, "completed", tried.Status, "%+v", tried.Error)
	require.Len(t, tried.Preview.Columns, 2)

	failed := d.load("", "id\n\"1\n")
	require.Equal(t, "failed", failed.Status)

	cancelled := d.load(`"accept": []`, "Dear Ms Miller,\n\nthank you very much for your letter of last week.\nWe are glad to hear from you, and hope that you are well.\n\nYours sincerely,\nJohn Smith\n")
	require.Equal(t, "waiting", cancelled.Status, "%+v", cancelled)
	require.Equal(t, http.StatusOK, d.call(http.MethodPost, "/ingestions/"+cancelled.ID+"/cancel", "").status)

	// A cancelled ingestion waits for its doubts again, even if they had been accepted before.
	s.exec(`UPDATE ingestions SET accepted = ARRAY[$2] WHERE id = $1`, cancelled.ID, d.doubted(t, cancelled.ID).Doubts[0].Code)
	require.Equal(t, http.StatusAccepted, d.call(http.MethodPost, "/ingestions/"+cancelled.ID+"/retry", "{}").status)
	require.Equal(t, "waiting", d.wait(cancelled.ID).Status)
	require.Equal(t, http.StatusOK, d.call(http.MethodPost, "/ingestions/"+cancelled.ID+"/cancel", "").status)

	var list struct{ Data []ingestion }
	d.call(http.MethodGet, "/ingestions", "").json(t, &list)
	require.Len(t, list.Data, 3)

	require.Equal(t, http.StatusNotFound, d.call(http.MethodGet, "", "").status)
	require.NotContains(t, call(t, http.MethodGet, s.url+"/schema/drafter/namespaces", d.bearer, "").body, "drafts")

	d.loaded("", tenOrders)
	require.Equal(t, 10, d.describe().RowCount)
	require.Len(t, d.snapshots(), 1)

	audited := call(t, http.MethodGet, s.url+"/audit", d.bearer, "").body
	require.Equal(t, 1, strings.Count(audited, `"dataset.create"`), audited)
	require.Equal(t, 1, strings.Count(audited, `"namespace.create"`), audited)
}

func doubtsDraftShared(t *testing.T, s *service, key *signer) {
	t.Helper()

	d := unmade(t, s, key, "sharer")

	var ids []string
	for i := range 4 {
		ids = append(ids, d.accepted(d.create(uploadFiles(t, s, d.bearer, fmt.Sprintf("id\n%d\n", i)), "")).ID)
	}

	// If the dataset is created by hand meanwhile, the ingestions use it.
	made := call(t, http.MethodPost, s.url+"/ingest/new/drafts/orders", d.bearer, "")
	require.Contains(t, []int{http.StatusCreated, http.StatusConflict}, made.status, made.body)

	for _, id := range ids {
		done := d.wait(id)
		require.Equal(t, "completed", done.Status, "%+v", done.Error)
	}

	require.Equal(t, 4, d.describe().RowCount)
}

func doubtsDraftTaken(t *testing.T, s *service, key *signer) {
	t.Helper()

	d := unmade(t, s, key, "taker")
	waiting := d.load("", "id,a\n1,2\n", "id,a\n1,2\n")
	require.Equal(t, "waiting", waiting.Status)

	other := &filled{t, s, d.bearer, d.owner, d.namespace, "other"}
	other.loaded("", tenOrders)
	require.Equal(t, http.StatusOK, other.call(http.MethodPatch, "", `{"name": "orders"}`).status)

	// The ingestion belongs to a dataset that will never be created.
	require.Equal(t, http.StatusNotFound, d.call(http.MethodPost, "/ingestions/"+waiting.ID+"/retry", `{"accept": ["all"]}`).status)
	require.Equal(t, 10, d.describe().RowCount)
}

func doubtsDraftHidden(t *testing.T, s *service, key *signer) {
	t.Helper()

	d := unmade(t, s, key, "hider")
	tried := d.load(`"dryRun": true`, tenOrders)

	stranger := &filled{t, s, key.token("seeker"), d.owner, d.namespace, d.name}
	require.Equal(t, http.StatusNotFound, stranger.create(uploadFiles(t, s, stranger.bearer, tenOrders), "").status)

	for _, address := range []string{"/ingestions", "/ingestions/" + tried.ID} {
		require.Equal(t, http.StatusNotFound, stranger.call(http.MethodGet, address, "").status)
	}

	viewer := value(t, call(t, http.MethodPost, s.url+"/user/tokens", d.bearer, `{"name": "viewer", "role": "viewer"}`))
	looking := &filled{t, s, viewer, d.owner, d.namespace, "another"}
	require.Equal(t, http.StatusNotFound, looking.create(uploadFiles(t, s, d.bearer, tenOrders), "").status)
}

func doubtsSameBytes(t *testing.T, s *service, key *signer) {
	t.Helper()

	d := unmade(t, s, key, "repeater")
	d.loaded("", tenOrders)
	d.loaded("", "id,amount\n11,110\n")

	tried := d.doubted(t, d.load(`"dryRun": true`, tenOrders).ID)
	require.Equal(t, "completed", tried.Status)
	require.NotEmpty(t, tried.Preview.Doubts)
	require.Equal(t, "loadedBefore", tried.Preview.Doubts[0].Code)

	waiting := d.doubted(t, d.load("", tenOrders).ID)
	require.Equal(t, "waiting", waiting.Status)
	require.Equal(t, "loadedBefore", waiting.Doubts[0].Code)
	require.Contains(t, waiting.Doubts[0].Message, `The file "file 0" was loaded into this dataset on `)
	require.Equal(t, 11, d.describe().RowCount)

	for _, body := range []string{"", `{}`, `{"accept": ["otherColumns"]}`} {
		refused := d.call(http.MethodPost, "/ingestions/"+waiting.ID+"/retry", body)
		require.Equal(t, http.StatusUnprocessableEntity, refused.status, refused.body)
		require.Contains(t, refused.body, "loadedBefore")
	}

	require.Equal(t, http.StatusUnprocessableEntity, d.call(http.MethodPost, "/ingestions/"+waiting.ID+"/retry", `{"accept": ["never"]}`).status)

	again := d.call(http.MethodPost, "/ingestions/"+waiting.ID+"/retry", `{"accept": ["loadedBefore"]}`)
	require.Equal(t, http.StatusAccepted, again.status, again.body)
	require.Equal(t, "completed", d.wait(waiting.ID).Status)
	require.Equal(t, 21, d.describe().RowCount)

	// A file can be loaded again if its rows are no longer in the dataset: after a restore, a replacement and a clear.
	history := d.snapshots()
	require.Equal(t, http.StatusOK, d.call(http.MethodPost, "/snapshots/"+history[2].SnapshotID+"/restore", "").status)
	d.loaded("", "id,amount\n11,110\n")
	require.Equal(t, "waiting", d.load("", tenOrders).Status)
	d.loaded(`"mode": "replace"`, tenOrders)
	d.loaded("", "id,amount\n11,110\n")
	require.Equal(t, http.StatusOK, d.call(http.MethodPost, "/clear", "").status)
	d.loaded("", tenOrders)

	// The doubt is accepted with the request.
	d.loaded(`"accept": ["all"]`, tenOrders)
	require.Equal(t, 20, d.describe().RowCount)
}

func doubtsRowsPresent(t *testing.T, s *service, key *signer) {
	t.Helper()

	d := unmade(t, s, key, "grower")

	var rows strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&rows, "%d,customer %d,%d.5\n", i, i%100, i)
	}

	d.loaded("", "id,name,amount\n"+rows.String())

	// The next day's export has all rows, and one more.
	waiting := d.doubted(t, d.load("", "id,name,amount\n"+rows.String()+"5000,customer 0,5000.5\n").ID)
	require.Equal(t, "waiting", waiting.Status)
	require.Equal(t, "rowsPresent", waiting.Doubts[0].Code)
	require.Equal(t, 5000, d.describe().RowCount)

	// No doubt is reported for new rows, for rows that are mostly new, and for a column with few different values.
	var others strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&others, "%d,customer %d,%d.5\n", i+4000, i%100, i+4000)
	}

	require.Equal(t, "completed", d.load("", "id,name,amount\n"+others.String()).Status)

	answers := unmade(t, s, key, "asker")
	answers.loaded("", "answer\n"+strings.Repeat("yes\nno\nperhaps\n", 50))
	answers.loaded("", "answer\n"+strings.Repeat("no\nyes\nperhaps\n", 70))
}

func doubtsOtherColumns(t *testing.T, s *service, key *signer) {
	t.Helper()

	d := unmade(t, s, key, "mixer")
	d.loaded("", "id,amount,city\n1,10,Rome\n")

	waiting := d.doubted(t, d.load("", "sensor,temperature\nA,21.5\n").ID)
	require.Equal(t, "waiting", waiting.Status)
	require.Equal(t, "otherColumns", waiting.Doubts[0].Code)

	// Missing columns and additional columns are not a doubt.
	d.loaded("", "id,amount\n2,20\n")
	d.loaded("", "ID,day,note,country\n3,2026-01-01,x,IT\n")

	// The dataset has six columns now, and one of the four in the file.
	waiting = d.doubted(t, d.load("", "id,sensor,temperature,unit\n4,A,21.5,C\n").ID)
	require.Equal(t, "waiting", waiting.Status)
	require.Equal(t, "otherColumns", waiting.Doubts[0].Code)
	require.Contains(t, waiting.Doubts[0].Message, "Columns in both: only 1.")

	d.loaded(`"mode": "replace"`, "sensor,temperature\nA,21.5\n")
}

// doubtsOfFiles checks which doubts a file has, and which of them make the ingestion wait.
func doubtsOfFiles(t *testing.T, s *service, key *signer) {
	t.Helper()

	hundred := strings.Builder{}
	for i := range 100 {
		fmt.Fprintf(&hundred, "%d,%d.5\n", i, i)
	}

	for _, one := range []struct{ name, file, status, code, says string }{
		{"total", "region,amount\n" + strings.Repeat("North,10\n", 100) + "Total,1000\n" + strings.Repeat("South,10\n", 100), "completed", "", "looks like a total"},
		{"title", "Sales report 2026\nprinted by Ann\n\nregion,amount\nNorth,10\nSouth,20\nEast,30\n", "completed", "", "omitted"},
		{"text", "id,amount\n" + hundred.String() + "100,oops\n", "completed", "", `"oops" in row 101`},
		{"letter", "Dear Ms Miller,\n\nthank you very much for your letter of last week.\nWe are glad to hear from you, and hope that you are well.\n\nYours sincerely,\nJohn Smith\n", "waiting", "notATable", "does not look like a table"},
		{"wrapped", `{"items": [{"id": 1}, {"id": 2}], "next": null}`, "waiting", "wrappedRows", `"items"`},
	} {
		d := unmade(t, s, key, "owner-of-"+one.name)
		done := d.doubted(t, d.load("", one.file).ID)
		require.Equal(t, one.status, done.Status, "%s: %+v", one.name, done)
		require.Contains(t, fmt.Sprintf("%+v", done.Doubts), one.says, one.name)

		if one.code != "" {
			require.Equal(t, one.code, done.Doubts[0].Code, one.name)
		}

		tried := d.doubted(t, d.load(`"dryRun": true`, one.file).ID)
		require.Contains(t, fmt.Sprintf("%+v", tried.Preview.Doubts), one.says, one.name)
	}

	rows := unmade(t, s, key, "unwrapper")
	rows.loaded(`"options": {"rowsAt": "items"}`, `{"items": [{"id": 1}, {"id": 2}], "next": null}`)
	require.Equal(t, 2, rows.describe().RowCount)

	aside := unmade(t, s, key, "typer")
	done := aside.loaded(`"options": {"types": {"amount": "double"}}`, "id,amount\n"+hundred.String()+"100,oops\n")
	require.EqualValues(t, 1, done.Progress.RowsSetAside)

	dated := unmade(t, s, key, "dater")
	dated.loaded("", "day,n\n\"Nov 08, 2025\",1\n\"December 1, 2025\",2\n")
	require.Equal(t, "date", dated.describe().Columns[0].Type)
}
