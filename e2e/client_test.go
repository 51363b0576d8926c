package e2e

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"quern.dev/quern/api"
)

// partCounter is a proxy for the object store that records which parts were sent and which of them the store accepted.
type partCounter struct {
	server *httptest.Server

	mutex       sync.Mutex
	sent, taken map[string]int // by path and part number
	again       []string       // parts that were sent although the store had them
	onTaken     func(taken int)
}

func newPartCounter(t *testing.T, s3 string) *partCounter {
	t.Helper()

	to, err := url.Parse(s3)
	require.NoError(t, err)

	c := &partCounter{sent: map[string]int{}, taken: map[string]int{}}
	forward := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(to)
			r.Out.Host = r.In.Host // the signature covers the host
		},
		ModifyResponse: func(answer *http.Response) error {
			if part, is := partOf(answer.Request); is && answer.StatusCode == http.StatusOK {
				c.mutex.Lock()
				c.taken[part]++
				call, taken := c.onTaken, len(c.taken)
				c.mutex.Unlock()

				if call != nil {
					call(taken)
				}
			}

			return nil
		},
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	c.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if part, is := partOf(r); is {
			c.mutex.Lock()
			if c.sent[part]++; c.taken[part] > 0 {
				c.again = append(c.again, part)
			}
			c.mutex.Unlock()
		}

		forward.ServeHTTP(w, r)
	}))
	t.Cleanup(c.server.Close)

	return c
}

func partOf(r *http.Request) (part string, is bool) {
	number := r.URL.Query().Get("partNumber")

	return r.URL.Path + "#" + number, r.Method == http.MethodPut && number != ""
}

// afterParts waits until the store has this number of parts and then calls the function, once.
func (c *partCounter) afterParts(count int, run func()) {
	c.mutex.Lock()
	defer c.mutex.Unlock()

	var once sync.Once

	c.onTaken = func(taken int) {
		if taken >= count {
			once.Do(run)
		}
	}
}

// requireOnce checks that exactly this number of parts was sent, and that no part was sent again after the store had confirmed
// it. The store may have further parts whose confirmation was lost.
func (c *partCounter) requireOnce(t *testing.T, parts int) {
	t.Helper()
	c.mutex.Lock()
	defer c.mutex.Unlock()
	require.Empty(t, c.again, "sent though the store had them")
	require.Len(t, c.sent, parts)
}

// spoil replaces a stored part of the first file by zero bytes of the same size. A store may keep such a part when it loses
// the connection to the sender.
func (c *partCounter) spoil(t *testing.T, client *api.Client, session uuid.UUID, number int32, size int64) {
	t.Helper()

	state, err := api.Read[api.Upload](client.GetUpload(t.Context(), session))
	require.NoError(t, err)
	urls, err := api.Read[api.UploadUrls](client.RenewUploadUrls(t.Context(), session, state.Files[0].FileID, api.RenewUploadUrls{PartNumbers: []int32{number}}))
	require.NoError(t, err)
	require.Equal(t, size, urls.PresignedUrls[0].PartSize)
	require.Equal(t, http.StatusOK, put(t, urls.PresignedUrls[0].URL, strings.Repeat("\x00", int(size))).status)

	c.mutex.Lock()
	defer c.mutex.Unlock()

	address, err := url.Parse(urls.PresignedUrls[0].URL)
	require.NoError(t, err)
	delete(c.taken, fmt.Sprintf("%s#%d", address.Path, number))
}

// writeCSV writes rows of a number and a text of 100 letters until the file has the size, and returns the number of rows.
func writeCSV(t *testing.T, path string, size int64) (rows int) {
	t.Helper()

	file, err := os.Create(path)
	require.NoError(t, err)

	text := strings.Repeat("abcdefghij", 10)
	written, err := fmt.Fprintln(file, "id,text")
	require.NoError(t, err)

	block := new(strings.Builder)
	for length := int64(written); length < size; block.Reset() {
		for range 10000 {
			rows++
			fmt.Fprintf(block, "%d,%s\n", rows, text)
		}

		_, err := file.WriteString(block.String())
		require.NoError(t, err)

		length += int64(block.Len())
	}

	require.NoError(t, file.Close())

	return rows
}

func connect(t *testing.T, address, bearer string) *api.Client {
	t.Helper()

	client, err := api.Connect(api.Settings{
		Server: address, Token: func(context.Context) (string, error) { return bearer, nil },
		Retry: api.Retry{HTTP: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}},
	})
	require.NoError(t, err)

	return client
}

// TestClient checks against a running service that the Go client repeats requests, resumes uploads and resumes streams.
func TestClient(t *testing.T) {
	t.Parallel()

	parts := newPartCounter(t, newPlace(t).endpoint)
	s := start(t, scripted, "QUERN_S3_PUBLIC_ENDPOINT="+parts.server.URL)
	bearer := s.newKey().token("client")
	client := connect(t, s.root, bearer)

	t.Run("an answer that is lost", func(t *testing.T) {
		t.Parallel()

		front := newProxy(t, s.root)
		front.set(behaviour{cut: func() { front.set(behaviour{}) }})

		made, err := api.Read[api.CreatedToken](connect(t, "http://"+front.address, bearer).CreateToken(t.Context(), nil, api.NewToken{Name: "once"}))
		require.NoError(t, err)
		require.Equal(t, 2, front.requests("/user/tokens"))

		var ids []uuid.UUID

		for token, err := range api.Pages(func(cursor *string) ([]api.Token, *string, error) {
			page, err := api.Read[api.TokenList](client.ListTokens(t.Context(), &api.ListTokensParams{Cursor: cursor, Limit: new(int32(1))}))

			return page.Data, page.NextCursor, err
		}) {
			require.NoError(t, err)
			ids = append(ids, token.ID)
		}

		require.Equal(t, []uuid.UUID{made.ID}, ids)
	})

	t.Run("a refusal", func(t *testing.T) {
		t.Parallel()

		_, err := api.Read[api.Dataset](client.GetDataset(t.Context(), "self", "no", "such"))
		require.True(t, api.IsCode(err, api.NOTFOUND), "%v", err)
		_, err = api.Read[api.CreatedToken](client.CreateToken(t.Context(), nil, api.NewToken{}))
		require.ErrorContains(t, err, "name: ")
	})

	t.Run("an upload in two goes", func(t *testing.T) {
		t.Parallel()
		playUploader(t, client, parts)
	})

	t.Run("a stream that breaks", func(t *testing.T) {
		t.Parallel()
		playStream(t, s, bearer)
	})
}

func playUploader(t *testing.T, client *api.Client, parts *partCounter) {
	t.Helper()

	path := filepath.Join(t.TempDir(), "rows.csv")
	rows := writeCSV(t, path, 60*mebibyte)

	info, err := os.Stat(path)
	require.NoError(t, err)

	small := filepath.Join(t.TempDir(), "small.csv")
	require.NoError(t, os.WriteFile(small, []byte("id,text\n0,zero\n"), 0o600))

	sources := []api.UploadSource{{Name: "rows.csv", Path: path, Size: info.Size()}, {Name: "small.csv", Path: small, Size: 15}}
	total := int((info.Size()+8*mebibyte-1)/(8*mebibyte)) + 1

	ctx, stop := context.WithCancel(t.Context())
	parts.afterParts(3, stop)

	var (
		session uuid.UUID
		last    api.UploadProgress
	)

	uploader := &api.Uploader{
		Client: client, Parallel: 2, Started: func(id uuid.UUID) error {
			session = id

			return nil
		},
		Progress: func(now api.UploadProgress) {
			if now.Stored < last.Stored || now.Stored+now.Moving > now.Total || now.Total != info.Size()+15 {
				t.Errorf("after %+v came %+v", last, now)
			}

			last = now
		},
	}

	_, err = uploader.Send(ctx, sources)
	require.ErrorIs(t, err, context.Canceled)

	parts.spoil(t, client, session, int32(total-1), info.Size()%(8*mebibyte))

	last = api.UploadProgress{}
	require.ErrorContains(t, uploader.Resume(t.Context(), session, sources[:1]), "started with other files")
	require.NoError(t, uploader.Resume(t.Context(), session, sources))
	parts.requireOnce(t, total)
	require.Equal(t, last.Total, last.Stored)
	require.GreaterOrEqual(t, last.Resumed, int64(3*8*mebibyte))
	require.Equal(t, 2, last.Done)

	// A complete upload can be resumed too, and sends nothing.
	require.NoError(t, uploader.Resume(t.Context(), session, sources))
	parts.requireOnce(t, total)

	_, err = api.Read[api.Dataset](client.CreateDataset(t.Context(), "uploads", "rows", nil, api.InferDefinitionChange{}))
	require.NoError(t, err)
	made, err := api.Read[api.Ingestion](client.CreateIngestion(t.Context(), "self", "uploads", "rows", nil, api.NewIngestion{SessionID: session}))
	require.NoError(t, err)

	await(t, "the rows are loaded", func() bool {
		made, err = api.Read[api.Ingestion](client.GetIngestion(t.Context(), "self", "uploads", "rows", made.ID))
		require.NoError(t, err)

		return made.FinishedAt != nil
	})
	require.Equal(t, api.IngestionStatusCompleted, made.Status, "%+v", made.Error)
	require.EqualValues(t, rows+1, made.Progress.RowsDone)
}

// playStream reads a stream whose connection breaks after every two events, and checks that every event arrives once.
func playStream(t *testing.T, s *service, bearer string) {
	t.Helper()

	d := newFilled(t, s, "client", bearer)
	require.Equal(t, http.StatusOK, d.post(`{"data": [{"region": "north"}, {"region": "south"}]}`).status)

	front := newCuttingProxy(t, s.root)
	script := `{"pause": 50, "steps": [{"instruction": "count", "queries": ["SELECT count(*) AS n FROM orders"]},
		{"instruction": "list", "queries": ["SELECT region FROM orders"]}], "response": "Two."}`

	var (
		ids   []int64
		names []string
		run   uuid.UUID
	)

	for event, err := range connect(t, front.URL, bearer).AskEvents(t.Context(), api.Question{Username: "self", Namespace: d.namespace, Query: script}) {
		require.NoError(t, err)

		ids, names = append(ids, event.ID), append(names, string(event.Name))

		if event.Name == api.EventRunStarted {
			var started api.RunStartedEvent
			require.NoError(t, event.Decode(&started))
			run = started.RunID
		}
	}

	require.Equal(t, "runStarted", names[0])
	require.Equal(t, "runCompleted", names[len(names)-1])

	for i, id := range ids {
		require.EqualValues(t, i+1, id)
	}

	var again []string

	for event, err := range connect(t, s.root, bearer).RunEvents(t.Context(), run, 2) {
		require.NoError(t, err)
		again = append(again, string(event.Name))
	}

	require.Equal(t, names[2:], again)

	for _, err := range connect(t, s.root, bearer).RunEvents(t.Context(), uuid.New(), 0) {
		require.True(t, api.IsCode(err, api.NOTFOUND), "%v", err)
	}
}

// newCuttingProxy returns a proxy that forwards two events of a stream and then breaks the connection in the middle of the third.
func newCuttingProxy(t *testing.T, target string) *httptest.Server {
	t.Helper()

	to, err := url.Parse(target)
	require.NoError(t, err)

	forward := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(to) },
		FlushInterval: -1,
		ErrorHandler:  func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		forward.ServeHTTP(&cuttingWriter{ResponseWriter: w, left: 2}, r)
	}))
	t.Cleanup(server.Close)

	return server
}

type cuttingWriter struct {
	http.ResponseWriter

	left int
}

func (w *cuttingWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *cuttingWriter) Write(b []byte) (int, error) {
	text := string(b)
	for at := 0; ; w.left-- {
		end := strings.Index(text[at:], "\n\n")
		if end < 0 {
			return w.ResponseWriter.Write(b)
		}

		if w.left == 0 {
			_, _ = w.ResponseWriter.Write(b[:at+end/2])
			_ = http.NewResponseController(w.ResponseWriter).Flush()

			panic(http.ErrAbortHandler)
		}

		at += end + 2
	}
}
