package ingest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/record"
)

// TestReadCorrection checks that a correction has the type of its column, so that its row is not set aside.
func TestReadCorrection(t *testing.T) {
	t.Parallel()

	for _, c := range []struct{ column, value, want, why string }{
		{"", " Bolt  M6 ", "Bolt M6", ""},
		{"", " \x00", "", "has no text"},
		{"varchar", "1.234", "1.234", ""},
		{"varchar", "  ", "", "has no text"},
		{"bigint", "12", "12", ""},
		{"bigint", "1.5", "", "is not a bigint"},
		{"bigint", "99999999999999999999", "", "too large"},
		{"decimal(5,2)", "123.45", "123.45", ""},
		{"decimal(5,2)", "-0.5", "-0.5", ""},
		{"decimal(5,2)", "1.2345", "", "too many digits for a decimal(5,2)"},
		{"decimal(5,2)", "12345", "", "too many digits"},
		{"double", "1.234", "", "two ways"},
		{"double", "1.234,5", "1234.5", ""},
		{"date", "04.03.2026", "2026-03-04", ""},
		{"date", "soon", "", "is not a date"},
		{"boolean", "nein", "false", ""},
	} {
		got, err := readCorrection(record.Field{Kind: kindOf(c.column)}, record.Style{}, c.column, c.value)
		require.Equal(t, c.want, got, "%s %q", c.column, c.value)

		if c.why == "" {
			require.NoError(t, err, "%s %q", c.column, c.value)
		} else {
			require.Contains(t, fault.From(err).Subs[0].Message, c.why, "%s %q", c.column, c.value)
		}
	}
}
