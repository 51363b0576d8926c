package query

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/engine"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/lake"
)

func TestLocate(t *testing.T) {
	t.Parallel()

	for _, c := range []struct {
		statement string
		at        int
		want      string
	}{
		{"SELECT x", 0, "line 1, column 1"},
		{"SELECT x", 7, "line 1, column 8"},
		{"SELECT\n  x", 9, "line 2, column 3"},
		{"SELECT 'ä€😀', x", 19, "line 1, column 14"}, // characters, not bytes
		{"-- ä\n\nSELECT x", 14, "line 3, column 8"},
		{"SELECT", 6, "line 1, column 7"},
		{"SELECT", 7, ""},
		{"SELECT", -1, ""},
		{"", 0, "line 1, column 1"},
		{"ä", 1, "line 1, column 2"}, // DuckDB never reports a position inside a character; locate must not panic
	} {
		err := locate(invalid(c.at, "No."), c.statement, 0)
		require.True(t, fault.Is(err, fault.QueryInvalid))

		var shown string
		if subs := fault.From(err).Subs; len(subs) > 0 {
			require.Equal(t, "position", subs[0].Code)
			shown = subs[0].Message
		}

		require.Equal(t, c.want, shown, "%q at %d", c.statement, c.at)
	}

	other := errors.New("other")
	require.Equal(t, other, locate(other, "SELECT", 0))
	require.NoError(t, locate(nil, "SELECT", 0))
}

func TestRefused(t *testing.T) {
	t.Parallel()

	reads := []resolved{{snapshot: lake.Snapshot{Columns: []lake.Column{{Name: "customer"}, {Name: "customs"}, {Name: "amount"}}}}}

	for _, c := range []struct {
		said       engine.StatementError
		want       string
		candidates []string
	}{
		{engine.StatementError{Kind: "parser", Message: `syntax error at or near "FORM"`}, `The statement is not valid SQL: syntax error at or near "FORM".`, nil},
		{engine.StatementError{Kind: "not implemented", Message: "Only SELECT statements can be serialized to json!"}, "Only a single SELECT is allowed", nil},
		{engine.StatementError{Kind: "binder", Subtype: "COLUMN_NOT_FOUND", Name: "custmer"}, `There is no column "custmer".`, []string{"customer"}},
		{engine.StatementError{Kind: "catalog", Subtype: "MISSING_ENTRY", Name: "uper", Message: "Scalar Function with name uper does not exist!", Candidates: []string{"upper", "lower"}}, "There is no function uper.", []string{"upper"}},
		{engine.StatementError{Kind: "binder", Message: `Ambiguous reference to column name "id" (use: "a.id" or "b.id")`}, `The column "id" is in several datasets.`, nil},
		{engine.StatementError{Kind: "binder", Message: `Ambiguous reference`}, `The column "" is in several datasets.`, nil},
		{engine.StatementError{Kind: "binder", Message: `column "id" must appear in the GROUP BY clause or must be part of an aggregate function.` + "\nEither …"}, `The column "id" is neither in GROUP BY nor in an aggregate`, nil},
		{engine.StatementError{Kind: "conversion", Message: "Could not convert string 'x' to INT32\nLINE 1: …"}, "The statement cannot be run: Could not convert string 'x' to INTEGER. TRY_CAST", nil},
		{engine.StatementError{Kind: "out of range", Message: "Overflow in multiplication!"}, "The statement cannot be run: Overflow in multiplication.", nil},
		{engine.StatementError{Kind: "binder"}, "The engine cannot run this statement.", nil},
		{engine.StatementError{Kind: "io", Message: "/var/lib/quern/jobs/7/in/0.parquet"}, "The engine cannot run this statement.", nil},
		{engine.StatementError{Kind: "internal", Message: "secret"}, "The engine cannot run this statement.", nil},
		{engine.StatementError{}, "The engine cannot run this statement.", nil},
	} {
		c.said.Position = -1

		err := refused(&c.said, reads)
		require.True(t, fault.Is(err, fault.QueryInvalid), c.want)
		require.True(t, strings.HasPrefix(fault.From(err).Message, c.want), fault.From(err).Message)

		var candidates []string
		for _, sub := range fault.From(err).Subs {
			require.Equal(t, "candidate", sub.Code)
			candidates = append(candidates, sub.Message)
		}

		require.Equal(t, c.candidates, candidates, c.want)
	}

	other := fault.New(fault.Timeout, "Slow.")
	require.Equal(t, error(other), refused(other, nil))
	require.NoError(t, refused(nil, nil))
}
