package e2e

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// note is what a run tells about a file.
type note = struct{ Path, Event string }

// sourcesSay checks that a run says what it did, and not only what it noticed first.
func sourcesSay(t *testing.T, s *service, key *signer) {
	t.Helper()

	o := newSource(t, s, "sayer", key.token("sayer"), "")
	o.put("a.csv", 5)
	o.put("b.csv", 7)
	o.put("c.csv", 3)
	o.there.put("never.csv", "")

	run := o.refresh()
	require.Equal(t, []int64{3, 15, 1, 0}, []int64{run.Files, run.Rows, run.FilesEmpty, run.FilesReplaced})
	require.Empty(t, run.Notes)

	// A file without any bytes is not gone. It is told once, and its rows stay, also if the rows of deleted files are removed.
	o.change(`{"changed": "replace", "deleted": "remove"}`)
	o.there.put("c.csv", "")

	run = o.refresh()
	require.Equal(t, []int64{2, 0, 0, 0}, []int64{run.FilesEmpty, run.Deleted, run.Changed, run.FilesRemoved})
	require.Equal(t, []note{{"c.csv", "empty"}}, run.Notes)
	require.Empty(t, o.refresh().Notes)
	o.requireModel()

	// A deletion that was told before is removed later, and this is told too.
	o.change(`{"deleted": "keep"}`)

	kept := o.files["a.csv"]
	o.remove("a.csv")

	run = o.refresh()
	require.Equal(t, []int64{1, 0}, []int64{run.Deleted, run.FilesRemoved})
	require.Equal(t, []note{{"a.csv", "deleted"}}, run.Notes)
	o.change(`{"deleted": "remove"}`)

	o.put("b.csv", 2)
	o.there.put("d.csv", "n\n9001\nx\n"+strings.Repeat("9001\n", 30))
	o.model[9001] = 31
	o.change(`{"options": {"types": {"n": "bigint"}}}`)

	run = o.refresh()
	require.Equal(t, "completed", run.Status, run.Reason)
	require.Equal(t, []int64{2, 33, 1, 7, 1, int64(len(kept)), 1}, []int64{run.Files, run.Rows, run.FilesReplaced, run.RowsReplaced, run.FilesRemoved, run.RowsRemoved, run.RowsSetAside})
	require.Equal(t, []note{{"a.csv", "removed"}, {"b.csv", "replaced"}}, run.Notes)
	o.requireModel()

	// Several files that are replaced in one snapshot count their own rows.
	for i := range 6 {
		o.put(fmt.Sprintf("many/%d.csv", i), 1+i)
	}

	require.Equal(t, "completed", o.refresh().Status)

	for i := range 6 {
		o.put(fmt.Sprintf("many/%d.csv", i), 1)
	}

	run = o.refresh()
	require.Equal(t, []int64{6, 6, 21}, []int64{run.Files, run.FilesReplaced, run.RowsReplaced})
	o.requireModel()
	require.Contains(t, o.call(http.MethodGet, "/ingestions?limit=20", "").body, `"filenames":["many/0.csv"]`)

	// A header alone does not empty the file until somebody accepts it.
	o.there.put("b.csv", "n\n")

	run = o.refresh()
	require.Equal(t, "stopped", run.Status)
	require.Equal(t, "doubt", o.get().ReasonCode)
	o.requireModel()

	doubts := o.doubted(t, run.IngestionID).Doubts
	require.Equal(t, "noRows", doubts[len(doubts)-1].Code)

	answer := o.call(http.MethodPost, "/ingestions/"+run.IngestionID+"/retry", `{"accept": ["noRows"]}`)
	require.Equal(t, http.StatusAccepted, answer.status, answer.body)
	o.set(true)

	run = o.refresh()
	require.Equal(t, "completed", run.Status, run.Reason)
	require.Equal(t, []int64{1, 0, 1, 2}, []int64{run.Files, run.Rows, run.FilesReplaced, run.RowsReplaced})
	o.forget("b.csv")
	o.requireModel()

	// Without rows of an earlier content there is nothing to doubt.
	o.there.put("header.csv", "\"n\"\n")
	require.Equal(t, "completed", o.refresh().Status)
}

// sourcesRenamed loads files in which a column was renamed.
func sourcesRenamed(t *testing.T, s *service, key *signer) {
	t.Helper()

	o := newSource(t, s, "renamer", key.token("renamer"), "")
	o.there.put("a.csv", "n,amount,city\n1,10,Rome\n")
	require.Equal(t, "completed", o.refresh().Status)

	doubted := func() (ingestion string) {
		t.Helper()

		run := o.refresh()
		require.Equal(t, "stopped", run.Status)

		doubts := o.doubted(t, run.IngestionID).Doubts
		require.Equal(t, "missingColumns", doubts[0].Code)
		require.Contains(t, doubts[0].Message, "had the columns amount, and this one has not. It has the new columns total.")

		return run.IngestionID
	}

	// The dataset keeps its columns when the file is corrected.
	o.there.put("b.csv", "n,total,city\n2,20,Rome\n")
	doubted()
	o.there.put("b.csv", "n,amount,city\n2,20,Rome\n")
	o.set(true)
	require.Equal(t, "completed", o.refresh().Status)
	require.Len(t, o.table().columns, 3)

	o.there.put("c.csv", "n,total,city\n3,30,Rome\n")

	answer := o.call(http.MethodPost, "/ingestions/"+doubted()+"/retry", `{"accept": ["missingColumns"]}`)
	require.Equal(t, http.StatusAccepted, answer.status, answer.body)
	o.set(true)
	require.Equal(t, "completed", o.refresh().Status)

	// The next load is compared with this one. A new column alone is no doubt.
	o.there.put("d.csv", "n,total,city\n4,40,Rome\n")
	require.Equal(t, "completed", o.refresh().Status)
	o.there.put("e.csv", "n,total,city,note\n5,50,Rome,x\n")
	require.Equal(t, "completed", o.refresh().Status)
	require.Len(t, o.table().columns, 5)
	o.there.put("f.csv", "n,total,city\n6,60,Rome\n")
	require.Equal(t, "stopped", o.refresh().Status)
}

// sourcesOptions corrects a wrong option, and checks that the next run loads the file that had failed because of it.
func sourcesOptions(t *testing.T, s *service, key *signer) {
	t.Helper()

	o := newSource(t, s, "chooser", key.token("chooser"), "")
	o.put("a.csv", 3)
	require.Equal(t, "completed", o.refresh().Status)

	o.change(`{"options": {"types": {"absent": "bigint"}}}`)
	o.put("b.csv", 2)
	require.Equal(t, "stopped", o.refresh().Status)
	o.set(true)
	require.EqualValues(t, 1, o.refresh().FilesLeftOut)

	o.change(`{"options": {}}`)

	run := o.refresh()
	require.Equal(t, []int64{1, 2, 0}, []int64{run.Files, run.Rows, run.FilesLeftOut})
	o.requireModel()
	wrongDelimiter(t, newSource(t, s, "divider", key.token("divider"), `, "prefix": "in/", "options": {"delimiter": ","}`))
}

// wrongDelimiter loads files whose lines the delimiter of the source does not divide.
func wrongDelimiter(t *testing.T, o *sourceOf) {
	t.Helper()

	for i := range 2 {
		o.there.put(fmt.Sprintf("in/%d.csv", i), fmt.Sprintf("id;city\n%d;Graz\n%d;Linz\n", 2*i, 2*i+1))
	}

	o.there.put("in/notes.csv", "comment\nfine\ncheap; and good\n") // one column

	run := o.refresh()
	require.Equal(t, "stopped", run.Status)

	waiting := o.call(http.MethodGet, "/ingestions/"+run.IngestionID, "").body
	require.Contains(t, waiting, `"code":"notATable"`)
	require.Contains(t, waiting, `"option":"delimiter","suggestions":[";"]`)

	// With the right options the same file is read again.
	o.change(`{"options": {"delimiter": ";"}, "pattern": "?.csv"}`)
	o.set(true)

	run = o.refresh()
	require.Equal(t, "completed", run.Status, run.Reason)
	require.Equal(t, []int64{2, 4, 0}, []int64{run.Files, run.Rows, run.FilesLeftOut})
	require.Equal(t, []string{"id", "city"}, o.describe().ColumnNames)
	require.Empty(t, o.get().OpenFiles)
	require.Zero(t, o.refresh().Files)
}

// sourcesCorrected corrects files about which somebody would have to decide.
func sourcesCorrected(t *testing.T, s *service, key *signer) {
	t.Helper()

	o := newSource(t, s, "corrector", key.token("corrector"), "")
	content := o.numbers(20)
	o.there.put("a.csv", content)
	require.Equal(t, "completed", o.refresh().Status)

	for _, path := range []string{"b.csv", "c.csv", "d.csv", "e.csv", "f.csv"} {
		o.there.put(path, content)
	}

	o.there.put("bad.parquet", "PAR1 this is no Parquet file PAR1")

	run := o.refresh()
	require.Equal(t, "stopped", run.Status)

	// The first file of a run is loaded alone. The run after it finds what is left.
	o.there.put("b.csv", o.numbers(2))
	o.set(true)

	run = o.refresh()
	require.Equal(t, "stopped", run.Status)
	require.Contains(t, run.Reason, `4 files wait for somebody to decide about a doubt: "c.csv", "d.csv", "e.csv" and 1 more.`)
	require.Contains(t, run.Reason, `The file "bad.parquet" could not be loaded.`)

	found := o.get()
	require.Equal(t, "doubt", found.ReasonCode)
	require.Len(t, found.OpenFiles, 5)
	require.Equal(t, []string{"c.csv", "waiting"}, []string{found.OpenFiles[0].Path, found.OpenFiles[0].Status})
	require.Equal(t, []string{"bad.parquet", "failed"}, []string{found.OpenFiles[4].Path, found.OpenFiles[4].Status})

	// Corrected files are loaded although nobody has decided. The earlier ingestions are over.
	for _, path := range []string{"c.csv", "d.csv", "e.csv", "f.csv"} {
		o.there.put(path, o.numbers(3))
	}

	o.set(true)

	run = o.refresh()
	require.Equal(t, "completed", run.Status, run.Reason)
	require.Equal(t, []int64{4, 12, 0, 1}, []int64{run.Files, run.Rows, run.FilesReplaced, run.FilesLeftOut})
	o.requireModel()

	for _, one := range found.OpenFiles[:4] {
		answer := o.call(http.MethodPost, "/ingestions/"+one.IngestionID+"/retry", `{"accept": ["all"]}`)
		require.Equal(t, http.StatusUnprocessableEntity, answer.status, answer.body)
	}

	// The file that failed stays visible, until it is corrected too.
	found = o.get()
	require.Len(t, found.OpenFiles, 1)
	require.Equal(t, "failed", found.OpenFiles[0].Status)
	o.there.put("bad.parquet", o.numbers(4))

	run = o.refresh()
	require.Equal(t, []int64{1, 4, 0}, []int64{run.Files, run.Rows, run.FilesLeftOut})
	require.Empty(t, o.get().OpenFiles)
	o.requireModel()

	// A file that was left out, by cancelling its ingestion, is loaded when it is corrected.
	o.there.put("g.csv", content)

	run = o.refresh()
	require.Equal(t, "stopped", run.Status)
	o.call(http.MethodPost, "/ingestions/"+run.IngestionID+"/cancel", "")
	o.set(true)

	run = o.refresh()
	require.Equal(t, []int64{0, 0, 0}, []int64{run.Files, run.Changed, run.FilesLeftOut}, run.Reason)
	o.there.put("g.csv", o.numbers(5))

	run = o.refresh()
	require.Equal(t, []int64{1, 5, 0}, []int64{run.Files, run.Rows, run.FilesReplaced}, run.Reason)
	require.EqualValues(t, 0, o.refresh().Files)
	o.requireModel()
}

// TestSourceNoETag loads from a store that lists one of two files without an ETag.
func TestSourceNoETag(t *testing.T) {
	t.Parallel()

	there := newBucket(t)
	to, err := url.Parse(there.endpoint)
	require.NoError(t, err)

	entry, etag := regexp.MustCompile(`(?s)<Contents>.*?</Contents>`), regexp.MustCompile(`<ETag>.*?</ETag>`)
	store := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(to)
			r.Out.Host = r.In.Host // it is signed
		},
		ModifyResponse: func(answer *http.Response) error {
			if !answer.Request.URL.Query().Has("list-type") {
				return nil
			}

			text, err := io.ReadAll(answer.Body)
			text = entry.ReplaceAllFunc(text, func(one []byte) []byte {
				if bytes.Contains(one, []byte("odd.csv")) {
					one = etag.ReplaceAll(one, nil)
				}

				return one
			})
			answer.Body, answer.ContentLength = io.NopCloser(bytes.NewReader(text)), int64(len(text))
			answer.Header.Set("Content-Length", strconv.Itoa(len(text)))

			return err
		},
	})
	t.Cleanup(store.Close)

	s := start(t, "QUERN_SOURCE_HOSTS="+strings.TrimPrefix(store.URL, "http://"))
	through := *there
	through.endpoint = store.URL
	owner := s.newKey().token("owner")
	o := borrowed(t, s, "owner", owner, s.connect(t, owner, "c", &through), there)
	there.put("even.csv", o.numbers(3))
	there.put("odd.csv", "n\n1000\n")

	run := o.refresh()
	require.Equal(t, "stopped", run.Status)
	require.Contains(t, run.Reason, `no ETag for the file "odd.csv"`)
	require.Equal(t, "file", o.get().ReasonCode)

	o.change(`{"active": true, "pattern": "even*"}`)

	run = o.refresh()
	require.Equal(t, "completed", run.Status, run.Reason)
	o.requireModel()
}
