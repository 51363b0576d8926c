package server

import (
	"testing"

	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/query"
)

func TestNegotiate(t *testing.T) {
	t.Parallel()

	const (
		arrow   = "application/vnd.apache.arrow.stream"
		parquet = "application/vnd.apache.parquet"
	)

	for _, c := range []struct {
		accept []string
		want   query.Form
	}{
		{nil, query.Rows},
		{[]string{"*/*"}, query.Rows},
		{[]string{"application/json"}, query.Rows},
		{[]string{"Application/JSON; charset=utf-8"}, query.Rows},
		{[]string{"application/*"}, query.Rows},
		{[]string{"text/*"}, query.CSV},
		{[]string{"text/csv"}, query.CSV},
		{[]string{"text/csv;header=present"}, query.CSV},
		{[]string{arrow}, query.Arrow},
		{[]string{parquet}, query.Parquet},
		{[]string{"text/csv, application/json"}, query.Rows}, // equal preference: the first of formats wins
		{[]string{"text/csv, application/json;q=0.9"}, query.CSV},
		{[]string{"text/csv;q=0.5, application/json;q=0.9"}, query.Rows},
		{[]string{"text/csv", "application/json;q=0.9"}, query.CSV}, // several lines are one list
		{[]string{"*/*, application/json;q=0.1"}, query.Arrow},      // an exact name takes precedence over a pattern
		{[]string{"*/*;q=0.1, text/csv;q=0.2"}, query.CSV},
		{[]string{"application/*;q=0.1, " + parquet + ";q=0.2"}, query.Parquet},
		{[]string{"application/json;q=0, */*;q=0.5"}, query.Arrow},
		{[]string{"text/html, application/xhtml+xml, */*;q=0.8"}, query.Rows}, // a browser
		{[]string{"nonsense;;=, text/csv"}, query.CSV},
		{[]string{"text/csv;q=0.001"}, query.CSV},

		{[]string{"text/html"}, ""},
		{[]string{"image/*"}, ""},
		{[]string{"application/x-ndjson"}, ""}, // available only for exports
		{[]string{"application/json;q=0"}, ""},
		{[]string{"*/*;q=0"}, ""},
		{[]string{"text/csv;q=much"}, ""},
		{[]string{"text/csv;q=-1"}, ""},
		{[]string{"text/csv;q=NaN"}, ""},
		{[]string{"nonsense"}, ""},
	} {
		media, form, err := negotiate(c.accept)
		if c.want == "" {
			require.True(t, fault.Is(err, fault.NotAcceptable), "%q: %s", c.accept, media)

			continue
		}

		require.NoError(t, err, "%q", c.accept)
		require.Equal(t, c.want, form, "%q", c.accept)
		require.NotEmpty(t, media)
	}
}

func TestQuality(t *testing.T) {
	t.Parallel()

	for _, c := range []struct {
		accept, media string
		want          float64
	}{
		{"text/csv", "text/csv", 1},
		{"text/csv;q=0.3", "text/csv", 0.3},
		{"text/*;q=0.3", "text/csv", 0.3},
		{"*/*;q=0.3", "text/csv", 0.3},
		{"*/*;q=0.3, text/*;q=0.2, text/csv;q=0.1", "text/csv", 0.1},
		{"text/csv;q=0.1, text/*;q=0.2, */*;q=0.3", "text/csv", 0.1},
		{"application/json", "text/csv", 0},
		{"*", "text/csv", 0},
		{"text/csv;q=", "text/csv", 0},
	} {
		require.InDelta(t, c.want, quality([]string{c.accept}, c.media), 1e-9, c.accept)
	}
}
