package engine

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/fault"
)

func valueLies() map[string]falsehood {
	end := []string{`{"listed":[{"values":1,"long":0,"sampled":false}]}`}

	return map[string]falsehood{
		"truth":               {rows: said("[0,\"a\",1]\n"), end: end},
		"nothing":             {},
		"no end":              {rows: said("[0,\"a\",1]\n")},
		"an empty end":        {rows: said("[0,\"a\",1]\n"), end: []string{`{}`}},
		"other columns":       {rows: said("[0,\"a\",1]\n"), end: []string{`{"listed":[{"values":1},{"values":0}]}`}},
		"another count":       {rows: said("[0,\"a\",1]\n"), end: []string{`{"listed":[{"values":2}]}`}},
		"negative":            {rows: said("[0,\"a\",1]\n"), end: []string{`{"listed":[{"values":1,"long":-1}]}`}},
		"half a value":        {rows: said(`[0,"a"`), end: end},
		"no newline":          {rows: said(`[0,"a",1]`), end: end},
		"an empty line":       {rows: said("\n"), end: end},
		"an object":           {rows: said("{}\n"), end: end},
		"two":                 {rows: said("[0,\"a\",1][0,\"b\",1]\n"), end: end},
		"too few fields":      {rows: said("[0,\"a\"]\n"), end: end},
		"too many fields":     {rows: said("[0,\"a\",1,1]\n"), end: end},
		"null":                {rows: said("[0,null,1]\n"), end: end},
		"another column":      {rows: said("[1,\"a\",1]\n"), end: end},
		"a column before":     {rows: said("[-1,\"a\",1]\n"), end: end},
		"no rows":             {rows: said("[0,\"a\",0]\n"), end: end},
		"no text":             {rows: said("[0,\"\",1]\n"), end: end},
		"a number":            {rows: said("[0,7,1]\n"), end: end},
		"a long text":         {rows: said(`[0,"` + strings.Repeat("x", 21) + `",1]` + "\n"), end: end},
		"a line without end":  {rows: endless("x")},
		"values without end":  {rows: endless("[0,\"a\",1]\n")},
		"more than the table": {rows: said(strings.Repeat("[0,\"a\",1]\n", 4)), end: []string{`{"listed":[{"values":4}]}`}},
		"more bytes":          {rows: said(strings.Repeat("[0,\"12345678901234567890\",1]\n", 3)), end: []string{`{"listed":[{"values":3}]}`}},
	}
}

// TestValueLies checks that impossible values, and more values than were requested, are rejected.
func TestValueLies(t *testing.T) {
	t.Parallel()

	e := sessions(t)

	for name := range valueLies() {
		session, err := e.Open(t.Context(), 20*time.Second)
		require.NoError(t, err)

		count := 0
		_, err = session.Values(View{Name: name}, []string{"a"}, ValueBounds{Column: 3, Table: 3, Bytes: 50, Length: 20}, func(Value) bool {
			count++

			return true
		})

		session.Close()
		require.LessOrEqual(t, count, 3, name)

		if name == "truth" {
			require.NoError(t, err)
			require.Equal(t, 1, count)

			continue
		}

		require.True(t, fault.Is(err, fault.Internal), "%s: %v", name, err)
	}
}
