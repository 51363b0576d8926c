package e2e

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// withOperators is the setting that makes the members of a group operators.
const withOperators = "QUERN_OIDC_OPERATOR_GROUP=operators"

// operator returns an access token of an operator.
func (s *signer) operator(username string) string {
	claims := s.claims(username)
	claims["groups"] = []string{"others", "operators"}

	return s.sign(claims)
}

// operated is a service with one operator.
type operated struct {
	*service

	t        *testing.T
	key      *signer
	operator string
}

func (o operated) call(method, path, body string) *answer {
	o.t.Helper()

	return call(o.t, method, o.url+"/operator"+path, o.operator, body)
}

func (o operated) do(method, path, body string, status int) *answer {
	o.t.Helper()

	got := o.call(method, path, body)
	require.Equal(o.t, status, got.status, got.body)

	return got
}

// audited returns the newest audit entry of an account.
func (o operated) audited(bearer string) (entry struct{ Actor, Action, Detail string }) {
	o.t.Helper()

	var page struct {
		Data []struct{ Username, Action, Detail string }
	}

	call(o.t, http.MethodGet, o.url+"/audit?limit=1", bearer, "").json(o.t, &page)
	require.Len(o.t, page.Data, 1)

	entry.Actor, entry.Action, entry.Detail = page.Data[0].Username, page.Data[0].Action, page.Data[0].Detail

	return entry
}

// TestOperators checks who is an operator, and what operators see and do. TestAuthorizationTable checks that they see no data.
func TestOperators(t *testing.T) {
	t.Parallel()

	s := start(t, withOperators, "QUERN_RUN_WORKERS=0", scripted)
	key := s.newKey()
	o := operated{s, t, key, key.operator("olga")}

	o.who()
	o.health()
	o.users()
	o.limits()

	s.stop()
	s.settings = append(s.settings, "QUERN_OIDC_OPERATOR_GROUP=")
	s.restart()
	o.do(http.MethodGet, "/health", "", http.StatusForbidden) // nobody is an operator
}

// who checks which credentials have the rights of an operator.
func (o operated) who() {
	o.t.Helper()

	me := call(o.t, http.MethodGet, o.url+"/user/me", o.operator, "").body
	require.Contains(o.t, me, `"operator":true`)
	require.NotContains(o.t, call(o.t, http.MethodGet, o.url+"/user/me", o.key.token("ada"), "").body, "operator")

	_, whole := newToken(o.t, o.service, o.operator, "owner")
	_, editor := newToken(o.t, o.service, o.operator, "editor")
	restricted := restrictedToken(o.t, o.service, o.operator, target("self", makeDataset(o.t, o.service, o.operator), ""))

	for bearer, status := range map[string]int{whole: http.StatusOK, editor: http.StatusForbidden, restricted: http.StatusForbidden, o.key.token("ada"): http.StatusForbidden} {
		require.Equal(o.t, status, call(o.t, http.MethodGet, o.url+"/operator/health", bearer, "").status)
	}

	// Somebody who leaves the group is no operator from the next sign-in on, with any token.
	gone := o.key.token("olga")
	require.Equal(o.t, http.StatusForbidden, call(o.t, http.MethodGet, o.url+"/operator/health", gone, "").status)
	await(o.t, "the token of somebody who left the group has no rights", func() bool {
		_ = call(o.t, http.MethodGet, o.url+"/user/me", o.key.token("olga"), "")

		return call(o.t, http.MethodGet, o.url+"/operator/health", whole, "").status == http.StatusForbidden
	})
}

func (o operated) health() {
	o.t.Helper()

	d := newFilled(o.t, o.service, "ada", o.key.token("ada"))
	asked := call(o.t, http.MethodPost, o.url+"/query/ask", d.bearer, d.script("nl2ql", `{}`, ""), "Prefer: respond-async")
	require.Equal(o.t, http.StatusAccepted, asked.status, asked.body)

	var health struct {
		Version string
		Checks  []struct {
			Name string
			OK   bool
		}
		Queues []struct {
			Name          string
			Waiting       int
			OldestSeconds float64
		}
	}

	o.do(http.MethodGet, "/health", "", http.StatusOK).json(o.t, &health)
	require.NotEmpty(o.t, health.Version)

	ok := map[string]bool{}
	for _, check := range health.Checks {
		ok[check.Name] = check.OK
	}

	require.True(o.t, ok["database"] && ok["object store"], health)

	waiting := map[string]int{}
	for _, queue := range health.Queues {
		waiting[queue.Name] = queue.Waiting
	}

	require.Equal(o.t, 1, waiting["run"], "no worker answers questions here")
	require.Contains(o.t, waiting, "ingest")
}

func (o operated) users() {
	o.t.Helper()

	bob := o.key.token("bob")
	require.Equal(o.t, http.StatusOK, call(o.t, http.MethodGet, o.url+"/user/me", bob, "").status)

	var names []string

	for cursor := ""; ; {
		var page struct {
			Data []struct {
				Username string
				Disabled bool
			}
			NextCursor string
		}

		o.do(http.MethodGet, "/users?limit=2"+cursor, "", http.StatusOK).json(o.t, &page)

		for _, user := range page.Data {
			names = append(names, user.Username)
		}

		if cursor = "&cursor=" + page.NextCursor; page.NextCursor == "" {
			break
		}
	}

	require.IsIncreasing(o.t, names)
	require.Subset(o.t, names, []string{"ada", "bob", "olga"})
	o.do(http.MethodGet, "/users?cursor=AAAA", "", http.StatusUnprocessableEntity)

	o.do(http.MethodPatch, "/users/bob", `{"disabled": true}`, http.StatusNoContent)
	require.Equal(o.t, http.StatusUnauthorized, call(o.t, http.MethodGet, o.url+"/user/me", bob, "").status)
	o.do(http.MethodPatch, "/users/bob", `{"disabled": false}`, http.StatusNoContent)
	require.Equal(o.t, http.StatusOK, call(o.t, http.MethodGet, o.url+"/user/me", bob, "").status)

	entry := o.audited(bob)
	require.Equal(o.t, []string{"olga", "account.enable"}, []string{entry.Actor, entry.Action})

	for _, self := range []string{"self", "olga", "OLGA"} {
		o.do(http.MethodPatch, "/users/"+self, `{"disabled": true}`, http.StatusConflict)
	}

	o.do(http.MethodPatch, "/users/nobody", `{"disabled": true}`, http.StatusNotFound)
}

func (o operated) limits() {
	o.t.Helper()

	ada := o.key.token("ada")

	// 26 limits: more than one page.
	o.do(http.MethodPut, "/limits", `{"kind": "questions", "amount": 100}`, http.StatusOK)
	o.do(http.MethodPut, "/limits", `{"group": "analysts", "kind": "questions", "amount": 1000}`, http.StatusOK)

	for i := range 24 {
		user := fmt.Sprintf("user-%02d", i)
		require.Equal(o.t, http.StatusOK, call(o.t, http.MethodGet, o.url+"/user/me", o.key.token(user), "").status)
		o.do(http.MethodPut, "/limits", `{"user": "`+user+`", "kind": "tokens"}`, http.StatusOK)
	}

	o.do(http.MethodPut, "/limits", `{"user": "ada", "kind": "questions", "amount": 1}`, http.StatusOK)

	entry := o.audited(ada)
	require.Equal(o.t, []string{"olga", "limit.set", "questions"}, []string{entry.Actor, entry.Action, entry.Detail})

	var list []string

	for cursor := ""; ; {
		var page struct {
			Data []struct {
				User, Group, Kind string
				Amount            *int
			}
			NextCursor string
		}

		o.do(http.MethodGet, "/limits"+cursor, "", http.StatusOK).json(o.t, &page)

		for _, l := range page.Data {
			amount := "unlimited"
			if l.Amount != nil {
				amount = strconv.Itoa(*l.Amount)
			}

			list = append(list, strings.TrimSpace(strings.Join([]string{l.User, l.Group, l.Kind, amount}, " ")))
		}

		if cursor = "?cursor=" + page.NextCursor; page.NextCursor == "" {
			break
		}
	}

	require.Len(o.t, list, 27)
	require.Subset(o.t, list, []string{"questions 100", "analysts questions 1000", "ada  questions 1", "user-23  tokens unlimited"})

	var usage struct {
		Items []struct {
			Kind        string
			Used, Limit int
		}
	}

	o.do(http.MethodGet, "/users/ada/usage", "", http.StatusOK).json(o.t, &usage)
	require.Contains(o.t, usage.Items, struct {
		Kind        string
		Used, Limit int
	}{"questions", 1, 1})

	d := newFilled(o.t, o.service, "ada", ada)
	refused := call(o.t, http.MethodPost, o.url+"/query/ask", ada, d.script("nl2ql", `{}`, ""), "Prefer: respond-async")
	require.Equal(o.t, http.StatusTooManyRequests, refused.status, refused.body)

	o.do(http.MethodDelete, "/limits?user=ada&kind=questions", "", http.StatusNoContent)
	require.Equal(o.t, http.StatusAccepted, call(o.t, http.MethodPost, o.url+"/query/ask", ada, d.script("nl2ql", `{}`, ""), "Prefer: respond-async").status)

	o.do(http.MethodDelete, "/limits?group=analysts&kind=questions", "", http.StatusNoContent)

	entry = o.audited(o.operator)
	require.Equal(o.t, []string{"olga", "limit.unset", "questions of group analysts"}, []string{entry.Actor, entry.Action, entry.Detail})

	o.do(http.MethodDelete, "/limits?group=analysts&kind=questions", "", http.StatusNotFound)
	o.do(http.MethodPut, "/limits", `{"user": "nobody", "kind": "questions", "amount": 1}`, http.StatusNotFound)
	o.do(http.MethodPut, "/limits", `{"user": "ada", "group": "analysts", "kind": "questions", "amount": 1}`, http.StatusUnprocessableEntity)
	o.do(http.MethodPut, "/limits", `{"kind": "storedBytes", "amount": -1}`, http.StatusUnprocessableEntity)
	o.do(http.MethodPut, "/limits", `{"kind": "querySeconds", "amount": 9223372036854775807}`, http.StatusUnprocessableEntity)
	o.do(http.MethodPut, "/limits", `{"kind": "wishes", "amount": 1}`, http.StatusUnprocessableEntity)
}
