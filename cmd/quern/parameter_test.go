package main

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParameters(t *testing.T) {
	t.Parallel()

	for want, given := range map[string][]string{
		`null`:                            nil,
		`["north","it's"]`:                {"north", "it's"},
		`["a=b","c d=e",""]`:              {"=a=b", "c d=e", "="},
		`{"a":"b=c","d":""}`:              {"a=b=c", "d="},
		`[{"type":"bigint","value":"7"}]`: {":bigint=7"},
		`{"p":{"type":"decimal(9,2)","value":"1.50"}}`: {"p:decimal(9,2)=1.50"},
		`["12:00:00"]`: {"12:00:00"},
	} {
		found, err := parameters(given)
		require.NoError(t, err)

		text, err := json.Marshal(found)
		require.NoError(t, err)
		require.JSONEq(t, want, string(text))
	}

	for _, given := range [][]string{{"a=1", "2"}, {"a=1", "a=2"}} {
		_, err := parameters(given)
		require.Error(t, err)
	}
}

func TestWithComments(t *testing.T) {
	t.Parallel()

	given := []string{"query", "-n", "shop", "-- a\nSELECT 1", "--explain", "--b\nSELECT 2", "--param", "-- value", "--file=a b", "--", "-o", "csv"}
	require.Equal(t, []string{"query", "-n", "shop", " -- a\nSELECT 1", "--explain", " --b\nSELECT 2", "--param", "-- value", "--file=a b", "--", "-o", "csv"}, withComments(given))
}
