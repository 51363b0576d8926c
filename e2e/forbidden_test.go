package e2e

import (
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestForbiddenLooksAbsent checks that a request for a hidden dataset and for an absent one get the same bytes, after the same
// time. Only `make torture` checks the times.
func TestForbiddenLooksAbsent(t *testing.T) { //nolint:tparallel // times are compared
	t.Parallel()

	s := start(t, "QUERN_SANDBOX_IDLE_PROCESSES=4")
	key := s.newKey()
	owner := newFilled(t, s, "holder", value(t, call(t, http.MethodPost, s.url+"/user/tokens", key.token("holder"), `{"name": "x", "role": "owner"}`)))
	require.Equal(t, http.StatusOK, owner.post(`{"data": [{"n": 1}]}`).status)

	hidden := owner.beside("secret", `{"data": [{"n": 2}]}`)
	guest := newFilled(t, s, "guest", value(t, call(t, http.MethodPost, s.url+"/user/tokens", key.token("guest"), `{"name": "x", "role": "owner"}`)))
	require.Equal(t, http.StatusOK, guest.post(`{"data": [{"n": 3}]}`).status)

	part := newFilled(t, s, "holder", owner.bearer) // one dataset of this namespace is shared
	require.Equal(t, http.StatusOK, part.post(`{"data": [{"n": 4}]}`).status)
	unseen := part.beside("secret", `{"data": [{"n": 5}]}`)
	share(t, s, owner.bearer, "datasets/self/"+part.namespace+"/orders", "guest", "viewer")

	ask := func(owner, namespace, statement, more string) *http.Request {
		about := *guest
		about.owner, about.namespace = owner, namespace

		return about.question(statement, more)
	}
	get := func(address string) *http.Request {
		return newRequest(t, http.MethodGet, s.url+"/data/"+address, guest.bearer, "")
	}

	// Each request is sent with the name of a hidden dataset, and with the name of an absent one.
	ways := map[string]func(d *filled) *http.Request{
		"its namespace":         func(d *filled) *http.Request { return ask(d.owner, d.namespace, "SELECT 1", "") },
		"a bare name":           func(d *filled) *http.Request { return ask(d.owner, d.namespace, "FROM "+d.name, "") },
		"limited to it":         func(d *filled) *http.Request { return ask(d.owner, d.namespace, "SELECT 1", `"dataset": "`+d.name+`"`) },
		"its full name":         func(d *filled) *http.Request { return ask("guest", guest.namespace, `FROM "`+d.path()+`"`, "") },
		"joined with one's own": func(d *filled) *http.Request { return ask("guest", guest.namespace, `FROM orders, "`+d.path()+`"`, "") },
		"with the plan": func(d *filled) *http.Request {
			return ask("guest", guest.namespace, `FROM "`+d.path()+`"`, `"explain": true`)
		},
		"at an earlier time": func(d *filled) *http.Request {
			return ask("guest", guest.namespace, `FROM "`+d.path()+`"`, `"asOf": "2026-01-01T00:00:00Z"`)
		},
		"one of its columns": func(d *filled) *http.Request {
			return ask("guest", guest.namespace, `SELECT n FROM "`+d.path()+`"`, "")
		},
		"one that it has not": func(d *filled) *http.Request {
			return ask("guest", guest.namespace, `SELECT m FROM "`+d.path()+`"`, "")
		},
		"with a cast that fails": func(d *filled) *http.Request {
			return ask("guest", guest.namespace, `SELECT n::date FROM "`+d.path()+`"`, "")
		},
		"DESCRIBE":               func(d *filled) *http.Request { return ask("guest", guest.namespace, `DESCRIBE "`+d.path()+`"`, "") },
		"a page of its rows":     func(d *filled) *http.Request { return get(d.path() + "/rows") },
		"columns of its rows":    func(d *filled) *http.Request { return get(d.path() + "/rows?columns=n") },
		"a whole file":           func(d *filled) *http.Request { return get(d.path() + "/export") },
		"a file in another form": func(d *filled) *http.Request { return get(d.path() + "/export?format=parquet") },
		"its namespace, in part": func(d *filled) *http.Request { return ask(part.owner, part.namespace, "FROM "+d.name, "") },
		"part of it, by its path": func(d *filled) *http.Request {
			return ask("guest", guest.namespace, `FROM "`+part.owner+"/"+part.namespace+"/"+d.name+`"`, "")
		},
	}

	before := map[string]*answer{}
	for what, request := range ways {
		before[what] = send(t, request(hidden))
	}

	t.Run("after the same time", func(t *testing.T) {
		if !full() {
			return
		}

		for _, what := range []string{"a bare name", "its full name", "its namespace, in part", "a page of its rows"} {
			missing := *hidden
			missing.name = "secreq"

			if what == "a bare name" || what == "its full name" || what == "a page of its rows" {
				missing.namespace = "n-" + strings.Repeat("0", len(hidden.namespace)-2)
			}

			requireSameTime(t, what, func() *http.Request { return ways[what](hidden) }, func() *http.Request { return ways[what](&missing) })
		}
	})

	// The same requests after the datasets are deleted.
	for _, d := range []*filled{hidden, unseen, owner} {
		require.Equal(t, http.StatusNoContent, d.call(http.MethodDelete, "", "").status)
	}

	require.Equal(t, http.StatusNoContent, call(t, http.MethodDelete, s.url+"/schema/self/namespaces/"+owner.namespace, owner.bearer, "").status)

	for what, request := range ways {
		after := send(t, request(hidden))
		require.Contains(t, []int{http.StatusNotFound, http.StatusUnprocessableEntity}, after.status, what)
		require.Equal(t, after.status, before[what].status, what)
		require.Equal(t, after.body, before[what].body, what)

		for _, header := range []http.Header{after.header, before[what].header} {
			maps.DeleteFunc(header, func(name string, _ []string) bool {
				return slices.Contains([]string{"X-Request-Id", "Traceparent", "Date"}, name)
			})
		}

		require.Equal(t, after.header, before[what].header, what)
	}
}

// requireSameTime compares the medians of two requests that alternate. On a busy machine it measures more often.
func requireSameTime(t *testing.T, what string, one, two func() *http.Request) {
	t.Helper()

	const (
		tries    = 10
		fraction = 0.2
	)

	var (
		first, second time.Duration
		took          [2][]time.Duration
	)

	for range tries {
		for range max(40, loops(200)) {
			// The order must not matter.
			for _, i := range rand.Perm(2) {
				request := []func() *http.Request{one, two}[i]()
				began := time.Now()
				answer := send(t, request)
				took[i] = append(took[i], time.Since(began))
				require.GreaterOrEqual(t, answer.status, http.StatusBadRequest)
			}
		}

		slices.Sort(took[0])
		slices.Sort(took[1])

		first, second = took[0][len(took[0])/2], took[1][len(took[1])/2]
		t.Logf("%s: p50 of %d tries %v if forbidden, %v if absent: %.2f", what, len(took[0]), first, second, float64(first)/float64(second))

		if difference := float64(first-second) / float64(second); difference > -fraction && difference < fraction {
			return
		}
	}

	require.Fail(t, "forbidden and absent take different times", "%s: %v and %v", what, first, second)
}
