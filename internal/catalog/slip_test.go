package catalog

import (
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// TestSlips checks that words that differ by one typing error have a variant in common.
func TestSlips(t *testing.T) {
	t.Parallel()

	for right, wrong := range map[string]string{"orders": "oders", "sales": "slaes", "region": "regiion", "amount": "amounr"} {
		require.True(t, meet(slips(right), slips(wrong)), "%s %s", right, wrong)
	}

	require.False(t, meet(slips("orders"), slips("boarder")))
}

func meet(a, b []string) bool {
	return slices.ContainsFunc(a, func(word string) bool { return slices.Contains(b, word) })
}

// FuzzSearchText checks that PostgreSQL can parse the document and the search made from any text.
//
//nolint:gosmopolitan // people write in every script
func FuzzSearchText(f *testing.F) {
	for _, text := range []string{"", "Orders 2024", "'; DROP TABLE x; --", "a & !b <-> 'c':*", "\x00\xff", "注文 한국어 ไทย", "ﷺ", "İı", "x\\'y", "é\u0301\u0301"} {
		f.Add(text)
	}

	f.Fuzz(func(t *testing.T, text string) {
		want := newWanted(text)
		made := searched{name: text, definition: Definition{DataDescription: text}, columns: []Column{{Name: text}}, values: []string{text}}.document()

		require.LessOrEqual(t, len(want.words), maxWords)

		for _, word := range append(want.words, strings.Fields(made)...) {
			word = strings.TrimPrefix(word, "'")
			require.True(t, utf8.ValidString(word))
			require.LessOrEqual(t, len(word), 2046, "longer than PostgreSQL takes")

			lexeme, _, _ := strings.Cut(word, "'")
			for _, r := range strings.TrimLeft(lexeme, "=<~+@") {
				require.True(t, unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.IsMark(r), "%q of %q", word, text)
			}
		}

		for _, sense := range want.senses(func(int) bool { return true }) {
			condition := sense.match
			require.Equal(t, strings.Count(condition, "("), strings.Count(condition, ")"))
			require.Zero(t, strings.Count(condition, "'")%2)
			require.NotContains(t, condition, `\`)
		}
	})
}
