package e2e

import (
	"encoding/csv"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// misfits is a CSV file in which every row from the given one does not fit its type.
func misfits(rows, from int) string {
	var content strings.Builder

	content.WriteString("n\n")

	for i := range rows {
		if i+1 < from {
			fmt.Fprintf(&content, "%d\n", i+1)
		} else {
			fmt.Fprintf(&content, "x%d\n", i+1)
		}
	}

	return content.String()
}

type setAsidePage struct {
	Data []struct {
		File, Reason string
		Row          int
	}
	NextCursor string
}

// asideRows returns file and row of all rows set aside, over pages of limit rows.
func (d *filled) asideRows(id string, limit int) (rows []string) {
	d.t.Helper()

	for cursor := ""; ; {
		var page setAsidePage

		answer := d.call(http.MethodGet, fmt.Sprintf("/ingestions/%s/setAside?limit=%d%s", id, limit, cursor), "")
		require.Equal(d.t, http.StatusOK, answer.status, answer.body)
		answer.json(d.t, &page)

		for _, row := range page.Data {
			require.Contains(d.t, row.Reason, fmt.Sprintf(`"x%d" is not a bigint`, row.Row))
			rows = append(rows, fmt.Sprintf("%s:%d", row.File, row.Row))
		}

		if page.NextCursor == "" {
			return rows
		}

		require.Len(d.t, page.Data, limit)

		cursor = "&cursor=" + page.NextCursor
	}
}

// TestSetAside checks that all rows that an ingestion set aside can be read, as pages and as a file, and that nothing of an
// earlier attempt is left.
func TestSetAside(t *testing.T) {
	t.Parallel()

	s := start(t)
	key := s.newKey()
	d := newFilled(t, s, "ada", key.token("ada"))

	done := d.loaded(`"options": {"types": {"n": "bigint"}}`, misfits(2000, 1991), misfits(2000, 1901))
	require.EqualValues(t, 110, done.Progress.RowsSetAside)

	var want []string

	for i := 1991; i <= 2000; i++ {
		want = append(want, fmt.Sprintf("file 0:%d", i))
	}

	for i := 1901; i <= 2000; i++ {
		want = append(want, fmt.Sprintf("file 1:%d", i))
	}

	require.Equal(t, want, d.asideRows(done.ID, 100))
	require.Equal(t, want, d.asideRows(done.ID, 11), "the last page is full")

	file := d.call(http.MethodGet, "/ingestions/"+done.ID+"/setAside/export", "")
	require.Equal(t, http.StatusOK, file.status, file.body)
	require.Equal(t, `attachment; filename=set-aside.csv`, file.header.Get("Content-Disposition"))

	records, err := csv.NewReader(strings.NewReader(file.body)).ReadAll()
	require.NoError(t, err)
	require.Len(t, records, 111)
	require.Equal(t, []string{"file", "row", "reason"}, records[0])
	require.Equal(t, []string{"file 0", "1991", `column "n": "x1991" is not a bigint`}, records[1])

	// More rows than are read at once. Nothing is loaded, and the rows are kept all the same.
	failed := d.load(`"options": {"types": {"n": "bigint"}}`, misfits(2500, 1))
	require.Equal(t, "failed", failed.Status)

	lines := d.call(http.MethodGet, "/ingestions/"+failed.ID+"/setAside/export?format=ndjson", "")
	require.Equal(t, 2500, strings.Count(lines.body, "\n"))
	require.Contains(t, lines.body, `"row":2500}`+"\n")

	// A cursor is valid for its list alone.
	var page setAsidePage

	d.call(http.MethodGet, "/ingestions/"+done.ID+"/setAside?limit=1", "").json(t, &page)
	requireFault(t, "another ingestion", d.call(http.MethodGet, "/ingestions/"+failed.ID+"/setAside?cursor="+page.NextCursor, ""), http.StatusUnprocessableEntity, "VALIDATION_FAILED")

	for _, address := range []string{"/setAside", "/setAside/export"} {
		stranger := d.by(key.token("stranger")).call(http.MethodGet, "/ingestions/"+done.ID+address, "")
		requireAbsent(t, stranger)
		requireAbsent(t, newFilled(t, s, "ada", d.bearer).call(http.MethodGet, "/ingestions/"+done.ID+address, ""), "of another dataset")
	}

	// A queued attempt has nothing of the one before.
	s.stop()

	s.settings = append(s.settings, "QUERN_INGEST_WORKERS=0")
	s.restart()
	require.Equal(t, http.StatusAccepted, d.call(http.MethodPost, "/ingestions/"+failed.ID+"/retry", "").status)
	require.Empty(t, d.asideRows(failed.ID, 100))
}

// TestSetAsideFormulas checks that the name of a file, which its uploader chose, is no formula in an escaped CSV.
func TestSetAsideFormulas(t *testing.T) {
	t.Parallel()

	s := start(t)
	d := newFilled(t, s, "ada", s.newKey().token("ada"))
	content := misfits(20, 20)

	var session prepared

	answer := call(t, http.MethodPost, s.url+"/file-upload/prepare", d.bearer, fmt.Sprintf(`{"filesToUpload": [{"filename": "=1+1.csv", "size": %d}]}`, len(content)))
	answer.json(t, &session)
	require.Equal(t, http.StatusOK, put(t, session.Files[0].PresignedURLs[0].URL, content).status)
	require.Equal(t, http.StatusOK, session.finish(t, s, d.bearer, 0).status)

	done := d.wait(d.accepted(d.create(session.SessionID, `"options": {"types": {"n": "bigint"}}`)).ID)
	require.Equal(t, "completed", done.Status, "%+v", done.Error)

	for more, begins := range map[string]string{"": "\n=1+1.csv,20,", "?escapeFormulas=true": "\n'=1+1.csv,20,"} {
		require.Contains(t, d.call(http.MethodGet, "/ingestions/"+done.ID+"/setAside/export"+more, "").body, begins)
	}
}
