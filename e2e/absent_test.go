package e2e

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// absentMessage is the message for what does not exist and for what the caller may not see. It repeats names and ids of the
// request, and nothing else.
const absentMessage = `^There is no .+ that you can see\. GET /\S+ (lists|shows) `

func requireAbsent(t *testing.T, answer *answer, why ...any) {
	t.Helper()
	require.Equal(t, http.StatusNotFound, answer.status, why...)

	var body struct {
		Code    string `json:"error_code"`
		Message string
		Subs    []any `json:"sub_errors"`
	}

	answer.json(t, &body)
	require.Equal(t, "NOT_FOUND", body.Code, why...)
	require.Regexp(t, absentMessage, body.Message, why...)
	require.Empty(t, body.Subs, why...)
}

// comparable returns an answer without what differs in every answer, with the names and ids of its request, which a message
// repeats, replaced by others.
func (a *answer) comparable(oldnew ...string) *answer {
	other := *a
	other.body = strings.NewReplacer(oldnew...).Replace(a.body)
	other.header = a.header.Clone()

	for _, name := range []string{"X-Request-Id", "Traceparent", "Date", "Content-Length"} {
		other.header.Del(name)
	}

	return &other
}
