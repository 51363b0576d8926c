package trino

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"quern.dev/quern/internal/engine"
	"quern.dev/quern/internal/fault"
)

// Config is the cluster and the limits of a statement on it.
type Config struct {
	URL     string // of the coordinator
	Catalog string // name of the catalog in Trino
	Client  *http.Client
	Memory  int64 // bytes of memory over all workers
	Scan    int64 // bytes that are read from the store
}

// Trino is a cluster.
type Trino struct {
	config Config
	base   *url.URL
}

// New returns the cluster. It need not be reachable yet.
func New(c Config) (*Trino, error) {
	base, err := url.Parse(c.URL)
	if err != nil {
		return nil, err
	}

	return &Trino{config: c, base: base}, nil
}

// Statement is a checked statement in Trino's dialect.
type Statement struct {
	Text       string             // with ? for each value
	Parameters []engine.Parameter // in the order of the text
	User       string             // for Trino's resource groups
	Schema     string             // of names without a schema
	Token      string             // secret of the schemas that the statement reads
	Source     string             // differs for each statement: Trino keeps one session with the catalog for each user and source
	Timeout    time.Duration
	Columns    []engine.Column // of the result; their types decide about the form of the values
	Rows       int64           // limit; 0 means no limit
	Bytes      int64           // limit for the bytes of all rows; 0 means no limit
}

const (
	// maxPage is the largest answer that is accepted. Trino's own limit for one page is 16 MiB before encoding.
	maxPage = 256 << 20

	cancelTime = 5 * time.Second

	workersWait = "5s" // how long a statement waits for the first worker
)

// Run starts a statement and waits until its columns are known. The caller closes the result.
func (t *Trino) Run(ctx context.Context, s Statement) (*Result, error) {
	text, err := s.bound()
	if err != nil {
		return nil, err
	}

	r := &Result{trino: t, ctx: ctx, statement: s}

	if err := r.ask(http.MethodPost, t.base.JoinPath("/v1/statement").String(), text); err != nil {
		return nil, err
	}

	for !r.isDescribed {
		if r.next == "" {
			return nil, broken("no columns")
		}

		if err := r.advance(); err != nil {
			r.Close() //nolint:contextcheck // it has its own

			return nil, err
		}
	}

	return r, nil
}

// Check runs a statement that reads nothing.
//
// Faults: those of the package.
func (t *Trino) Check(ctx context.Context, timeout time.Duration) error {
	r, err := t.Run(ctx, Statement{Text: sqlCheck, User: "quernd", Source: "quernd doctor", Timeout: timeout})
	if err != nil {
		return err
	}
	defer r.Close() //nolint:contextcheck // it has its own

	_, err = r.Finish() //nolint:contextcheck // as above

	return err
}

// header returns the headers of the first request of a statement.
func (t *Trino) header(s Statement) http.Header {
	limits := []string{
		"query_max_run_time=" + strconv.FormatInt(max(1, s.Timeout.Milliseconds()), 10) + "ms",
		"query_max_total_memory=" + strconv.FormatInt(t.config.Memory, 10) + "B",
		"query_max_scan_physical_bytes=" + strconv.FormatInt(t.config.Scan, 10) + "B",
		"required_workers_max_wait_time=" + workersWait, // else a cluster without workers lets it wait for minutes
	}

	return http.Header{
		"X-Trino-User": {s.User}, "X-Trino-Source": {s.Source}, "X-Trino-Catalog": {t.config.Catalog}, "X-Trino-Schema": {s.Schema},
		"X-Trino-Extra-Credential": {"token=" + url.QueryEscape(s.Token)}, "X-Trino-Session": {strings.Join(limits, ",")},
		"X-Trino-Time-Zone": {"UTC"}, "X-Trino-Client-Capabilities": {"PARAMETRIC_DATETIME"}, // without it, times have milliseconds only
	}
}

// page is one answer of the protocol.
type page struct {
	ID      string              `json:"id"`
	NextURI string              `json:"nextUri"`
	Columns []column            `json:"columns"`
	Data    [][]json.RawMessage `json:"data"`
	Error   *failure            `json:"error"`
}

type column struct {
	Name      string    `json:"name"`
	Signature signature `json:"typeSignature"`
}

// failure is why a statement failed.
type failure struct {
	Message  string `json:"message"`
	Name     string `json:"errorName"`
	Type     string `json:"errorType"`
	Location *struct {
		Line   int `json:"lineNumber"`
		Column int `json:"columnNumber"`
	} `json:"errorLocation"`
}

// ask sends a request of the protocol and takes over its answer. Trino answers 502, 503 and 504 while it is busy, and
// wants the request again.
func (r *Result) ask(method, address, body string) error {
	const attempts = 5

	for attempt := 1; ; attempt++ {
		found, again, err := r.try(method, address, body)

		switch {
		case err == nil:
			return r.take(found)
		case r.ctx.Err() != nil:
			return r.ended()
		case !again || attempt == attempts:
			return unavailable(err)
		}

		select {
		case <-r.ctx.Done():
			return r.ended()
		case <-time.After(time.Duration(attempt) * 50 * time.Millisecond): //nolint:mnd // short pauses
		}
	}
}

func (r *Result) try(method, address, body string) (found page, again bool, err error) {
	request, err := http.NewRequestWithContext(r.ctx, method, address, strings.NewReader(body))
	if err != nil {
		return found, false, err
	}

	request.Header = r.trino.header(r.statement)

	answer, err := r.trino.config.Client.Do(request)
	if err != nil {
		return found, mayRepeat(method, err), errors.New("no answer") // the error has the address of the statement
	}
	defer answer.Body.Close()

	content, err := io.ReadAll(io.LimitReader(answer.Body, maxPage+1))

	switch {
	case err != nil:
		return found, mayRepeat(method, err), errors.New("the answer breaks off")
	case answer.StatusCode == http.StatusBadGateway || answer.StatusCode == http.StatusServiceUnavailable || answer.StatusCode == http.StatusGatewayTimeout:
		return found, true, fmt.Errorf("status %d", answer.StatusCode)
	case answer.StatusCode != http.StatusOK:
		return found, false, fmt.Errorf("status %d", answer.StatusCode)
	case len(content) > maxPage:
		return found, false, errors.New("an answer that is too large")
	}

	decoder := json.NewDecoder(bytes.NewReader(content))

	return found, false, decoder.Decode(&found)
}

// mayRepeat reports whether a request that failed is sent again. Trino answers within a second, also if it has no rows yet: a coordinator
// that let a request time out hangs, and would only keep the statement waiting.
func mayRepeat(method string, err error) bool { return method == http.MethodGet && !os.IsTimeout(err) }

// take takes over an answer. The address of the next one must be that of the cluster: the token is sent there.
func (r *Result) take(found page) error {
	r.next, r.data = "", found.Data

	if found.Error != nil {
		return r.explain(*found.Error)
	}

	if found.NextURI != "" {
		next, err := url.Parse(found.NextURI)
		if err != nil || next.Host != r.trino.base.Host || next.Scheme != r.trino.base.Scheme {
			return broken("an address of another host")
		}

		r.next = found.NextURI
	}

	if !r.isDescribed && found.Columns != nil {
		if err := r.describe(found.Columns); err != nil {
			return err
		}
	}

	for _, row := range found.Data {
		if len(row) != len(r.columns) {
			return broken("a row that does not fit its columns")
		}
	}

	return nil
}

// advance asks for the next page.
func (r *Result) advance() error { return r.ask(http.MethodGet, r.next, "") }

// ended returns why the context of a statement ended.
func (r *Result) ended() error {
	cause := context.Cause(r.ctx)
	if errors.Is(cause, context.DeadlineExceeded) {
		return timedOut(cause)
	}

	return cause
}

// Close ends the statement on the cluster if it is still running. It works after the context has ended.
func (r *Result) Close() {
	if r.next == "" {
		return
	}

	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.ctx), cancelTime)
	defer cancel()

	request, err := http.NewRequestWithContext(ctx, http.MethodDelete, r.next, http.NoBody)
	if err != nil {
		return
	}

	request.Header = r.trino.header(r.statement)

	answer, err := r.trino.config.Client.Do(request)
	if err == nil { // else Trino ends the statement itself, when nobody has asked for its rows for some minutes
		_ = answer.Body.Close()
	}

	r.next = ""
}

// explain maps an error of Trino. Its message can have the name of the schema, which is not for the caller.
func (r *Result) explain(f failure) error {
	switch {
	case f.Name == "EXCEEDED_TIME_LIMIT":
		return timedOut(errors.New(f.Name))
	case f.Name == "EXCEEDED_SCAN_LIMIT":
		return fault.Wrap(errors.New(f.Name), fault.LimitExceeded, "The statement reads more data than Trino may read for one statement. Select fewer columns, or add a condition.")
	case f.Type == "INSUFFICIENT_RESOURCES" && strings.HasPrefix(f.Name, "EXCEEDED_"):
		return fault.Wrap(errors.New(f.Name), fault.LimitExceeded, "The statement needs more memory than Trino has for one statement. Read fewer rows or columns, or group by fewer values.")
	case f.Type == "USER_ERROR" && f.Name != "USER_CANCELED" && f.Name != "ADMINISTRATIVELY_KILLED":
		said := &engine.StatementError{Kind: "trino", Subtype: f.Name, Message: r.shown(f.Message), Position: -1}
		if f.Location != nil && len(r.statement.Parameters) == 0 {
			said.Position = offset(r.statement.Text, f.Location.Line, f.Location.Column)
		}

		return said
	default:
		return unavailable(fmt.Errorf("%s %s", f.Type, f.Name))
	}
}

// offset returns the position in bytes of a line and column, both from 1; -1 if the text has no such position. Trino
// counts characters.
func offset(text string, line, column int) int {
	at := 0

	for range line - 1 {
		next := strings.IndexByte(text[at:], '\n')
		if next < 0 {
			return -1
		}

		at += next + 1
	}

	for i := range text[at:] {
		if column--; column == 0 {
			return at + i
		}
	}

	return -1
}

func timedOut(cause error) error {
	return fault.Wrap(cause, fault.Timeout, "The statement reached its time limit. Read fewer rows or columns.")
}

func unavailable(cause error) error {
	e := fault.Wrap(fmt.Errorf("trino: %w", cause), fault.Unavailable, "Trino, the engine that reads this dataset, is not available. Try again.")
	e.RetryAfter = time.Second

	return e
}

func broken(what string) error { return unavailable(errors.New("it returned " + what)) }
