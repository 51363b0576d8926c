package e2e

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// stage is the setting for questions whose streams are compared with testdata/streams byte by byte, except for ids, times and the
// name of the namespace.
type stage struct {
	*filled

	key   *signer
	hasty *service // another replica, on which runs expire soon
	agent string
}

// streams returns functions that each run one question and return the events of its run.
func streams() map[string]func(stage) []event {
	const (
		count = `{"instruction": "Count the orders.", "reasoning": "One row an order.", "queries": ["SELECT count(*) AS n FROM orders"]}`
		list  = `{"instruction": "List them.", "queries": ["SELECT region, amount FROM orders ORDER BY amount"]}`
	)

	return map[string]func(stage) []event{
		"answer":        asks(`{"reasoning": "First count, then list.", "interpretation": "All orders.", "steps": [` + count + `, ` + list + `], "response": "There are **2** orders."}`),
		"repair":        asks(`{"steps": [{"instruction": "Add up.", "queries": ["SELECT sum(price) FROM orders", "SELECT sum(amont) FROM orders", "SELECT sum(amount) AS total FROM orders"]}], "response": "7."}`),
		"clarification": asks(`{"outcome": "clarification", "response": "Which amount?", "clarification": {"question": "Which amount?", "options": ["with tax", "without"]}}`),
		"no-data":       asks(`{"steps": [{"instruction": "Look for the west.", "queries": ["SELECT region, amount FROM orders WHERE region = 'west'"]}], "outcome": "no_data", "response": "Nothing matched."}`),
		"not-permitted": asks(`{"outcome": "not_permitted", "response": "I only read."}`),
		"refused":       asks("How is the weather?"),
		"failing-agent": asks(`{"steps": [` + count + `], "fail": true}`),
		"failing-query": asks(`{"steps": [` + count + `, {"instruction": "Divide.", "queries": ["SELECT amont FROM orders", "SELECT region / 2 FROM orders"]}], "response": "x"}`),
		"unseen":        playUnseen,
		"cancel":        playCancel,
		"expiry":        playExpiry,
		"withheld":      withholds(`"response": "xylophone"`),
		"withheld-fail": withholds(`"fail": true`),
	}
}

func asks(script string) func(stage) []event {
	return func(on stage) []event { return on.stream(on.s, script) }
}

func (on stage) stream(s *service, script string) []event {
	on.t.Helper()

	return follow(on.t, newRequest(on.t, http.MethodPost, s.url+"/query/ask", on.bearer, on.script(on.agent, script, "")), 1000)
}

func (on stage) events(run string) []event {
	on.t.Helper()

	return follow(on.t, newRequest(on.t, http.MethodGet, on.s.url+"/query/runs/"+run+"/events", on.bearer, ""), 1000)
}

// playUnseen checks that a dataset that the caller may not see cannot be distinguished from an absent one.
func playUnseen(on stage) []event {
	on.t.Helper()

	reads := func(name string) string {
		return stepOf(on.t, `SELECT word FROM "other/`+on.namespace+`/`+name+`"`)
	}

	hidden := &filled{on.t, on.s, on.key.token("other"), "other", on.namespace, "hidden"}
	made := call(on.t, http.MethodPost, on.s.url+"/ingest/new/"+on.namespace+"/hidden", hidden.bearer, "")
	require.Contains(on.t, []int{http.StatusCreated, http.StatusConflict}, made.status, made.body) // the run of the other agent may have created it
	require.Equal(on.t, http.StatusOK, hidden.post(`{"data": [{"word": "secret"}]}`).status)

	events := on.stream(on.s, reads("hidden"))
	require.Equal(on.t, strings.ReplaceAll(on.show(events), "hidden", "absent"), on.show(on.stream(on.s, reads("absent"))))

	return events
}

func playCancel(on stage) []event {
	on.t.Helper()

	run := on.accept(on.agent, `{"pause": 5000, "steps": [{"instruction": "One.", "queries": ["SELECT 1 AS n"]}, {"instruction": "Two.", "queries": ["SELECT 2 AS n"]}], "response": "x"}`)

	await(on.t, "the first step is done", func() bool { return on.step(run.RunID, "rows").status == http.StatusOK })
	require.Equal(on.t, http.StatusOK, call(on.t, http.MethodPost, on.s.url+"/query/runs/"+run.RunID+"/cancel", on.bearer, "").status)

	return on.events(run.RunID)
}

func playExpiry(on stage) []event {
	on.t.Helper()

	return on.stream(on.hasty, `{"pause": 60000, "reasoning": "Wait.", "steps": [{"instruction": "One.", "queries": ["SELECT 1 AS n"]}], "response": "x"}`)
}

// withholds revokes the caller's access to the read dataset after the run has ended.
func withholds(end string) func(stage) []event {
	return func(on stage) []event {
		on.t.Helper()

		d := newFilled(on.t, on.s, "lender", on.key.token("lender"))
		require.Equal(on.t, http.StatusOK, d.post(`{"data": [{"word": "xylophone"}]}`).status)
		share(on.t, on.s, d.bearer, "datasets/"+d.path(), on.owner, "viewer")

		lent := on
		lent.filled = d.by(on.bearer)
		events := lent.stream(on.s, `{"reasoning": "It says xylophone.", "steps": [{"instruction": "Read.", "queries": ["SELECT word FROM orders"]}], `+end+`}`)
		require.Contains(on.t, on.show(events), "xylophone")

		unshare(on.t, on.s, d.bearer, "datasets/"+d.path(), on.owner)

		withheld := on.events(runOf(on.t, events).RunID)
		require.NotContains(on.t, on.show(withheld), "xylophone")

		return withheld
	}
}

func runOf(t *testing.T, events []event) (run asked) {
	t.Helper()
	(&answer{body: events[0].data}).json(t, &run)

	return run
}

var (
	anyID   = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)
	anyTime = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`)
)

// show returns a stream as text, with names for text that differs in every run.
func (on stage) show(events []event) string {
	on.t.Helper()

	var text strings.Builder

	for _, e := range events {
		fmt.Fprintf(&text, "id: %d\nevent: %s\ndata: %s\n\n", e.id, e.name, e.data)
	}

	run := runOf(on.t, events)
	shown := strings.NewReplacer(run.RunID, "<run>", run.ConversationID, "<conversation>", on.namespace, "<namespace>").Replace(text.String())

	return anyTime.ReplaceAllString(anyID.ReplaceAllString(shown, "<id>"), "<time>")
}

// playStreams compares the streams of both agents with testdata/streams.
func playStreams(t *testing.T, s *service, d *filled, key *signer) {
	t.Helper()

	hasty := another(t, s, scripted, "QUERN_RUN_TIMEOUT=10s")

	for name, play := range streams() {
		for _, agent := range []string{"nl2ql", "assistant"} {
			t.Run(name+" of "+agent, func(t *testing.T) {
				t.Parallel()

				own := *d
				own.t = t
				on := stage{&own, key, hasty, agent}
				got := on.show(play(on))
				path := filepath.Join("testdata", "streams", name+"."+agent+".golden")

				if *update {
					require.NoError(t, os.WriteFile(path, []byte(got), 0o600))
				}

				want, err := os.ReadFile(path)
				require.NoError(t, err)
				require.Equal(t, string(want), got)
			})
		}
	}
}
