package e2e

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func sourcesRefused(t *testing.T, s *service, key *signer) {
	t.Helper()

	bearer := key.token("refused")
	connection := s.connect(t, bearer, "c", newBucket(t))

	for body, status := range map[string]int{
		`{"name": "s", "connectionId": %q, "namespace": "n", "datasetName": "d", "pattern": "["}`:                       http.StatusUnprocessableEntity,
		`{"name": "s", "connectionId": %q, "namespace": "n", "datasetName": "d", "accept": ["no such doubt"]}`:          http.StatusUnprocessableEntity,
		`{"name": "s", "connectionId": %q, "username": "nobody-at-all", "namespace": "n", "datasetName": "d"}`:          http.StatusNotFound,
		`{"name": "s", "connectionId": %q, "namespace": "n", "datasetName": "d", "options": {"delimiter": "too long"}}`: http.StatusUnprocessableEntity,
	} {
		answer := call(t, http.MethodPost, s.url+"/sources", bearer, fmt.Sprintf(body, connection))
		require.Equal(t, status, answer.status, answer.body)
	}

	body := fmt.Sprintf(`{"name": "s", "connectionId": %q, "namespace": "n", "datasetName": "d", "options": {"delimiter": ";"}}`, connection)
	made := call(t, http.MethodPost, s.url+"/sources", bearer, body)
	require.Equal(t, http.StatusCreated, made.status)

	var one sourced

	made.json(t, &one)

	// An option with which no file can be read is refused when it is given, and not by the first run.
	for options, said := range map[string][]string{
		`{"types": {"total": "money"}}`:               {"options.types", `\"money\" of the column \"total\" is not a type`, "decimal(p,s)"},
		`{"types": {"total": "decimal(40,2)"}}`:       {"options.types", "decimal(p,s)"},
		`{"delimiter": "€€"}`:                         {"options.delimiter", "at most four bytes"},
		`{"delimiter": "\""}`:                         {"options.delimiter", "without the quote"},
		`{"quote": "€"}`:                              {"options.quote", "one byte"},
		`{"decimal": ",", "thousands": ","}`:          {"options.decimal", "two different signs"},
		`{"decimal": "5"}`:                            {"options.decimal", "not digits"},
		`{"dateFormat": "DD.MM.YYYY"}`:                {"options.dateFormat", "yyyy"},
		`{"encoding": "klingon"}`:                     {"options.encoding", "latin-1"},
		`{"delimiter": ";", "types": {"a": "texts"}}`: {"options.types", "varchar"},
	} {
		created := call(t, http.MethodPost, s.url+"/sources", bearer, fmt.Sprintf(`{"name": "t", "connectionId": %q, "namespace": "n", "datasetName": "d", "options": %s}`, connection, options))
		changed := call(t, http.MethodPatch, s.url+"/sources/"+one.ID, bearer, `{"options": `+options+`}`)

		for _, answer := range []*answer{created, changed} {
			require.Equal(t, http.StatusUnprocessableEntity, answer.status, "%s: %s", options, answer.body)

			for _, text := range said {
				require.Contains(t, answer.body, text, options)
			}
		}
	}

	for _, options := range []string{`{"types": {"total": "decimal(10, 2)", "id": "bigint"}}`, `{"delimiter": "||", "quote": "", "encoding": "Windows-1252", "dateFormat": "d.m.yyyy HH:MM:SS"}`, `{"delimiter": ";"}`} {
		answer := call(t, http.MethodPatch, s.url+"/sources/"+one.ID, bearer, `{"options": `+options+`}`)
		require.Equal(t, http.StatusOK, answer.status, answer.body)
	}

	answer := call(t, http.MethodPost, s.url+"/sources", bearer, strings.Replace(body, `"s"`, `"S"`, 1))
	require.Equal(t, http.StatusConflict, answer.status, answer.body)

	var page struct{ Data []sourced }

	answer = call(t, http.MethodGet, s.url+"/sources", bearer, "")
	answer.json(t, &page)
	require.Len(t, page.Data, 1)
	require.Contains(t, answer.body, `"options":{"delimiter":";"}`)
	require.True(t, slices.ContainsFunc(page.Data, func(one sourced) bool { return one.Name == "s" && one.Username == "refused" }))
}
