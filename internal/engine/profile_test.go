package engine

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/fault"
)

// TestProfileLies checks that impossible facts about a column of 10 rows are rejected.
func TestProfileLies(t *testing.T) {
	t.Parallel()

	e := sessions(t)

	for name, c := range map[string]struct {
		said  string
		truth bool
	}{
		"truth":            {said: `{"nulls":1,"distinct":3,"distinctExact":true,"min":1,"max":"9","topValues":[{"value":1,"count":7}],"examples":[true],"sketch":[1,2],"shapes":[{"shape":"9","share":1}]}`, truth: true},
		"negative nulls":   {said: `{"nulls":-1}`},
		"more nulls":       {said: `{"nulls":11}`},
		"more values":      {said: `{"nulls":8,"distinct":3}`},
		"more rows":        {said: `{"topValues":[{"value":1,"count":11}]}`},
		"negative length":  {said: `{"shortest":-1}`},
		"an object":        {said: `{"min":{"a":1}}`},
		"a list":           {said: `{"examples":[[1]]}`},
		"null":             {said: `{"examples":[null]}`},
		"a long text":      {said: `{"max":"` + strings.Repeat("x", 201) + `"}`},
		"a long number":    {said: `{"max":0.` + strings.Repeat("1", 500) + `}`},
		"many examples":    {said: `{"examples":[1,2,3,4,5,6]}`},
		"many top values":  {said: `{"topValues":[` + strings.TrimSuffix(strings.Repeat(`{"value":1,"count":1},`, 11), ",") + `]}`},
		"a long sketch":    {said: `{"sketch":[` + strings.TrimSuffix(strings.Repeat(`1,`, 129), ",") + `]}`},
		"a mixed sketch":   {said: `{"sketch":[2,1]}`},
		"a large share":    {said: `{"shapes":[{"shape":"a","share":1.5}]}`},
		"no column":        {said: ``},
		"two columns":      {said: `{},{}`},
		"another kind":     {said: `7`},
		"a value of none":  {said: `{"topValues":[{"count":1}]}`},
		"numbers for text": {said: `{"shapes":[{"shape":7}]}`},
	} {
		session, err := e.Open(t.Context(), 20*time.Second)
		require.NoError(t, err)

		made, err := session.Profile(View{Name: `{"profiled":{"columns":[` + c.said + `]}}`, Columns: []Column{{Name: "a", Type: Double}}}, 10)
		session.Close()

		if c.truth {
			require.NoError(t, err)
			require.Equal(t, "a", made.Columns[0].Name)

			continue
		}

		require.True(t, fault.Is(err, fault.Internal), "%s: %v", name, err)
	}
}
